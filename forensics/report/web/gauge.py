"""Bars, drawn with geometry alone: the page allows no style attributes."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.report.web.markup import Html, el


def bar(share: float, kind: str = "") -> Html:
    """A bar filled to `share` (0 to 1); the number stands beside it."""
    wide = round(100 * min(1.0, max(0.0, share)), 1)
    return el(
        "svg", el("rect", width=100, height=8, cls="track"), el("rect", width=wide, height=8, cls=f"fill {kind}".strip()),
        viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true",
    )  # fmt: skip


def shares(parts: Sequence[tuple[float, str]]) -> Html:
    """One bar of several parts: (share, class)."""
    total = sum(share for share, _ in parts) or 1.0
    out, at = [], 0.0
    for share, cls in parts:
        wide = 1000 * share / total
        out.append(el("rect", x=at, width=wide, height=12, cls=cls))
        at += wide
    return el("svg", out, viewBox="0 0 1000 12", preserveAspectRatio="none", aria_hidden="true")


def key(cls: str) -> Html:
    """The colour of a part, for the words beside it."""
    return el("svg", el("rect", width=10, height=10, cls=cls), viewBox="0 0 10 10", aria_hidden="true")
