"""What a code means: every reading of a code in any spelling, offline.

>>> [(m.code, m.symbol) for m in lookup("0x7bc79")]
[('507001', 'ACL_ERROR_RT_TS_ERROR')]
>>> lookup("event_id=0x80E01801")[0].meaning.en
'HBM: uncorrectable (multi-bit) ECC error on access'
>>> codes_in("rtStreamSynchronize failed, ErrCode=507015, desc=[aicore exception], InnerCode=0x7150026")
['507015', '0x7150026']
"""

from __future__ import annotations

import msgspec

from rules.model import Text

# The tables and everything that reads them are imported by the first call: whoever never asks for a code never pays for them.


class Part(msgspec.Struct, frozen=True):
    """A piece of a decoded code: a bit of an error word, the node of an event."""

    name: str
    """Where it stands, or which field it is: `w0 bit 23 (0x800000)`, `sensor`."""
    value: str
    """Symbol or value."""
    meaning: Text
    kind: str = ""
    """Class of an AI Core bit (a key of aicore.CLASSES)."""
    suspects: Text | None = None
    """What to look at first."""


class Related(msgspec.Struct, frozen=True):
    """A code on the same chain driver or TS -> runtime inner -> acl."""

    code: str
    symbol: str
    direction: str
    """up: what it is turned into; down: what it may have been made from."""


class Meaning(msgspec.Struct, frozen=True):
    """One reading of a code."""

    code: str
    """Canonical spelling; `lookup(code)` finds this reading again."""
    symbol: str
    family: str
    """Key of rules.codes.FAMILIES."""
    layer: str
    meaning: Text
    generic: bool
    """The code alone does not name a cause."""
    spellings: tuple[str, ...]
    related: tuple[Related, ...] = ()
    source: str = ""
    parts: tuple[Part, ...] = ()
    note: Text | None = None
    """A second reading (field lore against the vendor's word), or what experience adds."""

    @property
    def family_name(self) -> Text:
        from rules.codes import FAMILIES

        return FAMILIES[self.family]


def lookup(text: str, context: str = "") -> list[Meaning]:
    """All readings of a code, or of the codes of a log line, the likeliest first; empty when nothing is known.

    `context` says where a bare number was seen (driver, kernel, hccl, ts, dcmi, aicpu, runtime, event): its readings then come alone,
    if there are any. `driver -12` in the text does the same.
    """
    from rules.code_readings import readings

    return list(readings(text.strip()[:4096], context.strip()))


def spellings(code: str) -> tuple[str, ...]:
    """Every literal way to write a code, for searching a log: decimal, hexadecimal in both cases, symbol. Unknown: the text itself."""
    forms = [form for meaning in lookup(code) for form in meaning.spellings]
    return tuple(dict.fromkeys(forms)) if forms else (code.strip(),)


def code_pattern(code: str) -> str:
    """One regex for a code in every spelling, whole codes only: 507001 does not match inside 15070011 or in `pid=507001`.

    Free of look-around, back references and named groups. It may take in up to three characters before the code and two after it.
    Compile with MULTILINE when it is run over more than one line.
    """
    from rules.code_readings import pattern

    return pattern(code.strip())


def codes_in(text: str) -> list[str]:
    """Known codes at the places where log lines carry them, canonical, in order, each once. For one line; only the head of a long one."""
    from rules.code_scan import scan

    return list(scan(text[:4096]))


def nearest(text: str, count: int = 5) -> list[str]:
    """Known codes or symbols that look like `text`, for a code that was mistyped; the best first."""
    from rules.code_readings import similar

    return similar(text.strip().upper(), count)
