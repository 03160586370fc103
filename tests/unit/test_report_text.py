"""The reports for people: complete in both languages, inside their width, and inert whatever stands in the bundle."""

from __future__ import annotations

import html
import re
import string
import unicodedata
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forensics
from forensics.report import console, markdown
from forensics.report.figures import Clock, iso, number, size, zone_name
from forensics.report.page import Look, wrap
from forensics.report.strings import TABLE, say
from forensics.result import Coverage, FactSeen, FirstError, Note, Triage, Unexplained
from forensics.safe_text import cells, safe
from rules.model import Evidence, Text
from tests.unit import page_maker
from tests.unit import sample_triage as sample
from tests.unit.test_safe_text import HOSTILE, visible

RENDERERS: list[Callable[[Triage, Look], str]] = [console.render, markdown.render]
CHINESE = re.compile("[\u4e00-\u9fff]")
TRIAGES = {
    "diagnosed": sample.triage(),
    "wordless": sample.triage(
        diagnoses=[sample.diagnosis(evidence=[Evidence("1", 2, "3", role) for role in ("for", "against", "context")], references=())],
        unexplained=[Unexplained("4", 5, "6", 7)],
    ),
    "unknown": sample.damaged(),
    "job": sample.job(diagnoses=[sample.diagnosis(evidence=[], references=())]),
    "healthy": sample.triage(diagnoses=[], unexplained=[], first_errors=[], codes=[], coverage=Coverage(10, 10, 0, 0, [])),
}


def test_every_text_stands_in_both_languages_with_the_same_fields() -> None:
    for key, text in TABLE.items():
        fields = [sorted(name for _, name, _, _ in string.Formatter().parse(part) if name) for part in (text.en, text.zh)]
        if not key.endswith(".1"):
            assert fields[0] == fields[1], key
        assert not CHINESE.search(text.en), key
        if re.search("[a-z]{2}", re.sub(r"\{\w+\}|--\w+|dsforensics", "", text.zh)):
            assert CHINESE.search(text.zh) or key in ("device", "rank", "pid"), key


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("kind", ["wordless", "unknown", "job", "healthy"])
@pytest.mark.parametrize("verbose", [False, True])
def test_a_report_is_wholly_in_its_language(render: Callable[[Triage, Look], str], kind: str, verbose: bool) -> None:
    """What is left of a report without commands and names is of one language."""
    english = render(TRIAGES[kind], Look(lang="en", verbose=verbose))
    chinese = render(TRIAGES[kind], Look(lang="zh", verbose=verbose))
    assert not CHINESE.search(english)
    words = {word for text in TABLE.values() for word in re.findall("[A-Za-z]{3,}", re.sub(r"{.*?}|--verbose", "", text.en))}
    spoken = set(re.findall(r"(?<![\w/.-])[A-Za-z]{3,}(?![\w/.-])", re.sub("dsforensics sql.*|^`+text", "", chinese, flags=re.M)))
    assert spoken & words <= {"device", "rank", "pid", "dsforensics", "driver", "Core"}


def test_the_terminal_report_in_full() -> None:
    assert console.render(sample.triage(), Look(commands=frozenset({"replay"}))) == EXPECTED


def test_every_text_is_used() -> None:
    """A text nobody shows is one that nobody keeps right."""
    source = "".join(path.read_text(encoding="utf-8") for path in Path(forensics.__file__).parent.rglob("*.py") if path.name != "strings.py")
    families = ("level.", "status.", "stage.", "provenance.", "compared.", "check.", "group.", "slower.", "part.")
    families += tuple(f"page.{word}." for word in ("layer", "action", "role", "status", "theme", "axis"))
    assert [key for key in TABLE if not key.startswith(families) and not re.search(rf"""["']{re.escape(key.removesuffix(".1"))}["']""", source)] == []


def test_no_rule_means_no_invented_cause() -> None:
    shown = console.render(sample.damaged(), Look())
    assert "Cause unknown: no rule explains these errors." in shown
    assert "console.log:77  09:12:03.000  node0 python pid 838  Socket 4 closed by" in shown
    assert "Rarest kinds" in shown and "507035" in shown and "Collect the plog of rank 3." in shown
    assert "node1.tar.gz/plog/b.log  the archive ends" in shown


def test_a_diagnosis_of_unknown_cause_is_no_diagnosis() -> None:
    unknown = sample.diagnosis(root_cause="unknown", confidence=0.1, level="low")
    assert "Cause unknown" in console.render(sample.triage(diagnoses=[unknown]), Look())


def test_a_healthy_bundle_is_said_to_be_one() -> None:
    assert "Nothing wrong found" in console.render(TRIAGES["healthy"], Look())
    assert "未发现异常" in markdown.render(TRIAGES["healthy"], Look(lang="zh"))


def test_where_it_began_is_told_with_its_reasons() -> None:
    page = console.render(sample.job(), Look(width=120))
    assert "HIGH  attempt 2 · node3 · device 6 · rank 14 · pid 838 · 13 of 16 ranks only waited" in page
    assert "it says nothing  node3:45" in page
    assert "ranks 1-3, 9" not in page, "a faint answer is left out where there is a clear one"
    assert "Nodes, clocks against that of node0" in page
    assert re.search(r"node3 +clock 4 min 12.3 s ahead \(± 0.5 s, by 1 communicator set up together\), taken off", page)
    assert re.search(r"10\.0\.0\.3 +no logs in the bundle", page) and "node0 " not in page.split("Nodes,")[1].split("Attempts")[0].split("\n", 1)[1]
    assert "Attempts of the job" in page and "began at node3 · device 6 · rank 14 · diagnoses 1" in page
    assert "node0" in console.render(sample.job(), Look(width=120, verbose=True)).split("Nodes,")[1]
    assert "clock agrees within 0.5 s" in markdown.render(sample.job(), Look())


def test_what_many_ranks_repeat_is_told_once() -> None:
    for render in RENDERERS:
        page = " ".join(render(sample.job(), Look(width=200)).replace("\\", "").split())
        assert "Vector core exception (in 2 processes) → HCCL notify timeout on 7 ranks (on 13 ranks)" in page


def test_when_nothing_fits_the_first_error_of_each_process_and_layer_is_shown() -> None:
    firsts = [FirstError("node0", 8, "python", 5, "a.log", 7, "odd thing", alike=12), FirstError("", None, "", 6, "b.log", 1, "other")]
    layers = [FirstError("", None, "", 5, "dmesg", 3, "[ascend] [ERROR] x", "driver")]
    page = console.render(sample.damaged(first_errors=firsts, first_by_layer=layers), Look(width=160))
    assert "and 12 more processes alike" in page
    assert re.search(r"First error of each layer\n +driver +dmesg:3", page)


def test_only_installed_commands_are_named() -> None:
    assert "dsforensics replay" not in console.render(sample.triage(), Look())
    assert "dsforensics replay logs.case 1" in markdown.render(sample.triage(), Look(commands=frozenset({"replay"})))


def test_what_is_cut_short_is_counted_and_verbose_shows_it() -> None:
    lines = [Evidence("a.log", at + 1, f"line {at}", "for", None) for at in range(40)]
    notes = [Note(f"note {at}", f"说明 {at}") for at in range(40)]
    triage = sample.triage(diagnoses=[sample.diagnosis(evidence=lines)], notes=notes)
    assert "35 more lines" in console.render(triage, Look())
    assert "35 more: --verbose" in console.render(triage, Look())
    for render in RENDERERS:
        assert "line 39" in render(triage, Look(verbose=True))
        assert "note 39" in render(triage, Look(verbose=True))
        assert "more" not in render(triage, Look(verbose=True))


@settings(max_examples=60, deadline=None)
@given(HOSTILE, st.sampled_from(["en", "zh"]), st.booleans(), st.integers(1, 200))
def test_hostile_text_is_inert_in_every_report(text: str, lang: str, verbose: bool, width: int) -> None:
    triage = sample.triage(
        diagnoses=[sample.diagnosis(evidence=[Evidence(text, 1, text, role, 5) for role in ("for", "against", "context")])],
        unexplained=[Unexplained(text, 2, text, 1, text)],
        facts=[FactSeen(name, text, text, text, 1) for name in ("soc", text)],
        notes=[Note(text, text)],
        coverage=Coverage(9, 9, 9, 1, [sample.member(text, "damaged", text, text)]),
    )
    triage.bundle = msgspec.structs.replace(triage.bundle, name=text)
    unknown = sample.damaged(bundle=triage.bundle, first_errors=[FirstError(text, 1, text, 5, text, 1, text)])
    job = sample.job(text, Text(text, text))
    for each in (triage, unknown, job):
        for colour in (False, True):
            page = console.render(each, Look(lang=lang, width=width, verbose=verbose, colour=colour))
            plain = re.sub(r"\x1b\[[0-9;]*m", "", page) if colour else page
            assert visible(plain.replace("\n", ""))
        assert visible(markdown.render(each, Look(lang=lang, verbose=verbose)).replace("\n", ""))


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab -心跳丢失，。（）0123/")), st.integers(4, 60))
def test_wrapping_keeps_every_character_inside_the_width(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cells(line) <= width for line in lines)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_of_the_report_is_wider_than_the_terminal(lang: str, width: int) -> None:
    for triage in TRIAGES.values():
        assert all(cells(line) <= width for line in console.render(triage, Look(lang=lang, width=width)).splitlines())


def test_markdown_of_hostile_text_has_no_live_markup() -> None:
    text = "</code><script>hostile(1)</script> ``` [x](javascript:hostile(1)) ![y](http://192.0.2.1/z) @team #1 | a |"
    page = markdown.render(sample.triage(diagnoses=[sample.diagnosis(evidence=[Evidence(text, 1, text)])], notes=[Note(text, text)]), Look())
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", page)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert "hostile" not in outside and "@team" not in outside


def test_the_summary_of_a_fold_has_no_live_markup_either() -> None:
    text = "<script>hostile</script> & [x](y) `a` *b* @team #1 \\ </summary></details>"
    triage = page_maker.full(diagnoses=[sample.diagnosis(), sample.diagnosis(2, title=Text(text, text))])
    [line] = [line for line in markdown.render(triage, Look()).splitlines() if line.startswith("<summary>2.")]
    inside = line.removeprefix("<summary>").removesuffix("</summary>")
    assert re.findall("<[^>]*>", inside) == ["<!-- -->", "<!-- -->"]
    words = html.unescape(inside.replace("<!-- -->", ""))
    assert words == f"2. {text} (MEDIUM 0.93)".replace("MEDIUM", "HIGH")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_markdown_fits_an_issue_and_says_what_it_left_out(lang: str) -> None:
    long = "x" * 1800
    many = [Unexplained(long, 1, long, n, long) for n in range(200)]
    triage = page_maker.full(unexplained=many, diagnoses=[sample.diagnosis(n, evidence=[Evidence(long, 1, long)] * 10) for n in range(1, 13)])
    page = markdown.render(triage, Look(lang=lang, verbose=True))
    assert len(page) < 65_536
    assert page.count("<details>") == page.count("</details>") > 0
    assert "report.html" in page and "dsforensics 0.1.0" in page.splitlines()[-1]


def test_the_best_diagnosis_stands_open_and_the_others_are_folded() -> None:
    page = markdown.render(page_maker.full(), Look())
    assert re.search(r"^### 1\. Paged attention", page, re.M) and "<summary>2. Paged attention" in page
    assert "| FAIL | links | Every port is up |" in page


def test_times_and_numbers_read_well() -> None:
    assert iso(sample.T0) == "2025-09-04T01:12:03.000000Z"
    assert iso(10**30) is None and iso(None) is None
    assert [size(n) for n in (0, 999, 1_020_000_000, 999_900, 5 * 10**15)] == ["0 B", "999 B", "1.02 GB", "1000 kB", "5000 TB"]
    assert [number(n, "en") for n in (7, 12_034, 7_100_000, 2_000_000_000)] == ["7", "12,034", "7.1 M", "2,000,000,000"]
    assert [number(n, "zh") for n in (7, 12_034, 7_100_000, 250_000_000)] == ["7", "1.2 万", "710 万", "2.5 亿"]
    assert say("zh", "lines", n=number(7_100_000, "zh")) == "710 万行"
    assert [zone_name(z) for z in ("+08:00", "-03:30", "", "+00:00")] == ["UTC+8", "UTC-3:30", "UTC", "UTC"]
    assert Clock("+08:00", sample.T0, sample.T0 + 10**6).time(sample.T0) == "09:12:03.000"
    assert Clock("", sample.T0, sample.T0 + 2 * 86_400_000_000).time(sample.T0) == "2025-09-04 01:12:03.000"
    assert say("en", "files", n=1) == "1 file"
    assert unicodedata.category(safe("\u202e")[0]) == "Po"


EXPECTED = """\
logs.tar.gz   214 files · 1.02 GB · 7.1 M lines · 2 nodes · 16 devices    11.8 s
2025-09-04 09:12:03 → 09:50:14 UTC+8 · CANN 8.1.RC1 · driver 24.1.rc2

1  HIGH 0.93  Paged attention read outside its KV block
              node0 · device 6 · rank 6 · pid 838
   follows  Vector core exception → HCCL notify timeout on 7 ranks · explains
            399 error lines
   for      plog/plog-838_20250904.log:8121  09:50:11.954  [ERROR]
              RUNTIME(838,python): address out of range
            console.log:512  09:50:12.024  ACL stream synchronize failed, error
              code:507035
   against  messages:90  no ECC event on device 6
   context  serve.log:41  09:12:03.000  --block-size 16
   why      Two lines of the same process name the block.
   note     The vendor reads this code as a scheduler error.
   fix      Set --block-size 128.
            Restart the server.
   confirm  dsforensics replay logs.case 1

Explained 412 of 431 error lines.

Error lines that no rule explains yet: 19 (kinds: 1)
  19 ×  console.log:77  Socket 4 closed by 10.0.0.1

Codes seen
  507035 × 31  ACL_ERROR_RT_VECTOR_CORE_EXCEPTION · vector core exception · says
    little by itself

Collect next
  Collect the plog of rank 3.

Notes on this run
  The clock of device 6 runs 3 s ahead.

7 M of 7.1 M lines were read by a grammar; the others are kept as text.
Of no known kind: 1 file, kept as text

Case    logs.case
Report  logs.case/report.html
Ask     dsforensics sql logs.case "select * from events limit 10"
"""
