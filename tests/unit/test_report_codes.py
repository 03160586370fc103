"""`dsforensics code`: what a code means, in both languages, and what it might have been meant to be."""

from __future__ import annotations

from forensics.report.codes import render
from forensics.report.page import Look


def test_a_code_is_explained_in_both_languages() -> None:
    text, known = render(["507015"], Look())
    assert known
    assert text.startswith("507015  ACL_ERROR_RT_AICORE_EXCEPTION")
    chinese, _ = render(["507015"], Look(lang="zh"))
    assert "写法" in chinese and "written" not in chinese


def test_an_unknown_code_is_said_to_be_unknown_with_what_is_close() -> None:
    text, known = render(["507015", "ACL_ERROR_RT_AICORE_EXCEPTIOM", "\x1b[2Jxyzzy"], Look())
    assert not known
    assert "Close to it: ACL_ERROR_RT_AICORE_EXCEPTION" in text
    assert "No code reads \\x1b[2Jxyzzy." in text
