"""Lines of cluster components: Go logs old and new, klog, TTP, logfmt, daemons behind syslog."""

from __future__ import annotations

import pytest

from parsers.cluster import ClusterParser

cluster = ClusterParser()


@pytest.mark.parametrize(
    "line, severity, clock, source, message",
    [
        ("[WARN]     2024/01/10 03:30:38.643290 17      deviceswitch/s.go:190    got fault", "WARNING", "local", "deviceswitch/s.go", "got fault"),
        ("[2026-04-28 07:58:50.152020][ERROR]     157     dcmi/dcmi.go:1466    failed", "ERROR", "local", "dcmi/dcmi.go", "failed"),
        ("E0111 03:29:15.700190       1 queue_controller.go:258]    Failed", "ERROR", "noyear", "queue_controller.go", "Failed"),
        ("[2024-12-24 11:56:59,095][10][INFO][ttp_mindx_api:56]register action", "INFO", "local", "ttp_mindx_api", "register action"),
        ("[2024-12-24 11:56:59,116][10][ERROR]NormalCallback, ret=2333", "ERROR", "local", "", "NormalCallback, ret=2333"),
        ('time="2024-07-19T10:17:55+08:00" level=error msg="a \\"b\\" c" file="x.go:1"', "ERROR", "zoned", "", 'a "b" c'),
        ('time="2024-07-19T10:17:55Z" level=fatal msg=short', "FATAL", "zoned", "", "short"),
        ("Oct 14 14:12:01 node-7 kubelet[812]: E1014 14:12:01.123456     812 pod_workers.go:1298] Error syncing pod",
         "ERROR", "noyear", "pod_workers.go", "Error syncing pod"),
        ("Oct 14 14:12:01 node-7 dockerd[99]: container died", "", "noyear", "", "container died"),
    ],
)  # fmt: skip
def test_lines_of_each_component(line: str, severity: str, clock: str, source: str, message: str) -> None:
    record = cluster.record(line)
    assert record is not None
    assert (record.severity, record.clock, record.src_file, record.message) == (severity, clock, source, message)
    assert record.grammar == "cluster"


def test_a_quote_that_never_ends_takes_the_rest_of_the_line() -> None:
    record = cluster.record('time="2024-07-19T10:17:55+08:00" level=info msg="cut off')
    assert record is not None and record.message == "cut off"


def test_a_jobs_own_line_between_the_platforms_is_read_as_a_console_line() -> None:
    record = cluster.record("[ERROR] 2024-03-07-01:31:48 (PID:16072, Device:0, RankID:-1) ERR00002 PTA invalid type")
    assert record is not None and record.grammar == "torch_npu"


def test_container_runtimes_in_front_do_not_hide_the_component() -> None:
    record = cluster.record(
        "2024-01-10T03:40:00.1Z stderr F [ERROR]    2024/01/10 03:40:00.000001 60      common/common.go:200    init devmanager failed"
    )
    assert record is not None and (record.clock, record.severity, record.message) == ("zoned", "ERROR", "init devmanager failed")
