"""A dump in a bundle is found, joined to the failing task of a diagnosis, replayed and judged; nothing in it is ever unpickled."""

from __future__ import annotations

import os
import pickle
import tarfile
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from forensics.case import open_case
from forensics.options import Options
from forensics.pipeline import run
from forensics.replay_case import automatic, replay_diagnosis
from replay.capture import adump, tensor_file
from replay.capture.found import Capture, captures, failed_tasks, joined
from replay.errors import CaptureError
from replay.kernels import kernel_named
from replay.result import Verdict
from replay.spec import TensorFile
from replay.tensors import Case
from rules import pack as pack_module
from tests.unit import replay_dumps as dumps

TASK, FLIP, STREAM = 62945, 6204, 47
WHOLE = FLIP << 16 | TASK
FAILURE = (
    "[ERROR] RUNTIME(838,python):2025-09-04-09:50:11.954.001 [davinci_kernel_task.cc:1076]838 PrintErrorInfoForDavinciTask:[DFX_INFO]AI Core kernel "
    f"execution failed, device_id=6, stream_id={STREAM}, report_stream_id={STREAM}, task_id={TASK}, flip_num={FLIP}, "
    "fault kernel_name={kernel}, hash=1\n"
    f"[ERROR] IDEDD(838,python):2025-09-04-09:50:11.960.001 [exception_dumper.cpp:203]838 [Dump][Exception] Begin to dump exception. "
    f"dumpScene=aic_err_brief_dump, deviceId=6, streamId={STREAM}, taskId={WHOLE}, exceptionType=2(aicore), kernelName={{kernel}}\n"
)
PACK = """
- id: own.kernel.fault
  root_cause: rope-position-limit
  title: {{en: The kernel failed, zh: 算子执行失败}}
  layer: operator
  severity: error
  strength: decisive
  match:
    all:
      - {{id: dfx, regex: 'kernel execution failed, device_id=(?P<d>\\d+), stream_id'}}
      - {{id: dump, contains: '[Dump][Exception] Begin to dump exception'}}
  replay: {{kernel: {kernel}, params: {params}}}
"""


@pytest.fixture(autouse=True)
def only_own_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped rules play no part here, and take seconds to load."""
    load = pack_module.load
    monkeypatch.setattr(pack_module, "load", lambda packs=(), shipped=True: load(packs, shipped=False))


def made(tmp_path: Path, kernel: str, params: str, files: dict[str, bytes], folder: Path | None = None) -> tuple[Path, Path]:
    """A bundle (a tar.gz) with a failure in its plog and these files, and a pack whose rule names the kernel."""
    pack = tmp_path / "own"
    pack.mkdir()
    (pack / "pack.yaml").write_text("name: own\nversion: 1.0.0\n")
    (pack / "rules.yaml").write_text(PACK.format(kernel=kernel, params=params))
    root = folder or tmp_path / "node0"
    (root / "plog").mkdir(parents=True, exist_ok=True)
    (root / "plog" / "plog-838_20250904095011.log").write_text(FAILURE.format(kernel="RotaryMul_high_performance_0"))
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    bundle = tmp_path / "logs.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(root, "node0")
    return bundle, pack


def verdict_of(tmp_path: Path, bundle: Path, pack: Path) -> Verdict:
    """Triage with --replay auto, as the command line does it; the verdict is read back from the case."""
    work = run([str(bundle)], Options(out=str(tmp_path / "out.case"), packs=(str(pack),), index=False, workers=1))
    try:
        assert automatic(work.case, work.triage) == []
        rank = next(one.rank for one in work.triage.diagnoses if one.finding.rule.id == "own.kernel.fault")
    finally:
        work.close()
    stored = open_case(tmp_path / "out.case")
    verdict = stored.load_triage().replays[rank]
    assert stored.sql("select diagnosis, status from replays").rows() == [(rank, verdict.status)]
    stored.close()
    return verdict


def rope(wrong: bool, dtype: torch.dtype = torch.bfloat16) -> tuple[Case, torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, cos and sin in the layout of npu_rotary_mul (1, S, N, D), and what a kernel gave: right, or with the pairs taken the other way."""
    kernel = kernel_named("rope")
    case = kernel.check(kernel.make({"seq_len": 70000, "tokens": 48, "heads": 4, "head_dim": 64, "dtype": str(dtype).removeprefix("torch.")}, 3))
    from replay.kernels.rope import true_table

    cos, sin = (torch.cat([half, half], -1).to(dtype) for half in true_table(case))
    shown = Case("rope", {"x": case["x"], "cos": cos, "sin": sin}, {"mode": "half"})
    shown = kernel.check(shown)
    out = kernel.clean(shown, 5)
    if wrong:  # neighbours are paired, with the table of halves
        x = case["x"].float()
        partner = torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
        out = (x * cos.float()[:, None] + partner * sin.float()[:, None]).to(dtype)
    return shown, cos[None, :, None, :], sin[None, :, None, :], out[None]


@pytest.mark.parametrize("whole", [True, False])
def test_a_dump_of_msprobe_is_joined_by_its_rank_replayed_and_judged(tmp_path: Path, whole: bool) -> None:
    case, cos, sin, out = rope(wrong=True)
    root = tmp_path / "node0"
    # the mode is not in the names of files: without dump.json it is the operator's default, half
    dumps.msprobe(root / "dump/step0/rank6", "NPU.npu_rotary_mul.3.forward", [case["x"][None], cos, sin], {}, [out], whole)
    bundle, pack = made(tmp_path, "rope", "{suspect: pairs}", {}, root)
    verdict = verdict_of(tmp_path, bundle, pack)
    assert (verdict.status, [fit.name for fit in verdict.faults]) == ("confirmed", ["pairs"]), verdict.reason.en
    assert verdict.subject == "capture"


def test_a_sound_capture_refutes_the_diagnosis(tmp_path: Path) -> None:
    case, cos, sin, out = rope(wrong=False)
    root = tmp_path / "node0"
    dumps.msprobe(root / "dump/step0/rank6", "NPU.npu_rotary_mul.3.forward", [case["x"][None], cos, sin, "half"], {}, [out])
    verdict = verdict_of(tmp_path, *made(tmp_path, "rope", "{suspect: pairs}", {}, root))
    assert verdict.status == "refuted", verdict.reason.en


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_cann_dump_of_the_failed_task_is_judged_with_and_without_its_data_types(tmp_path: Path, typed: bool, dtype: torch.dtype) -> None:
    case, cos, sin, out = rope(wrong=True, dtype=dtype)
    _, _, _, right = rope(wrong=False, dtype=dtype)
    inputs = [case["x"][None], cos, sin]
    files = {
        f"data-dump/6/RotaryMul.op1.{WHOLE}.{STREAM}.1756948323000000": dumps.adump(inputs, [out], typed),
        f"data-dump/6/RotaryMul.op1.{WHOLE + 1}.{STREAM}.1756948324000000": dumps.adump(inputs, [right], typed),  # a later task that went well
    }
    verdict = verdict_of(tmp_path, *made(tmp_path, "rope", "{suspect: pairs}", files))
    assert (verdict.status, [fit.name for fit in verdict.faults]) == ("confirmed", ["pairs"]), verdict.reason.en
    assert any(f"task {WHOLE}" in note.en for note in verdict.notes)


def test_outputs_of_an_exception_dump_are_never_scored(tmp_path: Path) -> None:
    case, cos, sin, _ = rope(wrong=False)
    half_written = torch.zeros_like(case["x"])[None]
    files = {f"data-dump/6/exception_info.{STREAM}.{WHOLE}.1756948323000": dumps.adump([case["x"][None], cos, sin], [half_written], typed=False)}
    bundle, pack = made(tmp_path, "rope", "{suspect: pairs}", files)
    work = run([str(bundle)], Options(out=str(tmp_path / "out.case"), packs=(str(pack),), index=False, workers=1))
    automatic(work.case, work.triage)
    work.close()
    verdict = replay_diagnosis(open_case(tmp_path / "out.case"), 1)
    assert verdict.status == "unavailable", verdict.reason.en  # no device here, and the partial output is no evidence
    assert verdict.score is None
    assert any("not judged" in note.en for note in verdict.notes)
    assert (tmp_path / "out.case/replay-1.yaml").is_file()
    assert (tmp_path / "out.case/replay-1.safetensors").is_file()


def paged(fault: str) -> tuple[Case, torch.Tensor]:
    kernel = kernel_named("paged_attention")
    sizes = {"seq_len": 300, "requests": 3, "heads": 8, "kv_heads": 2, "head_dim": 64, "block_size": 16, "dtype": "float16"}
    case = kernel.check(kernel.make(sizes, 5))
    length = (case["context_lens"] + 15) // 16 * 16
    wrong = {
        "tail-not-masked": lambda: kernel.clean(case.having({"context_lens": length}), 6),
        "clean": lambda: kernel.clean(case, 6),
    }
    return case, wrong[fault]()


@pytest.mark.parametrize(("fault", "status"), [("tail-not-masked", "confirmed"), ("clean", "refuted")])
def test_an_atb_dump_of_paged_attention_is_joined_by_its_process(tmp_path: Path, fault: str, status: str) -> None:
    case, out = paged(fault)
    base = "atb_dump_data/data/6_838/0/12_PagedAttentionOperation"
    tensors = [case["query"], case["key_cache"], case["value_cache"], case["block_table"], case["context_lens"]]
    files = {f"{base}/before/intensor{n}.bin": dumps.atb(one) for n, one in enumerate(tensors)}
    files[f"{base}/after/outtensor0.bin"] = dumps.atb(out)
    files[f"{base}/op_param.json"] = b'{"headNum": 8, "kvHeadNum": 2, "qkScale": %.9f}' % case.number("scale")
    files[base.replace("6_838", "5_837") + "/before/intensor0.bin"] = b"of another process"
    verdict = verdict_of(tmp_path, *made(tmp_path, "paged_attention", "{suspect: tail-not-masked}", files))
    assert verdict.status == status, verdict.reason.en
    if status == "confirmed":
        assert [fit.name for fit in verdict.faults] == ["tail-not-masked"]


def test_a_block_table_out_of_bounds_is_confirmed_by_inspection(tmp_path: Path) -> None:
    case, _ = paged("clean")
    table = case["block_table"].clone()
    table[1, 0] = 9999
    base = "atb_dump_data/data/6_838/0/12_PagedAttentionOperation"
    tensors = [case["query"], case["key_cache"], case["value_cache"], table, case["context_lens"]]
    files = {f"{base}/before/intensor{n}.bin": dumps.atb(one) for n, one in enumerate(tensors)}
    verdict = verdict_of(tmp_path, *made(tmp_path, "paged_attention", "{}", files))
    assert verdict.status == "confirmed"
    assert verdict.violations[0].silent
    assert "9999" in verdict.violations[0].found


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/dsforensics-evil",)


def test_a_pickle_is_refused_with_the_reason_and_nothing_of_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    marker = tmp_path / "ran"
    torch.save({"x": Evil()}, path)
    with pytest.raises(CaptureError, match="would run code"):
        tensor_file.load(TensorFile(str(path)))
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(CaptureError, match="refused"):
        tensor_file.load(TensorFile(str(path)))
    assert not marker.exists()
    assert not Path("/tmp/dsforensics-evil").exists()


def test_damaged_and_strange_dumps_are_named_and_never_crash(tmp_path: Path) -> None:
    x = torch.randn(4, 8)
    cases = {
        "cut": (dumps.adump([x], [], cut=40), "lacks 40"),
        "no dump": (b"\x14" + b"\0" * 7 + b"\x0a\x03" + b"2.0" + b"\xff" * 40, "no CANN dump"),
        "core": (b"\x7fELF" + b"\0" * 100, "msDebug"),
        "atb": (dumps.atb(x)[:-8], "the file is cut"),
        "atb head": (b"$Version=1.0\ndtype=1\n$End=1\n", "lacks dtype or dims"),
        "npy": (b"\x93NUMPY\x01\x00\x10\x00garbage", "no array"),
        "safetensors": ((8).to_bytes(8, "little") + b"{}      "[:6] + b"\x01\x02", "no safetensors"),
        "raw": (b"\xff" * 64, "no known kind"),
        "empty": (b"", "no known kind"),
    }
    for name, (data, message) in cases.items():
        path = tmp_path / "dump"
        path.write_bytes(data)
        with pytest.raises(CaptureError, match=message):
            tensor_file.load(TensorFile(str(path)))
            pytest.fail(name)


def test_the_type_of_an_undefined_tensor_is_told_from_its_bytes(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    tensors = [
        torch.randn(64, 64, generator=generator).half(),
        torch.randn(64, 64, generator=generator).bfloat16(),
        torch.randn(64, 64, generator=generator),
        torch.randint(0, 900, (64, 8), generator=generator).int(),
        torch.randint(0, 131072, (64,), generator=generator),
    ]
    path = tmp_path / "exception_info.1.2.3"
    path.write_bytes(dumps.adump(tensors, [], typed=False))
    dump = adump.read(str(path))
    assert dump.exception
    for number, tensor in enumerate(tensors):
        got = dump.tensor(f"input.{number}")
        assert got.dtype is tensor.dtype
        assert torch.equal(got, tensor)


def test_the_number_of_a_task_is_its_flip_count_and_its_id() -> None:
    tasks = failed_tasks(FAILURE.format(kernel="X_0").splitlines())
    assert [(task.number, task.stream, task.device, task.kernel) for task in tasks] == [(406648289, 47, 6, "X_0")]


def test_captures_that_contradict_the_diagnosis_are_left_out() -> None:
    found = captures(
        [
            "n/data-dump/6/exception_info.47.406648289.1", "n/data-dump/6/exception_info.47.77.2", "n/data-dump/5/exception_info.47.406648289.3",
            "n/dump/step0/rank3/dump.json", "n/dump/step0/rank6/dump.json", "n/plain.log",
        ]
    )  # fmt: skip
    tasks = failed_tasks(FAILURE.format(kernel="X_0").splitlines())
    assert [one.root for one in joined(found, tasks, "rope", device=6, rank=6, pid=838)] == [
        "n/data-dump/6/exception_info.47.406648289.1", "n/dump/step0/rank6",
    ]  # fmt: skip
    assert joined([Capture("adump", "a", [], "RmsNorm", 406648289)], tasks, "rope") == []
