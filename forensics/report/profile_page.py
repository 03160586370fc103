"""The profile report as a person reads it in a terminal: findings first, then where the time goes, then what could not be looked at."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.profile_report import Report
from forensics.report import console
from forensics.report.figures import Clock
from forensics.report.page import Look, Page
from forensics.report.profile_words import missing, say
from forensics.report.words import named
from forensics.safe_text import cells, clip, safe

FEW = 8
"""Rows of a table shown without --verbose."""
NARROW = 24


def render(report: Report, look: Look) -> str:
    """The whole report as text that ends in a line feed."""
    page, lang = Page(look), look.lang
    triage = report.triage
    clock = Clock(triage.bundle.zone, triage.bundle.first, triage.bundle.last)
    console._head(page, triage, clock)
    for diagnosis in named(triage):
        page.blank()
        console._diagnosis(page, diagnosis, triage, clock)
    if not named(triage) and report.captures:
        page.blank()
        page.put(say(lang, "none"), "bold")
    _captures(page, report)
    _steps(page, report)
    _operators(page, report)
    _ranks(page, report)
    _others(page, report)
    for title, texts in (
        ("damaged", [f"{path}: {chinese if lang == 'zh' else english}" for path, english, chinese in report.damaged]),
        ("not-checked", [missing(key, lang) for key in report.missing]),
    ):
        if texts:
            page.blank()
            page.put(say(lang, title), "bold")
        for text in texts:
            page.put(text, indent=2, hang=2)
    return page.text()


def _captures(page: Page, report: Report) -> None:
    lang = page.look.lang
    if not report.captures:
        return
    page.blank()
    page.put(say(lang, "captures"), "bold")
    shown = report.captures if page.look.verbose else report.captures[:FEW]
    for one in shown:
        state = say(lang, "steps", n=one.steps) if one.steps else say(lang, "no-steps") if one.analysed else say(lang, "raw")
        parts = [f"rank {one.rank}", one.tool, one.level, f"CANN {one.cann}" if one.cann else "", state]
        told = " · ".join(part for part in parts if part)
        if cells(one.path) + cells(told) + 4 <= page.width:
            page.split([(f"  {one.path}", "")], told)
        else:
            page.put(one.path, indent=2)
            page.put(told, "dim", indent=4)
    _more(page, len(report.captures) - len(shown))


def _steps(page: Page, report: Report) -> None:
    if not report.breakdown:
        return
    lang = page.look.lang
    page.blank()
    page.put(say(lang, "step"), "bold")
    rows = []
    for one in report.breakdown:
        parts = (one.computing, one.exposed, one.free, one.bubble, one.preparing)
        whole = sum(value for value in (one.computing, one.exposed, one.free) if value is not None)
        rows.append([str(one.rank), *(_ms(value, whole if n < 3 else 0.0) for n, value in enumerate(parts))])
    _table(page, [say(lang, key) for key in ("rank", "computing", "exposed", "free", "bubble", "preparing")], rows)
    sources = {one.source for one in report.breakdown}
    for source in ("trace", "kernels"):
        if source in sources:
            page.put(say(lang, f"from-{source}"), "dim", indent=2)


def _operators(page: Page, report: Report) -> None:
    if not report.operators:
        return
    lang = page.look.lang
    page.blank()
    page.put(say(lang, "operators"), "bold")
    rows = []
    for one in report.operators:
        bound = say(lang, one.bound) if one.bound == "not measured" else one.bound or say(lang, "no-bound")
        if one.busy is not None:
            bound += f" {one.busy:.0%}"
        place = f"{one.file.rpartition('/')[2]} {say(lang, 'row', row=one.row)}" if one.row is not None else ""
        rows.append([one.op_type, bound, f"{one.total:.2f}", f"{one.share:.1%}", str(one.count), f"{one.longest:.3f}", one.core, place])
    _table(page, [say(lang, key) for key in ("type", "bound", "total", "share", "count", "longest", "core", "where")], rows, left=(0, 1, 6, 7))


def _ranks(page: Page, report: Report) -> None:
    if len(report.ranks) < 2:
        return
    lang = page.look.lang
    page.blank()
    page.put(say(lang, "ranks"), "bold")
    rows = []
    for one in report.ranks:
        against = "" if one.against is None else f"{one.against:.2f}"
        rows.append([str(one.rank), _ms(one.computing), against, _ms(one.exposed), _ms(one.free), "" if one.waits is None else f"{one.waits:.0%}"])
    _table(page, [say(lang, key) for key in ("rank", "computing", "against", "exposed", "free", "waits")], rows)


def _others(page: Page, report: Report) -> None:
    lang = page.look.lang
    tables = [
        ("links", ("rank", "link", "count", "size", "time"), [
            [str(one.rank), one.link, str(one.operations), "" if one.mb is None else f"{one.mb:.1f}", _ms(one.time),
             "" if one.gbs is None else f"{one.gbs:.2f}"] for one in report.links], ["GB/s"]),
        ("memory", ("rank", "component", "reserved", "allocated"), [[str(one.rank), one.component, _mb(one.peak_reserved), _mb(one.peak_allocated)]
            for one in report.memory], []),
        ("service", ("series", "first", "last", "highest"), [[one.name, f"{one.first:g}", f"{one.last:g}", f"{one.highest:g}"]
            for one in report.service], []),
    ]  # fmt: skip
    for title, heads, rows, extra in tables:
        if rows:
            page.blank()
            page.put(say(lang, title), "bold")
            left = {"links": (1,), "memory": (1,), "service": (0,)}[title]
            _table(page, [*(say(lang, head) for head in heads), *extra], rows, left=left)


def _table(page: Page, heads: Sequence[str], rows: Sequence[Sequence[str]], left: tuple[int, ...] = ()) -> None:
    """Columns as wide as they need to be; numbers to the right; what is too wide for the page is cut in its last columns."""
    shown = rows if page.look.verbose else rows[:FEW]
    table = [[safe(cell) for cell in row] for row in (heads, *shown)]
    widths = [min(max(cells(row[n]) for row in table), 60 if page.look.verbose else NARROW if n == 0 else 44) for n in range(len(heads))]
    for number, row in enumerate(table):
        parts = []
        for n, cell in enumerate(row):
            text = clip(cell, widths[n])
            gap = " " * (widths[n] - cells(text))
            parts.append(text + gap if n in left else gap + text)
        line = "  ".join(parts).rstrip()
        page._lines.append("  " + page.paint(clip(line, page.width - 2), "dim" if number == 0 else ""))
    _more(page, len(rows) - len(shown))


def _more(page: Page, count: int) -> None:
    if count > 0:
        page.put(say(page.look.lang, "more", n=count), "dim", indent=2)


def _ms(value: float | None, whole: float = 0.0) -> str:
    if value is None:
        return ""
    return f"{value:.2f} ms ({value / whole:.0%})" if whole else f"{value:.2f} ms"


def _mb(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
