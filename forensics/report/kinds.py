"""The kinds of logs that are understood, told by the parsers' own docstrings, which the tests run."""

from __future__ import annotations

import sys

from forensics.errors import UsageError
from forensics.report.page import Look, Page
from forensics.safe_text import safe, safe_block


def render(kind: str | None, look: Look) -> str:
    """All kinds with a line each, or all that is written about one. Raises UsageError for a kind that is none."""
    from parsers.registry import PARSERS

    stories = {parser.kind: (sys.modules[type(parser).__module__].__doc__ or "").strip() for parser in PARSERS}
    if kind is not None:
        if kind not in stories:
            raise UsageError(f"No parser reads the kind {safe(kind)!r}. The kinds are: {', '.join(stories)}.")
        return safe_block(stories[kind]) + "\n"
    page = Page(look)
    column = max(map(len, stories)) + 2
    for name, story in stories.items():
        page.row(name, " ".join(story.split("\n\n")[0].split()), label_style="cyan", column=column)
    return page.text()
