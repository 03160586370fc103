"""The one model of a triage: terminal, JSON, Markdown, HTML and the TUI all read this, and nothing else."""

from __future__ import annotations

import msgspec

from replay.result import Verdict
from rules.model import Diagnosis, Pack, Text


class BundleInfo(msgspec.Struct):
    name: str
    sha256: str
    """Of the archive's bytes; of a folder, over the sorted (path, size, digest) of its files."""
    bytes: int
    """Size of the input as given (the archive, or all files of the folder)."""
    unpacked: int
    """Bytes of all members after unpacking."""
    files: int
    lines: int
    nodes: list[str]
    devices: int
    first: int | None
    """UTC microseconds."""
    last: int | None
    zone: str
    """Offset in which the report shows times, such as +08:00."""


class Member(msgspec.Struct, gc=False):
    """One member of the bundle and what became of it. Their bytes and lines add up to the bundle's."""

    file_id: int
    path: str
    node: str
    device: int | None
    kind: str
    parser: str
    bytes: int
    lines: int
    lines_parsed: int
    encoding: str
    clock: str
    utc_offset: int | None
    """Seconds that were subtracted to get UTC."""
    first: int | None
    last: int | None
    status: str
    """read; damaged (read up to a point); skipped (link, device, limit, unreadable); binary; unrecognised (kept as text)."""
    note: str = ""
    note_zh: str = ""
    partial: bool = True
    """Of a damaged or skipped member: log text may be missing, and the run ends with status 4. False: left out by design (a link, a device)."""

    @property
    def lost(self) -> bool:
        """Whether log text of it may be missing."""
        return self.status in ("damaged", "skipped") and self.partial


class Unexplained(msgspec.Struct):
    """A shape of error lines that no rule explains."""

    shape: str
    count: int
    file: str
    line: int
    text: str = ""
    ts: int | None = None


class CodeSeen(msgspec.Struct):
    code: str
    symbol: str
    meaning_en: str
    meaning_zh: str
    count: int
    generic: bool
    file: str = ""
    line: int = 0


class FactSeen(msgspec.Struct):
    name: str
    value: str
    node: str
    file: str
    line: int


class FirstError(msgspec.Struct):
    """The first error of a process, for when nothing fits."""

    node: str
    pid: int | None
    process: str
    ts: int | None
    file: str
    line: int
    text: str


class Coverage(msgspec.Struct):
    lines: int
    lines_parsed: int
    error_lines: int
    error_lines_explained: int
    members: list[Member]


class Note(msgspec.Struct, frozen=True):
    """A remark on the run itself: a clock that was guessed, a rule that was left out, a pattern that was cut short."""

    en: str
    zh: str


class Triage(msgspec.Struct):
    """All that is known of an incident after triage."""

    version: str
    packs: list[Pack]
    bundle: BundleInfo
    diagnoses: list[Diagnosis]
    unexplained: list[Unexplained]
    first_errors: list[FirstError]
    codes: list[CodeSeen]
    facts: list[FactSeen]
    coverage: Coverage
    notes: list[Note]
    collect_next: list[Note]
    """What to collect when the evidence does not settle it, with the exact command."""
    case: str = ""
    """The case folder, where there is one."""
    seconds: float = 0.0
    """Wall time; never part of report.json, which must not change from run to run."""
    titles: dict[str, Text] = {}
    """Rule id -> title, of every rule that a diagnosis `explains`."""
    replays: dict[int, Verdict] = {}
    """Rank of a diagnosis -> the verdict of its replay, where one was run."""

    @property
    def damaged(self) -> list[Member]:
        return [m for m in self.coverage.members if m.status == "damaged"]
