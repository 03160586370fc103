"""What the extractors share: collecting facts and numbers without repeats, reading numbers, normalising chip names.

>>> number("NA") is None, number(" 61204 MB"), number("93%"), number("1e999") is None
(True, 61204.0, 93.0, True)
>>> soc_name("910B3"), soc_name("Ascend 910A"), soc_name("Ascend910", a3=True), soc_name("ascend910_9382"), soc_name("printer")
('Ascend910B3', 'Ascend910A', 'Ascend910_93', 'Ascend910_9382', '')
"""

from __future__ import annotations

import math
import re

from parsers.rows import Document, Fact, Metric

FACTS = 20_000
METRICS = 200_000
"""Most that one text may yield; beyond that it is no environment text but a flood."""
LONGEST = 4000
"""Characters kept of a value: library paths are long, and what they lack counts."""

_NUMBER = re.compile(r"\s{0,80}([+-]?\d{1,18}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,3})?)(?![\d:])", re.ASCII)
_SOC = re.compile(
    r"(?:ascend[ _-]?)?((?:310|910|950|350)(?:[a-z]{0,2}\d{0,2}[a-z]?)(?:-\d)?|910Pro[AB]|910PremiumA|(?:910|950(?:PR|DT)|350)_\w{4,5}|A2G\d|I2\d)$",
    re.ASCII | re.IGNORECASE,
)


class Gather:
    """Collects one document; the same fact of the same device is kept once, at its first line."""

    def __init__(self) -> None:
        self.document = Document()
        self._seen: set[tuple[str, str, int | None]] = set()

    def fact(self, name: str, value: str, at: int, device: int | None = None) -> None:
        value = value.strip()[:LONGEST]
        key = (name, value, device)
        if not value or key in self._seen or len(self.document.facts) >= FACTS:
            return
        self._seen.add(key)
        self.document.facts.append(Fact(name[:120], value, at, "", device))

    def metric(self, name: str, value: float | None, unit: str, at: int, device: int | None = None, label: str = "", ts: int | None = None) -> None:
        """Keep a number; None, which stands for NA and the like, is none."""
        if value is not None and math.isfinite(value) and len(self.document.metrics) < METRICS:
            self.document.metrics.append(Metric(name, value, unit, at, "", device, ts, label[:120]))


def number(text: str) -> float | None:
    """The number a text begins with; None where there is none (NA, -) or where it is not finite."""
    found = _NUMBER.match(text)
    if found is None:
        return None
    value = float(found[1])
    return value if math.isfinite(value) else None


def soc_name(name: str, a3: bool = False) -> str:
    """A chip name as CANN spells it (Ascend910B3), from npu-smi's, lspci's or a user's; empty for what is no chip name.

    npu-smi calls all chips of an A3 "Ascend910": with `a3` that becomes Ascend910_93.
    """
    text = name.strip().strip("\"'").replace(" ", "")
    if len(text) > 24:
        return ""
    found = _SOC.match(text)
    if found is None:
        return ""
    short = found[1].upper()
    if short == "910" and a3:
        return "Ascend910_93"
    if short == "910C":
        return "Ascend910_93"
    short = {"910PROA": "910ProA", "910PROB": "910ProB", "910PREMIUMA": "910PremiumA"}.get(short, short)
    if "_" in short:
        family, _, variant = short.partition("_")
        short = f"{family}_{variant if variant[0] == '9' and variant.isdigit() else variant.lower()}"
    return f"Ascend{short}"
