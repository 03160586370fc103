"""All lines of a bundle stand in the case, once, with their place and time."""

from __future__ import annotations

import random
import resource
from pathlib import Path

import pytest

from forensics import index
from forensics.errors import CaseError
from tests.unit.case_maker import SCANNER, stored
from tests.unit.members import Texts, plog

FILES = {
    "node-1/plog/plog-838_20250904090000000.log": (
        plog("one, stream_id=4, device_id=2", 1) + plog("two", 2, "ERROR", 838) + "  TraceBack\n    more 内存\n" + plog("three", 3)
    ).encode(),
    "node-1/console.log": (
        b"(Worker_TP1 pid=99) INFO 09-04 09:00:01 [core.py:12] hello\r\n(Worker_TP1 pid=99) ERROR 09-04 09:00:02 [core.py:13] \x1b[1mbad\x1b[0m\n"
    ),
    "notes.txt": "first\n  indented\n中文\nlast without end".encode(),
    "wide.log": "\ufeff".encode("utf-16-le") + (plog("宽") + plog("字", 5)).encode("utf-16-le"),
}


def test_records_have_all_their_columns(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", FILES)
    rows = case.sql("SELECT * FROM events WHERE file_id = 0 ORDER BY line_no").to_dicts()
    first, second = rows[0], rows[1]
    assert first["event_id"] == 1 and second["event_id"] == 2 and [row["n_lines"] for row in rows] == [1, 3, 1]
    assert (first["node"], first["device"], first["stream_id"], first["severity"], first["module"]) == ("node-1", 2, 4, "INFO", "RUNTIME")
    assert (first["pid"], first["tid"], first["function"], first["src_file"], first["src_line"]) == (7, 7, "Run", "engine.cc", 12)
    assert (second["message"], second["source"], second["code"], second["task_id"]) == ("two\n  TraceBack\n    more 内存", "plog", None, None)
    assert str(second["ts"]) == "2025-09-04 09:00:02" and second["pid"] == 838
    assert FILES["node-1/plog/plog-838_20250904090000000.log"][second["byte_offset"] :].startswith(b"[ERROR] RUNTIME(838")


def test_a_part_that_is_long_enough_is_closed_and_the_next_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"plog/plog-{n}_20250904090000000.log": "".join(plog(f"line {k} of {n}", k) for k in range(900)).encode() for n in range(40)}
    whole = stored(tmp_path / "whole", files)
    monkeypatch.setattr(index, "ROWS", 2000)
    monkeypatch.setattr(index, "PART", 10_000)
    parted = stored(tmp_path / "parted", files, 1)
    names = sorted(path.name for path in (tmp_path / "parted" / "parts").iterdir())
    assert len(names) == 4 and names[0] == "events-0-1.parquet"
    query = "SELECT * FROM events ORDER BY event_id"
    assert parted.sql(query).equals(whole.sql(query)) and parted.sql("SELECT count(*) FROM events").item() == 36_000


def test_lines_are_cleaned_and_stay_in_place(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", FILES)
    rows = case.sql("SELECT line_no, byte_offset, message, process, rank, pid FROM events WHERE file_id = 1 ORDER BY 1").rows()
    first_end = FILES["node-1/console.log"].index(b"\n") + 1
    assert rows == [(1, 0, "hello", "Worker_TP1", 1, 99), (2, first_end, "bad", "Worker_TP1", 1, 99)]
    wide = case.sql("SELECT line_no, byte_offset, message FROM events WHERE file_id = 3 ORDER BY 1").rows()
    assert wide == [(1, 2, "宽"), (2, 2 + len(plog("宽").encode("utf-16-le")), "字")]


def test_every_line_is_in_the_case_once(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", FILES)
    counted = case.sql("SELECT file_id, sum(n_lines)::INT, count(*), count(DISTINCT event_id) FROM events GROUP BY 1 ORDER BY 1").rows()
    assert [row[:2] for row in counted] == [(0, 5), (1, 2), (2, 4), (3, 2)]
    assert all(row[2] == row[3] for row in counted)


def test_all_numbers_of_workers_store_the_same(tmp_path: Path) -> None:
    files = {f"n{k}/plog/plog-{k}_20250904090000000.log": "".join(plog(f"{k} {i} task_id={i}", i) for i in range(60000)).encode() for k in range(4)}
    files |= FILES
    one, three = (stored(tmp_path / str(workers), files, workers) for workers in (1, 3))
    assert len(list((tmp_path / "3" / "parts").iterdir())) > 1
    query = "SELECT * FROM events ORDER BY event_id"
    assert one.sql(query).equals(three.sql(query))


def test_compiled_and_plain_reading_store_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        f"plog-{k}.log": "".join(plog(f"{k} {i} device_id={i % 3}\n  more" if i % 9 == 0 else "x", i) for i in range(3000)).encode() for k in range(3)
    }
    plain = stored(tmp_path / "plain", files)
    monkeypatch.setattr(index, "COMPILE_FROM", 0)
    monkeypatch.setattr(index, "COMPILED_FROM", 0)
    fast = stored(tmp_path / "fast", files)
    query = "SELECT * FROM events ORDER BY event_id"
    assert plain.sql(query).equals(fast.sql(query))


def test_signals_point_to_their_events(tmp_path: Path) -> None:
    files = {"plog-1.log": (plog("bad", 1, "ERROR") + "  link timeout\n").encode()}
    case = stored(tmp_path / "c", files)
    assert case.sql("SELECT s.rule, s.line_no, e.message FROM signals s JOIN events e USING (event_id)").rows() == [
        ("test.timeout", 2, "bad\n  link timeout")
    ]


def test_a_bundle_of_no_lines_has_a_case(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", {"empty.log": b"", "b.bin": b"\x7fELF\x02\x01\x01"})
    assert case.sql("SELECT count(*) FROM events").rows() == [(0,)] and case.plan().indexed


def test_a_bundle_that_changed_is_not_indexed(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", FILES, indexed=False)
    with pytest.raises(CaseError, match="has changed"):
        index.build(case, Texts(FILES), {}, 1, agrees=lambda: False)
    assert not case.plan().indexed and case.sql("SELECT count(*) FROM events").rows() == [(0,)]


def test_what_was_not_indexed_is_made_up_for(tmp_path: Path) -> None:
    from forensics.bundle import Bundle
    from forensics.case import Identity, Plan, begin, open_case
    from forensics.ingest import scan
    from tests.unit.case_maker import NAMES, triage_of

    folder = tmp_path / "logs"
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    bundle = Bundle(folder)
    found = scan(bundle, SCANNER, 1)
    begin(tmp_path / "c").store(Plan(Identity(bundle.sha256, "r", "1"), [str(folder)]), triage_of(found), found, NAMES)
    case = open_case(tmp_path / "c")
    case.ensure_index()
    assert case.sql("SELECT sum(n_lines)::INT FROM events").rows() == [(13,)]
    (folder / "notes.txt").unlink()
    (folder / "console.txt").write_text("changed")
    case.store(Plan(Identity(bundle.sha256, "r", "1"), [str(folder)]), triage_of(found), found, NAMES)
    with pytest.raises(CaseError, match="has changed"):
        case.ensure_index()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_told_in_one_sentence(tmp_path: Path, workers: int) -> None:
    rng = random.Random(5)
    files = {f"{k}.txt": b"".join(rng.randbytes(1500).hex().encode() + b"\n" for _ in range(2400)) for k in range(3)}
    case = stored(tmp_path / "c", files, indexed=False)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(CaseError, match="File too large"):
            index.build(case, Texts(files), {}, workers)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not case.plan().indexed


def test_a_block_of_very_short_lines_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"x\n\n" * 150_000 + b"\n" * 2_000_000 + b"y\n" + b"\n" * 500 + (plog("found") + "  more\n").encode() + b"\n" * 5000 + b"z"
    wrote: list[int] = []
    table = index.Batch.table
    monkeypatch.setattr(index.Batch, "table", lambda batch: wrote.append(batch.rows) or table(batch))
    case = stored(tmp_path / "c", {"a.txt": data, "wide.log": data.decode().encode("utf-16")})
    assert max(wrote) < index.ROWS + index.PIECE // 2
    for file_id, unit in ((0, 1), (1, 2)):
        rows = case.sql(f"SELECT line_no, byte_offset, message FROM events WHERE file_id = {file_id} ORDER BY line_no").rows()
        assert len(rows) == 150_003 and rows[149_999][0] == 299_999
        for line, offset, message in (rows[77_777], rows[-3], rows[-2], rows[-1]):
            at = (offset - (unit - 1) * 2) // unit
            assert data[:at].count(b"\n") == line - 1 and (data[at:].startswith(message.encode()) or message.startswith("found"))
        assert [row[2].strip() for row in rows[-3:]] == ["y", "found\n  more", "z"]


def test_the_second_pass_judges_no_member_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = stored(tmp_path / "c", FILES, indexed=False)
    monkeypatch.setattr(index.registry, "classify", lambda path, head: pytest.fail(f"{path} was judged again"))
    index.build(case, Texts(FILES), {}, 1)
    assert case.sql("SELECT count(DISTINCT file_id) FROM events").item() == len(FILES)
