"""The one model of a triage: terminal, JSON, Markdown, HTML and the TUI all read this, and nothing else."""

from __future__ import annotations

import msgspec

from forensics.marks import Mark
from replay.result import Verdict
from rules.model import Began, Diagnosis, Evidence, Pack, Scope, Text


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
    layer: str = ""
    """The layer that speaks, by the module of the line; empty where it does not say."""
    alike: int = 0
    """Further processes whose first error looks the same."""


class NodeSeen(msgspec.Struct):
    """One machine of the incident."""

    name: str
    known_by: str
    """What the name was taken from: host (what its logs print), path, server (the address its processes state), bundle, peers (what other
    nodes call it)."""
    logs: bool
    """Whether the bundle has logs of it."""
    hosts: list[str]
    addresses: list[str]
    places: list[str]
    """Bundles and folders its files lie in."""
    files: int
    ranks: list[int]
    """Of the last attempt of the job."""
    first_error: int | None
    """UTC microseconds."""
    ahead: int | None = None
    """Microseconds by which its clock is ahead of the reference, the clock in the middle; None where nothing compares them."""
    within: int | None = None
    """Doubt of `ahead`."""
    moments: int = 0
    """Common moments that it was measured by."""
    compared_by: str = "none"
    """joins (births of communicators), failures (timeouts waited out together), none."""
    taken_off: bool = False
    """Whether its times were moved by `ahead`, because that is more than the doubt."""


class AttemptSeen(msgspec.Struct):
    """One start of a job of several ranks."""

    number: int
    ranks: int
    """Its size; 0 where nobody says."""
    logs_of: int
    """Ranks that the bundle has logs of."""
    missing: list[int]
    """Ranks without logs."""
    first: int | None
    began: Began | None
    """Where it began to fail; None where nothing tells."""


class Coverage(msgspec.Struct):
    lines: int
    lines_parsed: int
    error_lines: int
    error_lines_explained: int
    members: list[Member]


class NovelShape(msgspec.Struct):
    """A kind of lines that the good run does not have; the place is that of the first."""

    text: str
    count: int
    file: str
    line: int
    ts: int | None = None
    severity: str = ""
    node: str = ""
    device: int | None = None
    was: str = ""
    """Of a line of a table, such as an answer of a tool, which was always the same in the good run: what it was."""


class ChangedFact(msgspec.Struct):
    """A version or setting that differs: all values of the good run and of this one. The place is one in this bundle."""

    name: str
    before: list[str]
    after: list[str]
    file: str = ""
    line: int = 0


class ChangedRate(msgspec.Struct):
    """A kind of lines that is far more frequent than in the good run, or far less."""

    text: str
    before: int
    """Lines in the good run."""
    after: int
    """Lines in this one."""
    expected: float
    """What this one would have at the good run's rate: by time, or by lines where a run is too short."""
    file: str
    """Of the first line: in this bundle, of lines that are gone in the good one."""
    line: int


class Slower(msgspec.Struct):
    """An operator type or the mean step of a rank that takes clearly longer than in the good run. Durations are milliseconds, means over the
    capture; the place is that of the longest here."""

    kind: str
    """operator: kernels of one type; step: a step of a rank; computing: what it computes, where both runs do not tell of more."""
    name: str
    """Operator type; empty of steps."""
    rank: int | None
    """None: of all ranks together."""
    before: float
    after: float
    before_count: int
    """Kernels or steps of the good run."""
    after_count: int
    file: str
    row: int | None
    line: int
    share: float | None = None
    """Of an operator: its share of the computing time here, 0 to 1."""
    core_before: str = ""
    core: str = ""
    """Of an operator: what it ran on, there and here."""
    part: str = ""
    """Of a step: what has grown most of computing, exposed (communication that no computing overlaps) and free (idle)."""
    part_before: float = 0.0
    part_after: float = 0.0


class Baseline(msgspec.Struct):
    """What differs from a good run."""

    name: str
    """Of the good run's bundle."""
    sha256: str
    files: int
    lines: int
    novel: list[NovelShape]
    """Most telling first: errors before warnings before the rest, earlier before later."""
    novel_total: int
    changed: list[ChangedFact]
    more: list[ChangedRate]
    gone: list[ChangedRate]
    """Kinds of lines of the good run that hardly occur here, or not at all."""
    slower: list[Slower] = []
    """Where both runs hold profiles."""
    slower_total: int = 0


class Note(msgspec.Struct, frozen=True):
    """A remark on the run itself: a clock that was guessed, a rule that was left out, a pattern that was cut short."""

    en: str
    zh: str


class Step(msgspec.Struct):
    """A finding as it stands in the causal graph."""

    rule: str
    title: Text
    layer: str
    scope: Scope
    first: int | None
    occurrences: int


class Link(msgspec.Struct):
    """`effect` follows from `cause`; both are indexes of steps."""

    cause: int
    effect: int
    stated: bool
    """A rule says so; else the effect is one that decides nothing by itself, and the cause is earlier."""


class Graph(msgspec.Struct):
    """What follows from what: no link that others imply, and none that closes a circle."""

    steps: list[Step] = []
    links: list[Link] = []


class Window(msgspec.Struct):
    """A stretch of time cut into `bins` of `step` microseconds from `start` (UTC microseconds)."""

    start: int
    step: int
    bins: int


class Lane(msgspec.Struct):
    """One source of one node on the timeline."""

    node: str
    source: str
    first: int | None
    last: int | None
    lines: int
    errors: int
    """Error lines, also those without a time."""
    bars: list[dict[int, int]]
    """For each window: bin -> error lines. Of large files a sample was dated, and counts for the lines between."""


class Timeline(msgspec.Struct):
    """When error lines were printed, by node and source: in the whole bundle and, where that shows too little, around the first cause."""

    windows: list[Window] = []
    lanes: list[Lane] = []
    left_out: int = 0
    """Lanes beyond those that are shown, the ones with the fewest errors."""


class Reading(msgspec.Struct):
    """A number that a device showed."""

    last: float
    most: float
    unit: str


class Device(msgspec.Struct):
    """A card, as npu-smi, hccn_tool and the findings show it."""

    node: str
    device: int
    soc: str
    health: str
    """As printed: OK, Warning, Alarm, Critical; empty where nothing tells."""
    readings: dict[str, Reading]
    """Metric -> reading."""
    findings: int
    """Findings that lie on this card."""
    ranks: list[int]
    """Of diagnoses on this card."""


class Conflict(msgspec.Struct):
    """Two versions of one node that do not belong together."""

    node: str
    left: str
    left_version: str
    right: str
    right_version: str
    expected: Text


class CheckResult(msgspec.Struct):
    """One check before go-live, and what became of it."""

    rule: str
    title: Text
    """What a healthy node shows."""
    status: str
    """pass; fail; not-checked: the bundle does not hold what it looks at."""
    severity: str
    lines: list[Evidence]
    """Where it failed."""
    wanting: list[str]
    """Where it was not checked: the facts and metrics (globs) that are missing."""
    remedy: dict[str, list[str]]
    note: Text | None = None
    """How to get what it looks at."""

    @property
    def level(self) -> str:
        """How much a failure weighs, as a diagnosis does: high, medium, low."""
        return {"fatal": "high", "error": "high", "warning": "medium"}.get(self.severity, "low")


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
    nodes: list[NodeSeen] = []
    attempts: list[AttemptSeen] = []
    first_by_layer: list[FirstError] = []
    """The first error of each layer, lowest layer first."""

    @property
    def began(self) -> list[Began]:
        """Where the attempts began to fail, in order of time."""
        return [attempt.began for attempt in self.attempts if attempt.began is not None]
    graph: Graph = msgspec.field(default_factory=Graph)
    timeline: Timeline = msgspec.field(default_factory=Timeline)
    devices: list[Device] = []
    conflicts: list[Conflict] = []
    checks: list[CheckResult] = []
    """Of `--profile preflight`; empty without it."""
    replays: dict[int, Verdict] = {}
    """Rank of a diagnosis -> the verdict of its replay, where one was run."""
    baseline: Baseline | None = None
    """What differs from the good run of `--baseline`."""
    marks: list[Mark] = []
    """Lines that a person marked in the case, by time; none in a fresh triage."""

    @property
    def damaged(self) -> list[Member]:
        return [m for m in self.coverage.members if m.status == "damaged"]
