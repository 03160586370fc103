"""report.json keeps its published schema, whatever stands in the bundle, and does not change from run to run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forensics
from forensics.report import data
from forensics.result import CodeSeen, FactSeen, Unexplained
from rules.model import ACTIONS, LAYERS, PROVENANCES, SEVERITIES, Evidence
from tests.unit import sample_triage as sample
from tests.unit.test_safe_text import HOSTILE, visible

SCHEMA = json.loads((Path(forensics.__file__).parent / "schema/report-1.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def parsed(encoded: bytes) -> Any:
    """Strict: no NaN, no lone surrogate."""
    value = json.loads(encoded.decode("utf-8"), parse_constant=pytest.fail)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def test_the_schema_is_a_sound_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("triage", [sample.triage(), sample.damaged(), sample.triage(diagnoses=[sample.diagnosis(replay=None)]), sample.job()])
def test_the_report_keeps_its_schema(triage: Any) -> None:
    VALIDATOR.validate(parsed(data.encode(data.report(triage))))


def test_the_schema_names_every_value_a_rule_can_have() -> None:
    properties = SCHEMA["$defs"]["diagnosis"]["properties"]
    for name, values in (("layer", LAYERS), ("severity", SEVERITIES), ("action", ACTIONS), ("provenance", PROVENANCES)):
        assert properties[name]["enum"] == list(values)


def test_what_the_report_says_of_a_diagnosis() -> None:
    [diagnosis] = parsed(data.encode(data.report(sample.triage())))["diagnoses"]
    assert diagnosis["title"] == {"en": "Paged attention read outside its KV block", "zh": "Paged attention 读越出 KV 块"}
    assert diagnosis["first_seen"] == "2025-09-04T01:50:11.954001Z"
    assert diagnosis["evidence"][2] == {"file": "messages", "line": 90, "time": None, "text": "no ECC event on device 6", "role": "against"}
    assert diagnosis["replay"] == {"kernel": "paged_attention", "status": "not-run", "detail": {}}
    assert diagnosis["scope"] == {"node": "node0", "device": 6, "rank": 6, "pid": 838}


def test_what_the_report_says_of_the_job() -> None:
    report = parsed(data.encode(data.report(sample.job())))
    node = next(node for node in report["nodes"] if node["name"] == "node3")
    assert node["clock"] == {"ahead_seconds": 252.3, "within_seconds": 0.5, "moments": 1, "compared_by": "joins", "taken_off": True}
    assert [node["name"] for node in report["nodes"] if not node["logs"]] == ["10.0.0.3"]
    first, second = report["attempts"]
    assert first["missing"] == [9] and first["began"]["ranks"] == [1, 2, 3, 9] and first["began"]["sure"] == "low"
    assert (second["began"]["node"], second["began"]["device"], second["began"]["rank"]) == ("node3", 6, 14)
    assert second["began"]["signs"][0]["reason"]["zh"] == "它没有任何日志" and second["began"]["limits"] == {"exec": 600, "connect": 120}
    [diagnosis] = report["diagnoses"]
    assert diagnosis["attempt"] == 2 and diagnosis["scope"]["node"] == "node3"
    assert [(echo["rule"], echo["ranks"]) for echo in diagnosis["echoes"]] == [("cann-runtime.acl.507035", 0), ("hccl.notify-timeout", 13)]
    assert report["first_by_layer"][0]["layer"] == "driver" and report["collect_next"]


def test_what_was_not_read_is_named() -> None:
    coverage = parsed(data.encode(data.report(sample.damaged())))["coverage"]
    assert coverage["members_damaged"] == [{"file": "node1.tar.gz/plog/b.log", "reason": "the archive ends in the middle of this member"}]


def test_neither_wall_time_nor_place_nor_order_of_collection_shows() -> None:
    one = sample.triage()
    other = sample.triage(seconds=99.0, case="/elsewhere")
    other.facts.reverse()
    other.packs.reverse()
    other.coverage.members.reverse()
    assert data.encode(data.report(one)) == data.encode(data.report(other))


@given(HOSTILE, st.floats(), st.integers(-(2**70), 2**70))
def test_hostile_text_and_numbers_make_strict_and_inert_json(text: str, number: float, time: int) -> None:
    triage = sample.triage(
        diagnoses=[sample.diagnosis(confidence=number, evidence=[Evidence(text, 1, text, "for", time)])],
        unexplained=[Unexplained(text, 1, text, 1, text, time)],
        codes=[CodeSeen(text, text, text, text, 1, False)],
        facts=[FactSeen(text, text, text, text, 1)],
    )
    triage.bundle = msgspec.structs.replace(triage.bundle, name=text, nodes=[text], first=time)
    encoded = data.encode(data.report(triage))
    VALIDATOR.validate(parsed(encoded))
    assert visible(encoded.decode("utf-8").replace("\n", ""))
