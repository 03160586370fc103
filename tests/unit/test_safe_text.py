"""Hostile text is inert wherever it is shown."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from forensics.safe_text import cells, clip, code_block, code_span, json_quiet, prose, safe, safe_block, spoken, spreadsheet, summary, whole

HOSTILE = st.text(alphabet=st.characters(exclude_categories=()) | st.sampled_from("\x1b\x9b\x07\r\n\t`[]()<>&=+-@|\\\u202e\u2066\ud800"))
INERT = ("Cc", "Cf", "Cs", "Zl", "Zp")


def visible(text: str) -> bool:
    return all(unicodedata.category(char) not in INERT for char in text)


@given(HOSTILE)
@example("\x1b]52;c;aG9zdGlsZQ==\x07\x9b31m\u202egnp.exe\u2066\ud800\ufeff\U000e0041")
def test_no_character_that_a_terminal_obeys_or_that_hides_comes_through(text: str) -> None:
    shown = safe(text)
    assert visible(shown)
    assert visible(safe_block(text).replace("\n", "").replace("\t", ""))
    shown.encode("utf-8")


@given(st.text(alphabet=st.characters(exclude_categories=INERT)))
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert safe(text) == text


def test_what_was_there_can_still_be_seen() -> None:
    assert safe("\x1b[31m\x9b\u202e\U000e0041\n") == "\\x1b[31m\\x9b\\u202e\\U000e0041\\n"


@given(HOSTILE)
@example("\x7f\x80\u202e\U000e0041")
def test_quiet_json_is_the_same_json(text: str) -> None:
    plain = json.dumps(whole(text), ensure_ascii=False)
    assert json.loads(json_quiet(plain)) == json.loads(plain)
    assert visible(json_quiet(plain))


@given(HOSTILE, st.integers(3, 40))
def test_a_clipped_text_fits(text: str, width: int) -> None:
    assert cells(clip(safe(text), width)) <= width


@given(HOSTILE)
@example("`` ` ```")
def test_a_code_span_cannot_be_left(text: str) -> None:
    span = code_span(text)
    ticks = len(span) - len(span.lstrip("`"))
    assert "\n" not in span
    assert "`" * ticks not in span[ticks:-ticks].replace("`" * (ticks + 1), "") or "`" * ticks not in safe(text)


@given(st.lists(HOSTILE))
@example(["```", "~~~", "````"])
def test_a_code_block_cannot_be_left(lines: list[str]) -> None:
    first, *body, last = code_block(lines).split("\n")
    fence = first.removesuffix("text")
    assert last == fence
    assert len(body) == len(lines)
    assert not any(fence in line for line in body)


@given(HOSTILE)
@example("<script>x</script> [a](javascript:x) ![y](http://z) @team #12 # h")
def test_prose_holds_no_markup(text: str) -> None:
    shown = prose(text).replace("<!-- -->", "")
    assert "<" not in shown and ">" not in shown and "](" not in shown
    assert not any(char in "`*_[]" and (at == 0 or shown[at - 1] != "\\") for at, char in enumerate(shown))


@given(HOSTILE)
def test_no_cell_of_a_spreadsheet_is_a_formula(text: str) -> None:
    assert spreadsheet(text)[:1] not in tuple("=+-@\t\r\n")


def test_wide_characters_take_two_columns() -> None:
    assert [cells(text) for text in ("abc", "心跳", "é", "e\u0301", "｜０")] == [3, 4, 1, 1, 4]


def test_commands_in_running_text_are_code_and_the_rest_is_still_inert() -> None:
    assert spoken("Run `npu-smi info -i <id>` on *each* host.") == "Run `npu-smi info -i <id>` on \\*each\\* host."
    for odd in ("one ` alone", "``", "a `` b"):
        assert spoken(odd) == prose(odd)


@given(HOSTILE)
def test_a_summary_shows_the_same_words_without_live_html(text: str) -> None:
    shown = summary("## " + prose(text)).replace("<!-- -->", "")
    assert "<" not in shown and ">" not in shown
    assert shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip() == safe(text).strip()
