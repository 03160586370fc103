"""From lines to ranked diagnoses: conditions hold together, causes outrank consequences, and time is respected."""

from __future__ import annotations

import pathlib
import random
from collections.abc import Callable

import pytest

from rules import pack, scan
from rules.causes import edges
from rules.diagnose import Conclusion, diagnose
from rules.model import Explains, FactRow, Finding, Hit, Leaf, MetricRow, Rule, Scope, Text

SECOND = 1_000_000
Make = Callable[..., Conclusion]


def rule(ident: str, match: str, **fields: str) -> str:
    given = {"root_cause": "framework-bug", "layer": "operator", "severity": "error", "title": "{en: t, zh: t}"} | fields
    return f"- id: {ident}\n" + "".join(f"  {key}: {value}\n" for key, value in given.items()) + f"  match: {match}\n"


@pytest.fixture
def conclude(tmp_path: pathlib.Path) -> Make:
    """Diagnose lines (text, and what their record says) under some rules."""

    def run(
        rules: str,
        lines: list[tuple[str, dict[str, object]]],
        facts: dict[str, str] | None = None,
        metrics: list[MetricRow] | None = None,
        shuffle: int = 0,
    ) -> Conclusion:
        tmp_path.joinpath("r.yaml").write_text(rules)
        loaded = pack.load([tmp_path], shipped=False)
        assert loaded.problems == ()
        scanner = scan.Scanner.load(loaded)
        hits, counts = [], {}
        for number, (text, head) in enumerate(lines):
            data = text.encode() + b"\n"
            for found in scanner.scan(data, len(data)).hits:
                hits.append(Hit(found.leaf, 0, "a.log", number + 1, 0, text, found.captures, **head))  # type: ignore[arg-type]
                counts[found.leaf] = counts.get(found.leaf, 0) + 1
        if shuffle:
            random.Random(shuffle).shuffle(hits)
        rows = [FactRow(name, value) for name, value in (facts or {}).items()]
        return diagnose(loaded, scanner.leaves, hits, counts, rows, metrics or [])

    return run


def names(conclusion: Conclusion) -> list[str]:
    return [diagnosis.finding.rule.id for diagnosis in conclusion.diagnoses]


def test_near_wants_time_and_scope(conclude: Make) -> None:
    rules = rule("t.a", "{all: [{id: one, contains: first}, {id: two, contains: second, near: {of: one, within: 2s, same: [pid]}}]}")
    first = ("first", {"ts": 0, "pid": 7})
    assert names(conclude(rules, [first, ("second", {"ts": SECOND, "pid": 7})])) == ["t.a"]
    assert names(conclude(rules, [first, ("second", {"ts": 3 * SECOND, "pid": 7})])) == []
    assert names(conclude(rules, [first, ("second", {"ts": SECOND, "pid": 8})])) == []
    assert names(conclude(rules, [first, ("second", {"pid": 7})])) == ["t.a"], "an unknown time is no obstacle"


def test_a_later_pair_is_found_when_the_first_does_not_satisfy(conclude: Make) -> None:
    rules = rule("t.a", r"{regex: 'block_size=(?P<n>\d+)', id: size}", where='"size.n % 32 != 0"')
    found = conclude(rules, [("block_size=128", {}), ("block_size=48", {})])
    assert found.findings[0].captures["size"]["n"] == "48"


def test_sequence_wants_the_order(conclude: Make) -> None:
    rules = rule("t.a", "{sequence: [{contains: start}, {contains: crash}], within: 10s}")
    assert names(conclude(rules, [("start", {"ts": 0}), ("crash", {"ts": SECOND})])) == ["t.a"]
    assert names(conclude(rules, [("crash", {"ts": 0}), ("start", {"ts": SECOND})])) == []
    assert names(conclude(rules, [("start", {"ts": 0}), ("crash", {"ts": 11 * SECOND})])) == []


def test_none_of_and_any_and_count(conclude: Make) -> None:
    rules = rule("t.none", "{all: [{contains: timeout}, {none_of: [{contains: recovered}]}]}")
    assert names(conclude(rules, [("timeout", {})])) == ["t.none"]
    assert names(conclude(rules, [("timeout", {}), ("recovered", {})])) == []
    rules = rule("t.count", "{count: {of: {contains: lost}, min: 2, distinct: rank}}")
    assert names(conclude(rules, [("lost", {"rank": 1}), ("lost", {"rank": 1})])) == []
    assert names(conclude(rules, [("lost", {"rank": 1}), ("lost", {"rank": 2})])) == ["t.count"]
    rules = rule("t.any", "{any: [{contains: abc}, {contains: xyz}]}")
    assert names(conclude(rules, [("xyz", {})])) == ["t.any"]


def test_facts_and_metrics_are_evidence(conclude: Make) -> None:
    rules = rule("t.fact", "{fact: env.HCCL_BUFFSIZE, id: size}", where='"size.value < 200"')
    assert names(conclude(rules, [], {"env.HCCL_BUFFSIZE": "50"})) == ["t.fact"]
    assert names(conclude(rules, [], {"env.HCCL_BUFFSIZE": "400"})) == []
    rules = rule("t.metric", "{metric: npu.hbm.bank.usage, id: bank}", where='"bank.value > 85"')
    found = conclude(rules, [], None, [MetricRow("npu.hbm.bank.usage", 40, label="0"), MetricRow("npu.hbm.bank.usage", 91, label="3")])
    assert found.findings[0].captures["bank"]["label"] == "3"
    rules = rule("t.series", "{contains: slow}", metrics='[{series: npu.hbm.bank.usage, test: "spread > 5"}]')
    assert names(conclude(rules, [("slow", {})], None, [MetricRow("npu.hbm.bank.usage", 40)])) == []


def test_only_a_known_contradicting_version_excludes_a_rule(conclude: Make) -> None:
    rules = rule("t.a", "{contains: fail}", applies_to='{cann: ">=8.0,<8.2"}')
    assert names(conclude(rules, [("fail", {})], {"cann.version": "8.1.RC1"})) == ["t.a"]
    assert names(conclude(rules, [("fail", {})], {"cann.version": "8.3.RC1"})) == []
    unknown, known = conclude(rules, [("fail", {})]), conclude(rules, [("fail", {})], {"cann.version": "8.1.RC1"})
    assert unknown.diagnoses[0].confidence < known.diagnoses[0].confidence


def test_a_symptom_loses_to_a_cause_and_is_explained_by_it(conclude: Make) -> None:
    rules = rule("t.cause", "{contains: ecc}", strength="strong") + rule("t.effect", "{contains: timeout}", role="symptom", strength="decisive")
    found = conclude(rules, [("ecc", {"ts": 0}), ("timeout", {"ts": SECOND})])
    assert names(found) == ["t.cause"]
    assert found.diagnoses[0].explains == ["t.effect"]
    alone = conclude(rules, [("timeout", {"ts": 0})])
    assert names(alone) == ["t.effect"] and alone.diagnoses[0].level == "low"


def test_a_consequence_never_precedes_its_cause(conclude: Make) -> None:
    rules = rule("t.cause", "{contains: ecc}", explains="[{rule: t.effect}]") + rule("t.effect", "{contains: crash}", root_cause="hbm-oom")
    assert names(conclude(rules, [("ecc", {"ts": 0}), ("crash", {"ts": SECOND})])) == ["t.cause"]
    late = conclude(rules, [("crash", {"ts": 0}), ("ecc", {"ts": 600 * SECOND})])
    assert set(names(late)) == {"t.cause", "t.effect"}


def test_rules_that_explain_each_other_in_a_circle_still_leave_a_root(conclude: Make) -> None:
    rules = "".join(
        rule(f"t.c{k}", f"{{contains: word{k}}}", explains=f"[{{rule: t.c{(k + 1) % 3}}}, {{rule: t.c{k}}}, {{rule: nobody}}]") for k in range(3)
    )
    assert names(conclude(rules, [(f"word{k}", {}) for k in range(3)]))


def test_harmless_lines_are_nobodys_evidence(conclude: Make) -> None:
    rules = rule("t.noise", "{contains: can be ignored}", role="noise") + rule("t.a", "{contains: error}")
    assert names(conclude(rules, [("error, can be ignored", {})])) == []
    assert names(conclude(rules, [("error, can be ignored", {}), ("error", {})])) == ["t.a"]


def test_findings_of_one_root_cause_are_one_diagnosis_with_all_their_evidence(conclude: Make) -> None:
    rules = rule("t.a", "{contains: first}", strength="strong") + rule("t.b", "{contains: second}")
    found = conclude(rules, [("first", {}), ("second", {})])
    assert names(found) == ["t.a"]
    assert [evidence.text for evidence in found.diagnoses[0].evidence] == ["first", "second"]


def test_titles_and_remedies_show_captures_and_nothing_else(conclude: Make) -> None:
    rules = rule(
        "t.a",
        r"{regex: 'size (?P<n>\d+)', id: dims}",
        title="{en: '{dims.n} {dims.__class__} {0.x} %s {', zh: '{dims.n}'}",
        remedy="{en: ['Use {dims.n}.'], zh: ['用 {dims.n}。']}",
    )
    found = conclude(rules, [("size 17", {})]).diagnoses[0]
    assert (found.title.en, found.remedy["zh"]) == ("17 {dims.__class__} {0.x} %s {", ["用 17。"])


def test_the_order_in_which_lines_arrive_changes_nothing(conclude: Make) -> None:
    rules = (
        rule("t.cause", "{contains: ecc}")
        + rule("t.other", "{contains: oom}", root_cause="hbm-oom")
        + rule("t.effect", "{contains: timeout}", role="symptom")
    )
    lines = [(f"{word} {n}", {"ts": n * SECOND, "pid": n}) for n, word in enumerate(["ecc", "oom", "timeout", "oom", "ecc", "timeout"])]
    first = conclude(rules, lines)
    for seed in range(1, 6):
        again = conclude(rules, lines, shuffle=seed)
        assert again.diagnoses == first.diagnoses


def test_no_confidence_is_certain_and_a_rival_lowers_it(conclude: Make) -> None:
    rules = rule("t.a", "{contains: first}", strength="decisive") + rule("t.b", "{contains: second}", root_cause="hbm-oom", strength="decisive")
    alone = conclude(rules, [("first", {})]).diagnoses[0].confidence
    both = [diagnosis.confidence for diagnosis in conclude(rules, [("first", {}), ("second", {})]).diagnoses]
    assert 0.9 < alone <= 0.97
    assert max(both) < alone


HOUR = 3600 * SECOND


def test_two_unrelated_faults_are_both_found_each_with_its_own_chain(conclude: Make) -> None:
    rules = (
        rule("t.ecc", "{contains: ecc}", root_cause="ecc-hardware-fault", layer="hardware", strength="strong")
        + rule("t.oom", "{contains: no memory}", root_cause="host-oom", strength="strong")
        + rule("t.core", "{contains: core dumped}", role="symptom", layer="runtime")
        + rule("t.exit", "{contains: worker died}", role="symptom", layer="framework")
    )
    one = [("ecc", {"ts": 0, "node": "n1", "pid": 1}), ("core dumped", {"ts": SECOND, "node": "n1", "pid": 1})]
    two = [("no memory", {"ts": 5 * HOUR, "node": "n1", "pid": 9}), ("worker died", {"ts": 5 * HOUR + SECOND, "node": "n1", "pid": 9})]
    found = conclude(rules, one + two)
    assert {d.finding.rule.id: d.explains for d in found.diagnoses} == {"t.ecc": ["t.core"], "t.oom": ["t.exit"]}
    alone = {d.finding.rule.id: d.confidence for lines in (one, two) for d in conclude(rules, lines).diagnoses}
    assert {d.finding.rule.id: d.confidence for d in found.diagnoses} == alone, "they do not compete"


def test_faults_of_one_time_and_process_still_compete(conclude: Make) -> None:
    rules = rule("t.a", "{contains: first}", strength="strong") + rule("t.b", "{contains: second}", root_cause="hbm-oom", strength="strong")
    lines = [("first", {"ts": 0, "pid": 7}), ("second", {"ts": SECOND, "pid": 7})]
    apart = [("first", {"ts": 0, "pid": 7}), ("second", {"ts": SECOND, "pid": 8})]
    together, separate = conclude(rules, lines).diagnoses[0].confidence, conclude(rules, apart).diagnoses[0].confidence
    assert together < separate


def test_a_cause_explains_no_other_fault_of_another_day_unless_on_the_same_card(conclude: Make) -> None:
    rules = rule("t.cause", "{contains: ecc}", explains="[{rule: t.effect}]") + rule("t.effect", "{contains: crash}", root_cause="hbm-oom")
    card = {"node": "n1", "device": 3}
    later = [("ecc", {"ts": 0}), ("crash", {"ts": 30 * HOUR})]
    assert set(names(conclude(rules, later))) == {"t.cause", "t.effect"}
    assert names(conclude(rules, [(text, head | card) for text, head in later])) == ["t.cause"]


def finding(ident: str, role: str = "cause", explains: str = "", **head: object) -> Finding:
    """A finding of one line."""
    hit = Hit(0, int(str(head.pop("file", 0))), "a", 1, 0, "x", {}, **head)  # type: ignore[arg-type]
    edges = (Explains(explains),) if explains else ()
    made = Rule(ident, ident, Text("t", "t"), "operator", "error", Leaf("a", contains=("x",)), role=role, explains=edges)
    return Finding(made, [hit], 1, Scope(hit.node, hit.device, hit.rank, hit.pid), hit.ts, hit.ts, 1, {})


def test_a_cause_without_a_time_explains_another_cause_only_in_its_own_log_or_process() -> None:
    cause, effect = finding("t.cause", explains="t.effect", file=1, pid=7), {"ts": SECOND, "file": 2}
    assert edges([cause, finding("t.effect", **effect)]) == []
    assert edges([cause, finding("t.effect", **effect, pid=7)]) and edges([cause, finding("t.effect", **effect | {"file": 1})])
    assert edges([cause, finding("t.effect", "symptom", **effect)]), "a mere consequence hangs on whatever there is"


def test_the_clock_of_a_compared_node_is_trusted_as_far_as_it_was_measured() -> None:
    pair = [finding("t.cause", explains="t.effect", node="n1", ts=20 * SECOND), finding("t.effect", node="n2", ts=0)]
    assert [edge.reason for edge in edges(pair)] == ["rule"], "clocks that nothing compared may be half a minute apart"
    assert edges(pair, {"n1": SECOND, "n2": SECOND}) == []


def test_what_many_ranks_repeat_is_one_consequence_with_their_number(conclude: Make) -> None:
    rules = rule("t.cause", "{contains: ecc}", strength="strong") + rule("t.effect", "{contains: timeout}", role="symptom", layer="collective")
    lines = [("ecc", {"ts": 0, "pid": 1})] + [("timeout", {"ts": SECOND * n, "pid": n, "rank": n, "node": f"n{n // 4}"}) for n in range(2, 12)]
    best = conclude(rules, lines).diagnoses[0]
    assert [(echo.rule, echo.lines, echo.processes, echo.ranks, echo.nodes) for echo in best.echoes] == [("t.effect", 10, 10, 10, 3)]
def test_an_optional_pattern_is_cited_where_it_is_and_no_hindrance_where_it_is_not(conclude: Make) -> None:
    rules = rule("t.a", "{all: [{id: extra, contains: detail, optional: true}, {id: main, contains: broken}]}")
    alone, both = conclude(rules, [("broken", {})]), conclude(rules, [("detail", {}), ("broken", {})])
    assert names(alone) == names(both) == ["t.a"]
    assert [evidence.text for evidence in both.diagnoses[0].evidence] == ["broken", "detail"]
    assert both.diagnoses[0].confidence > alone.diagnoses[0].confidence
    assert names(conclude(rules, [("detail", {})])) == []


def test_near_may_ask_for_a_side(conclude: Make) -> None:
    for side, fits in (("after", ["t.a"]), ("before", [])):
        rules = rule("t.a", f"{{all: [{{id: one, contains: first}}, {{contains: second, near: {{of: one, side: {side}}}}}]}}")
        assert names(conclude(rules, [("first", {"ts": 0}), ("second", {"ts": SECOND})])) == fits
