"""What error codes mean, from the shipped catalogue, as a page of text."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.report.page import Look, Page
from forensics.report.strings import say
from rules.catalog import Meaning, lookup, nearest

SPELLINGS, LINKS = 6, 8
"""How many other spellings, and codes above and below in the chain, are shown."""


def render(codes: Sequence[str], look: Look) -> tuple[str, bool]:
    """The page, and whether every code is known."""
    page, known = Page(look), True
    for code in codes:
        page.blank()
        meanings = lookup(code)
        for meaning in meanings:
            _meaning(page, meaning)
        if not meanings:
            known = False
            page.put(say(look.lang, "code-unknown", code=code), "bold")
            if close := nearest(code):
                page.put(say(look.lang, "code-near", codes=", ".join(close)))
    return page.text(), known


def _meaning(page: Page, meaning: Meaning) -> None:
    lang = page.look.lang
    column = 11 if lang == "en" else 10
    page.split([(meaning.code, "cyan"), ("  ", ""), (meaning.symbol, "bold")], f"{meaning.family_name.of(lang)} · {meaning.layer}")
    page.put(meaning.meaning.of(lang) + (f" · {say(lang, 'generic')}" if meaning.generic else ""), indent=2)
    rows = [("note", meaning.note.of(lang))] if meaning.note is not None else []
    for part in meaning.parts:
        words = [text for text in (part.name, part.value, part.meaning.of(lang)) if text]
        page.put(" · ".join(words), indent=4, hang=2)
        if part.suspects is not None:
            page.put(part.suspects.of(lang), "dim", indent=6)
    for key, direction in (("becomes", "up"), ("made-from", "down")):
        links = [f"{link.code} {link.symbol}".strip() for link in meaning.related if link.direction == direction]
        rows.append((key, ", ".join(links[:LINKS]) + (", …" if len(links) > LINKS else "")))
    others = [spelling for spelling in meaning.spellings if spelling not in (meaning.code, meaning.symbol)]
    rows += [("written", ", ".join(others[:SPELLINGS]) + (", …" if len(others) > SPELLINGS else "")), ("source", meaning.source)]
    for key, text in rows:
        if text:
            page.row(say(lang, key), text, indent=2, column=column)
