"""A case is whole or not there, belongs to one bundle, and cannot be used to reach anything else."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import duckdb
import pytest

from forensics import case as module
from forensics import tables
from forensics.case import Identity, Plan, begin, open_case
from forensics.errors import CaseError, UsageError
from tests.unit.case_maker import NAMES, SCANNER, stored, triage_of
from tests.unit.members import Texts, plog

FILES = {"plog-1.log": (plog("one", 1) + plog("link timeout", 2, "ERROR")).encode()}


def test_a_case_holds_its_tables(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", FILES)
    assert case.sql("SELECT path, kind, lines FROM files").rows() == [("plog-1.log", "plog", 2)]
    assert case.sql("SELECT rule, pattern, line_no, severity FROM signals").rows() == [("test.timeout", "timeout", 2, "ERROR")]
    assert case.sql("SELECT sha256, lines FROM bundle").rows() == [("d1", 2)]
    for table in ("metrics", "facts", "findings", "edges", "diagnoses", "evidence", "replays"):
        assert case.sql(f"SELECT count(*) FROM {table}").rows() == [(0,)]
    assert case.load_triage().bundle.name == "b.tar"


def test_a_case_can_be_moved_and_opened_by_others(tmp_path: Path) -> None:
    stored(tmp_path / "c", FILES).close()
    shutil.move(tmp_path / "c", tmp_path / "it's moved")
    assert open_case(tmp_path / "it's moved").sql("SELECT count(*) FROM events").rows() == [(2,)]
    assert open_case(tmp_path / "it's moved" / "case.duckdb").plan().indexed
    other = duckdb.connect(str(tmp_path / "it's moved" / "case.duckdb"), read_only=True)
    other.execute("SET file_search_path = ?", [str(tmp_path / "it's moved")])
    assert other.execute("SELECT max(message) FROM events").fetchall() == [("one",)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('/etc/hostname')", "SELECT * FROM read_csv('parts/../../x.csv')", "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')", "SELECT getenv('HOME')", "SELECT * FROM read_blob('case.duckdb')",
    ],
)  # fmt: skip
def test_a_query_reads_nothing_but_the_case(tmp_path: Path, query: str) -> None:
    with pytest.raises(duckdb.Error):
        print(stored(tmp_path / "c", FILES).sql(query))


@pytest.mark.parametrize(
    "query",
    [
        "COPY files TO 'x.csv'", "ATTACH 'y.duckdb'", "INSTALL httpfs", "LOAD httpfs", "CREATE TABLE t (a INT)", "DELETE FROM files",
        "DROP VIEW events",
        "SET threads = 64", "RESET ALL", "PRAGMA version", "EXPORT DATABASE 'd'", "SELECT 1; SELECT 2", "", "CALL pragma_version()",
        "CHECKPOINT", "VACUUM",
    ],
)  # fmt: skip
def test_only_one_select_is_a_query(tmp_path: Path, query: str) -> None:
    case = stored(tmp_path / "c", FILES)
    before = sorted(path.name for path in (tmp_path / "c").iterdir())
    with pytest.raises((UsageError, duckdb.Error)):
        case.sql(query)
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == before


def test_a_query_can_be_interrupted(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", FILES)
    case.connection()
    timer = threading.Timer(0.3, case.interrupt)
    timer.start()
    began = time.monotonic()
    with pytest.raises(duckdb.Error):
        case.sql("SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range % 7 = b.range % 11")
    assert time.monotonic() - began < 20
    timer.join()


def test_the_case_of_another_bundle_is_refused(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", FILES)
    assert case.check(Identity("d1", "r1", "1.0"), False)
    assert not case.check(Identity("d1", "other rules", "1.0"), False)
    with pytest.raises(UsageError, match="another bundle"):
        case.check(Identity("d2", "r1", "1.0"), False)
    assert not case.check(Identity("d2", "r1", "1.0"), True)
    assert not begin(tmp_path / "new").check(Identity("d2", "r1", "1.0"), False)


def test_an_interrupted_case_is_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = stored(tmp_path / "c", FILES)
    found = module.Scan  # any name: the store below dies before it is needed
    assert found
    monkeypatch.setattr(module.tables, "insert", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    from forensics.ingest import scan

    seen = scan(Texts(FILES), SCANNER, 1)
    with pytest.raises(KeyboardInterrupt):
        case.store(Plan(Identity("d2", "r", "1"), ["x"]), triage_of(seen), seen, NAMES)
    monkeypatch.undo()
    again = open_case(tmp_path / "c")
    assert again.plan().identity.bundle == "d1" and again.sql("SELECT count(*) FROM events").rows() == [(2,)]
    begin(tmp_path / "c").clear()
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["case.duckdb", "parts"]


def test_an_index_that_died_is_made_again(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", FILES, indexed=False)
    (case.new_parts() / "events-1.parquet").write_bytes(b"PAR1 half")
    assert not open_case(tmp_path / "c").plan().indexed
    from forensics import index

    index.build(case, Texts(FILES), {}, 1)
    assert case.sql("SELECT count(*) FROM events").rows() == [(2,)]


def test_foreign_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    (folder / "parts").mkdir(parents=True)
    (folder / "mine.txt").write_text("mine")
    (folder / "parts" / "other.parquet").write_text("theirs")
    case = stored(folder, FILES)
    assert case.sql("SELECT count(*) FROM events").rows() == [(2,)]
    stored(folder, FILES).clear()
    assert (folder / "mine.txt").read_text() == "mine" and (folder / "parts" / "other.parquet").read_text() == "theirs"


def test_a_database_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "case.duckdb")).execute("CREATE TABLE mine (a INT)").close()
    case = begin(tmp_path)
    with pytest.raises(UsageError, match="no case of this version"):
        case.check(Identity("d1", "r", "1"), False)
    assert not case.check(Identity("d1", "r", "1"), True)


def test_the_output_path_may_not_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("keep")
    with pytest.raises(CaseError, match="is a file"):
        begin(tmp_path / "f")
    with pytest.raises(CaseError, match="cannot be written"):
        begin(tmp_path / "f" / "deeper")
    assert (tmp_path / "f").read_text() == "keep"


def test_what_is_no_case_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no case"):
        open_case(tmp_path)
    (tmp_path / "case.duckdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(CaseError, match="triage again"):
        open_case(tmp_path)
    os.unlink(tmp_path / "case.duckdb")
    duckdb.connect(str(tmp_path / "case.duckdb")).close()
    with pytest.raises(CaseError, match="no case"):
        open_case(tmp_path)


def test_a_folder_that_was_made_for_nothing_goes_away(tmp_path: Path) -> None:
    case = begin(tmp_path / "a" / "c")
    case.clear()
    case.discard()
    assert not (tmp_path / "a" / "c").exists()
    (tmp_path / "kept").mkdir()
    begin(tmp_path / "kept").discard()
    assert (tmp_path / "kept").exists()


def test_lines_that_cannot_be_stored_any_more_are_missed_by_name(tmp_path: Path) -> None:
    case = stored(tmp_path / "c", FILES, indexed=False)
    with pytest.raises(CaseError, match="not there any more"):
        case.ensure_index()


def test_very_many_files_are_all_in_their_table(tmp_path: Path) -> None:
    files = {f"f{k}.txt": b"x\n" for k in range(tables.MANY + 5)} | {"plog-1_1.log": plog("link timeout", 1).encode()}
    case = stored(tmp_path / "c", files, indexed=False)
    rows = case.sql("SELECT file_id, path, first FROM files ORDER BY file_id").rows()
    assert [row[1] for row in rows] == list(files) and [row[0] for row in rows] == list(range(len(files)))
    assert rows[0][2] is None and str(rows[-1][2]) == "2025-09-04 09:00:01"
