"""Where a case and the replay meet: the spec of a diagnosis, the dumps of its failed task in the bundle, and the verdict back in the case.

verdict = replay_diagnosis(open_case("logs.case"), 1)
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forensics.errors import ForensicsError, UsageError
from forensics.result import Triage
from replay.capture.found import Capture, captures, failed_tasks, joined
from replay.errors import CaptureError, ReplayError
from replay.result import Verdict, Words
from replay.spec import Spec, SuspectedFault, TensorFile, text
from rules.diagnose import filled
from rules.model import Diagnosis

if TYPE_CHECKING:
    from forensics.bundle import Bundle
    from forensics.case import Case
    from forensics.several import Several
    from replay.execute import Session

AUTO_SECONDS = 60.0
"""What triage spends on replays, all together."""
DUMP_BYTES = 4 << 30
"""Of one capture that is taken out of a bundle."""
TRIED = 3
"""Captures of one diagnosis that are tried."""
NUMBER = re.compile(r"[-+]?\d{1,18}\Z")
REAL = re.compile(r"[-+]?\d{1,18}(?:\.\d{1,18})?(?:[eE][-+]?\d{1,3})?\Z")
WORD = re.compile(r"[\w.+\-]{1,64}\Z")
INNER = re.compile(r"(?P<file>.+?\.pt)/(?P<inner>.+)\Z")
"""A .pt file is a zip, whose members a bundle gives one by one."""


class ReplayFailed(ForensicsError):
    """A replay that could not be made; keeps the exit status of its reason."""

    def __init__(self, error: ReplayError) -> None:
        super().__init__(f"{error}")
        self.status = error.status


def spec_of(diagnosis: Diagnosis) -> Spec | None:
    """The replay that a diagnosis offers, its parameters filled in from what was captured; None where it names no kernel.

    In a rule, `operator`, `suspect` and `suspect_<parameter>` are what they say; everything else is a size or a parameter of the kernel. What
    was not captured, or is no plain number or word, is left to the defaults; so '{a.n}{b.n}' is the one of two captures that is there."""
    offered = diagnosis.finding.rule.replay
    if offered is None:
        return None
    values: dict[str, int | float | str | bool] = {}
    for name, value in offered.params.items():
        plain = _plain(filled(value, diagnosis.finding).replace("…", "")) if isinstance(value, str) else value
        if plain is not None:
            values[name] = plain
    operator, suspect = str(values.pop("operator", "")), values.pop("suspect", None)
    known = {name.removeprefix("suspect_"): values.pop(name) for name in [*values] if name.startswith("suspect_")}
    fault = None if suspect is None else SuspectedFault(str(suspect), {k: v for k, v in known.items() if not isinstance(v, bool)})
    try:
        return Spec(kernel=offered.kernel, operator=operator, sizes=values, suspect=fault)
    except ValueError:
        return None  # a kernel that this version does not know


def _plain(value: str) -> int | float | str | None:
    if NUMBER.match(value):
        return int(value)
    if REAL.match(value):
        return float(value)
    return value if WORD.match(value) else None


# ---------------------------------------------------------------- one diagnosis


def replay_diagnosis(case: Case, rank: int, changes: dict[str, object] | None = None, session: Session | None = None) -> Verdict:
    """Runs the replay of diagnosis `rank`, stores the verdict in the case and gives it. `changes`: of the spec, from the command line.

    Raises UsageError where there is nothing to replay, ReplayFailed with the reason where it cannot be run."""
    triage = case.load_triage()
    diagnosis = next((one for one in triage.diagnoses if one.rank == rank), None)
    if diagnosis is None:
        raise UsageError(f"there is no diagnosis {rank} in this case; it has {len(triage.diagnoses)}")
    spec = spec_of(diagnosis)
    if spec is None:
        raise UsageError(f"diagnosis {rank} ({diagnosis.finding.rule.id}) names no kernel; `dsforensics replay kernel NAME` runs one without a case")
    try:
        spec = _changed(spec, changes or {})
        verdict = _decided(case, triage, diagnosis, spec, session, device_wanted=True)
    except ReplayError as error:
        raise ReplayFailed(error) from error
    finally:
        case.clear()
    case.store_replays({**case.replays(), rank: verdict})
    return verdict


def automatic(case: Case, triage: Triage, seconds: float = AUTO_SECONDS) -> list[str]:
    """Replays that need no device, of all diagnoses of a triage, within so many seconds; verdicts go into `triage` and the case.

    Gives remarks on what was left out. A replay that only a device could settle, and nothing in the bundle, gets no verdict."""
    from importlib.util import find_spec

    offers = [(diagnosis, spec) for diagnosis in triage.diagnoses if (spec := spec_of(diagnosis)) is not None]
    if not offers:
        return []
    if find_spec("torch") is None:
        return ["no replay was run: PyTorch is not installed (`pip install 'dsforensics[replay]'`)"]
    until, remarks, done = time.monotonic() + seconds, [], {}
    for diagnosis, spec in offers:
        left = until - time.monotonic()
        if left < 1:
            remarks.append(f"diagnosis {diagnosis.rank} was not replayed: the {seconds:g} s for replays were used up")
            continue
        try:
            spec.time_limit = max(1.0, min(spec.time_limit, left))
            verdict = _decided(case, triage, diagnosis, spec, None, device_wanted=False)
        except (ReplayError, OSError) as error:
            remarks.append(f"diagnosis {diagnosis.rank} could not be replayed: {error}")
            continue
        if verdict.status != "unavailable":
            done[diagnosis.rank] = verdict
    if done:
        triage.replays = {**triage.replays, **done}
        case.store_replays(triage.replays)
    return remarks


def _changed(spec: Spec, changes: dict[str, object]) -> Spec:
    from replay.execute import with_backend

    sizes = changes.pop("sizes", None)
    if isinstance(sizes, dict):
        spec = msgspec.structs.replace(spec, sizes={**spec.sizes, **sizes})
    return with_backend(spec, **changes)


def _decided(case: Case, triage: Triage, diagnosis: Diagnosis, spec: Spec, session: Session | None, device_wanted: bool) -> Verdict:
    """By a capture of the failed task where the bundle holds one; else by the constraints of the operator, or a run on a device."""
    from replay.execute import Session, need_torch, split

    need_torch()
    session = session or Session()
    spec.sizes, spec.params = split(spec.kernel, spec.sizes)
    soc = next((fact.value for fact in triage.facts if fact.name == "soc"), "")
    spec.soc = spec.soc or soc
    notes: list[Words] = []
    if spec.backend in ("auto", "capture"):
        verdict = _by_capture(case, triage, diagnosis, spec, session, notes)
        if verdict is not None:
            return verdict
    if device_wanted:
        verdict = session.replay(spec, fall_back=False)
    else:
        verdict = session.inspect(spec)
    verdict.notes = [*verdict.notes, *notes]
    if verdict.status == "unavailable":
        verdict.command = f"dsforensics replay run replay-{diagnosis.rank}.yaml --backend npu --device 0"
    _keep(case, diagnosis.rank, verdict)
    return verdict


def _keep(case: Case, rank: int, verdict: Verdict) -> None:
    """The spec beside the case, to be run elsewhere."""
    if verdict.spec:
        (case.folder / f"replay-{rank}.yaml").write_text(verdict.spec, encoding="utf-8")


# ---------------------------------------------------------------- captures in the bundle


def _by_capture(case: Case, triage: Triage, diagnosis: Diagnosis, spec: Spec, session: Session, notes: list[Words]) -> Verdict | None:
    from replay import safe_file
    from replay.capture.read import read
    from replay.kernels import kernel_named

    found = captures([member.path for member in triage.coverage.members])
    if not found:
        return None
    tasks = failed_tasks(lines_of(diagnosis))
    scope = diagnosis.finding.scope
    wanted = joined(found, tasks, spec.kernel, scope.device, scope.rank, scope.pid)[:TRIED]
    if not wanted:
        return None
    folder = Path(tempfile.mkdtemp(prefix="captures-", dir=case.scratch))
    try:
        roots = extracted(case.plan().sources, wanted, folder, case)
        for capture in wanted:
            try:
                if capture.root not in roots:
                    raise CaptureError(f"{capture.root} could not be taken out of the bundle")
                captured = read(capture, str(roots[capture.root]), spec.kernel, {**spec.sizes, **spec.params}, spec.operator)
                case_ = replace(captured.case, operator=captured.case.operator or spec.operator, soc=spec.soc)
                kernel = kernel_named(case_.kernel)
                checked = kernel.check(case_)
            except (ReplayError, OSError) as error:
                notes.append(Words(f"A capture was left out: {_relative(error, folder)}.", f"未使用的捕获数据：{_relative(error, folder)}。"))
                continue
            verdict = session.decide(kernel, checked, captured.outputs, spec, fall_back=False)
            where = capture.root
            how = "" if capture.task is None else f", task {capture.task}"
            verdict.notes = [Words(f"Inputs from {where}{how}.", f"输入取自 {where}{how}。"), *notes, *verdict.notes]
            if capture.partial:
                verdict.notes.append(
                    Words(
                        "The outputs of an exception dump are what was written when the core died; they were not judged.",
                        "异常 dump 中的输出只写到出错时刻，未参与判定。",
                    )
                )
            name = f"replay-{diagnosis.rank}.safetensors"
            tensors = {**checked.tensors, **{f"output.{key}": one for key, one in captured.outputs.items()}}
            safe_file.save(tensors, str(case.folder / name))
            verdict.spec = text(
                msgspec.structs.replace(
                    spec, kernel=kernel.name, operator=checked.operator, sizes={}, params=dict(checked.params), code="", python="",
                    inputs={key: TensorFile(name, key) for key in checked.tensors},
                    outputs={key: TensorFile(name, f"output.{key}") for key in captured.outputs},
                )
            )  # fmt: skip
            _keep(case, diagnosis.rank, verdict)
            return verdict
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


def _relative(error: Exception, folder: Path) -> str:
    return str(error).replace(f"{folder}/", "").rstrip(".")


def lines_of(diagnosis: Diagnosis) -> list[str]:
    """Lines that may name the failed task: all that the rule, and those that support it, matched."""
    lines = [hit.text for hit in diagnosis.finding.hits] + [one.text for one in diagnosis.evidence]
    return list(dict.fromkeys(lines))


def extracted(sources: Sequence[str], wanted: Iterable[Capture], folder: Path, case: Case) -> dict[str, Path]:
    """The files of captures, taken out of the bundle into `folder`: root of the capture -> where it lies now. A capture that is too large, or
    not there any more, is left out."""
    from forensics.bundle import Bundle
    from forensics.several import Several

    if any(source == "-" or not os.path.exists(source) for source in sources):
        return {}
    roots: dict[str, Path] = {}
    place: dict[str, tuple[Capture, str]] = {}
    for number, capture in enumerate(wanted):
        own = capture.kind != "adump"
        roots[capture.root] = folder / str(number) if own else folder / str(number) / capture.root.rpartition("/")[2]
        for path in capture.files:
            inside = path[len(capture.root) :].lstrip("/") if own else capture.root.rpartition("/")[2]
            place[path] = (capture, f"{number}/{inside}")
    bundles = [Bundle(source, None, case.scratch, case.folder) for source in sources]
    bundle: Bundle | Several = bundles[0] if len(bundles) == 1 else Several(bundles)
    try:
        _copied(bundle, place, folder)
    finally:
        bundle.close()
    return {root: path for root, path in roots.items() if path.exists()}


def _copied(bundle: Bundle | Several, place: dict[str, tuple[Capture, str]], folder: Path) -> None:
    buffer, room, left = memoryview(bytearray(1 << 20)), DUMP_BYTES, set(place)
    base = folder.resolve()
    for member in bundle.members():
        if member.path not in left:
            continue
        left.discard(member.path)
        target = (folder / place[member.path][1]).resolve()
        if base not in target.parents:
            continue  # a name that leads out of the folder
        inner = INNER.match(str(target.relative_to(base)))
        target.parent.mkdir(parents=True, exist_ok=True) if inner is None else None
        data = bytearray()
        stream = open(target, "wb") if inner is None else None
        try:
            while room > 0 and (count := member.readinto(buffer)):
                room -= count
                stream.write(buffer[:count]) if stream is not None else data.extend(buffer[:count])
        finally:
            if stream is not None:
                stream.close()
        if inner is not None:
            _put(base / inner["file"], inner["inner"], bytes(data))
        if not left or room <= 0:
            break


def _put(path: Path, name: str, data: bytes) -> None:
    """One member of a .pt file back into its zip."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(name), data)
