"""The HTML page: one file, nothing loaded and nothing run, complete in both languages, and inert whatever stands in the bundle."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from forensics.report.page import Look
from forensics.report.strings import TABLE
from forensics.report.web import page
from forensics.report.web.markup import el, join, text
from forensics.result import Coverage, Graph, Link, Triage, Unexplained
from rules.model import Evidence
from tests.unit import page_maker, sample_triage
from tests.unit.test_safe_text import HOSTILE, visible

VOID = ("meta", "input", "br")
ATTACKS = (
    "<script>window.hit=1</script>", '"><img src=x onerror="window.hit=1">', "'><svg onload=window.hit=1>", "</style><script>window.hit=1</script>",
    "</title><script>window.hit=1</script>", "javascript:window.hit=1", "<iframe src=//example.org></iframe>", "&lt;script&gt;", "<!--", "]]>",
    "`<b>`", "<meta http-equiv=refresh content=0;url=//example.org>", "\x1b]52;c;aGk=\x07", "\u202egnp.exe", "{{7*7}}", "<base href=//example.org>",
)  # fmt: skip


class Tree(HTMLParser):
    """The elements of a page with their attributes, and its text by language."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str | None]] = []
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str]] = []
        self.said: list[tuple[str | None, str]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            spoken = dict(attrs).get("lang") if tag != "html" else None
            self.open.append((tag, spoken or (self.open[-1][1] if self.open else None)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1][0] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open and not {"style", "title", "code"} & {tag for tag, _ in self.open}:
            self.said.append((self.open[-1][1], data))


def render(triage: Triage, **changes: object) -> str:
    return page.render(triage, Look(**changes))  # type: ignore[arg-type]


PAGES = {
    "full": page_maker.full(),
    "plain": sample_triage.triage(),
    "unknown": sample_triage.damaged(),
    "job": sample_triage.job(),
    "layers": sample_triage.job(diagnoses=[]),
    "healthy": sample_triage.triage(diagnoses=[], unexplained=[], first_errors=[], codes=[], coverage=Coverage(10, 10, 0, 0, [])),
    "bare": sample_triage.triage(
        diagnoses=[], unexplained=[], first_errors=[], codes=[], facts=[], notes=[], collect_next=[], packs=[], coverage=Coverage(0, 0, 0, 0, [])
    ),
}


@pytest.mark.parametrize("kind", PAGES)
def test_every_element_is_closed_and_every_anchor_leads_somewhere(kind: str) -> None:
    tree = Tree(render(PAGES[kind]))
    assert tree.open == []
    ids = [value for name, value in tree.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for name, value in tree.attributes:
        if name == "href":
            assert value.startswith("#") and value[1:] in ids, value
        if name == "for":
            assert value in ids


@pytest.mark.parametrize("kind", PAGES)
def test_the_page_loads_nothing_and_runs_nothing(kind: str) -> None:
    source = render(PAGES[kind])
    tree = Tree(source)
    active = {"script", "iframe", "object", "embed", "link", "base", "form", "img", "image", "foreignobject", "use"}
    assert not active & {tag for tag, _ in tree.elements}
    for name, value in tree.attributes:
        assert name not in ("src", "srcset", "style", "action", "formaction", "data", "poster", "background", "xlink:href")
        assert not name.startswith("on")
        assert "//" not in value or name == "content"
    sheet = re.search("<style>(.*?)</style>", source, re.S)[1]  # type: ignore[index]
    assert "url(" not in sheet and "@import" not in sheet and "expression" not in sheet
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    policy = dict(re.findall(r'http-equiv="(Content-Security-Policy)" content="([^"]*)"', source))["Content-Security-Policy"]
    assert f"style-src &#x27;sha256-{digest}&#x27;" in policy and policy.startswith("default-src &#x27;none&#x27;")


def test_each_language_is_complete_and_the_page_opens_in_the_one_asked_for() -> None:
    tree = Tree(render(PAGES["full"]))
    english = " ".join(words for lang, words in tree.said if lang != "zh")
    chinese = " ".join(words for lang, words in tree.said if lang != "en")
    assert not re.search("[\u4e00-\u9fff]", english.replace("中文", ""))
    own = {word for words in TABLE.values() for word in re.findall("[a-z]{4,}", re.sub(r"{.*?}|--verbose|`.*?`", "", words.en))}
    spoken = set(re.findall(r"(?<![\w/.-])[a-z]{4,}(?![\w/.-])", chinese))
    logged = {"code", "error", "failed"}  # words of log lines
    assert spoken & own <= {"device", "rank", "dsforensics"} | logged, spoken & own
    for lang, other in (("en", "zh"), ("zh", "en")):
        source = render(PAGES["full"], lang=lang)
        assert re.search(f'id="in-{lang}"[^>]* checked', source) and not re.search(f'id="in-{other}"[^>]* checked', source)


def test_the_same_triage_gives_the_same_bytes_without_time_or_path_of_this_machine() -> None:
    one = render(page_maker.full(seconds=1.5, case="/home/someone/secret-place/logs.case"))
    assert one == render(page_maker.full(seconds=99.0, case="/tmp/logs.case"))
    assert "secret-place" not in one


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_text_stays_text_wherever_it_stands(attack: str) -> None:
    plain, hostile = Tree(render(page_maker.full("plain"))), Tree(render(page_maker.full(attack)))
    # the text may make code of what stands in backticks; nothing else of the structure may differ
    names = ("text", "g", "code", "span", "li")
    assert sorted(e for e in hostile.elements if e[0] not in names) == sorted(e for e in plain.elements if e[0] not in names)
    assert all(visible(words.replace("\n", "")) for _, words in hostile.said)


@settings(max_examples=25, deadline=None)
@given(HOSTILE)
def test_any_text_gives_a_sound_page(word: str) -> None:
    source = render(page_maker.full(word))
    source.encode("utf-8")
    assert Tree(source).open == []
    assert "<script" not in source


def test_markup_is_only_what_was_built_as_such() -> None:
    assert el("a", "<b>", href='"x"', cls="y", hidden=True, title=None) == '<a href="&quot;x&quot;" class="y" hidden>&lt;b&gt;</a>'
    assert join(["<i>", el("i", text("&"))]) == "&lt;i&gt;<i>&amp;</i>"


def test_a_page_stays_small_however_much_there_is_to_show() -> None:
    long = "x" * 5000
    many = page_maker.full(
        unexplained=[Unexplained(long, 1, long, n, long) for n in range(200)],
        diagnoses=[sample_triage.diagnosis(n, evidence=[Evidence(long, 1, long) for _ in range(10)]) for n in range(1, 13)],
        coverage=Coverage(9, 9, 9, 0, [sample_triage.member(f"{n}/{long}", file_id=n) for n in range(5000)]),
    )
    assert len(render(many).encode()) < 2_000_000


def test_what_is_left_out_is_said() -> None:
    members = [sample_triage.member(f"{n}.log", file_id=n) for n in range(1000)]
    source = render(page_maker.full(coverage=Coverage(9, 9, 9, 0, members)))
    assert "600 more are in the case" in source and "2 lanes with fewer errors are not drawn" in source


# ---------------------------------------------------------------- drawings


def boxes(source: str) -> int:
    return len(re.findall('<rect [^>]*class="box', source))


def edges(source: str) -> int:
    return len(re.findall('<path [^>]*class="edge', source))


def test_the_causal_graph_shows_each_step_and_each_link_once() -> None:
    source = render(page_maker.full(diagnoses=[sample_triage.diagnosis()]))
    assert (boxes(source), edges(source)) == (3, 2)
    assert len(re.findall('<path [^>]*class="edge inferred"', source)) == 1


def test_many_symptoms_of_one_cause_share_a_box() -> None:
    graph = Graph([page_maker.step(page_maker.ROOT), *(page_maker.step(f"r.{n}") for n in range(14))], [Link(0, n, False) for n in range(1, 15)])
    source = render(page_maker.full(graph=graph, diagnoses=[sample_triage.diagnosis()]))
    assert (boxes(source), edges(source)) == (2, 1)
    assert "14 later symptoms" in source and "4 more consequences" in source


def chain(length: int) -> Iterator[Link]:
    return (Link(n, n + 1, True) for n in range(length))


def test_a_long_chain_is_drawn_as_far_as_there_is_room_and_the_rest_is_counted() -> None:
    graph = Graph([page_maker.step(page_maker.ROOT), *(page_maker.step(f"r.{n}") for n in range(6))], list(chain(6)))
    source = render(page_maker.full(graph=graph, diagnoses=[sample_triage.diagnosis()]))
    assert (boxes(source), edges(source)) == (4, 3)
    assert "3 more consequences" in source


def test_the_timeline_has_a_lane_for_each_source_bars_for_errors_and_a_flag_for_each_diagnosis() -> None:
    triage = page_maker.full()
    triage.diagnoses[0].finding.first = page_maker.T0 + 30_000_000
    source = render(triage)
    drawings = re.findall(r'<div class="draw (?:near|whole)".*?</svg>', source, re.S)
    assert len(drawings) == 2
    near, whole = drawings
    assert (near.count('class="err"'), whole.count('class="err"')) == (1, 2)
    assert ">1</text>" in near and 'class="flag"' in near
    assert "30 error lines" in near


def test_a_replay_is_drawn_with_its_limit_and_its_boundary() -> None:
    source = render(page_maker.full())
    assert source.count('class="wrong"') == 1 and source.count('class="limit"') == 2  # in the plot and beside it
    assert ">65536</text>" in source and "position-wrap(modulus=65536)" in source and "Positions wrap" in source


def test_what_differs_between_nodes_is_marked() -> None:
    source = render(page_maker.full())
    assert re.search(r'<tr class="differs"><th scope="row"><code>cann.version</code>', source)
    assert "needs plain" in source and 'class="alert"' in source


def test_sick_cards_are_marked_and_lead_to_their_diagnosis() -> None:
    source = render(page_maker.full())
    assert source.count('<tr class="sick">') == 1
    assert '<a href="#d1">' in source
    assert "59.6 / 64 GB" in source and "97 %" in source


def test_where_a_job_began_is_said_with_its_nodes_and_attempts() -> None:
    source = render(page_maker.full())
    assert "attempt 1 · plain · device 6 · rank 2 · pid 838 · 3 of 4 ranks only waited" in source and "Names plain" in source
    assert "clock 3 s ahead" in source and "no logs in the bundle, others speak of it" in source
    assert 'href="#job"' in source and 'href="#job"' not in render(sample_triage.triage(attempts=[], nodes=[]))
