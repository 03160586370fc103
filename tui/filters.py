"""Which lines of a case are shown: a row of chips, each a condition that reads as it is typed.

    >>> chips = parse("severity>=warning -source=plog timeout")
    >>> [str(chip) for chip in chips]
    ['severity>=warning', '-source=plog', 'message~(?i)timeout']
"""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterable, Sequence

import msgspec

from forensics.errors import UsageError
from forensics.result import Member

SEVERITIES = ("DEBUG", "INFO", "EVENT", "WARNING", "ERROR", "FATAL")
BAD = ("ERROR", "FATAL")
TEXTS = ("source", "severity", "module", "node", "process", "code", "function", "file", "message")
NUMBERS = ("device", "rank", "pid", "tid", "stream", "task", "line")
FIELDS = (*TEXTS, *NUMBERS)
_COLUMN = {"stream": "stream_id", "task": "task_id", "line": "line_no"}
_ALIASES = {"text": "message", "msg": "message", "level": "severity", "sev": "severity", "dev": "device", "path": "file", "proc": "process"}
_SIGNS = (">=", "<=", "=", "~")
NONE = "-"
"""As a value: the line does not say."""


class Chip(msgspec.Struct, frozen=True):
    """One condition."""

    field: str
    sign: str
    """=: any of the values, `*` allowed; ~: a regex that is found in it; >=, <=: numbers, and severities."""
    value: str
    """Values are separated by commas."""
    negative: bool = False

    def __str__(self) -> str:
        value = self.value if self.value and not set(self.value) & set(" '\"\\") else shlex.quote(self.value)
        return f"{'-' if self.negative else ''}{self.field}{self.sign}{value}"


def parse(text: str) -> list[Chip]:
    """The chips of a line that was typed. Raises UsageError."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise UsageError(f"a quotation mark is not closed in {text!r}") from None
    return [_chip(word) for word in words]


def _chip(word: str) -> Chip:
    negative = len(word) > 1 and word.startswith("-")
    bare = word[1:] if negative else word
    found = [(bare.find(sign), -len(sign), sign) for sign in _SIGNS if bare.find(sign) > 0]
    if found:
        at, _, sign = min(found)
        name = bare[:at].lower()
        name = _ALIASES.get(name, name)
        if name in FIELDS:
            return _checked(Chip(name, sign, bare[at + len(sign) :], negative))
        if name.isidentifier() and sign != "~":
            raise UsageError(f"there is no field {name!r}; the fields are {', '.join(FIELDS)}. Text with = in it is asked as message~'{bare}'")
    return Chip("message", "~", escaped(bare), negative)


def escaped(text: str) -> str:
    """`text` as a regex that finds it, in any case of letters where it has no capitals."""
    import re

    return ("(?i)" if text.islower() else "") + re.escape(text).replace(r"\ ", " ")


def _checked(chip: Chip) -> Chip:
    if not chip.value:
        raise UsageError(f"{chip.field}{chip.sign} wants a value; {NONE} stands for lines that do not say")
    if chip.sign == "~":
        check_regex(chip.value)
        if chip.field in NUMBERS:
            raise UsageError(f"{chip.field} is a number: it takes =, >= and <=")
    elif chip.field == "severity":
        for value in chip.value.split(","):
            if value.upper() not in (*SEVERITIES, NONE):
                raise UsageError(f"there is no severity {value!r}; there are {', '.join(SEVERITIES).lower()}")
    elif chip.field in NUMBERS:
        for value in chip.value.split(","):
            if value != NONE and not value.lstrip("-").isdecimal() or len(value) > 18:
                raise UsageError(f"{chip.field} wants a number; found {value!r}")
    elif chip.sign != "=":
        raise UsageError(f"{chip.field} takes = and ~, not {chip.sign}")
    return chip


def check_regex(pattern: str) -> None:
    """Raises UsageError for a regex that the search does not take. It is RE2's language: no look-around, no back references."""
    import duckdb

    try:
        duckdb.execute("SELECT regexp_matches('', ?)", [pattern])
    except duckdb.Error as error:
        reason = str(error).split("\n")[0].removeprefix("Invalid Input Error: ")
        raise UsageError(f"this is no regex that can be searched: {reason}") from error


class Filter(msgspec.Struct, frozen=True):
    """All chips together: every one must hold, of several `=` of one field any."""

    chips: tuple[Chip, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.chips)

    def plus(self, more: Iterable[Chip]) -> Filter:
        return Filter(tuple(dict.fromkeys((*self.chips, *more))))

    def minus(self, chip: Chip) -> Filter:
        return Filter(tuple(one for one in self.chips if one != chip))

    def where(self, files: Sequence[Member]) -> tuple[str, list[object]]:
        """A condition over `events`, and its parameters."""
        parts: list[str] = []
        values: list[object] = []
        groups: dict[tuple[str, str, bool], list[Chip]] = {}
        for number, chip in enumerate(self.chips):
            key = (chip.field, "=", False) if chip.sign == "=" and not chip.negative else (chip.field, str(number), chip.negative)
            groups.setdefault(key, []).append(chip)
        for group in groups.values():
            some = [_condition(chip, files, values) for chip in group]
            text = " OR ".join(some)
            parts.append(f"(({text}) IS NOT TRUE)" if group[0].negative else f"({text})")
        return " AND ".join(parts) or "true", values

    def one_file(self, files: Sequence[Member]) -> int | None:
        """The file all of it lies in, where a chip names exactly one: its lines are then shown in their own order."""
        named = [chip for chip in self.chips if chip.field == "file" and not chip.negative]
        found = {file_id for chip in named for file_id in _files(chip, files)}
        return found.pop() if len(found) == 1 else None


def _condition(chip: Chip, files: Sequence[Member], values: list[object]) -> str:
    column = _COLUMN.get(chip.field, chip.field)
    if chip.field == "file":
        return f"file_id IN ({', '.join(map(str, _files(chip, files)))})" if _files(chip, files) else "false"
    if chip.field == "severity" and chip.sign in (">=", "<="):
        at = SEVERITIES.index(chip.value.upper()) if chip.value.upper() in SEVERITIES else 0
        some = SEVERITIES[at:] if chip.sign == ">=" else SEVERITIES[: at + 1]
        return f"severity IN ({', '.join(repr(one) for one in some)})"
    if chip.sign == "~":
        values.append(chip.value)
        return f"regexp_matches({column}, ?)"
    if chip.sign in (">=", "<="):
        return f"{column} {chip.sign} {int(chip.value)}" if chip.value != NONE else f"{column} IS NULL"
    some_of: list[str] = []
    for value in chip.value.split(","):
        if value == NONE:
            some_of.append(f"{column} IS NULL")
        elif chip.field in NUMBERS:
            some_of.append(f"{column} = {int(value)}")
        elif "*" in value:
            values.append(value.replace("[", "[[]"))
            some_of.append(f"{column} GLOB ?")
        else:
            values.append(value.upper() if chip.field == "severity" else value)
            some_of.append(f"{column} = ?")
    return " OR ".join(some_of)


def _files(chip: Chip, files: Sequence[Member]) -> list[int]:
    if chip.sign == "~":
        import regex

        pattern = regex.compile(chip.value)
        return [member.file_id for member in files if pattern.search(member.path, timeout=0.1)]
    wanted = chip.value.split(",") if not any(member.path == chip.value for member in files) else [chip.value]
    exact = {member.path: member.file_id for member in files}
    found: list[int] = []
    for value in wanted:
        if value in exact:
            found.append(exact[value])
        else:
            glob = value if "*" in value else f"*{value}*"
            found += [member.file_id for member in files if fnmatch.fnmatchcase(member.path, glob.replace("[", "[[]"))]
    return list(dict.fromkeys(found))
