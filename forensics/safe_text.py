"""Text of a bundle, or of a rule pack, made harmless for where it is shown: a terminal, Markdown, a spreadsheet, JSON.

Nothing is dropped: what could act on a terminal or hide from the eye is spelled out, `\\x1b` or `\\u202e`, so the reader sees that it was there.

    >>> safe("\\x1b[31mred\\u202e")
    '\\\\x1b[31mred\\\\u202e'
    >>> cells("心跳 lost")
    9
"""

from __future__ import annotations

import json
import re
import unicodedata

_FORMATS = (
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""Unicode category Cf (bidirectional controls, zero width, tags) with the line and paragraph separators."""
_UNSAFE = re.compile(f"[\x00-\x1f\x7f-\x9f{_FORMATS}\ud800-\udfff]")
_UNSAFE_BUT_LINES = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_FORMATS}\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile(f"[\x7f-\x9f{_FORMATS}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPELLED = {"\t": "    ", "\n": "\\n", "\r": "\\r"}
_TICKS = re.compile("`+")
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$])")
_REFERENCE = re.compile(r"([@#])(?=\w)")
_LEADING = re.compile(r"^(\s*)([-+=>]|\d+[.)])")


def _spell(match: re.Match[str]) -> str:
    char = match.group()
    if char in _SPELLED:
        return _SPELLED[char]
    point = ord(char)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def safe(text: str) -> str:
    """`text` as one line without any character that a terminal would obey or a reader could not see."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_spell, text)


def safe_block(text: str) -> str:
    """As `safe`, but line feeds and tabs stay."""
    return _UNSAFE_BUT_LINES.sub(_spell, text.replace("\r\n", "\n"))


def whole(text: str) -> str:
    """`text` without lone surrogates, which no encoding can carry; each is spelled out."""
    return text if text.isascii() else _SURROGATE.sub(_spell, text)


def json_quiet(text: str) -> str:
    """JSON text in which the characters that a terminal obeys, or that turn its direction, stand as \\u escapes: the same JSON."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSAFE_IN_JSON.sub(lambda match: "\\u007f" if match.group() == "\x7f" else json.dumps(match.group())[1:-1], text)


def cells(text: str) -> int:
    """Columns of a terminal that `text`, already safe, takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def clip(text: str, width: int, more: str = "…") -> str:
    """`text` cut to `width` columns, with `more` at the end where something was cut."""
    if cells(text) <= width:
        return text
    room, out = width - cells(more), 0
    for index, char in enumerate(text):
        out += _cell(char)
        if out > room:
            return text[:index] + more
    return text


def code_span(text: str) -> str:
    """Markdown: `text` as code, whatever backticks it holds; nothing in it is a link, a mention or HTML."""
    text = safe(text) or " "
    ticks = "`" * (max((len(run) for run in _TICKS.findall(text)), default=0) + 1)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def code_block(lines: list[str]) -> str:
    """Markdown: a fenced block that no line can close."""
    body = [safe(line) for line in lines]
    longest = max((len(run) for line in body for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence + "text", *body, fence])


def prose(text: str) -> str:
    """Markdown: `text` as running text: no markup, no HTML, no heading or list at its start, no mention and no reference to an issue."""
    text = _MARKUP.sub(r"\\\1", safe(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    return _REFERENCE.sub(r"\1<!-- -->", _LEADING.sub(r"\1\\\2", text))


def spoken(text: str) -> str:
    """Markdown: `prose` in which what stands between backticks is code, as rule packs write commands."""
    parts = text.split("`")
    if len(parts) % 2 == 0 or not all(parts[1::2]):
        return prose(text)
    return "".join(code_span(part) if n % 2 else prose(part) if part else "" for n, part in enumerate(parts))


_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+!|~$=>.-])")


def summary(heading: str) -> str:
    """Markdown: the words of a heading (`## ` and `prose`) as the summary of a fold, where HTML counts and Markdown does not."""
    return _ESCAPED.sub(r"\1", heading.lstrip("#").strip())


def spreadsheet(text: str) -> str:
    """A cell of a CSV file: text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP)."""
    text = safe_block(text)
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠") and text else text
