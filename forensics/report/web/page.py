"""The whole page: one file that needs no network and no script, in both languages, for light and dark, and for paper."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

import msgspec

from forensics.report.data import put
from forensics.report.figures import Clock
from forensics.report.page import Look
from forensics.report.strings import LANGUAGES
from forensics.report.web import baseline, diagnosis, job, tables, timeline
from forensics.report.web.markup import Html, both, el, join, t, worded
from forensics.report.words import counts, environment
from forensics.result import Triage
from rules.model import Text

FILE = "report.html"
THEMES = ("auto", "light", "dark")
NAMES = {"en": "English", "zh": "中文"}

Draw: TypeAlias = Callable[[Triage, Clock, Look], Html]
SECTIONS: tuple[tuple[str, str, Draw], ...] = (
    ("page.checks-word", "checks", lambda triage, clock, look: tables.checks(triage, clock)),
    ("page.diagnosis-word", "d1", diagnosis.section),
    ("page.origin-word", "job", lambda triage, clock, look: job.section(triage, clock)),
    ("page.baseline-word", "baseline", lambda triage, clock, look: baseline.section(triage, clock)),
    ("page.timeline", "timeline", lambda triage, clock, look: timeline.section(triage, clock)),
    ("page.devices", "devices", lambda triage, clock, look: tables.devices(triage)),
    ("page.facts", "facts", lambda triage, clock, look: tables.facts(triage)),
    ("page.codes-word", "codes", lambda triage, clock, look: tables.codes(triage)),
    ("page.unexplained-word", "unexplained", lambda triage, clock, look: tables.unexplained(triage)),
    ("", "notes", lambda triage, clock, look: tables.notes(triage)),
    ("coverage", "coverage", lambda triage, clock, look: tables.coverage(triage, clock)),
)
"""The parts of the page in order: word of the navigation (none: it has no place there), anchor, and what draws it; an empty part is left out."""


def render(triage: Triage, look: Look) -> str:
    """The page. It opens in `look.lang`, and holds the other language too."""
    triage = msgspec.structs.replace(triage, case=Path(triage.case).name)  # no path of this machine: the page is sent elsewhere
    clock = Clock(triage.bundle.zone, triage.bundle.first, triage.bundle.last)
    made = [(word, ident, draw(triage, clock, look)) for word, ident, draw in SECTIONS]
    links = [el("a", t(word), href=f"#{ident}") for word, ident, part in made if part and word]
    body = join(
        (
            _switches(look.lang),
            el(
                "div", el("a", t("page.jump"), href="#d1", cls="jump"), _bar(links, look.lang),
                el("main", _head(triage, clock), [part for _, _, part in made]), _foot(triage), cls="page",
            ),
        )
    )  # fmt: skip
    title = f"{triage.bundle.name} · dsforensics"
    head = join(
        (
            el("meta", charset="utf-8"),
            el("meta", http_equiv="Content-Security-Policy", content=policy()),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("meta", name="referrer", content="no-referrer"),
            el("meta", name="color-scheme", content="light dark"),
            el("title", title),
            Html(f"<style>{style()}</style>"),
        )
    )
    return f"<!doctype html>\n{el('html', el('head', head), el('body', body), lang=look.lang)}\n"


def write(triage: Triage, folder: Path, look: Look) -> Path:
    """Writes report.html into the case folder, whole or not at all. Raises CaseError."""
    return put(folder / FILE, render(triage, look).encode("utf-8"))


@cache
def style() -> str:
    return files("forensics.report.web").joinpath("page.css").read_text(encoding="utf-8")


@cache
def policy() -> str:
    """What the page may do: be drawn with its own style sheet, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _switches(lang: str) -> Html:
    languages = [
        el("input", type="radio", name="language", id=f"in-{one}", cls="switch", checked=one == lang, aria_label=NAMES[one]) for one in LANGUAGES
    ]
    themes = [
        el(
            "input",
            type="radio",
            name="theme",
            id=f"theme-{one}",
            cls="switch",
            checked=one == "auto",
            aria_label=worded(f"page.theme.{one}").of(lang),
        )
        for one in THEMES
    ]
    return join((languages, themes))


def _bar(links: list[Html], lang: str) -> Html:
    languages = [el("label", NAMES[one], for_=f"in-{one}") for one in LANGUAGES]
    themes = [el("label", t(f"page.theme.{theme}"), for_=f"theme-{theme}") for theme in THEMES]
    groups = [
        el("div", found, cls="choice", role="group", aria_label=worded(key).of(lang))
        for key, found in (("page.language", languages), ("page.theme", themes))
    ]
    nav = el("nav", links, cls="sections", aria_label=worded("page.sections").of(lang))
    return el("header", el("div", el("span", "dsforensics", cls="brand"), nav, el("div", groups, cls="choices"), cls="bar-inner"), cls="bar")


def _head(triage: Triage, clock: Clock) -> Html:
    bundle = triage.bundle
    numbers = zip(*(counts(bundle, lang) for lang in LANGUAGES), strict=True)
    span = clock.span(bundle.first, bundle.last)
    line = [
        el("b", span) if span else t("no-times"),
        *(both(Text(en, zh)) for en, zh in numbers),
        *(el("span", words) for words in environment(triage.facts)),
    ]
    return el(
        "header", el("p", t("page.kicker"), cls="kicker"), el("h1", bundle.name), el("div", [el("span", part) for part in line], cls="facts-line")
    )


def _foot(triage: Triage) -> Html:
    packs = ", ".join(f"{pack.name} {pack.version}" for pack in triage.packs)
    made = Text(*(worded("made-by", version=triage.version, packs=packs or worded("no-packs").of(lang)).of(lang) for lang in LANGUAGES))
    digest = el("div", el("code", f"sha256 {triage.bundle.sha256}")) if triage.bundle.sha256 else None
    return el("footer", el("div", el("div", both(made)), digest))
