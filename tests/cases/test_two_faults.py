"""Two faults in one bundle that have nothing to do with each other: both are found, each with what followed from it and nothing else."""

from __future__ import annotations

from pathlib import Path

from forensics.options import Options
from forensics.pipeline import run
from forensics.result import Triage

ECC = [
    "[ERROR] SYSMONITOR(1180,fault_manager):2026-03-12-06:31:07.803.514 [fault_manager.c:418][Fault] event_id: [0x80E01801], Node Type=0x70; "
    "Node ID=0; Sensor Type=0xc0; event_state=1; assertion=1",
]
CORE = [
    "[ERROR] RUNTIME(2106,python3):2026-03-12-06:31:07.904.338 [device_error_core_proc.cc:355]2161 ProcessStarsCoreErrorInfo:The error from "
    "device(chipId:2, dieId:0), serial number is 1, there is an aivec error exception, core id is 11, error code = 0x800000, dump info: 0x1.",
    "[ERROR] RUNTIME(2106,python3):2026-03-12-06:31:07.906.402 [logger.cc:331]2161 StreamSynchronize:Stream synchronize failed, stream_id=41, "
    "ErrCode=507035, desc=[vector core exception], InnerCode=0x7150031",
]
PORT = [
    "[ERROR] HCCL(7714,python3):2026-03-12-18:02:40.120.331 [hccl_socket_manager.cc:300] [7714]socket type[0], listen on ip[192.0.2.7] and specific "
    "port[16666] fail. Please check the port status and whether the port is being used by other process.",
    "[ERROR] HCCL(7714,python3):2026-03-12-18:02:41.120.331 [op_base.cc:434] [7714]HcclCommInitRootInfo failed, return[0x0000000005000007]",
]


def triage(folder: Path, files: dict[str, list[str]]) -> Triage:
    bundle = folder / "logs"
    for path, lines in files.items():
        bundle.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
        bundle.joinpath(path).write_text("\n".join(lines) + "\n")
    work = run([str(bundle)], Options(out=str(folder / "case"), index=False))
    work.finish()
    work.close()
    return work.triage


FIRST = {"slog/dev-os-2/run/event/event_20260312.log": ECC, "debug/plog/plog-2106_20260312062003118.log": CORE}
SECOND = {"debug/plog/plog-7714_20260312180003118.log": PORT}


def test_both_are_found_each_with_its_own_chain(tmp_path: Path) -> None:
    found = triage(tmp_path, FIRST | SECOND)
    by_cause = {d.finding.rule.root_cause: d for d in found.diagnoses}
    assert {d.finding.rule.root_cause for d in found.diagnoses[:2]} == {"ecc-hardware-fault", "port-conflict"}
    assert all(d.level != "low" for d in found.diagnoses[:2])
    of = {echo.rule for echo in by_cause["ecc-hardware-fault"].echoes}, {echo.rule for echo in by_cause["port-conflict"].echoes}
    assert of[0] and of[1] and not of[0] & of[1]


def test_neither_makes_the_other_less_sure(tmp_path: Path) -> None:
    both = {d.finding.rule.root_cause: d.confidence for d in triage(tmp_path / "both", FIRST | SECOND).diagnoses}
    for name, files in (("one", FIRST), ("two", SECOND)):
        for diagnosis in triage(tmp_path / name, files).diagnoses:
            assert both[diagnosis.finding.rule.root_cause] == diagnosis.confidence
