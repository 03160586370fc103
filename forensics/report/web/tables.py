"""Tables of the page: devices, environment, codes, unexplained lines, files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forensics.report.figures import Clock, size
from forensics.report.strings import LANGUAGES, of
from forensics.report.web.diagnosis import log_line
from forensics.report.web.gauge import bar, key, shares
from forensics.report.web.markup import Html, both, el, join, t, ticked, worded
from forensics.report.words import CHECK_ORDER, checked, coverage_words, lost_members, of_note, place, subject, wanting
from forensics.result import Device, FactSeen, Member, Note, Reading, Triage
from forensics.safe_text import clip, safe
from rules.model import Text

ROWS = 12
"""Rows of a list that are not folded."""
DEVICES, MEMBERS, FACTS, VALUE = 128, 400, 60, 240
"""Rows of tables, and characters of a value, that the page carries."""
NODES = 6
"""Nodes that versions are set side by side of."""
HOT = 0.9
"""Share from which a bar of memory is marked."""
FINE = ("OK", "NA", "")


def table(head: Sequence[tuple[Html, bool]], rows: Sequence[Html]) -> Html:
    """`head`: (word, whether the column holds numbers)."""
    cells = [el("th", word, scope="col", cls="number" if numeric else None) for word, numeric in head]
    return el("div", el("table", el("thead", el("tr", cells)), el("tbody", rows)), cls="scroll", tabindex=0)


def _folded(head: Sequence[tuple[Html, bool]], rows: list[Html], few: int = ROWS) -> Html:
    """A table, and behind a fold the rows beyond `few`."""
    if len(rows) <= few + 2:
        return table(head, rows)
    more = el("details", el("summary", t("page.more-rows", n=len(rows) - few)), table(head, rows[few:]), cls="fold")
    return join((table(head, rows[:few]), more))


def _section(ident: str, title: Html, *parts: Html | None, beside: Html | None = None) -> Html:
    return el("section", el("div", el("h2", title), beside, cls="head"), el("div", parts, cls="stack"), id=ident, cls="card pad")


# ---------------------------------------------------------------- checks before go-live


def checks(triage: Triage, clock: Clock) -> Html:
    """What failed, what was not checked, and what passed."""
    if not triage.checks:
        return Html("")
    rows = []
    for status in CHECK_ORDER:
        for check in (one for one in triage.checks if one.status == status):
            about: list[Html] = [both(check.title)]
            if status == "not-checked":
                about.append(el("div", both(Text(*(wanting(check, lang) for lang in LANGUAGES))), cls="soft small"))
            if status == "fail":
                lines = [log_line(place(line.file, line.line), clock.time(line.ts), line.text, "against") for line in check.lines[:ROWS]]
                if more := len(check.lines) - len(lines):
                    lines.append(el("li", t("page.more-evidence", n=more), cls="soft small"))
                about += [
                    el("ul", lines, cls="log"),
                    *(el("ul", [el("li", ticked(step)) for step in of(check.remedy, lang)], lang=lang, cls="list small") for lang in LANGUAGES),
                ]
            look = {"fail": "bad" if check.level == "high" else "warn", "not-checked": "plain", "pass": "good"}[status]
            badge = el("span", t(f"check.{status}"), cls=f"badge {look}")
            rows.append(
                el(
                    "tr",
                    el("td", badge),
                    el("td", both(Text(*(subject(check, lang) for lang in LANGUAGES)))),
                    el("td", el("div", about, cls="stack")),
                )
            )
    head = [(t("check.result"), False), (t("check.group"), False), (t("check.name"), False)]
    count = el("span", both(Text(*(checked(triage, lang) for lang in LANGUAGES))), cls="soft")
    return _section("checks", t("preflight"), el("div", table(head, rows), cls="checks"), beside=count)


# ---------------------------------------------------------------- devices


def devices(triage: Triage) -> Html:
    found = triage.devices[:DEVICES]
    if not found:
        return Html("")
    many = len({one.node for one in found}) > 1
    has = {name for one in found for name in one.readings}
    columns = [column for column in _COLUMNS if not column[1] or has & set(column[1])]
    if not any(one.health for one in found):
        columns = [column for column in columns if column[0] != "page.health"]
    head = [*([(t("page.node"), False)] if many else []), (t("page.device"), False), *((t(key_), False) for key_, _, _ in columns)]
    rows = []
    for one in found:
        sick = one.health not in FINE
        cells = [el("td", one.node or t("page.no-node"))] if many else []
        name = [el("b", str(one.device)), el("span", f" {one.soc}", cls="soft small") if one.soc else None]
        cells.append(el("th", name, scope="row"))
        cells += [el("td", show(one)) for _, _, show in columns]
        rows.append(el("tr", cells, cls="sick" if sick or one.ranks else None))
    more = el("p", t("page.not-shown", n=len(triage.devices) - DEVICES), cls="soft small") if len(triage.devices) > DEVICES else None
    return _section("devices", t("page.devices"), table(head, rows), more)


def _health(one: Device) -> Html:
    return (
        el("span", one.health, cls="badge good" if one.health == "OK" else "badge plain" if one.health in FINE else "badge bad")
        if one.health
        else Html("")
    )


def _gauge(words: str, share: float | None, reading: Reading, hot: bool = False) -> Html:
    peak = reading.most > reading.last * 1.05 + 1
    label = el("span", words, el("span", " · ", t("page.most", value=f"{reading.most:g}"), cls="soft small") if peak else None)
    return el("div", label, bar(share, "hot" if hot else "") if share is not None else None, cls="gauge")


def _reading(name: str, unit: str, full: float | None) -> Callable[[Device], Html]:
    def show(one: Device) -> Html:
        reading = one.readings.get(name)
        if reading is None:
            return Html("")
        return _gauge(f"{reading.last:g} {unit}", None if full is None else reading.last / full, reading)

    return show


def _memory(one: Device) -> Html:
    for kind in ("hbm", "memory"):
        used, total = one.readings.get(f"npu.{kind}.used"), one.readings.get(f"npu.{kind}.total")
        if used is not None and total is not None and total.last > 0:
            share = used.last / total.last
            return _gauge(f"{used.last / 1024:.1f} / {total.last / 1024:.0f} GB", share, used, share >= HOT)
        usage = one.readings.get(f"npu.{kind}.usage")
        if usage is not None:
            return _gauge(f"{usage.last:g} %", usage.last / 100, usage, usage.last >= 100 * HOT)
    return Html("")


def _link(one: Device) -> Html:
    reading = one.readings.get("link.status")
    if reading is None:
        return Html("")
    up = reading.last > 0
    return el("span", t("page.link.up" if up else "page.link.down"), cls="badge good" if up else "badge bad")


def _findings(one: Device) -> Html:
    links = [el("a", t("page.diagnosis", n=str(rank)), href=f"#d{rank}") for rank in dict.fromkeys(one.ranks)]
    count = el("span", str(one.findings)) if one.findings else el("span", "–", cls="soft")
    return join((count, [join((" · ", link)) for link in links]))


_COLUMNS = (
    ("page.health", (), _health),
    ("page.temperature", ("npu.temperature",), _reading("npu.temperature", "°C", 100)),
    ("page.power", ("npu.power",), _reading("npu.power", "W", None)),
    ("page.aicore", ("npu.aicore.usage",), _reading("npu.aicore.usage", "%", 100)),
    ("page.hbm", ("npu.hbm.usage", "npu.hbm.used", "npu.memory.used", "npu.memory.usage"), _memory),
    ("page.link", ("link.status",), _link),
    ("page.findings", (), _findings),
)


# ---------------------------------------------------------------- environment


def facts(triage: Triage) -> Html:
    if not triage.facts and not triage.conflicts:
        return Html("")
    nodes = sorted({fact.node for fact in triage.facts})
    wide = 1 < len(nodes) <= NODES
    versions = [fact for fact in triage.facts if not fact.name.startswith(("env.", "arg."))]
    settings = [fact for fact in triage.facts if fact.name.startswith(("env.", "arg."))]
    parts: list[Html | None] = [_conflicts(triage)]
    if versions:
        parts.append(_fact_table(versions, nodes if wide else []))
    if settings:
        parts.append(
            el(
                "details",
                el("summary", t("page.settings", n=len({f.name for f in settings}))),
                _fact_table(settings, nodes if wide else []),
                cls="fold",
            )
        )
    return _section("facts", t("page.facts"), *parts)


def _conflicts(triage: Triage) -> Html | None:
    told: dict[tuple[str, str], list[str]] = {}
    for one in triage.conflicts:
        told.setdefault((one.expected.en, one.expected.zh), []).append(one.node)
    if not told:
        return None
    rows = [
        el("li", both(Text(*words)), el("span", f" · {', '.join(filter(None, nodes))}", cls="soft") if any(nodes) else None)
        for words, nodes in told.items()
    ]
    return el("div", el("b", t("page.conflicts")), el("ul", rows), cls="alert")


def _fact_table(found: Sequence[FactSeen], nodes: Sequence[str]) -> Html:
    """Names down, nodes across where there are a few; a row whose nodes disagree is marked."""
    by_name: dict[str, list[FactSeen]] = {}
    for fact in found:
        by_name.setdefault(fact.name, []).append(fact)
    rows = []
    for name, same in list(by_name.items())[:FACTS]:
        values = {node: sorted({fact.value for fact in same if fact.node == node}) for node in {fact.node for fact in same}}
        differs = len({tuple(one) for one in values.values()}) > 1 or any(len(one) > 1 for one in values.values())
        label = el("th", el("code", name), el("span", " ", t("page.differs"), cls="small") if differs else None, scope="row")
        if nodes:
            cells = [el("td", _values(values.get(node, [])), cls="wrap") for node in nodes]
        else:
            shown = sorted({fact.value for fact in same})
            first = same[0]
            cells = [el("td", _values(shown), cls="wrap"), el("td", clip(safe(place(first.file, first.line)), 90), cls="soft small place")]
        rows.append(el("tr", label, cells, cls="differs" if differs else None))
    columns = [el("span", node) if node else t("page.no-node") for node in nodes] if nodes else [t("page.value"), t("page.where")]
    return _folded([(t("page.name"), False), *((column, False) for column in columns)], rows, 24)


def _values(values: Sequence[str]) -> Html:
    return join(el("div", el("code", clip(safe(value), VALUE))) for value in values)


# ---------------------------------------------------------------- codes, unexplained lines, notes


def codes(triage: Triage) -> Html:
    rows = [
        el(
            "tr", el("th", el("code", code.code), scope="row"), el("td", el("code", code.symbol), cls="wrap"),
            el("td", both(Text(code.meaning_en, code.meaning_zh)), el("span", " · ", t("generic"), cls="soft") if code.generic else None),
            el("td", str(code.count), cls="number"),
        )
        for code in triage.codes
    ]  # fmt: skip
    if not rows:
        return Html("")
    head = [(t("page.code"), False), (t("page.name"), False), (t("page.meaning"), False), (t("page.count"), True)]
    return _section("codes", t("codes"), _folded(head, rows))


def unexplained(triage: Triage) -> Html:
    if not triage.unexplained:
        return Html("")
    rows = [
        el(
            "tr", el("td", str(one.count), cls="number"), el("td", clip(safe(place(one.file, one.line)), 160), cls="soft small place"),
            el("td", clip(safe((one.text or one.shape).strip()), 600), cls="said"),
        )
        for one in triage.unexplained
    ]  # fmt: skip
    total = sum(one.count for one in triage.unexplained)
    lead = el("p", t("page.unexplained-lead", n=total, kinds=len(rows)), cls="lead")
    head = [(t("page.count"), True), (t("page.where"), False), (t("page.text"), False)]
    return _section("unexplained", t("unexplained-heading"), lead, _folded(head, rows, 8))


def notes(triage: Triage) -> Html:
    parts = []
    for ident, title, found in (("collect", "collect", triage.collect_next), ("notes", "notes", triage.notes)):
        if found:
            parts.append(_section(ident, t(title), el("ul", [_note(note) for note in found], cls="list")))
    return join(parts)


def _note(note: Note) -> Html:
    return el("li", both(Text(*(of_note(note, lang) for lang in LANGUAGES))))


# ---------------------------------------------------------------- coverage


def coverage(triage: Triage, clock: Clock) -> Html:
    told = triage.coverage
    parts: list[Html | None] = []
    lost = lost_members(triage)
    if lost:
        rows = [el("li", el("code", clip(safe(member.path), 300)), " ", _reason(member)) for member in lost[:MEMBERS]]
        parts.append(el("div", el("b", t("unread", n=len(lost))), el("ul", rows), cls="alert bad"))
    charts = [
        _share("page.all-lines", told.lines, ((told.lines_parsed, "fill", "page.parsed"), (told.lines - told.lines_parsed, "track", "page.kept")))
    ]
    if told.error_lines:
        rest = told.error_lines - told.error_lines_explained
        charts.append(
            _share(
                "page.errors", told.error_lines, ((told.error_lines_explained, "fill good", "page.explained"), (rest, "fill hot", "page.unexplained"))
            )
        )
    parts.append(el("div", charts, cls="split"))
    sentences = [coverage_words(triage, lang)[1:] for lang in LANGUAGES]
    if sentences[0]:
        parts.append(el("ul", [el("li", both(Text(en, zh))) for en, zh in zip(*sentences, strict=True)], cls="list soft small"))
    members = sorted(told.members, key=lambda m: (not m.lost, m.path))[:MEMBERS]
    if members:
        parts.append(el("details", el("summary", t("page.members", n=len(told.members))), _members(members, clock, len(told.members)), cls="fold"))
    return _section("coverage", t("coverage"), *parts)


def _share(title: str, total: int, parts: Sequence[tuple[int, str, str]]) -> Html:
    keys = [el("span", key(cls), t(name), " ", both(worded("page.lines", n=count)), cls="key") for count, cls, name in parts]
    return el(
        "div",
        el("h3", t(title), " · ", both(worded("page.lines", n=total))),
        shares([(count, cls) for count, cls, _ in parts]),
        el("div", keys),
        cls="share",
    )


def _reason(member: Member) -> Html:
    words = worded(f"status.{member.status}") if not member.note else Text(member.note, member.note_zh or member.note)
    return both(words)


def _members(members: Sequence[Member], clock: Clock, total: int) -> Html:
    rows = []
    for one in members:
        span = " – ".join(filter(None, (clock.time(one.first), clock.time(one.last))))
        status = el("span", t(f"page.status.{one.status}"), cls="badge bad" if one.lost else "badge plain")
        rows.append(
            el(
                "tr", el("td", el("code", clip(safe(one.path), 200)), cls="wrap"), el("td", one.node, cls="wrap"), el("td", one.kind),
                el("td", size(one.bytes), cls="number"), el("td", str(one.lines), cls="number"), el("td", span, cls="small"),
                el("td", status, el("span", " ", _reason(one), cls="small soft") if one.note else None),
            )
        )  # fmt: skip
    head = [
        (t("page.file"), False), (t("page.node"), False), (t("page.kind"), False), (t("page.size"), True), (t("page.count"), True),
        (t("page.from-to"), False), (t("page.status"), False),
    ]  # fmt: skip
    more = el("p", t("page.not-shown", n=total - len(members)), cls="soft small") if total > len(members) else None
    return el("div", table(head, rows), more, cls="stack")
