"""Versions of the Ascend stack, which do not sort as text, and the tables of which belong together.

>>> Version.parse("8.0.RC1.alpha003") < Version.parse("8.0.RC1") < Version.parse("8.0.RC2") < Version.parse("8.0.0")
True
>>> satisfies("8.1.RC1", ">=6.3,<8.5"), satisfies("2.5.1.post1+gitabc", "==2.5.*"), satisfies("unknown", ">=8.0")
(True, True, None)
>>> [m.relation for m in check({"torch_npu.version": "2.5.1.post1", "torch.version": "2.7.1"})]
['torch_npu-torch']
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache, total_ordering

import msgspec

from rules.model import Text
from rules.tables import table

_TOKEN = re.compile(r"\d+|[a-z]+")
_NUMERIC = re.compile(r"[vV=]?\d+(?:[.\-_]?[0-9A-Za-z]+)*")
_INNER = re.compile(r"V\d{3}R\d{3}C\d{2}(?:SPC\d{3})?(?:B\d{3})?", re.I)
_STAGES = {"dev": -5, "a": -4, "alpha": -4, "b": -3, "beta": -3, "c": -2, "rc": -2, "pre": -2, "preview": -2, "post": 1, "rev": 1, "r": 1}
"""Words around the number they qualify: below 0 before the release, 1 after it."""
_PAD = 12
"""Places of a version that are compared; missing ones count as 0."""
_CLAUSE = re.compile(r"(===|==|~=|!=|>=|<=|>|<|=)?\s*([^\s,|{}\[\]<>=!~]+)")
_RELEASE = re.compile(r"(?:^|(?<=\d\.))\d+")
"""The numbers of a release as written, trailing zeros included."""
_WILD = re.compile(r"[.\-]?[xX*](?:[.\-][xX*])*$")

Place = tuple[int, int, str]
_ZERO: Place = (0, 0, "")


@total_ordering
class Version:
    """A version as it was printed, comparable with every other: CANN (8.0.RC1.alpha003), HDK (24.1.rc2), Python packages
    (2.5.1.post1+git1a2b3c), inner versions (V100R001C22SPC001B231); anything else sorts as text behind them."""

    __slots__ = ("key", "local", "places", "scheme", "text")

    def __init__(self, text: str, scheme: str, places: tuple[Place, ...], local: str = ""):
        self.text, self.scheme, self.places, self.local = text, scheme, places, local
        padded = places + (_ZERO,) * (_PAD - len(places))
        self.key = ({"numeric": 0, "inner": 1}.get(scheme, 2), padded, local if places else text)

    @classmethod
    def parse(cls, text: str) -> Version:
        """Never raises. What has no number in a known shape gets the scheme "other" and compares as text."""
        return _parse(text.strip()[:200])

    @property
    def release(self) -> tuple[int, ...]:
        """The leading numbers: 8.0 of 8.0.RC1."""
        out = []
        for rank, number, _ in self.places:
            if rank not in (0, 2):
                break
            out.append(number)
        return tuple(out)

    @property
    def prerelease(self) -> bool:
        return any(rank < 0 for rank, _, _ in self.places)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.key < other.key if isinstance(other, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Version({self.text!r})"

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def _parse(text: str) -> Version:
    if _INNER.fullmatch(text):
        return Version(text, "inner", tuple((2, int(number), "") for number in re.findall(r"\d+", text)))
    main, _, local = text.partition("+")
    if not main.isascii() or not _NUMERIC.fullmatch(main):
        return Version(text, "other", ())
    places: list[Place] = []
    tokens = _TOKEN.findall(main.lstrip("vV=").lower())
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.isdigit():
            places.append((2, int(token), "") if int(token) else _ZERO)
            continue
        stage = _STAGES.get(token, 1)
        number = 0
        if at < len(tokens) and tokens[at].isdigit():
            number = int(tokens[at])
            at += 1
        places.append((stage, number, "" if token in _STAGES else token))
    while places and places[-1] == _ZERO:
        places.pop()
    return Version(text, "numeric", tuple(places), local.lower()) if places else Version(text, "numeric", (_ZERO,), local.lower())


# ---------------------------------------------------------------- ranges


def satisfies(version: str | Version, spec: str) -> bool | None:
    """Whether a version lies in a range; None where that cannot be told. Never raises.

    `>=6.3,<8.0` all of them; `==2.5.*`, `8.5.X` a prefix; `~=2.7.0`; `!=1.0`; `8.1.RC1` alone is `==`; `a|b` or `in {a,b}` any of them;
    `in [7.0.0,7.1.99]` closed; `any`. What stands behind `+` does not count. A bound of two numbers means the whole train: 8.0.RC1 is in
    `>=8.0` and not in `<8.0`. A pre-release of exactly the bound (8.5.0.alpha001 against `>=8.5.0`) cannot be told.
    """
    have = version if isinstance(version, Version) else Version.parse(version)
    text = spec.strip()
    if text.lower() in ("any", "all", "*", "x", ""):
        return True
    if have.scheme == "other":
        return None
    if text[:2].lower() == "in" and (closed := re.fullmatch(r"in\s*\[([^,\[\]]+),([^,\[\]]+)\]", text, re.I)):
        return _all([_compare(have, ">=", closed[1].strip()), _compare(have, "<=", closed[2].strip())])
    if listed := re.fullmatch(r"in\s*\{([^{}]*)\}", text, re.I):
        text = "|".join(listed[1].split(","))
    return _any([_all(_clauses(have, part)) for part in re.split(r"\||\bor\b", text)])


def _clauses(have: Version, text: str) -> list[bool | None]:
    out: list[bool | None] = []
    for clause in text.split(","):
        found = _CLAUSE.fullmatch(clause.strip())
        out.append(_compare(have, found[1] or "==", found[2]) if found else None)
    return out


def _compare(have: Version, operator: str, text: str) -> bool | None:
    wild = _WILD.search(text)
    want = Version.parse(text[: wild.start()] if wild else text)
    if want.scheme != have.scheme:
        return None
    if wild and text[: wild.start()]:
        if operator in ("==", "=", "===", "!="):
            width = len(re.findall(r"\d+", text[: wild.start()])) if want.scheme == "numeric" and not want.prerelease else len(want.places)
            inside = _padded(have, width) == _padded(want, width)
            return inside if operator != "!=" else not inside
        if operator in ("<=", ">"):
            width = len(re.findall(r"\d+", text[: wild.start()]))
            above = _padded(have, width) > _padded(want, width)
            return above if operator == ">" else not above
    elif wild:
        return None
    left, right = have.key[:2], want.key[:2]
    if operator == "~=":
        width = max(1, len(_RELEASE.findall(text.split("+")[0].lstrip("vV"))) - 1)
        return left >= right and _padded(have, width) == _padded(want, width)
    if left != right and _early(have, want):
        if operator in ("<", ">=") and len(re.findall(r"\d+", text)) <= 2 and not want.prerelease:
            return operator == ">="
        return {"<=": True, ">": False}.get(operator)
    if operator in ("==", "=", "==="):
        return left == right
    if operator == "!=":
        return left != right
    if operator == ">=":
        return left >= right
    if operator == "<=":
        return left <= right
    return left > right if operator == ">" else left < right


def _padded(version: Version, width: int) -> tuple[Place, ...]:
    return (version.places + (_ZERO,) * width)[:width]


def _early(have: Version, want: Version) -> bool:
    """Whether `have` is a pre-release of exactly `want`: the same places, then only words that come before a release."""
    same = 0
    width = max(len(have.places), len(want.places))
    mine, theirs = _padded(have, width), _padded(want, width)
    while same < width and mine[same] == theirs[same]:
        same += 1
    return same < width and mine[same][0] < 0 and all(place == _ZERO for place in theirs[same:])


def _all(parts: list[bool | None]) -> bool | None:
    if False in parts:
        return False
    return None if None in parts else True


def _any(parts: list[bool | None]) -> bool | None:
    if True in parts:
        return True
    return None if None in parts else False


# ---------------------------------------------------------------- what belongs together

NAMES = {
    "cann": Text("CANN", "CANN"),
    "driver": Text("driver (HDK)", "驱动"),
    "firmware": Text("firmware", "固件"),
    "python": Text("Python", "Python"),
    "glibc": Text("glibc", "glibc"),
    "torch": Text("torch", "torch"),
    "torch_npu": Text("torch_npu", "torch_npu"),
    "vllm": Text("vllm", "vllm"),
    "vllm_ascend": Text("vllm-ascend", "vllm-ascend"),
    "mindspore": Text("MindSpore", "MindSpore"),
    "mindie": Text("MindIE", "MindIE"),
    "nnal": Text("NNAL/ATB", "NNAL/ATB"),
}
"""Parts whose versions the tables speak of; others go by `pip.<name>`."""
_FACTS = {
    "glibc": ("glibc.version", "os.glibc", "libc.version"),
    "nnal": ("nnal.version", "atb.version"),
    "cann": ("cann.version", "cann.toolkit.version"),
    "driver": ("driver.version", "hdk.version"),
}
"""Fact names of a part, where it is not only `<part>.version`."""


class Mismatch(msgspec.Struct, frozen=True):
    """Two versions that do not belong together."""

    relation: str
    left: str
    """Name of the fact, such as `torch_npu.version`."""
    left_version: str
    right: str
    right_version: str
    expected: Text
    """What would be right."""
    source: str
    strength: str
    """required: the vendor says the pair must fit; known-bad: this pair was seen to fail."""
    symptom: str = ""
    """What such a mismatch usually prints."""


class Pairing(msgspec.Struct, frozen=True):
    """What a version was tested with; another partner is no fault by itself."""

    relation: str
    left: str
    left_version: str
    right: str
    right_version: str
    tested: tuple[str, ...]
    listed: bool
    """Whether the partner found is one of them."""
    source: str


class _Row(msgspec.Struct, frozen=True, gc=False):
    relation: str
    left: str
    left_range: str
    right: str
    right_range: str
    symptom: str
    source: str


@cache
def _rows(kind: str) -> tuple[_Row, ...]:
    sources = dict(table("version_sources", 2))
    return tuple(
        _Row(relation, left, left_range, right, right_range, symptom, sources[source])
        for which, relation, left, left_range, right, right_range, symptom, source in table("versions", 8)
        if which == kind
    )


def check(facts: Mapping[str, str]) -> list[Mismatch]:
    """Pairs of versions that contradict a requirement, or are known to fail together. `facts` maps fact names to values.

    A version that the tables do not list, or that cannot be read, contradicts nothing.
    """
    have = _Facts(facts)
    out: list[Mismatch] = []
    groups: dict[tuple[str, str, str], list[_Row]] = {}
    for row in _rows("required"):
        if have[row.left] and have[row.right] and satisfies(have[row.left], row.left_range):
            groups.setdefault((row.relation, row.left, row.right), []).append(row)
    for (relation, left, right), rows in groups.items():
        if all(_fits(have[left], have[right], row.right_range) is False for row in rows):
            wanted = list(dict.fromkeys(_wanted(have[left], row.right_range) for row in rows))
            out.append(have.mismatch(relation, left, right, _needs(left, have[left], right, wanted), rows[0], "required"))
    out += _families(have)
    for row in _rows("known-bad"):
        if have[row.left] and have[row.right] and satisfies(have[row.left], row.left_range) and satisfies(have[row.right], row.right_range):
            here, there = _shown(row.left), _shown(row.right)
            left, right = _readable(row.left_range), _readable(row.right_range)
            bad = Text(
                f"{here.en} {left} is known to fail with {there.en} {right}",
                f"已知 {here.zh} {left} 与 {there.zh} {right} 一起使用会出问题",
            )
            out.append(have.mismatch(row.relation, row.left, row.right, bad, row, "known-bad"))
    return out


def compared(facts: Mapping[str, str]) -> set[str]:
    """Relations that `check` can judge: both versions are known, and the tables list the left one."""
    have = _Facts(facts)
    known = (row for kind in ("required", "known-bad") for row in _rows(kind) if have[row.left] and have[row.right])
    out = {row.relation for row in known if satisfies(have[row.left], row.left_range)}
    cann_driver = {"cann": have["cann"], "driver": have["driver"]}
    if all(cann_driver.values()) and len({row.left for row in _rows("alias") if satisfies(cann_driver[row.left], row.left_range)}) == 2:
        out.add("cann-driver")
    return out


def pairings(facts: Mapping[str, str]) -> list[Pairing]:
    """For each pair of versions found whose left one is in the tables: what it was tested with. A hint, never a fault."""
    have = _Facts(facts)
    groups: dict[tuple[str, str, str], list[_Row]] = {}
    for row in _rows("tested"):
        if have[row.left] and have[row.right] and satisfies(have[row.left], row.left_range):
            groups.setdefault((row.relation, row.left, row.right), []).append(row)
    return [
        Pairing(
            relation, have.name(left), have[left], have.name(right), have[right],
            tuple(dict.fromkeys(row.right_range.removeprefix("==") for row in rows)),
            any(satisfies(have[right], row.right_range) is not False for row in rows), rows[0].source,
        )
        for (relation, left, right), rows in groups.items()
    ]  # fmt: skip


class _Facts:
    """Facts by part: `torch` is found under torch.version and pip.torch."""

    def __init__(self, facts: Mapping[str, str]):
        self._facts = {_plain(name): (name, value.strip()) for name, value in facts.items() if value.strip()}

    def _find(self, part: str) -> tuple[str, str]:
        names = (part,) if part.startswith("pip.") else (*_FACTS.get(part, (f"{part}.version",)), f"pip.{part}")
        if part.startswith("pip."):
            names = (part, f"{part[4:]}.version")
        for name in names:
            if _plain(name) in self._facts:
                return self._facts[_plain(name)]
        return "", ""

    def __getitem__(self, part: str) -> str:
        return self._find(part)[1]

    def name(self, part: str) -> str:
        return self._find(part)[0]

    def mismatch(self, relation: str, left: str, right: str, expected: Text, row: _Row, strength: str) -> Mismatch:
        return Mismatch(relation, self.name(left), self[left], self.name(right), self[right], expected, row.source, strength, row.symptom)


def _families(have: _Facts) -> list[Mismatch]:
    """CANN and driver each list the inner families of the other they work with; a match in either list is enough."""
    cann, driver = have["cann"], have["driver"]
    if not cann or not driver:
        return []
    lists = {row.left: row for row in _rows("family") if satisfies({"cann": cann, "driver": driver}[row.left], row.left_range)}
    own = {row.left: row.right_range for row in _rows("alias") if satisfies({"cann": cann, "driver": driver}[row.left], row.left_range)}
    if len(lists) < 2 or len(own) < 2:
        return []
    if own["cann"] in lists["driver"].right_range.split("|") or own["driver"] in lists["cann"].right_range.split("|"):
        return []
    expected = Text(
        f"CANN {cann} ({own['cann']}) and driver {driver} ({own['driver']}) do not name each other as compatible",
        f"CANN {cann}（{own['cann']}）与驱动 {driver}（{own['driver']}）互不在对方的兼容列表中",
    )
    return [have.mismatch("cann-driver", "cann", "driver", expected, lists["cann"], "required")]


def _fits(left: str, right: str, spec: str) -> bool | None:
    if not spec.startswith("same"):
        return satisfies(right, spec)
    mine, theirs = Version.parse(left), Version.parse(right)
    if "other" in (mine.scheme, theirs.scheme) or mine.scheme != theirs.scheme:
        return None
    if spec == "same:3":
        return _release3(mine) == _release3(theirs)
    return None if _early(mine, theirs) or _early(theirs, mine) else mine.key[:2] == theirs.key[:2]


def _release3(version: Version) -> tuple[int, ...]:
    return (*version.release, 0, 0, 0)[:3]


def _wanted(left: str, spec: str) -> str:
    if spec == "same:3":
        return "==" + ".".join(map(str, _release3(Version.parse(left))))
    return f"=={left}" if spec == "same" else spec


def _needs(left: str, version: str, right: str, wanted: list[str]) -> Text:
    here, there = _shown(left), _shown(right)
    choices = [_readable(part) for spec in wanted for part in spec.split("|")]
    return Text(f"{here.en} {version} needs {there.en} {' or '.join(choices)}", f"{here.zh} {version} 需要 {there.zh} {' 或 '.join(choices)}")


def _readable(spec: str) -> str:
    """A range for people: `==2.5.1` as 2.5.1, `in [7.0.0,7.1.99]` as 7.0.0 - 7.1.99."""
    if spec.startswith("in ["):
        return spec[4:-1].replace(",", " - ")
    return spec.removeprefix("==")


def _shown(part: str) -> Text:
    return NAMES.get(part) or Text(part.removeprefix("pip."), part.removeprefix("pip."))


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
