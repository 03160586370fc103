"""What rules are made of, and what they conclude: plain typed data, shared by the loader, the matcher and the diagnosis."""

from __future__ import annotations

from typing import Literal

import msgspec

LAYERS = (
    "hardware", "firmware", "driver", "device", "runtime", "operator", "collective", "framework", "application", "environment",
)  # fmt: skip
"""Lowest first; a lower layer can explain a higher one. `environment` explains any layer."""
SEVERITIES = ("fatal", "error", "warning", "info")
PROVENANCES = ("official", "field", "inferred")
STRENGTHS = ("decisive", "strong", "moderate", "weak")
"""How much a full match says: decisive: the text names this cause; strong: hardly anything else prints it;
moderate: the usual reading; weak: one reading among several."""
ROLES = ("cause", "symptom", "noise", "check")
"""cause: can be a root; symptom: follows from something, decides nothing; noise: a known harmless line, taken out of the evidence;
check: what a healthy node does not show; asked before go-live only (rules.checks), never a diagnosis."""
ACTIONS = (
    "restart-app", "reset-device", "fix-config", "fix-code", "upgrade", "free-resources", "replace-hardware", "contact-vendor",
    "investigate",
)  # fmt: skip
SCOPES = ("node", "device", "rank", "pid", "tid", "file", "process")


class Text(msgspec.Struct, frozen=True):
    """One text in both languages."""

    en: str
    zh: str

    def of(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en


class Near(msgspec.Struct, frozen=True):
    """A line counts only close to another one of the same rule."""

    of: str
    within: float | None = None
    """Seconds; None: no limit in time."""
    lines: int | None = None
    """At most so many lines apart in one file."""
    same: tuple[str, ...] = ()
    """Scopes (SCOPES) that must be equal where both lines know them."""
    side: str = ""
    """before or after: on which side of the other line this one stands; empty: on either."""


class Leaf(msgspec.Struct, frozen=True, tag="leaf"):
    """One kind of line, fact, number or row a rule looks for. Exactly one of contains, regex, codes, fact, metric, mismatch, sql is set."""

    id: str
    contains: tuple[str, ...] = ()
    """All of them on one line."""
    regex: str = ""
    codes: tuple[str, ...] = ()
    """Any of these codes, in any spelling."""
    fact: str = ""
    """Name of a fact, `*` allowed; the capture `value` holds its value."""
    metric: str = ""
    """Name of a metric, `*` allowed; captures: value, label, device."""
    mismatch: str = ""
    """Relation of two versions that contradict each other (`versions.check`), `*` allowed; captures: left, left_version, right,
    right_version, expected, expected_zh."""
    sql: str = ""
    """A query over the tables that profiles fill (rules/case_tables.py); each of its rows counts as a line, its columns are captures."""
    not_contains: tuple[str, ...] = ()
    ignore_case: bool = False
    source: tuple[str, ...] = ()
    severity: tuple[str, ...] = ()
    module: tuple[str, ...] = ()
    near: Near | None = None
    optional: bool = False
    """Cited where it is found, and no hindrance where it is not."""

    @property
    def of_line(self) -> bool:
        """Whether it looks at lines; else at facts, numbers, pairs of versions or rows of tables."""
        return not (self.fact or self.metric or self.mismatch or self.sql)


class Group(msgspec.Struct, frozen=True, tag="group"):
    """Leaves and groups combined."""

    op: Literal["all", "any", "none_of", "sequence"]
    items: tuple[Leaf | Group | Count, ...]
    within: float | None = None
    """Of all and sequence: seconds between the first and the last line."""
    same: tuple[str, ...] = ()


class Count(msgspec.Struct, frozen=True, tag="count"):
    """At least `min` and at most `max` lines of one kind, or so many different values of a scope or capture."""

    of: Leaf
    min: int = 1
    max: int | None = None
    distinct: str = ""


Node = Leaf | Group | Count


def leaves_of(node: Node) -> list[Leaf]:
    """All leaves below a match node, in order."""
    if isinstance(node, Leaf):
        return [node]
    if isinstance(node, Count):
        return [node.of]
    return [leaf for item in node.items for leaf in leaves_of(item)]


class Explains(msgspec.Struct, frozen=True):
    """A causal edge: findings of `rule` (an id, or a glob) follow from this rule's finding."""

    rule: str
    same: tuple[str, ...] = ()
    within: float | None = None


class Series(msgspec.Struct, frozen=True):
    """A condition over all values of a metric: `test` sees min, max, mean, first, last, count, spread."""

    series: str
    test: str


class Reference(msgspec.Struct, frozen=True):
    title: str
    id: str = ""


class Replay(msgspec.Struct, frozen=True):
    """The kernel a replay would rerun, its parameters taken from captures."""

    kernel: str
    params: dict[str, str | int | float | bool] = {}


class Examples(msgspec.Struct, frozen=True):
    match: tuple[str, ...] = ()
    """Each a small log: one or several lines on which the rule must fire."""
    no_match: tuple[str, ...] = ()


class Rule(msgspec.Struct, frozen=True):
    id: str
    root_cause: str
    title: Text
    layer: str
    severity: str
    match: Node
    provenance: str = "field"
    strength: str = "moderate"
    role: str = "cause"
    where: str = ""
    metrics: tuple[Series, ...] = ()
    applies_to: dict[str, str | tuple[str, ...]] = {}
    explains: tuple[Explains, ...] = ()
    action: str = "investigate"
    remedy: dict[str, tuple[str, ...]] = {}
    references: tuple[Reference, ...] = ()
    note: Text | None = None
    """A second reading, such as the vendor's word against the field's; shown beside the finding."""
    replay: Replay | None = None
    examples: Examples = Examples()
    pack: str = ""
    file: str = ""
    line: int = 0


class Option(msgspec.Struct, frozen=True):
    """A number (or text) that the queries of a pack use as `$name`: where a threshold lies, and who says so."""

    name: str
    value: float | str
    unit: str = ""
    source: str = ""


class Pack(msgspec.Struct, frozen=True):
    name: str
    version: str
    rules: int
    path: str = ""
    options: tuple[Option, ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """Something wrong in a pack: where, what was found, what would be right."""

    file: str
    line: int
    column: int
    message: str
    level: str = "error"
    """error: this rule (or file) is left out; warning: it runs all the same."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class RuleSet(msgspec.Struct, frozen=True):
    packs: tuple[Pack, ...]
    rules: tuple[Rule, ...]
    problems: tuple[Problem, ...] = ()


# ---------------------------------------------------------------- what a bundle shows


class Hit(msgspec.Struct, gc=False):
    """One line on which a leaf matched, with what its record's head says. Facts and metrics become hits as well."""

    leaf: int
    """Index of the leaf in the scanner's list."""
    file_id: int
    file: str
    line_no: int
    byte_offset: int
    text: str
    captures: dict[str, str]
    kind: str = "text"
    """Source kind of the file."""
    grammar: str = ""
    """Source kind of the line, by the grammar of its record's head."""
    ts: int | None = None
    """UTC, microseconds since 1970, once clocks are settled."""
    severity: str = ""
    module: str = ""
    process: str = ""
    node: str = ""
    pid: int | None = None
    tid: int | None = None
    device: int | None = None
    rank: int | None = None
    row: int | None = None
    """Of a row of a table: its number, from 1."""


class FirstRow(msgspec.Struct, frozen=True):
    """The first error line of a process."""

    node: str
    pid: int | None
    ts: int | None
    file: str
    line_no: int
    text: str
    device: int | None = None
    rank: int | None = None


class FactRow(msgspec.Struct, gc=False, frozen=True):
    name: str
    value: str
    node: str = ""
    device: int | None = None
    file_id: int = -1
    file: str = ""
    line_no: int = 0
    text: str = ""


class MetricRow(msgspec.Struct, gc=False, frozen=True):
    name: str
    value: float
    unit: str = ""
    node: str = ""
    device: int | None = None
    ts: int | None = None
    label: str = ""
    file_id: int = -1
    file: str = ""
    line_no: int = 0
    text: str = ""


class Remark(msgspec.Struct, gc=False):
    """What a line says about a job of many ranks: who joined, who waits for whom, what was set (see `parsers.collective` for the kinds)."""

    kind: str
    values: dict[str, str]
    file_id: int = -1
    file: str = ""
    line_no: int = 0
    text: str = ""
    ts: int | None = None
    node: str = ""
    process: str = ""
    pid: int | None = None
    tid: int | None = None
    device: int | None = None
    rank: int | None = None


# ---------------------------------------------------------------- what the rules conclude


class Evidence(msgspec.Struct, frozen=True):
    """A line that speaks for or against a diagnosis, or stands beside it."""

    file: str
    line: int
    text: str
    role: str = "for"
    """for, against, context."""
    ts: int | None = None
    leaf: str = ""
    file_id: int = -1
    byte_offset: int = -1
    row: int | None = None
    """Of a table's file: the data row, from 1."""


class Scope(msgspec.Struct, frozen=True):
    node: str = ""
    device: int | None = None
    rank: int | None = None
    pid: int | None = None


class Sign(msgspec.Struct, frozen=True):
    """One reason why an incident began at a place, with the line that shows it where there is one."""

    kind: str
    """hccl, heartbeat, absent, waits, error, silence, missing, late, call, rdma, exit."""
    points: float
    reason: Text
    file: str = ""
    line: int = 0
    file_id: int = -1


class Began(msgspec.Struct):
    """Where one attempt of a job began to fail. What the signs do not tell is None, or empty."""

    attempt: int
    node: str
    device: int | None
    """As the node numbers its cards, where that is known; else as the process does."""
    rank: int | None
    pid: int | None
    ranks: list[int]
    """Where the signs point at several ranks alike: all of them."""
    logs: bool
    """Whether the bundle has logs of it."""
    sure: str
    """high: signs of several kinds point there and nowhere else; medium; low."""
    signs: list[Sign]
    waiting: int
    """Ranks that only waited."""
    size: int
    """Ranks of the attempt."""
    first: int | None
    """When the attempt started, UTC."""
    limits: dict[str, int] = {}
    """Seconds of the timeouts as set: exec, connect."""


class Finding(msgspec.Struct):
    """A rule that matched: once for the whole bundle, with all places where it did."""

    rule: Rule
    hits: list[Hit]
    """The lines of the best match first (one for each leaf), then further occurrences."""
    deciding: int
    """How many of `hits` belong to the best match."""
    scope: Scope
    first: int | None
    last: int | None
    occurrences: int
    captures: dict[str, dict[str, str]]
    """Of the best match: leaf id -> capture -> value."""
    doubts: list[str] = msgspec.field(default_factory=list)
    """Why this finding counts for less: versions that do not fit, facts that are missing."""


class Echo(msgspec.Struct, frozen=True):
    """One kind of consequence, and how many repeat it."""

    rule: str
    lines: int
    processes: int
    ranks: int
    nodes: int
    first: int | None


class Diagnosis(msgspec.Struct):
    """A root: a finding that nothing else explains, with its chain, its evidence and how sure we are."""

    rank: int
    finding: Finding
    confidence: float
    level: str
    """high (from 0.7), medium (from 0.4), low."""
    title: Text
    remedy: dict[str, list[str]]
    evidence: list[Evidence]
    explains: list[str]
    """Rule ids of what follows from it, in causal order."""
    supported_by: list[str]
    """Further rules of the same root cause that hold, whose evidence is cited too."""
    explained_events: int
    why: Text
    """One line: what the confidence rests on."""
    echoes: list[Echo] = []
    """What follows from it, as in `explains`, each with the ranks that repeat it."""
    attempt: int | None = None
    """The attempt of the job that it is of, where there are several."""
    scope: Scope | None = None
    """Where it is: that of the finding, with what is known of its process; that of who was waited for, where the finding only tells of
    waiting. None: that of the finding."""

    @property
    def place(self) -> Scope:
        return self.scope if self.scope is not None else self.finding.scope
    features: dict[str, float] = {}
    """What the confidence was calculated from (`calibration.features`)."""
