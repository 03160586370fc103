"""Triage from end to end: bundle -> scan -> diagnosis -> case, and, once the report is out, the index of all lines."""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forensics import ingest, job, preflight, summary
from forensics.bundle import Bundle, Limits
from forensics.case import Case, Identity, Plan, begin
from forensics.clocks import FileClock
from forensics.doctor import own_version
from forensics.errors import UsageError
from forensics.options import Options, Progress, zone
from forensics.profile_settle import headers
from forensics.profiles import Profiles
from forensics.result import Baseline, BundleInfo, Member, Note, Triage
from forensics.several import Several
from rules import pack, scan
from rules.diagnose import Conclusion, diagnose, options_of
from rules.evaluate import Evaluator, Evidences
from rules.explain import Explanation
from rules.explain import explain as explain_rule
from rules.model import FactRow, FirstRow, Hit, MetricRow, Remark, RuleSet
from rules.query import Tables

if TYPE_CHECKING:
    import duckdb

    from forensics.baseline import Good

OnProgress = Callable[[Progress], None]
SECOND = 1_000_000
EARLY = 2000
"""Hits that the early word is looked for in."""


class Kept(msgspec.Struct):
    """What a case keeps so that rules can be asked again without the bundle."""

    hits: list[Hit]
    counts: dict[int, int]
    facts: list[FactRow]
    metrics: list[MetricRow]
    onset: int | None
    packs: list[str]
    remarks: list[Remark] = []
    firsts: list[FirstRow] = []
    doubt: dict[str, int] = {}
    before: frozenset[str] | None = None
    """Rules that hold in the good run of --baseline too."""
    settings: dict[str, str] = {}


class Run:
    """One triage: `triage` is there at once, `finish` stores the lines behind it."""

    def __init__(
        self, triage: Triage, case: Case, bundle: Bundle | Several, clocks: dict[int, FileClock], options: Options, on_progress: OnProgress | None
    ) -> None:
        self.triage, self.case = triage, case
        self._bundle, self._clocks, self._options, self._on_progress = bundle, clocks, options, on_progress
        self._second: Bundle | Several | None = None

    def finish(self) -> list[Note]:
        """Store all lines in the case, unless that was not wanted or is done; remarks on lines that could not be. Raises CaseError."""
        if not self._options.index or self.case.plan().indexed:
            return []
        from forensics import index

        self._second = self._bundle.reopen()
        return index.build(self.case, self._second, self._clocks, self._options.workers, self._report, files=self.triage.coverage.members)

    def redacted(self) -> Triage:
        """The triage with users, hosts, addresses and secrets replaced. Reads the bundle once more, to learn the names in it."""
        from forensics.redact import copy, engine, names, protected, report

        again = self._bundle.reopen()
        try:
            learner = engine.Learner(protected.words(pack.load(self._options.packs)))
            copy.learn(again, learner)
            if self._options.baseline is not None:
                with Bundle(self._options.baseline) as good:
                    copy.learn(good, learner)
        finally:
            again.close()
        return report.redacted(self.triage, engine.Redactor(names.Names(names.load_key(None)), learner.learned))

    def _report(self, lines: int, what: str) -> None:
        if self._on_progress is not None and self._second is not None:
            self._on_progress(Progress("index", self._second.compressed_read, self._second.size, lines, what))

    def close(self) -> None:
        for bundle in (self._second, self._bundle):
            if bundle is not None:
                bundle.close()
        self.case.clear()


def run(sources: list[str], options: Options, on_progress: OnProgress | None = None) -> Run:
    """Triage the bundles at `sources` as one incident. Raises ForensicsError: UsageError, UnreadableBundle, CaseError."""
    started = time.monotonic()
    limits = _limits(options)
    if len(sources) > 1 and "-" in sources:
        raise UsageError("standard input can only be triaged alone, not beside other bundles.")
    for source in sources:
        Bundle(source, limits).close() if source != "-" else None  # so that a wrong name makes no case folder
    case = begin(options.out or _default_folder(sources))
    try:
        bundle = _opened(sources, limits, case)
        try:
            return _triaged(bundle, case, sources, options, on_progress, started)
        except BaseException:
            bundle.close()
            raise
    except BaseException:
        case.clear()
        case.discard()
        raise


def _triaged(bundle: Bundle | Several, case: Case, sources: list[str], options: Options, on_progress: OnProgress | None, started: float) -> Run:
    rules = _rules(options.packs, dict(options.settings))
    scanner = scan.Scanner.load(rules, ingest.EXTRA)
    offset = _given_offset(options)
    profiles = Profiles(lambda: case.scratch)

    def report(lines: int, what: str) -> None:
        if on_progress is not None:
            on_progress(Progress("read", bundle.compressed_read, bundle.size, lines, what))

    good = _good_run(options, rules, scanner, offset, case)
    early = _Early(rules, scanner, on_progress) if on_progress is not None else None
    found = ingest.scan(bundle, scanner, options.workers, offset, early, report, profiles.take)
    tables = profiles.finish(found)
    found.hits = _within(found.hits, options, offset)
    onset = min((first.ts for first in found.first_errors if first.ts is not None), default=None)
    before = None if good is None else good.held
    firsts, doubt = job.first_rows(found), job.doubt(found)
    conclusion = diagnose(
        rules, scanner.leaves, found.hits, found.counts, found.facts, found.metrics, onset, found.remarks, firsts, doubt, before, tables
    )
    info = _bundle_info(bundle, found, offset)
    triage = summary.summarise(own_version(), rules, scanner.leaves, info, found, conclusion, _clock_notes(found.files))
    if good is not None:
        triage.baseline = _differences(good, bundle, found, options, profiles if tables is not None else None)
    if options.profile:
        triage.checks = preflight.results(rules, scanner.leaves, found)
    identity = Identity(bundle.sha256, _digest(rules, options, good.sha256 if good is not None else ""), own_version())
    profiles.close()
    case = _settle_folder(case, identity, options, sources)
    triage.case = str(case.folder)
    triage.seconds = time.monotonic() - started
    if not case.check(identity, options.force):
        kept = Kept(
            found.hits, found.counts, found.facts, found.metrics, onset, list(options.packs), found.remarks, firsts, doubt, before,
            dict(options.settings),
        )  # fmt: skip
        names = [(rules.rules[ref.rule].id, ref.leaf.id) for ref in scanner.leaves]
        plan = Plan(identity, [_absolute(source) for source in sources])
        case.store(
            plan, triage, found, names, conclusion.findings, conclusion.edges, conclusion.diagnoses, msgspec.msgpack.encode(kept),
            profiles.loader.path if tables is not None else None,
        )  # fmt: skip
    else:
        triage.replays = case.replays()
    return Run(triage, case, bundle, found.clocks, options, on_progress)


class _Early:
    """Tells of the first diagnosis that is sure, while the rest of the bundle is still being read. It may not be the last word."""

    def __init__(self, rules: RuleSet, scanner: scan.Scanner, on_progress: OnProgress) -> None:
        self._rules, self._leaves, self._on_progress = rules, scanner.leaves, on_progress
        self._hits: list[Hit] = []
        self._next = 0.0
        self._done = False

    def __call__(self, fresh: Sequence[Hit]) -> None:
        if self._done:
            return
        self._hits += fresh
        if time.monotonic() < self._next:
            return
        found = diagnose(self._rules, self._leaves, self._hits[:EARLY], {})
        self._next = time.monotonic() + 0.5
        self._done = len(self._hits) >= EARLY
        if found.diagnoses and found.diagnoses[0].level == "high":
            self._done = True
            self._on_progress(Progress("read", 0, 0, finding=found.diagnoses[0].title))


class Asked(msgspec.Struct):
    """The rules applied once more to what a case kept, so that each can be asked for its reasons."""

    rules: RuleSet
    leaves: list[scan.LeafRef]
    evaluator: Evaluator
    conclusion: Conclusion

    def explain(self, ident: str) -> Explanation:
        """Why a rule holds, or why it does not. Raises KeyError where there is no such rule."""
        return explain_rule(ident, self.rules, self.leaves, self.evaluator, self.conclusion)


def kept_of(case: Case) -> tuple[Kept, RuleSet]:
    """What a case kept, and its rules. Raises CaseError."""
    kept = msgspec.msgpack.decode(case.kept(), type=Kept)
    return kept, _rules(kept.packs, kept.settings)


def ask(case: Case, tables: Tables | None) -> Asked:
    """`tables`: those of the case (`stored`)."""
    kept, rules = kept_of(case)
    leaves = scan.Scanner.load(rules, ingest.EXTRA).leaves
    conclusion = diagnose(
        rules, leaves, kept.hits, kept.counts, kept.facts, kept.metrics, kept.onset, kept.remarks, kept.firsts, kept.doubt, kept.before, tables
    )
    evaluator = Evaluator(leaves, Evidences(kept.hits, kept.counts, kept.facts, kept.metrics, tables, options_of(rules)))
    return Asked(rules, leaves, evaluator, conclusion)


def explain(case: Case, what: str) -> Explanation:
    """Why a rule (an id, or the number of a diagnosis) holds in a case, or why it does not. Raises UsageError."""
    asked = ask(case, stored(case.connection()))
    if what.isdecimal():
        ranks = {diagnosis.rank: diagnosis.finding.rule.id for diagnosis in asked.conclusion.diagnoses}
        if int(what) not in ranks:
            raise UsageError(f"there is no diagnosis {what} in this case; it has {len(ranks)}. A rule is named by its id.")
        what = ranks[int(what)]
    try:
        return asked.explain(what)
    except KeyError:
        raise UsageError(f"there is no rule {what!a}; `dsforensics rules search WORD` finds rules.") from None


def stored(connection: duckdb.DuckDBPyConnection) -> Tables | None:
    """The tables of the profiles in a case, for rules; None where it has none."""
    try:
        asked = connection.execute(
            "SELECT (SELECT count(*) FROM profiles) + (SELECT count(*) FROM metrics WHERE name LIKE 'service.%' OR name LIKE 'bench.%')"
        ).fetchone()
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            raise
        return None  # a case of a version without profiles
    if not asked or not asked[0]:
        return None
    files = dict(connection.execute("SELECT file_id, path FROM files").fetchall())
    return Tables(connection, files, headers(connection))


def _rules(packs: Sequence[str], settings: Mapping[str, str]) -> RuleSet:
    rules = pack.load(packs)
    if not settings:
        return rules
    try:
        return pack.set_options(rules, settings)
    except ValueError as error:
        raise UsageError(f"--set: {error}.") from None


# ---------------------------------------------------------------- the input and the folder


def _opened(sources: Sequence[str], limits: Limits, case: Case) -> Bundle | Several:
    bundles = [Bundle(source, limits, case.scratch, case.folder) for source in sources]
    return bundles[0] if len(bundles) == 1 else Several(bundles)


def _limits(options: Options) -> Limits:
    given = {
        "total_bytes": options.max_bytes,
        "members": options.max_members,
        "depth": options.max_depth,
        "ratio": options.max_ratio,
    }
    return Limits(**{name: value for name, value in given.items() if value is not None})


def _default_folder(sources: Sequence[str]) -> str:
    """`./<bundle name>.case`; of several, that of the first."""
    name = "stdin" if sources[0] == "-" else os.path.basename(os.path.abspath(sources[0])) or "root"
    for ending in (".gz", ".bz2", ".xz", ".zst", ".tar", ".tgz", ".tbz2", ".txz", ".zip"):
        name = name[: -len(ending)] if name.lower().endswith(ending) and len(name) > len(ending) else name
    return f"{name}.case"


def _settle_folder(case: Case, identity: Identity, options: Options, sources: Sequence[str]) -> Case:
    """The folder to use. Where none was named and the usual one holds another bundle, one with the bundle's digest in its name."""
    plan = case.existing()
    if options.out is not None or options.force or plan is None or plan.identity.bundle == identity.bundle:
        return case
    usual = Path(_default_folder(sources))
    case.clear()
    return begin(usual.with_name(f"{usual.stem}-{identity.bundle[:8]}.case"))


def _absolute(source: str) -> str:
    return source if source == "-" else os.path.abspath(source)


def _digest(rules: RuleSet, options: Options, good: str) -> str:
    """What the conclusion depends on besides the bundle; `good`: digest of the good run, where there is one."""
    more = [good] if good else []
    seed = msgspec.json.encode((rules, options.since, options.until, options.tz, _limits(options), options.profile, *more))
    return hashlib.sha256(seed).hexdigest()


# ---------------------------------------------------------------- the good run


def _good_run(options: Options, rules: RuleSet, scanner: scan.Scanner, offset: int | None, case: Case) -> Good | None:
    if options.baseline is None:
        return None
    from forensics import baseline

    if options.baseline == "-":
        raise UsageError("--baseline wants an archive, a folder or a file; standard input is read once only.")
    with Bundle(options.baseline, _limits(options), case.scratch, case.folder) as bundle:
        return baseline.read(bundle, rules, scanner, options.workers, offset, lambda: _apart(case.scratch))


def _apart(scratch: Path) -> Path:
    """A folder for the tables of the good run's profiles, beside those of the incident."""
    folder = scratch / "good"
    folder.mkdir(exist_ok=True)
    return folder


def _differences(good: Good, bundle: Bundle | Several, found: ingest.Scan, options: Options, profiles: Profiles | None) -> Baseline:
    from forensics import baseline, shapes

    again = bundle.reopen()
    try:
        timed = None if profiles is None or good.timed is None else baseline.times_of(profiles, found)
        return baseline.compare(good, found, shapes.count(again, options.workers), timed)
    finally:
        again.close()


# ---------------------------------------------------------------- times


def _given_offset(options: Options) -> int | None:
    """Seconds east of UTC of `--tz`."""
    if options.tz is None:
        return None
    offset = zone(options.tz).utcoffset(options.since or datetime.now(timezone.utc).replace(tzinfo=None))
    return round(offset.total_seconds()) if offset is not None else 0


def _within(hits: list[Hit], options: Options, offset: int | None) -> list[Hit]:
    """Hits between `--since` and `--until`; those without a time stay."""

    def micro(moment: datetime | None) -> int | None:
        if moment is None:
            return None
        if moment.tzinfo is None:
            return round((moment.replace(tzinfo=timezone.utc).timestamp() - (offset or 0)) * SECOND)
        return round(moment.timestamp() * SECOND)

    since, until = micro(options.since), micro(options.until)
    if since is None and until is None:
        return hits
    return [hit for hit in hits if hit.ts is None or ((since is None or hit.ts >= since) and (until is None or hit.ts <= until))]


def _bundle_info(bundle: Bundle | Several, found: ingest.Scan, offset: int | None) -> BundleInfo:
    read = [member for member in found.files if member.status != "skipped"]
    nodes = sorted({member.node for member in found.files if member.node} | {hit.node for hit in found.hits if hit.node})
    places = [(hit.node, hit.device) for hit in found.hits] + [(row.node, row.device) for row in found.metrics]
    places += [(member.node, member.device) for member in found.files]
    devices = {(node, device) for node, device in places if device is not None and device >= 0}
    return BundleInfo(
        name=bundle.name,
        sha256=bundle.sha256,
        bytes=bundle.size,
        unpacked=found.unpacked,
        files=len(read),
        lines=found.lines,
        nodes=nodes,
        devices=len(devices),
        first=found.first,
        last=found.last,
        zone=_shown_zone(found.files, offset),
    )


def _shown_zone(files: Sequence[Member], offset: int | None) -> str:
    """The zone times are shown in: the one asked for, else the one most files with a zone of their own have, else UTC."""
    if offset is None:
        counts = Counter(member.utc_offset for member in files if member.utc_offset and member.utc_offset % 900 == 0)  # others are clocks gone wrong
        offset = max(counts, key=lambda seconds: (counts[seconds], seconds)) if counts else 0
    sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def _clock_notes(files: Sequence[Member]) -> list[Note]:
    """Clocks that differ from each other, or could not be brought to UTC."""
    notes = []
    offsets = Counter(member.utc_offset for member in files if member.utc_offset is not None)
    if len(offsets) > 1:
        known = sorted((seconds, count) for seconds, count in offsets.items() if seconds is not None)
        english = ", ".join(f"{count} at {seconds / 3600:+g} h" for seconds, count in known)
        chinese = "，".join(f"{count} 个文件为 {seconds / 3600:+g} 小时" for seconds, count in known)
        notes.append(Note(f"The clocks of the files differ and were brought to UTC: {english}.", f"各文件时钟不同，已统一换算为 UTC：{chinese}。"))
    boot = sum(member.clock == "boot" and member.first is None for member in files)
    if boot:
        english = f"{boot} kernel logs print seconds since boot only; their lines have no wall time."
        notes.append(Note(english, f"{boot} 个内核日志只有开机以来的秒数，无法换算为时刻。"))
    return notes
