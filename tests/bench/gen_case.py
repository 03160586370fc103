"""A case of many lines, made up and written directly: `python -m tests.bench.gen_case FOLDER --rows 10000000`.

The Parquet parts look as `forensics.index` leaves them: a row group for each block of one file, files of 16 devices one behind another,
all of them spread over the same hours, dealt out to two parts in turn. The same arguments give the same case.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forensics import index
from forensics.case import Case, Identity, Plan, begin
from forensics.ingest import Scan
from forensics.result import BundleInfo, Coverage, Member, Triage
from rules.model import MetricRow

GROUP = 70_000
"""Rows of a row group: what a block of 8 MB holds of lines of some 120 bytes."""
START = 1_767_225_600_000_000
HOURS = 6
SHAPES = (
    "[task_allocator.cc:218]{pid} TaskAllocator: stream_id={a} task_id={b} alloc success, used={a}/{b}",
    "[runtime.cc:4177]{pid} GetDeviceStatus: device status is normal, checked in {a} us",
    "[hccl_socket.cc:88]{pid} [SocketSend] rank[{a}] sent {b} bytes to peer on link {a}",
    "[stream.cc:1209]{pid} StreamLaunch: kernel MatMulV3_{b} blockDim={a} launched",
    "[memory_pool.cc:77]{pid} AllocBlock: size={b} from pool {a}, high water mark {b}",
    "(Worker_TP{a} pid={pid}) INFO [model_runner.py:512] step {b} took {a}.{a} ms, running 32 requests",
)
ERRORS = (
    "[davinci_kernel_task.cc:412]{pid} PrintErrorInfo: kernel task {b} failed, stream_id={a}, error code=507035",
    "[hccl_exec.cc:301]{pid} [Wait][Notify] notify wait timed out after {a} s, tag [allreduce_{b}], rank {a}",
)


def names(values: list[str], picks: np.ndarray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(picks.astype(np.int32)), pa.array(values, pa.string()))


def block(
    random: np.random.Generator, file_id: int, first: int, rows: int, ts: np.ndarray, device: int, node: str, pid: int
) -> pa.Table:  # fmt: skip
    bad = random.random(rows) < 0.002
    shape = random.integers(0, len(SHAPES), rows)
    a, b = random.integers(0, 999, rows), random.integers(1000, 999_999, rows)
    wrong = random.integers(0, len(ERRORS), rows)
    texts = [
        (ERRORS[w] if e else SHAPES[s]).format(pid=pid, a=x, b=y)
        for e, w, s, x, y in zip(bad.tolist(), wrong.tolist(), shape.tolist(), a.tolist(), b.tolist(), strict=True)
    ]
    lengths = np.fromiter(map(len, texts), np.int64, rows) + 60
    severity = np.where(bad, 2, np.where(random.random(rows) < 0.01, 1, 0))
    columns: dict[str, pa.Array] = {
        "file_id": pa.array(np.full(rows, file_id, np.int32)),
        "line_no": pa.array(np.arange(first, first + rows, dtype=np.int64)),
        "n_lines": pa.array(np.ones(rows, np.int32)),
        "byte_offset": pa.array(np.cumsum(lengths) - lengths),
        "ts": pa.array(ts).cast(pa.timestamp("us")),
        "node": names([node], np.zeros(rows, np.int32)),
        "device": pa.array(np.full(rows, device, np.int32)),
        "source": names(["plog", "vllm"], shape == 5),
        "severity": names(["INFO", "WARNING", "ERROR"], severity),
        "module": names(["RUNTIME", "HCCL", "VLLM"], shape % 3),
        "pid": pa.array(np.full(rows, pid, np.int64)),
        "task_id": pa.array(b.astype(np.int64)),
        "message": pa.array(texts, pa.string_view()),
        "process": names(["python3"], np.zeros(rows, np.int32)),
    }
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in index.SCHEMA]
    return pa.Table.from_arrays(arrays, schema=index.SCHEMA)


def write(folder: Path, rows: int, seed: int = 7) -> Case:
    """A case of `rows` events in 32 files of two nodes."""
    random = np.random.default_rng(seed)
    files = 32
    per = rows // files
    members = [
        Member(n, f"node{n // 16}/plog/plog-{4000 + n}_20260101.log", f"node{n // 16}", n % 16, "plog", "plog", per * 130, per, per, "utf-8",
               "local", 28800, START, START + HOURS * 3_600_000_000, "read")
        for n in range(files)
    ]  # fmt: skip
    metrics = [
        MetricRow(name, float(value), unit, f"node{node}", device, START + k * 600_000_000)
        for node in range(2) for device in range(16) for k in range(HOURS * 6)
        for name, value, unit in (
            ("npu.temperature", 40 + 20 * random.random(), "C"), ("npu.power", 90 + 200 * random.random(), "W"),
            ("npu.hbm.used", 30_000 + 30_000 * random.random(), "MB"), ("npu.hbm.total", 65_536, "MB"),
        )
    ]  # fmt: skip
    info = BundleInfo("generated.tar", "g1", rows * 130, rows * 130, files, rows, ["node0", "node1"], 32, START, members[0].last, "+08:00")
    triage = Triage("1.0", [], info, [], [], [], [], [], Coverage(rows, rows, rows // 500, 0, members), [], [])
    case = begin(folder)
    scan = Scan(
        hits=[], inside={}, counts={}, files=members, facts=[], metrics=metrics, errors=[], error_lines=rows // 500, first_errors=[], lines=rows,
        unpacked=rows * 130, first=START, last=members[0].last, clocks={}, cut=set(), notes=[],
    )  # fmt: skip
    case.store(Plan(Identity("g1", "r1", "1.0"), ["generated.tar"]), triage, scan, [])
    parts = case.new_parts()
    writers = [index._writer(parts / f"events-{number}.parquet") for number in range(2)]
    number = 0
    for member in members:
        ts = np.sort(random.integers(START, START + HOURS * 3_600_000_000, per))
        for first in range(0, per, GROUP):
            some = ts[first : first + GROUP]
            table = block(random, member.file_id, first + 1, len(some), some, member.device or 0, member.node, 4000 + member.file_id)
            writers[number % 2].write_table(table, row_group_size=1 << 20)
            number += 1
    for writer in writers:
        writer.close()
    case.put_parts([f"events-{k}.parquet" for k in range(2)])
    return case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    case = write(given.folder, given.rows)
    size = sum(path.stat().st_size for path in case.folder.rglob("*") if path.is_file())
    groups = sum(pq.ParquetFile(part).num_row_groups for part in (case.folder / "parts").iterdir())
    print(f"{case.folder}: {given.rows} rows in {groups} row groups, {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
