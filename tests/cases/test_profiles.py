"""Profiles with a known fault, alone, beside logs and broken: the right cause comes first, its evidence names file, row and column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import forensics
from forensics.ingest import EXTRA
from forensics.options import Options
from forensics.pipeline import run
from forensics.result import Triage
from rules import pack, scan
from tests.unit import profile_maker as make
from tests.unit.profile_maker import Kernel

Files = dict[str, str]
STEPS = make.step_csv([(13, 9000.0, 0.0, 0.0), (14, 9010.0, 0.0, 0.0)])


@pytest.fixture(scope="module", autouse=True)
def _loaded_once() -> Iterator[None]:
    """The shipped rules are read once for all tests here."""
    rules = pack.load()
    scanner = scan.Scanner.load(rules, EXTRA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forensics.pipeline.pack.load", lambda folders=(): rules)
        patch.setattr("forensics.pipeline.scan.Scanner.load", lambda *_: scanner)
        yield


def judged(folder: Path, out: Path, **settings: str) -> Triage:
    chosen = tuple((name.replace("__", "."), value) for name, value in settings.items())
    work = run([str(folder)], Options(out=str(out), index=False, workers=1, settings=chosen))
    work.close()
    return work.triage


def causes(triage: Triage) -> list[str]:
    return [d.finding.rule.root_cause for d in triage.diagnoses if d.finding.rule.severity != "info" and d.finding.rule.root_cause != "unknown"]


def kernels(*more: Kernel) -> Files:
    return {"kernel_details.csv": make.kernel_csv([*make.healthy(), *more]), "step_trace_time.csv": STEPS}


def api(*rows: str) -> str:
    return "\n".join(["Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance", *rows]) + "\n"


BOUND = (0, 0, 0, 0, 0.9, 0.05, 0.02, 0.97)
FAULTS: dict[str, tuple[str, Callable[[], Files]]] = {
    "AI CPU": ("host-fallback-operator", lambda: kernels(Kernel("NonZero", 1900.0, "AI_CPU", blocks=1, dtypes="DOUBLE"))),
    "one core": ("few-cores-used", lambda: kernels(Kernel("TopKV2", 5000.0, "AI_VECTOR_CORE", blocks=1, pmu=make.VECTOR))),
    "low mac": ("matmul-tiling", lambda: kernels(Kernel("MatMulV3", 4200.0, blocks=13, pmu=(0.9, 0.19, 0.1, 0.96, 0, 0, 0, 0)))),
    "vector": ("vector-memory-bound", lambda: kernels(*[Kernel("Exp", 1800.0, "AI_VECTOR_CORE", blocks=40, pmu=BOUND)] * 3)),
    "casts": ("layout-cast-overhead", lambda: kernels(*[Kernel("Cast", 300.0, "AI_VECTOR_CORE", blocks=40, pmu=make.VECTOR)] * 12)),
    "launching": (
        "host-bound",
        lambda: {
            "kernel_details.csv": make.kernel_csv([Kernel("Add", 5.0, "AI_VECTOR_CORE", 44.0, 40, pmu=make.VECTOR)] * 30),
            "step_trace_time.csv": make.step_csv([(13, 150.0, 0, 1300.0), (14, 150.0, 0, 1305.75)]),
        },
    ),
    "waiting": ("stream-sync-overuse", lambda: {**kernels(), "api_statistic.csv": api("host,acl,aclrtSynchronizeStreamWithTimeout,9000,24,1,1,9,1")}),
    "compiling": ("dynamic-shape-recompile", lambda: {**kernels(), "api_statistic.csv": api("host,acl,aclopCompileAndExecuteV2,3600000,36,1,1,9,1")}),
    "allocating": ("hbm-headroom-low", lambda: {**kernels(), "api_statistic.csv": api("host,acl,aclrtFree,83200,48,1,1,9,1")}),
    "data": (
        "data-pipeline-slow",
        lambda: {
            **kernels(),
            "operator_details.csv": "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us)\n"
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__,,,232000.000,232000.000\n",
        },
    ),
    "garbage": (
        "python-gc-pause",
        lambda: {
            **kernels(),
            "trace_view.json": make.trace([
                {"ph": "X", "name": "GC", "cat": "GC", "pid": 1, "tid": 1, "ts": "1764246877000200.000", "dur": 84000.0}]),
        },
    ),
    "clock": (
        "frequency-throttled",
        lambda: {
            **kernels(),
            "trace_view.json": make.trace([
                {"ph": "C", "name": "AI Core Freq", "pid": 4, "tid": 0, "ts": make.us(make.START - 1000).strip(), "args": {"MHz": 1800}},
                {"ph": "C", "name": "AI Core Freq", "pid": 4, "tid": 0, "ts": make.us(make.START + 4_000_000).strip(), "args": {"MHz": 800}},
            ]),
        },
    ),
    "alignment": (
        "comm-misaligned",
        lambda: {
            **kernels(),
            "trace_view.json": make.trace([
                {"ph": "X", "name": "Memcpy", "pid": 5, "tid": 1, "ts": "1764246877000200.000", "dur": 1800.0,
                 "args": {"size(Byte)": 33554435, "transport type": "SDMA", "link type": "HCCS", "src rank": 0, "dst rank": 1}}]),
        },
    ),
    "bubble": ("pipeline-bubble", lambda: {**kernels(), "step_trace_time.csv": make.step_csv([(13, 9000.0, 0, 0), (14, 9000.0, 0, 0)], 16426.5)}),
    "fragments": (
        "hbm-fragmentation",
        lambda: {
            "kernel_details.csv": make.kernel_csv(make.healthy(), steps=4),
            "memory_record.csv": "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB)\n"
            + "".join(f"PTA,{make.us(make.START + n * 1000000)},20000.0,{24000 + 100 * n}.5\n" for n in range(16)),
        },
    ),
    "leak": (
        "memory-leak",
        lambda: {
            "kernel_details.csv": make.kernel_csv(make.healthy(), steps=4),
            "operator_memory.csv": "Name,Size(KB),Allocation Time(us),Release Time(us)\n"
            + "".join(f"aten::empty,48128,{make.us(make.START + n * 1000000)},\n" for n in range(4)),
            "memory_record.csv": "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB)\n"
            + "".join(f"PTA,{make.us(make.START + n * 1000000)},{20000 + 12 * n}.0,24000.0\n" for n in range(16)),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_the_cause_comes_first(tmp_path: Path, fault: str) -> None:
    wanted, files = FAULTS[fault]
    make.write(tmp_path / "bundle", files=files())
    triage = judged(tmp_path / "bundle", tmp_path / "case")
    assert causes(triage)[:1] == [wanted]
    assert [note.en for note in triage.notes if "query" in note.en] == []
    assert all(e.file.endswith((".csv", ".json")) for e in triage.diagnoses[0].evidence)


def test_a_profile_with_nothing_wrong_has_no_finding(tmp_path: Path) -> None:
    make.write(tmp_path / "bundle", files=kernels())
    triage = judged(tmp_path / "bundle", tmp_path / "case")
    assert [d.finding.rule.id for d in triage.diagnoses] == []


def test_evidence_names_row_column_and_value(tmp_path: Path) -> None:
    make.write(tmp_path / "bundle", files=kernels(Kernel("NonZero", 1900.0, "AI_CPU", blocks=1, dtypes="DOUBLE")))
    first = judged(tmp_path / "bundle", tmp_path / "case").diagnoses[0].evidence[0]
    assert first.file.endswith("ASCEND_PROFILER_OUTPUT/kernel_details.csv")
    assert (first.row, first.line) == (25, 26)
    assert "row 25: Duration(us) = 1900.000" in first.text and "Input Data Types = DOUBLE" in first.text


RENAMED = {
    "Block Dim": "Block Num", "Accelerator Core": "Task Type", "Name": "Op Name", "Type": "OP Type", "Start Time(us)": "Task Start Time(us)",
    "Duration(us)": "Task Duration(us)", "Wait Time(us)": "Task Wait Time(us)",
}  # fmt: skip


def _renamed(text: str) -> str:
    head, rest = text.split("\r\n", 1)
    return ",".join(RENAMED.get(name, name) for name in head.split(",")) + "\r\n" + rest


def _without(text: str, *names: str) -> str:
    import csv
    import io

    table = list(csv.reader(io.StringIO(text)))
    keep = [n for n, name in enumerate(table[0]) if name not in names]
    out = io.StringIO()
    csv.writer(out).writerows([row[n] for n in keep] for row in table)
    return out.getvalue()


def test_msprof_calls_its_columns_otherwise(tmp_path: Path) -> None:
    folder = tmp_path / "bundle/PROF_000001_20251127120000123_ABCDEF/mindstudio_profiler_output"
    folder.mkdir(parents=True)
    table = make.kernel_csv([*make.healthy(), Kernel("NonZero", 1900.0, "AI_CPU", dtypes="DOUBLE")])
    (folder / "op_summary_20251127120001.csv").write_text(_renamed(table), newline="")
    triage = judged(tmp_path / "bundle", tmp_path / "case")
    assert causes(triage)[:1] == ["host-fallback-operator"]
    assert "Task Duration(us) = 1900.000" in triage.diagnoses[0].evidence[0].text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "gb18030"])
def test_tables_saved_again_by_a_spreadsheet(tmp_path: Path, encoding: str) -> None:
    root = make.write(tmp_path / "bundle")
    text = make.kernel_csv([*make.healthy(), Kernel("NonZero", 1900.0, "AI_CPU", dtypes="DOUBLE,中文")]).replace("\r\n", "\n").replace(",中文", "")
    (root / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").write_text(text, encoding=encoding)
    assert causes(judged(tmp_path / "bundle", tmp_path / "case"))[:1] == ["host-fallback-operator"]


def test_communication_among_kernels_is_no_device_time(tmp_path: Path) -> None:
    """A fallback of 2 % of the computing stays one, however long the collectives last."""
    comm = Kernel("allReduce", 900000.0, "COMMUNICATION")
    make.write(tmp_path / "bundle", files=kernels(comm, Kernel("NonZero", 300.0, "AI_CPU", dtypes="DOUBLE")))
    assert "host-fallback-operator" in causes(judged(tmp_path / "bundle", tmp_path / "case"))


def test_without_step_ids_all_kernels_are_one_capture(tmp_path: Path) -> None:
    table = make.kernel_csv([*make.healthy(), Kernel("NonZero", 1900.0, "AI_CPU", dtypes="DOUBLE")])
    make.write(tmp_path / "bundle", files={"kernel_details.csv": _without(table, "Step Id", "Device_id")})
    triage = judged(tmp_path / "bundle", tmp_path / "case")
    assert causes(triage)[:1] == ["host-fallback-operator"]


RANKS = (8600.0, 8650.0, 11460.0, 8655.0)


def _ranks(folder: Path, computing: Sequence[float], free: Sequence[float], peers: Callable[[int], dict[str, object]] | None = None) -> None:
    longest = max(c + f for c, f in zip(computing, free, strict=True))
    for rank, (busy, idle) in enumerate(zip(computing, free, strict=True)):
        rows = [(step, busy, longest - busy - idle, idle) for step in (13, 14)]
        root = make.write(folder, rank, {"step_trace_time.csv": make.step_csv(rows)}, range(len(computing)))
        if peers is not None:
            (root / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": peers(rank)}))


def test_the_slow_rank_is_named(tmp_path: Path) -> None:
    _ranks(tmp_path / "bundle", RANKS, [0.0] * 4)
    first = judged(tmp_path / "bundle", tmp_path / "case").diagnoses[0]
    assert (first.finding.rule.id, first.finding.scope.rank) == ("profile.rank.slow-compute", 2)
    assert "Computing = 11460.0" in first.evidence[0].text and "Rank 2" in first.title.en


def test_ranks_are_compared_by_their_kernels_where_nothing_else_is_there(tmp_path: Path) -> None:
    for rank in range(4):
        slower = [Kernel(took=400.0 * (1.3 if rank == 2 else 1.0)) for _ in range(20)]
        make.write(tmp_path / "bundle", rank, {"kernel_details.csv": make.kernel_csv(slower)}, range(4))
    first = judged(tmp_path / "bundle", tmp_path / "case").diagnoses[0]
    assert (first.finding.rule.id, first.finding.scope.rank) == ("profile.rank.slow-compute", 2)
    assert "kernels (us) = 10400.000" in first.evidence[0].text


def test_a_rank_that_launches_late_is_named(tmp_path: Path) -> None:
    _ranks(tmp_path / "bundle", [8600.0] * 4, [0.0, 9500.0, 0.0, 0.0])
    first = judged(tmp_path / "bundle", tmp_path / "case").diagnoses[0]
    assert (first.finding.rule.id, first.finding.scope.rank) == ("profile.rank.slow-host", 1)


def test_stages_of_a_pipeline_are_not_compared(tmp_path: Path) -> None:
    _ranks(tmp_path / "bundle", RANKS, [0.0] * 4, lambda rank: {"g": {"group_name": "pp", "group_rank": rank, "global_ranks": [0, 1, 2, 3]}})
    assert "slow-rank" not in causes(judged(tmp_path / "bundle", tmp_path / "case"))


def _links(rank: int, rate: float) -> str:
    link = {"Transport Type": "HCCS", "Transit Size(MB)": 67.1, "Transit Time(ms)": 67.1 / rate, "Bandwidth(GB/s)": rate}
    return json.dumps({"step13": {"p2p": {}, "collective": {"allreduce-top1@7": {f"{rank}-{(rank + 1) % 4}": link}}}})


def test_a_slow_link_is_named_with_both_ends(tmp_path: Path) -> None:
    for rank, rate in enumerate((18.2, 18.4, 4.1, 18.0)):
        make.write(tmp_path / "bundle", rank, {"communication_matrix.json": _links(rank, rate)}, range(4))
    first = judged(tmp_path / "bundle", tmp_path / "case").diagnoses[0]
    assert first.finding.rule.root_cause == "slow-link" and "2 to 3" in first.title.en and "Bandwidth(GB/s) = 4.1" in first.evidence[0].text


def _collective(link: str, size: float, ms: float, count: int = 1) -> str:
    one = {
        "Communication Time Info": {"Start Timestamp(us)": make.START / 1000, "Elapse Time(ms)": ms, "Transit Time(ms)": ms, "Wait Time(ms)": 0},
        "Communication Bandwidth Info": {link: {"Transit Size(MB)": size, "Transit Time(ms)": ms, "Bandwidth(GB/s)": round(size / ms, 4),
                                                "Size Distribution": {str(size): [1, ms]}}},
    }  # fmt: skip
    return json.dumps({"step13": {"collective": {f"hcom_allReduce__128_{n}_1@7": one for n in range(count)}}})


@pytest.mark.parametrize(
    ("text", "cause", "said"),
    [
        (_collective("RDMA", 67.1, 4230.0), "rdma-retransmission", "Transit Time(ms) = 4230.0"),
        (_collective("RDMA", 0.0655, 0.04, 48), "comm-small-packets", "Size Distribution = 0.0655"),
        (_collective("HCCS", 67.1, 9.3), "comm-bandwidth-contention", "Bandwidth(GB/s) = 7.2151"),
    ],
)
def test_communication(tmp_path: Path, text: str, cause: str, said: str) -> None:
    files = {**kernels(), "communication.json": text, "step_trace_time.csv": make.step_csv([(13, 6.0, 30.0, 0.0)])}
    make.write(tmp_path / "bundle", files=files)
    triage = judged(tmp_path / "bundle", tmp_path / "case")
    assert causes(triage)[:1] == [cause] and said in triage.diagnoses[0].evidence[0].text


# ---------------------------------------------------------------- what was handed in


def test_raw_data_is_told_from_an_analysed_profile(tmp_path: Path) -> None:
    root = make.write(tmp_path / "bundle")
    (root / "ASCEND_PROFILER_OUTPUT").rmdir()
    (root / "FRAMEWORK").mkdir()
    (root / "FRAMEWORK" / "torch.op_range").write_bytes(bytes(range(256)))
    triage = judged(tmp_path / "bundle", tmp_path / "case")
    assert causes(triage) == ["profile-not-analysed"]


def test_a_trace_that_was_cut_is_told_and_the_tables_still_count(tmp_path: Path) -> None:
    text = make.trace([{"ph": "X", "name": "aten::add", "pid": 1, "tid": 1, "ts": "1.0", "dur": 1.0}] * 50)[:-40]
    make.write(tmp_path / "bundle", files={**kernels(), "trace_view.json": text})
    assert causes(judged(tmp_path / "bundle", tmp_path / "case")) == ["profile-truncated"]
    make.write(tmp_path / "worse", files={**kernels(Kernel("NonZero", 1900.0, "AI_CPU", dtypes="DOUBLE")), "trace_view.json": text})
    assert causes(judged(tmp_path / "worse", tmp_path / "case2"))[:2] == ["host-fallback-operator", "profile-truncated"]


def test_a_table_without_its_end_is_read_up_to_there(tmp_path: Path) -> None:
    table = make.kernel_csv([*make.healthy(), Kernel("NonZero", 1900.0, "AI_CPU", dtypes="DOUBLE")])
    make.write(tmp_path / "bundle", files={"kernel_details.csv": table[:-40]})
    triage = judged(tmp_path / "bundle", tmp_path / "case")
    assert causes(triage)[:1] == ["host-fallback-operator"]
    assert any("wrong number of cells" in member.note for member in triage.coverage.members)


# ---------------------------------------------------------------- with logs, and serving


def test_a_slow_operator_and_the_line_that_says_why_are_one_diagnosis(tmp_path: Path) -> None:
    make.write(tmp_path / "bundle", files=kernels(Kernel("Isin", 1900.0, "AI_CPU", dtypes="INT64")))
    said = "The operator 'aten::isin.Tensor_Tensor_out' is not currently supported on the NPU backend and will fall back to run on the CPU."
    (tmp_path / "bundle" / "console.log").write_text(f"2025-11-27 12:34:36,100 - WARNING - CAUTION: {said}\n")
    triage = judged(tmp_path / "bundle", tmp_path / "case")
    assert causes(triage)[:1] == ["host-fallback-operator"] and causes(triage).count("host-fallback-operator") == 1
    cited = {e.file.rpartition("/")[2] for e in triage.diagnoses[0].evidence}
    assert {"kernel_details.csv", "console.log"} <= cited


def _scrape(**values: float) -> str:
    return "".join(f'# TYPE vllm:{name} gauge\nvllm:{name}{{engine="0",model_name="m"}} {value}\n' for name, value in values.items())


def test_a_full_cache_with_a_queue_is_told_from_scrapes(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    for n in range(4):
        text = _scrape(kv_cache_usage_perc=0.999, num_requests_waiting=100.0 + n, num_preemptions_total=20.0 * n, num_requests_running=47.0)
        (tmp_path / "bundle" / f"metrics_{1764246900 + 15 * n}.prom").write_text(text)
    first = judged(tmp_path / "bundle", tmp_path / "case").diagnoses[0]
    assert first.finding.rule.root_cause == "kv-cache-too-small" and "103" in first.title.en
    assert first.evidence[0].file.endswith("metrics_1764246945.prom")


def test_mindie_that_decodes_slower_and_slower(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    for n, rate in enumerate((900.0, 880.0, 300.0, 290.0)):
        text = _scrape(avg_generation_throughput_toks_per_s=rate, num_requests_waiting=0, npu_cache_usage_perc=0.3, num_requests_running=8)
        (tmp_path / "bundle" / f"metrics_{1764246900 + 15 * n}.txt").write_text(text.replace("vllm:", ""))
    assert causes(judged(tmp_path / "bundle", tmp_path / "case"))[:1] == ["host-bound"]


def test_only_the_first_request_is_slow(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    for n, (total, count) in enumerate(((41.7, 1), (46.0, 60), (52.0, 120))):
        text = _scrape(time_to_first_token_seconds_sum=total, time_to_first_token_seconds_count=count, num_requests_waiting=0)
        (tmp_path / "bundle" / f"metrics_{1764246900 + 60 * n}.prom").write_text(text)
    assert causes(judged(tmp_path / "bundle", tmp_path / "case"))[:1] == ["cold-start-compile"]


# ---------------------------------------------------------------- the case


def test_a_threshold_can_be_set(tmp_path: Path) -> None:
    make.write(tmp_path / "bundle", files=kernels(Kernel("NonZero", 1900.0, "AI_CPU", dtypes="DOUBLE")))
    assert causes(judged(tmp_path / "bundle", tmp_path / "case", profile__aicpu_us="5000")) == []


def test_the_case_holds_the_tables_in_nanoseconds_and_explains_itself(tmp_path: Path) -> None:
    from forensics.pipeline import explain

    make.write(tmp_path / "bundle", files=kernels(Kernel("NonZero", 1900.0, "AI_CPU", dtypes="DOUBLE")))
    case = forensics.triage(str(tmp_path / "bundle"), out=str(tmp_path / "case"))
    [row] = case.sql("select op_type, start_ns, dur_ns, rank, step from kernels where core = 'AI_CPU' order by start_ns limit 1").rows()
    assert row == ("NonZero", make.START + 12 * 460_000, 1_900_000, 0, 13)
    assert case.sql("select count(*) from compute").item() == 50
    told = explain(case, "profile.op.aicpu")
    assert told.fired and told.parts[0].evidence
    assert not explain(case, "profile.op.few-cores").fired
    case.close()


def test_the_same_profile_gives_the_same_report(tmp_path: Path) -> None:
    from forensics.report.data import encode, report

    make.write(tmp_path / "bundle", files=kernels(Kernel("NonZero", 1900.0, "AI_CPU", dtypes="DOUBLE")))
    one = encode(report(judged(tmp_path / "bundle", tmp_path / "one")))
    assert one == encode(report(judged(tmp_path / "bundle", tmp_path / "two")))
