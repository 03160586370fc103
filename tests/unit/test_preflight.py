"""Checks before go-live: they fail where a node is not as it should be, pass only on what was seen, and never become diagnoses."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import preflight
from forensics.case import open_case
from forensics.options import Options
from forensics.pipeline import run
from forensics.result import CheckResult, Triage
from rules import pack
from rules.model import RuleSet
from rules.versions import compared

TABLE = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc3                 Version: 24.1.rc3                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 4     910B3               | {health:<14}| NA          {temperature:<5}             0    / 0             |
| 0                         | 0000:81:00.0  | 0           0    / 0          {used:<5}/ 65536         |
+===========================+===============+====================================================+
"""
ENV = "PATH=/usr/bin\nLD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64\nASCEND_GLOBAL_LOG_LEVEL={level}\nHCCL_EXEC_TIMEOUT=1800\n"
LINK = "$ hccn_tool -i 4 -link -g\nlink status: {link}\n\n$ hccn_tool -i 4 -net_health -g\nnet health status: {net}\n"
CLOCK = "System clock synchronized: {sync}\nSystem time     : {offset} seconds slow of NTP time\n"
ECC = "$ npu-smi info -t ecc -i 4 -c 0\n        NPU ID                         : 4\n        HBM Double Bit Error Count     : {ecc}\n"
SOUND = {
    "health": "OK", "temperature": "44", "used": "3000", "level": "3", "link": "UP", "net": "Success", "sync": "yes", "offset": "0.000020390",
    "ecc": "0",
}  # fmt: skip
FILES = {"npu-smi.txt": TABLE, "env.txt": ENV, "hccn.txt": LINK, "clock.txt": CLOCK, "ecc.txt": ECC}


def triage(folder: Path, files: dict[str, str] = FILES, profile: str | None = "preflight", **values: str) -> Triage:
    bundle = folder / "bundle"
    bundle.mkdir(parents=True)
    for name, text in files.items():
        (bundle / name).write_text(text.format(**(SOUND | values)))
    work = run([str(bundle)], Options(out=str(folder / "case"), index=False, workers=1, profile=profile))
    work.close()
    return work.triage


def results(found: Triage) -> dict[str, CheckResult]:
    return {check.rule.removeprefix("preflight."): check for check in found.checks}


def test_a_healthy_node_passes_what_was_looked_at_and_the_rest_is_not_checked(tmp_path: Path) -> None:
    found = results(triage(tmp_path))
    assert {name for name, check in found.items() if check.status == "fail"} == set()
    seen = {
        "hbm.health", "hbm.free", "hbm.temperature", "hbm.ecc", "links.ports-up", "links.net-health", "environment.log-level",
        "environment.libraries",
        "environment.no-blocking", "clocks.synchronized", "clocks.offset",
    }  # fmt: skip
    assert seen <= {name for name, check in found.items() if check.status == "pass"}
    for name in ("links.light", "environment.disk", "versions.cann-driver", "hbm.banks-up", "clocks.cards"):
        assert found[name].status == "not-checked" and found[name].wanting and found[name].note is not None, name


@pytest.mark.parametrize(
    ("change", "check", "line"),
    [
        ({"health": "Alarm"}, "hbm.health", "Alarm"),
        ({"temperature": "91"}, "hbm.temperature", "91"),
        ({"used": "60000"}, "hbm.free", "device 4: npu.hbm.usage = 91.55%"),
        ({"ecc": "2"}, "hbm.ecc", "device 4: npu.ecc.double_bit HBM = 2"),
        ({"level": "1"}, "environment.log-level", "ASCEND_GLOBAL_LOG_LEVEL=1"),
        ({"link": "DOWN"}, "links.ports-up", "device 4: link.status = 0"),
        ({"net": "Socket fail"}, "links.net-health", "net health status: Socket fail"),
        ({"sync": "no"}, "clocks.synchronized", "System clock synchronized: no"),
        ({"offset": "12.5"}, "clocks.offset", "host.clock.offset = -12.5s"),
    ],
)
def test_one_thing_wrong_fails_one_check_and_shows_its_line(change: dict[str, str], check: str, line: str, tmp_path: Path) -> None:
    found = results(triage(tmp_path, **change))
    assert [name for name, one in found.items() if one.status == "fail"] == [check]
    assert any(line in shown.text for shown in found[check].lines), found[check].lines
    assert found[check].remedy["en"] and found[check].remedy["zh"]


def test_only_the_values_that_are_wrong_are_shown(tmp_path: Path) -> None:
    sound = TABLE.replace("| 4 ", "| 3 ").replace("81:00", "01:00")
    found = results(triage(tmp_path, {"a.txt": sound.format(**SOUND), "b.txt": TABLE}, health="Critical"))
    assert {line.file.rsplit("/", 1)[-1] for line in found["hbm.health"].lines} == {"b.txt"}


def test_nodes_that_differ_are_found(tmp_path: Path) -> None:
    found = results(triage(tmp_path, {"a.txt": "cann=8.2.RC1\n", "b.txt": "cann=8.3.RC1\n"}))
    assert found["versions.cann-alike"].status == "fail" and len(found["versions.cann-alike"].lines) == 2


def test_a_log_full_of_nothing_is_checked_for_nothing(tmp_path: Path) -> None:
    found = triage(tmp_path, {"a.log": "hello\n"})
    assert {check.status for check in found.checks} == {"not-checked"}


def test_without_the_profile_no_check_is_made_and_none_ever_becomes_a_diagnosis(tmp_path: Path) -> None:
    sick = {"health": "Alarm", "link": "DOWN", "level": "0"}
    plain, asked = triage(tmp_path / "plain", profile=None, **sick), triage(tmp_path / "asked", **sick)
    assert plain.checks == [] and asked.checks
    ids = [diagnosis.finding.rule.id for diagnosis in asked.diagnoses]
    assert ids == [diagnosis.finding.rule.id for diagnosis in plain.diagnoses]
    assert not any(ident.startswith("preflight.") for ident in ids)
    again = open_case(tmp_path / "asked" / "case").load_triage()
    assert again.checks == asked.checks


@pytest.fixture(scope="module")
def checks() -> RuleSet:
    return pack.load([str(pack.SHIPPED / "preflight")], shipped=False)


def test_every_check_says_how_to_get_what_it_looks_at_and_what_to_do(checks: RuleSet) -> None:
    assert len(checks.rules) > 30
    for rule in checks.rules:
        assert rule.role == "check" and rule.id.startswith("preflight.")
        assert rule.note is not None and rule.remedy["en"] and rule.remedy["zh"], rule.id
    assert {rule.id.split(".")[1] for rule in checks.rules} == {"versions", "hbm", "links", "environment", "clocks"}


def test_a_pair_of_versions_can_be_judged_where_both_are_known() -> None:
    assert compared({}) == set() and compared({"torch_npu.version": "2.5.1"}) == set()
    assert "torch_npu-torch" in compared({"torch_npu.version": "2.5.1", "torch.version": "2.5.1"})


def test_the_clock_of_a_card_is_measured_zones_apart() -> None:
    from tests.unit.sample_triage import member

    card, host = member("slog/device-0/x.log"), member("messages")
    card.kind, card.utc_offset = "device-os", 28800 + 340
    rows = preflight._skews([card, host])
    assert [(row.name, row.value) for row in rows] == [("clock.skew", 340.0)]
