"""JUnit XML and SARIF: what a gate reads, with the right verdicts, sound whatever stands in the bundle."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from forensics.cli import exit_status
from forensics.report import data, junit, sarif
from forensics.report.page import Look
from forensics.result import Triage
from rules.model import Evidence
from tests.unit import page_maker
from tests.unit import sample_triage as sample
from tests.unit.test_safe_text import HOSTILE, visible


def xml(triage: Triage, fail_on: str = "low", lang: str = "en") -> ET.Element:
    return ET.fromstring(junit.render(triage, Look(lang=lang), fail_on))


def run(triage: Triage, lang: str = "en") -> dict[str, Any]:
    log = json.loads(data.encode(sarif.report(triage, Look(lang=lang))))
    assert log["version"] == "2.1.0" and len(log["runs"]) == 1
    found: dict[str, Any] = log["runs"][0]
    return found


def counts(element: ET.Element) -> list[int]:
    return [int(element.get(name, "-1")) for name in ("tests", "failures", "errors", "skipped")]


def test_every_diagnosis_is_a_test_case_that_fails_from_its_level_on() -> None:
    triage = sample.triage(diagnoses=[sample.diagnosis(), sample.diagnosis(2, 0.41, "medium")])
    for fail_on, failures in (("low", 2), ("medium", 2), ("high", 1)):
        root = xml(triage, fail_on)
        assert counts(root) == [3, failures, 0, 0]
        assert counts(root[0]) == [3, failures, 0, 0]
        # the gate and the exit status agree
        assert (exit_status(triage, fail_on) == 1) == (failures > 0)
    case = root[0].findall("testcase")[0]
    assert case.get("name") == "1. Paged attention read outside its KV block"
    assert (case.get("file"), case.get("line")) == ("plog/plog-838_20250904.log", "8121")
    failure = case.find("failure")
    assert failure is not None and failure.get("type") == "aicore-oob-access"
    assert failure.get("message") == "HIGH 0.93 · Paged attention read outside its KV block · node0 · device 6 · rank 6 · pid 838"
    assert "fix: Set --block-size 128." in (failure.text or "") and "address out of range" in (failure.text or "")


def test_what_was_not_read_is_an_error_and_no_diagnosis_is_a_pass() -> None:
    root = xml(sample.damaged())
    assert counts(root) == [2, 0, 1, 0]
    error = root.find(".//error")
    assert error is not None and "node1.tar.gz/plog/b.log: the archive ends" in (error.text or "")


def test_checks_pass_fail_or_are_skipped() -> None:
    triage = page_maker.full(diagnoses=[])
    root = xml(triage, "medium")
    assert counts(root[0]) == [3, 1, 0, 1]
    assert [case.get("classname") for case in root[0].findall("testcase")] == ["preflight.links", "preflight.environment", "site"]
    skipped = root.find(".//skipped")
    assert skipped is not None and skipped.get("message") == "Collect `df`."
    assert exit_status(triage, "high") == 1 and exit_status(triage, None) == 0
    triage.checks[0].severity = "warning"
    assert exit_status(triage, "high") == 0 and exit_status(triage, "medium") == 1
    assert counts(xml(triage, "high")[0]) == [3, 0, 0, 1]


@settings(max_examples=25, deadline=None)
@given(HOSTILE)
def test_any_text_gives_sound_xml_and_sound_json(word: str) -> None:
    triage = page_maker.full(word + "\ufffe\uffff\x00]]>&lt;")
    told = "".join(xml(triage, lang="zh").itertext())
    assert visible(told.replace("\n", ""))
    run(triage)


def test_a_diagnosis_in_sarif() -> None:
    found = run(sample.triage())
    [result] = found["results"]
    assert (result["ruleId"], result["kind"], result["level"], result["rank"]) == ("operators.paged-attention.out-of-block", "fail", "error", 93.0)
    assert found["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    [location] = result["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "plog/plog-838_20250904.log", "uriBaseId": "BUNDLE"}
    assert location["physicalLocation"]["region"]["startLine"] == 8121
    assert location["logicalLocations"] == [{"name": "node0", "kind": "node"}]
    assert [one["physicalLocation"]["artifactLocation"]["uri"] for one in result["relatedLocations"]] == ["console.log", "messages", "serve.log"]
    assert "Vector core exception → HCCL notify timeout on 7 ranks" in result["message"]["text"]
    assert found["language"] == "en-US" and run(sample.triage(), "zh")["language"] == "zh-CN"


def test_checks_in_sarif() -> None:
    found = run(page_maker.full(diagnoses=[]))
    assert [(one["kind"], one["level"]) for one in found["results"]] == [("fail", "error"), ("open", "none"), ("pass", "none")]
    assert found["automationDetails"]["id"] == "dsforensics/preflight/"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/ü.log", "a%20b/%C3%BC.log"), ("../../etc/passwd", "%2E%2E/%2E%2E/etc/passwd"), ("/etc/passwd", "etc/passwd"),
        ("https://example.org/x", "https%3A/example.org/x"), ("//example.org", "example.org"), ("", "-"), ("a\n\u202eb", "a%5Cn%5Cu202eb"),
    ],
)  # fmt: skip
def test_an_address_in_sarif_leads_nowhere_but_into_the_bundle(path: str, uri: str) -> None:
    found = run(sample.triage(diagnoses=[sample.diagnosis(evidence=[Evidence(path, 1, "x")])]))
    assert found["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_result_is_known_again_in_the_next_run() -> None:
    prints = [run(sample.triage(seconds=n))["results"][0]["partialFingerprints"] for n in (1.0, 2.0)]
    other = run(sample.triage(diagnoses=[sample.diagnosis(ident="other.rule")]))["results"][0]["partialFingerprints"]
    assert prints[0] == prints[1] != other


def test_no_text_of_a_bundle_is_a_link_in_a_message() -> None:
    link = "[read this](https://example.org) <b>now</b>"
    told = json.dumps(sarif.report(page_maker.full(link, diagnoses=[sample.diagnosis(evidence=[Evidence(link, 1, link)])]), Look()))
    messages = re.findall(r'"message": {"text": "((?:[^"\\]|\\.)*)"', told)
    assert messages and not any("](" in message for message in messages)


def test_what_was_not_read_is_a_notification() -> None:
    [one] = run(sample.damaged())["invocations"][0]["toolExecutionNotifications"]
    assert one["level"] == "warning" and one["message"]["text"].startswith("node1.tar.gz/plog/b.log: the archive ends")
