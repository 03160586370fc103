"""Elements of a page. Whatever text goes in comes out inert: only what `el` has built is markup, everything else is escaped.

>>> el("p", "a < b & ", el("b", "c"), cls="x")
'<p class="x">a &lt; b &amp; <b>c</b></p>'
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from forensics.report.figures import number
from forensics.report.strings import LANGUAGES, TABLE, say
from forensics.safe_text import safe
from rules.model import Text

VOID = frozenset({"br", "input", "meta", "link"})
"""HTML elements without content."""


class Html(str):
    """Markup: escaped where it was text."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"


def text(value: str) -> Html:
    """`value` as text, control characters and changes of direction spelled out."""
    return Html(escape(safe(value)))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return str.__str__(child)
    return text(child) if isinstance(child, str) else "".join(map(_child, child))


def el(tag: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """An element. Attributes: `cls` is class, `for_` is for, `aria_label` is aria-label; None and False leave one out, True gives it no value."""
    parts = [tag]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
        if isinstance(value, float):
            value = f"{value:.2f}".rstrip("0").rstrip(".")
        parts.append(key if value is True else f'{key}="{text(str(value))}"')
    opened = " ".join(parts)
    if tag in VOID:
        return Html(f"<{opened}>")
    return Html(f"<{opened}>{''.join(map(_child, children))}</{tag}>")


def join(parts: Iterable[Child]) -> Html:
    """Several things one after the other."""
    return Html("".join(map(_child, parts)))


def both(words: Text, tag: str = "span", cls: str | None = None) -> Html:
    """A text in both languages, of which the page shows one."""
    if words.en == words.zh:
        return el(tag, ticked(words.en), cls=cls) if cls or tag != "span" else ticked(words.en)
    return join(el(tag, ticked(words.of(lang)), lang=lang, cls=cls) for lang in LANGUAGES)


def ticked(words: str) -> Html:
    """Running text of a rule, in which what stands between backticks is code."""
    parts = words.split("`")
    if len(parts) % 2 == 0:  # an odd one opens nothing
        return text(words)
    return join(el("code", part) if n % 2 else part for n, part in enumerate(parts))


def worded(key: str, **values: object) -> Text:
    """A fixed text in both languages, filled in; whole numbers are written as each language writes them."""

    def of(lang: str) -> str:
        own = {name: number(value, lang) if isinstance(value, int) and not isinstance(value, bool) else value for name, value in values.items()}
        return say(lang, key, **{name: value.of(lang) if isinstance(value, Text) else value for name, value in own.items()})

    return Text(of("en"), of("zh"))


def t(key: str, tag: str = "span", cls: str | None = None, **values: object) -> Html:
    """`worded` as markup."""
    return both(worded(key, **values), tag, cls) if values else both(TABLE[key], tag, cls)
