"""How a code may be written in a log: its literal spellings, and one regex over them.

The regexes use no look-around and no back-references, so that a linear-time engine takes them; `^` and `$` mean the ends of a line.
"""

from __future__ import annotations

import re

from rules import aicore, chip_event
from rules.codes import SMALL, Row

_LEFT, _RIGHT = "(?:^|[^0-9A-Za-z_])", "(?:[^0-9A-Za-z_]|$)"
"""Word boundaries spelled out: beside Chinese characters `\\b` means different things to different engines."""
_IS = r" ?(?:=|:|\[|is) ?"
_FIELDS = {
    "ts": r"[rR]et_?[cC]ode" + _IS,
    "driver": r"(?:drv|DRV)[A-Za-z_]{0,24}(?:[rR]et|[eE]rr|[cC]ode)[A-Za-z_]{0,16}" + _IS,
    "errno": _LEFT + r"(?:(?:errno|err_no)" + _IS + r"-?|(?:ret|rc|error|err|code)" + _IS + "-)",
    "aicpu": _LEFT + r"(?:aicpu_?)?[eE]rr_?[cC]ode" + _IS,
    "sdma": r"sdma_?cqe_?[sS]tatus" + _IS,
    "cqe": r"errType" + _IS,
}
"""Small numbers count only behind their field."""
_BEFORE = r"(?:^|^[=:\[ ]|[^0-9A-Za-z_.,(=:\[\]# -]|[^dD][=:\[]|[^:=dD] |[^iI][dD] |[^dD][:=] |(?:^|[^0-9A-Z_])\()"
"""What may stand before a bare decimal code: no digit, letter, point, comma or dash (it would be part of a time, a name or a list of
numbers); no `pid=`, `PID: `, `id `; no bracket closed right before; no `RUNTIME(`, behind which a plog head has its process."""
_AFTER = r"(?:[^0-9A-Za-z_.-]|[.-](?:[^0-9]|$)|$)"


def number_spellings(value: int, digits: int = 0) -> tuple[str, ...]:
    """Decimal, and hexadecimal in both cases; `digits`: of fixed width, then also without 0x and as a signed number."""
    if value < 0:
        return str(value), str(value & 0xFFFFFFFF), f"{value & 0xFFFFFFFF:#x}", f"0x{value & 0xFFFFFFFF:X}"
    if digits:
        upper = f"{value:0{digits}X}"
        forms = [f"0x{upper}", f"0x{upper.lower()}", upper, upper.lower(), str(value)]
        if value >> 31:
            forms.append(str(value - (1 << 32)))
    else:
        forms = [str(value), f"{value:#x}", f"0x{value:X}"]
    return tuple(dict.fromkeys(forms))


def row_spellings(row: Row) -> tuple[str, ...]:
    number = row.number
    if number is None or row.family == "public-fault":
        forms: tuple[str, ...] = (row.code,)
    elif row.family == "hccl":
        forms = (f"hcclRet -> {number}", f"ret[{number}]", f"errNo[{0x05000000 + number:#018x}]")
    elif row.family == "errno":
        forms = (f"errno={number}", f"errno:{number}", f"ret=-{number}", f"-{number}")
    elif row.family in SMALL:
        field, _, value = row.code.partition("=")
        forms = (row.code, f"{field} = {value}", f"{field}:{value}", f"{field}: {value}")
    elif row.family == "bmc":
        forms = tuple(form for form in number_spellings(number, 8) if form != str(number))
    else:
        forms = number_spellings(number)
        if row.family == "runtime":
            forms = (*forms[1:], forms[0])
    if row.symbol and row.family not in ("cann", "torch_npu"):
        forms = (*forms, row.symbol)
    return tuple(dict.fromkeys(forms))


def row_pattern(row: Row) -> str:
    number = row.number
    if number is None or row.family == "public-fault":
        return f"{_LEFT}{row.code}{_RIGHT}"
    symbol = f"|{_LEFT}{row.symbol}{_RIGHT}" if row.symbol and row.symbol == row.symbol.upper() and len(row.symbol) > 4 else ""
    if row.family == "hccl":
        log_number = rf"errNo ?\[0x0{{8}}05[0-9a-fA-F]{{2}}{_digits(f'{number:04x}')}\]"
        return rf"(?:hcclRet ?-> ?{number}{_RIGHT}|HCCL\(.*[^0-9A-Za-z_]ret ?\[{number}\]|{log_number}{symbol})"
    if row.family in SMALL:
        forms = [f"0[xX]0*{_digits(f'{number:x}')}"]
        if row.family != "ts":
            forms.append(str(number))
        return rf"(?:{_FIELDS[row.family]}(?:{'|'.join(forms)}){_RIGHT}{symbol})"
    if row.family == "bmc":
        return f"{_LEFT}(?:0[xX])?{_digits(f'{number:08x}')}{_RIGHT}"
    if number < 0:
        unsigned = number & 0xFFFFFFFF
        return f"(?:-{-number}{_RIGHT}|{_LEFT}(?:{unsigned}|0[xX]{_digits(f'{unsigned:x}')}){_RIGHT}{symbol})"
    return f"(?:{_BEFORE}{number}{_AFTER}|{_LEFT}0[xX]0*{_digits(f'{number:x}')}{_RIGHT}{symbol})"


def event_spellings(ident: int) -> tuple[str, ...]:
    return number_spellings(ident, 8)


def event_pattern(ident: int) -> str:
    signed = f"|-{(1 << 32) - ident}" if ident >> 31 else ""
    return f"(?:(?:{_LEFT}(?:(?:0[xX])?{_digits(f'{ident:08x}')}|{ident}){signed}){_RIGHT})"


def core_spellings(error: aicore.CoreError) -> tuple[str, ...]:
    if len(error.words) > 1:
        inside = error.code[len("errcode:(") : -1]
        return error.code, f"errcode:({inside.replace(', ', ',')})"
    value = error.code.removeprefix("error code = ")
    return error.code, f"errcode:({value})", f"errcode:({value}, 0, 0)"


def core_pattern(error: aicore.CoreError) -> str:
    """Matches the same words; the first word alone also matches the record's first line."""
    if error.david:
        words = [str(word) for word in error.words]
    else:
        words = [rf"0[xX]0*{_digits(f'{word:x}')}" if word else "(?:0[xX])?0+" for word in error.words]
    inside = ", ?".join(words)
    if len(words) > 1:
        return rf"errcode ?:? ?\({inside}\)"
    rest = "" if error.david else r"(?:, ?(?:0[xX])?0+)*"
    return rf"(?:error code ?(?:=|:|is) ?{inside}{_RIGHT}|errcode ?:? ?\({inside}{rest}\))"


def event_of(text: str) -> chip_event.ChipEvent | None:
    """An event or black-box id written as eight hexadecimal digits or as a 32-bit decimal; None for what cannot be one."""
    found = re.fullmatch(r"(?:0[xX])?([0-9A-Fa-f]{8})", text)
    if found and chip_event.plausible(int(found[1], 16)):
        return chip_event.decode(int(found[1], 16))
    if re.fullmatch(r"-?\d{9,10}", text) and chip_event.plausible(int(text) & 0xFFFFFFFF) and int(text) >> 32 in (0, -1):
        return chip_event.decode(int(text) & 0xFFFFFFFF)
    return None


def _digits(lower: str) -> str:
    """Hexadecimal digits in either case."""
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in lower)
