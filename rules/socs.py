"""Chip names as tools print them, brought to one form.

>>> [find(text).name for text in ("910B3", "Ascend 910B3", "Ascend910_9391", "910_9391", "19e5:d802")]
['Ascend910B3', 'Ascend910B3', 'Ascend910_9391', 'Ascend910_9391', 'Ascend910B']
>>> find("19e5:d802").generation, matches("910B3", "Ascend910B*"), matches("19e5:d802", "Ascend910B3")
('910B/A2', True, None)
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache

import msgspec

from rules.tables import table

_PCI = re.compile(r"(?:19e5:|0x|device )?(d[0-9a-f]{3})", re.I)
_SERIES = {
    "910c": "Ascend910_93", "a3": "Ascend910_93", "91093": "Ascend910_93", "910": "Ascend910_93", "ascend910": "Ascend910_93",
    "a2": "Ascend910B", "910b": "Ascend910B", "snt9b": "Ascend910B",
    "950": "Ascend950", "a5": "Ascend950", "950pr": "Ascend950", "950dt": "Ascend950",
    "310p": "Ascend310P", "310b": "Ascend310B",
    "davc100": "Ascend910", "davm200": "Ascend310P", "davm300": "Ascend310B", "davc310": "Ascend950",
}  # fmt: skip
"""Names of a whole series. `Ascend910` alone is what npu-smi prints on A3; the first generation prints 910A, 910B, 910ProB ..."""
_MARKET = ((re.compile(r"a2g\d"), "Ascend910B"), (re.compile(r"i2\d?"), "Ascend310P"))


class Soc(msgspec.Struct, frozen=True):
    """A chip, or a series where the name says no more (`exact` False; then the sizes are None)."""

    name: str
    """As the toolkit spells it: Ascend910B3, Ascend910_9391, Ascend310P3; of a series its short name: Ascend910B, Ascend910_93."""
    short: str
    generation: str
    """310, 310B, 310P, 910 (first), 910B/A2, 910_93/A3, 950/A5, 350."""
    arch: str
    """Core architecture: 1001, 2002, 2201, 3002, 3510."""
    exact: bool
    pci: str = ""
    memory_gib: float | None = None
    ai_cores: int | None = None
    vector_cores: int | None = None
    ai_cpus: int | None = None
    ub_bytes: int | None = None
    l1_bytes: int | None = None
    l2_mib: int | None = None
    bf16: bool | None = None


def find(text: str) -> Soc | None:
    """The chip or series that a name, a PCI id (`19e5:d802`) or a package word means; None for anything else.

    `910B` as a tool prints it is a chip of the first generation; in lower case, as packages spell it, it is the A2 series.
    """
    word = text.strip()
    if pci := _PCI.fullmatch(word):
        return _series().get(_by_pci().get(pci[1].lower(), ""))
    plain = re.sub(r"[\s_]+", "", word.lower().replace("dav-", "dav"))
    bare = plain.removeprefix("ascend")
    if bare == "910b" and word[-1:] == "b":
        return _series()["Ascend910B"]
    for form in (bare, f"910{bare}"):
        if form in _chips():
            return _chips()[form]
    if re.fullmatch(r"95[0-9a][0-9a-z]x?", bare):  # the NPU Name of a 950 board
        found = [soc for form, soc in _chips().items() if form in (f"950pr{bare}", f"950dt{bare}")]
        if found:
            return found[0]
    if bare in _SERIES:
        return _series()[_SERIES[bare]]
    for pattern, short in _MARKET:
        if pattern.fullmatch(bare):
            return _series()[short]
    return None


def matches(text: str, pattern: str) -> bool | None:
    """Whether a chip matches a pattern such as `Ascend910B*`, `Ascend910_93*` or `Ascend310P3`; None where the name does not tell."""
    soc = find(text)
    if soc is None:
        return None
    wanted = pattern.strip().lower()
    if not wanted.startswith("ascend"):
        wanted = "ascend" + wanted
    names = [soc.name] if soc.exact else [chip.name for chip in _chips().values() if chip.short == soc.short]
    hits = [_first_generation(name) == _first_generation(pattern) and fnmatchcase(name.lower(), wanted) for name in names]
    return True if all(hits) else None if any(hits) else False


def _first_generation(name: str) -> bool:
    """910A, 910B, 910ProA ...: kept apart from the A2 series, whose names begin in the same way."""
    return bool(re.fullmatch(r"(?:ascend)?910(?:a|b|pro[ab]|premiuma)", name.strip().lower()))


@cache
def _chips() -> dict[str, Soc]:
    """By name in lower case without `Ascend` and underscores."""
    out = {}
    for name, short, generation, arch, pci, memory, ai, vector, cpus, ub, l1, l2, bf16, _ in table("socs", 14):
        out[name.lower().removeprefix("ascend").replace("_", "")] = Soc(
            name, short, generation, arch, True, pci, float(memory) if memory else None,
            _number(ai), _number(vector), _number(cpus), _number(ub), _number(l1), _number(l2),
            {"yes": True, "no": False}.get(bf16),
        )  # fmt: skip
    return out


@cache
def _series() -> dict[str, Soc]:
    out: dict[str, Soc] = {}
    for chip in _chips().values():
        out.setdefault(chip.short, Soc(chip.short, chip.short, chip.generation, chip.arch, False, chip.pci))
    return out


@cache
def _by_pci() -> dict[str, str]:
    return {chip.pci.rpartition(":")[2]: chip.short for chip in _chips().values() if chip.pci}


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
