"""Files are given to the machine that they say they are from, and to no machine where they contradict each other."""

from __future__ import annotations

from forensics.nodes import Trace, name_files


def named(*traces: Trace) -> tuple[dict[int, str], dict[str, str]]:
    names, machines = name_files(traces)
    return names, {machine.name: machine.why for machine in machines}


def test_a_bundle_has_the_name_of_its_host_whatever_it_is_called() -> None:
    names, machines = named(
        Trace(0, "upload1.tar.gz", "", "upload1.tar.gz/plog-1.log", servers={"10.0.0.1"}),
        Trace(1, "upload1.tar.gz", "", "upload1.tar.gz/messages", hosts={"bms-1"}),
        Trace(2, "upload2.tar.gz", "", "upload2.tar.gz/messages", hosts={"bms-2"}),
    )
    assert names == {0: "bms-1", 1: "bms-1", 2: "bms-2"} and machines == {"bms-1": "host", "bms-2": "host"}


def test_two_bundles_of_one_host_are_one_node() -> None:
    names, _ = named(Trace(0, "a.tar", "", "a.tar/x", hosts={"bms-1"}, servers={"10.0.0.1"}), Trace(1, "b.tar", "", "b.tar/y", hosts={"bms-1"}))
    assert set(names.values()) == {"bms-1"}


def test_a_host_name_that_different_machines_share_names_none() -> None:
    names, machines = named(
        Trace(0, "a.tar", "", "a.tar/x", hosts={"worker"}, servers={"10.0.0.1"}),
        Trace(1, "b.tar", "", "b.tar/y", hosts={"worker"}, servers={"10.0.0.2"}),
    )
    assert "worker" not in machines and set(names.values()) <= {"10.0.0.1", "10.0.0.2"}
    assert named(Trace(0, "", "node-1", "node-1/x", hosts={"h7"}), Trace(1, "", "node-2", "node-2/y", hosts={"h7"}))[0] == {0: "node-1", 1: "node-2"}


def test_without_a_host_the_path_then_the_server_then_the_bundle_names_it() -> None:
    names, machines = named(
        Trace(0, "", "node-1", "node-1/plog", servers={"10.0.0.1"}),
        Trace(1, "b.tar.gz", "", "b.tar.gz/plog", servers={"10.0.0.2"}),
        Trace(2, "c.tar.gz", "", "c.tar.gz/plog"),
    )
    assert names == {0: "node-1", 1: "10.0.0.2", 2: "c"}
    assert machines == {"node-1": "path", "10.0.0.2": "server", "c": "bundle"}


def test_folders_side_by_side_are_machines_where_each_names_another() -> None:
    apart = [
        Trace(0, "", "", "all/up1/messages", hosts={"h1"}),
        Trace(1, "", "", "all/up1/plog-3.log"),
        Trace(2, "", "", "all/up2/messages", hosts={"h2"}),
    ]
    assert named(*apart)[0] == {0: "h1", 1: "h1", 2: "h2"}
    alike = [Trace(0, "", "", "rank0/plog", servers={"10.0.0.1"}), Trace(1, "", "", "rank1/plog", servers={"10.0.0.1"})]
    assert named(*alike)[0] == {0: "10.0.0.1", 1: "10.0.0.1"}


def test_processes_of_several_servers_in_one_folder_say_where_each_ran() -> None:
    names, _ = named(
        Trace(0, "", "", "run/plog-1.log", servers={"10.0.0.1"}, pid=1),
        Trace(1, "", "", "run/plog-2.log", servers={"10.0.0.2"}, pid=2),
        Trace(2, "", "", "debug/plog-2.log", pid=2),
        Trace(3, "", "", "console.log"),
    )
    assert names == {0: "10.0.0.1", 1: "10.0.0.2", 2: "10.0.0.2"}


def test_the_number_of_a_container_is_no_host_and_syslog_knows_better_than_a_container() -> None:
    both = [Trace(0, "a.tar", "", "a.tar/messages", hosts={"bms-1"}), Trace(1, "a.tar", "", "a.tar/env.txt", stated={"train-pod-0"})]
    assert set(named(*both)[0].values()) == {"bms-1"}
    assert named(Trace(0, "a.tar", "", "a.tar/env.txt", stated={"train-pod-0"}))[0] == {0: "train-pod-0"}
    assert named(Trace(0, "a.tar", "", "a.tar/env.txt", stated={"3f2a9b0c1d2e"}))[0] == {0: "a"}


def test_names_that_name_nothing_are_passed_over() -> None:
    assert named(Trace(0, "", "", "messages", hosts={"localhost"}))[0] == {}
