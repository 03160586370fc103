"""The case: a folder that holds all that is known of an incident, and is asked by SQL.

`case.duckdb` is all a reader opens; the log records lie beside it as Parquet parts, which the view `events` shows. The folder can be
moved and sent. It is written beside itself under other names and put in place in one step, so it is never read half done: an
interrupted case is the one before, or none.

    case = open_case("logs.case")
    case.sql("SELECT severity, count(*) FROM events GROUP BY ALL")
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from forensics import marks, tables
from forensics.clocks import FileClock
from forensics.errors import CaseError, UsageError
from forensics.ingest import Scan
from forensics.result import Triage
from replay.result import Verdict
from rules.causes import Edge
from rules.model import Diagnosis, Finding

if TYPE_CHECKING:
    import duckdb
    import polars

Kept = TypeVar("Kept")

DATABASE = "case.duckdb"
PARTS = "parts"
SCRATCH = ".scratch"
BUILDING = ".building"
"""Folder inside the case folder where everything is written before it is put in place."""
MEMORY = "2GB"
"""What a query may take."""


class Identity(msgspec.Struct, frozen=True):
    """What a case is of: the same bundle, rules, options and version give the same case."""

    bundle: str
    rules: str
    version: str


class Plan(msgspec.Struct):
    """What the second pass needs to know of the first, so that it can be made up for later."""

    identity: Identity
    sources: list[str]
    indexed: bool = False


class Case:
    """A case folder. Opened by `open_case`, made by `begin`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.made = False
        """Whether `begin` made the folder."""
        self.memory = MEMORY
        """What a query may take; of a connection that is opened after it was set."""
        self.threads: int | None = None
        """Threads of a query; None: one for each core."""
        self._plan: Plan | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None

    @property
    def database(self) -> Path:
        return self.folder / DATABASE

    @property
    def scratch(self) -> Path:
        """A folder for temporary copies; gone with `clear`."""
        path = self.folder / SCRATCH
        with _writing(self.folder):
            path.mkdir(exist_ok=True)
        return path

    # ------------------------------------------------------------ making

    def existing(self) -> Plan | None:
        """What the folder holds already; None for nothing, or nothing that can be read."""
        if not self.database.is_file():
            return None
        try:
            return self.plan()
        except CaseError:
            return None

    def check(self, identity: Identity, force: bool) -> bool:
        """Whether the folder holds exactly this case already. Raises UsageError where it holds one of another bundle."""
        plan = self.existing()
        if plan is None:
            if self.database.exists() and not force:
                raise UsageError(f"{str(self.database)!a} is no case of this version: give another folder with -o, or --force to replace it")
            return False
        if plan.identity.bundle != identity.bundle and not force:
            raise UsageError(
                f"{str(self.folder)!a} is the case of another bundle ({', '.join(plan.sources)}): "
                "give another folder with -o, or --force to replace it"
            )
        return plan.identity == identity

    def store(
        self,
        plan: Plan,
        triage: Triage,
        scan: Scan,
        pattern_names: Sequence[tuple[str, str]],
        findings: Sequence[Finding] = (),
        edges: Sequence[Edge] = (),
        diagnoses: Sequence[Diagnosis] = (),
        kept: bytes = b"",
        profiles: Path | None = None,
    ) -> None:
        """Write the database, with no events yet, and put it in place of what was there. `pattern_names`: (rule, pattern) of each leaf;
        `kept`: what the caller wants to find again, by `kept`; `profiles`: a closed database in the scratch folder that has these tables,
        those of the profiles, the metrics and the facts filled: it becomes the case's own."""
        import duckdb

        self.close()
        plan.indexed = False
        building = self.folder / BUILDING
        fresh = building / DATABASE
        with _writing(self.folder):
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            if profiles is not None:
                os.replace(profiles, fresh)
            connection = duckdb.connect(str(fresh), config={"threads": 1})
            try:
                connection.execute("BEGIN")
                if profiles is None:
                    tables.create(connection)
                for table, rows in _rows(triage, scan, pattern_names, findings, edges, diagnoses):
                    if profiles is None or table not in ("metrics", "facts"):
                        tables.insert(connection, table, rows)
                parts = (("plan", plan), ("triage", triage), ("clocks", scan.clocks), ("replays", triage.replays))
                for name, value in parts:  # one at a time: they may be large
                    tables.keep(connection, name, msgspec.msgpack.encode(value))
                tables.keep(connection, "kept", kept)
                connection.execute("COMMIT")
            finally:
                connection.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.database}.wal")  # of a database that is about to be replaced
            os.replace(fresh, self.database)
            _remove(self.folder / PARTS)
            shutil.rmtree(building, ignore_errors=True)
        self._plan = plan

    def new_parts(self) -> Path:
        """An empty folder to write Parquet parts into."""
        building = self.folder / BUILDING
        with _writing(self.folder):
            shutil.rmtree(building, ignore_errors=True)
            (building / PARTS).mkdir(parents=True)
        return building / PARTS

    def put_parts(self, names: Sequence[str]) -> None:
        """Take the parts written to `new_parts()` over, and show them as `events`."""
        import duckdb

        self.close()
        building = self.folder / BUILDING
        fresh = building / DATABASE
        plan = self.plan()
        plan.indexed = True
        with _writing(self.folder):
            shutil.copyfile(self.database, fresh)
            _remove(self.folder / PARTS)
            (self.folder / PARTS).mkdir(exist_ok=True)
            for name in names:
                os.replace(building / PARTS / name, self.folder / PARTS / name)
            connection = duckdb.connect(str(fresh), config={"threads": 1, "file_search_path": str(self.folder)})
            try:
                tables.view(connection, [f"{PARTS}/{name}" for name in sorted(names)])
                connection.execute("DELETE FROM internals WHERE name = 'plan'")
                tables.keep(connection, "plan", msgspec.msgpack.encode(plan))
            finally:
                connection.close()
            os.replace(fresh, self.database)
            shutil.rmtree(building, ignore_errors=True)
        self._plan = plan

    def clear(self) -> None:
        """Remove what only a running program needs."""
        self.close()
        for name in (SCRATCH, BUILDING):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    # ------------------------------------------------------------ reading

    def discard(self) -> None:
        """Remove the folder again if `begin` made it and nothing came into it."""
        if self.made:
            with contextlib.suppress(OSError):
                self.folder.rmdir()

    def plan(self) -> Plan:
        if self._plan is None:
            self._plan = self._decoded("plan", Plan)
        return self._plan

    def kept(self) -> bytes:
        """What was given to `store`."""
        return self._internal("kept")

    def load_triage(self) -> Triage:
        """The result, as it was when the case was made, with the verdicts of replays and the lines that were marked since."""
        triage = self._decoded("triage", Triage)
        triage.replays = self.replays()
        triage.marks = marks.load(self.folder)
        return triage

    def replays(self) -> dict[int, Verdict]:
        """Rank of a diagnosis -> the verdict of its replay."""
        return self._decoded("replays", dict[int, Verdict])

    def store_replays(self, verdicts: dict[int, Verdict]) -> None:
        """Put the verdicts of replays into the case, in place of those before."""
        import duckdb

        self.close()
        building = self.folder / BUILDING
        fresh = building / DATABASE
        with _writing(self.folder):
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            shutil.copyfile(self.database, fresh)
            connection = duckdb.connect(str(fresh), config={"threads": 1, "file_search_path": str(self.folder)})
            try:
                connection.execute("DELETE FROM replays")
                tables.insert(connection, "replays", [(rank, one.kernel, one.status, _json(one)) for rank, one in sorted(verdicts.items())])
                connection.execute("DELETE FROM internals WHERE name = 'replays'")
                tables.keep(connection, "replays", msgspec.msgpack.encode(verdicts))
            finally:
                connection.close()
            os.replace(fresh, self.database)
            shutil.rmtree(building, ignore_errors=True)

    @property
    def diagnoses(self) -> list[Diagnosis]:
        """The ranked diagnoses, as they were when the case was made."""
        return self.load_triage().diagnoses

    def ensure_index(self, workers: int | None = None) -> None:
        """Store the lines of the bundle if that has not been done; CaseError where that is not possible any more."""
        plan = self.plan()
        if plan.indexed:
            return
        from forensics import index
        from forensics.bundle import Bundle
        from forensics.several import Several

        missing = [source for source in plan.sources if source == "-" or not os.path.exists(source)]
        if missing:
            raise CaseError(f"the lines of {str(self.folder)!a} were not stored, and {missing[0]!a} is not there any more: run triage again")
        bundles = [Bundle(source, None, self.scratch, self.folder) for source in plan.sources]
        bundle = bundles[0] if len(bundles) == 1 else Several(bundles)
        clocks = self._decoded("clocks", dict[int, FileClock])
        try:
            index.build(self, bundle, clocks, workers, agrees=lambda: bundle.sha256 == plan.identity.bundle)
        finally:
            bundle.close()
            self.clear()

    def sql(self, query: str) -> polars.DataFrame:
        """The rows of one SELECT. Nothing can be changed, and no file but the parts of the case be read.

        Raises duckdb.Error for a query that fails, UsageError for one that is no query."""
        connection = self.connection()
        check_query(connection, query)
        frame: polars.DataFrame = connection.sql(query).pl()
        return frame

    def interrupt(self) -> None:
        """Stop a query that another thread is running."""
        if self._connection is not None:
            self._connection.interrupt()

    def connection(self) -> duckdb.DuckDBPyConnection:
        """A read-only connection that can reach nothing but this case."""
        if self._connection is None:
            connection = _opened(self.database)
            # the view of the database names its parts relative to the case folder, which is right for a reader who stands in it; here
            # they are named in full, since what may be read is named in full
            parts = self._parts()
            tables.view(connection, parts, temporary=True)
            connection.execute("SET allowed_paths = ?", [parts])
            connection.execute(f"SET memory_limit = '{self.memory}'")
            if self.threads is not None:
                connection.execute(f"SET threads = {self.threads}")
            connection.execute("SET temp_directory = ''")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            self._connection = connection
        return self._connection

    def reader(self) -> duckdb.DuckDBPyConnection:
        """A further connection, as limited as the first, for another thread: queries on it run, and are interrupted, by themselves."""
        connection = self.connection().cursor()
        tables.view(connection, self._parts(), temporary=True)
        return connection

    def _parts(self) -> list[str]:
        return [str(part) for part in sorted((self.folder.resolve() / PARTS).glob("events-*.parquet"))] if self.plan().indexed else []

    def _decoded(self, name: str, kind: type[Kept]) -> Kept:
        try:
            return msgspec.msgpack.decode(self._internal(name), type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CaseError(f"{str(self.database)!a} was written by another version ({_first_line(error)}): run triage again") from error

    def _internal(self, name: str) -> bytes:
        import duckdb

        connection = self._connection or _opened(self.database)
        try:
            row = connection.execute("SELECT data FROM internals WHERE name = ?", [name]).fetchone()
        except duckdb.Error as error:
            raise CaseError(f"{str(self.database)!a} is no case of this program ({_first_line(error)}): run triage again") from error
        finally:
            if connection is not self._connection:
                connection.close()
        if row is None:
            raise CaseError(f"{str(self.database)!a} was not written to its end: run triage again")
        return bytes(row[0])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def open_case(path: str | Path) -> Case:
    """The case in a folder (or whose case.duckdb this is). CaseError where there is none."""
    folder = Path(path)
    if folder.name == DATABASE:
        folder = folder.parent
    if not (folder / DATABASE).is_file():
        raise CaseError(f"there is no case at {str(path)!a}: give the folder that `dsforensics triage` wrote (it holds {DATABASE})")
    case = Case(folder)
    case.plan()
    return case


def begin(path: str | Path) -> Case:
    """The folder for a case, made where it does not exist, other people's files in it left alone. CaseError where that is not possible."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise CaseError(f"the output path {str(folder)!a} is a file: give a folder with -o")
    made = not folder.exists()
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / BUILDING
        shutil.rmtree(probe, ignore_errors=True)
        probe.mkdir()
        probe.rmdir()
    case = Case(folder)
    case.made = made
    return case


def check_query(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raises UsageError for what is not one SELECT, duckdb.Error for what is no SQL."""
    import duckdb

    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise UsageError("a case is asked by one SELECT (or DESCRIBE, SUMMARIZE, EXPLAIN) at a time, without anything that writes")


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turns what goes wrong while writing into one sentence."""
    try:
        yield
    except OSError as error:
        raise CaseError(
            f"the case cannot be written to {str(folder)!a} ({error.strerror or error}): free some space or give another folder with -o"
        ) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            raise
        raise CaseError(
            f"the case cannot be written to {str(folder)!a} ({_first_line(error)}): free some space or give another folder with -o"
        ) from error


def _opened(database: Path) -> duckdb.DuckDBPyConnection:
    import duckdb

    try:
        return duckdb.connect(str(database), read_only=True)
    except duckdb.Error as error:
        raise CaseError(f"{str(database)!a} cannot be opened ({_first_line(error)}): run triage again") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]


def _remove(parts: Path) -> None:
    """Delete the parts of a case, and only those."""
    if parts.is_dir() and not parts.is_symlink():
        for part in parts.glob("events-*.parquet"):
            part.unlink()
        with contextlib.suppress(OSError):
            parts.rmdir()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _rows(
    triage: Triage, scan: Scan, names: Sequence[tuple[str, str]], findings: Sequence[Finding], edges: Sequence[Edge], diagnoses: Sequence[Diagnosis]
) -> Iterator[tuple[str, Iterable[Sequence[object]]]]:
    """The rows of every table (see `tables.TABLES`)."""
    b = triage.bundle
    yield "bundle", [(b.name, b.sha256, b.bytes, b.unpacked, b.files, b.lines, b.first, b.last, b.zone, triage.version)]
    yield "files", (
        (
            f.file_id, f.path, f.node, f.device, f.kind, f.parser, f.bytes, f.lines, f.lines_parsed, f.encoding, f.clock, f.utc_offset, f.first,
            f.last, f.status, f.note,
        )
        for f in triage.coverage.members
    )  # fmt: skip
    yield "metrics", ((m.ts, m.node, m.device, m.name, m.value, m.unit, m.label, m.file_id, m.line_no) for m in scan.metrics)
    yield "facts", ((f.node, f.device, f.name, f.value, f.file_id, f.line_no) for f in scan.facts)
    yield "signals", (
        (
            *names[h.leaf], h.file_id << tables.LINE_BITS | scan.inside.get((h.file_id, h.line_no), h.line_no), h.file_id, h.line_no,
            h.byte_offset, h.ts, h.node, h.device, h.rank, h.pid, h.grammar or h.kind, h.severity,
            _json(h.captures), h.text,
        )
        for h in scan.hits
    )  # fmt: skip
    yield "findings", [
        (
            n, f.rule.id, f.rule.root_cause, f.rule.layer, f.rule.severity, f.rule.role, f.rule.title.en, f.rule.title.zh, f.scope.node,
            f.scope.device, f.scope.rank, f.scope.pid, f.first, f.last, f.occurrences, _json(f.captures),
        )
        for n, f in enumerate(findings)
    ]  # fmt: skip
    yield "edges", [(e.cause, e.effect, e.reason) for e in edges]
    numbers = {id(finding): n for n, finding in enumerate(findings)}
    yield "diagnoses", [
        (
            d.rank, numbers.get(id(d.finding)), d.finding.rule.id, d.finding.rule.root_cause, d.confidence, d.level, d.title.en, d.title.zh,
            d.finding.rule.action, d.why.en, d.why.zh, d.explained_events,
        )
        for d in diagnoses
    ]  # fmt: skip
    yield "nodes", [
        (
            n.name, n.known_by, n.logs, _json(n.addresses), _json(n.places), _json(n.ranks), n.first_error,
            None if n.ahead is None else n.ahead / 1e6, None if n.within is None else n.within / 1e6, n.compared_by, n.taken_off,
        )
        for n in triage.nodes
    ]  # fmt: skip
    yield "attempts", [
        (
            a.number, a.ranks, a.logs_of, _json(a.missing), a.first, a.began and a.began.node, a.began and a.began.device, a.began and a.began.rank,
            a.began and a.began.pid, a.began and a.began.sure, _json([sign.reason.en for sign in a.began.signs] if a.began else []),
        )
        for a in triage.attempts
    ]  # fmt: skip
    yield "evidence", [(d.rank, e.role, e.file_id, e.file, e.line, e.ts, e.leaf, e.text) for d in diagnoses for e in d.evidence]
