"""`dsforensics rules ...`: the commands for people who write rules, found by the command line through its entry points."""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any, Optional

import typer

app = typer.Typer(no_args_is_help=True, help="List, search, check and test rules. / 列出、检索、检查和测试规则。")

Packs = Annotated[Optional[list[str]], typer.Option("--pack", help="Folder of a further pack.", metavar="DIR")]  # noqa: UP045
Lang = Annotated[str, typer.Option("--lang", help="en or zh.")]


def shown(text: str) -> str:
    """A text from a pack, harmless on a terminal."""
    return "".join(c if c == "\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else "·" for c in text)


def _say(text: str) -> None:
    typer.echo(shown(text))


@app.command("list")
def list_rules(pack: Packs = None, lang: Lang = "en") -> None:
    """All rules: id, root cause, title."""
    from rules import pack as packs

    for rule in packs.load(pack or []).rules:
        _say(f"{rule.id:<52} {rule.root_cause:<28} {rule.title.of(lang)}")


@app.command()
def search(words: list[str], pack: Packs = None, lang: Lang = "en") -> None:
    """Rules whose id, title, remedy, patterns or root cause hold all the words."""
    from rules import pack as packs
    from rules.scan import leaves_of

    found = False
    for rule in packs.load(pack or []).rules:
        parts = [(*leaf.contains, leaf.regex, *leaf.codes, leaf.fact, leaf.metric, leaf.mismatch, leaf.sql) for leaf in leaves_of(rule.match)]
        patterns = " ".join(word for words in parts for word in words)
        remedies = " ".join(text for texts in rule.remedy.values() for text in texts)
        hay = f"{rule.id} {rule.root_cause} {rule.title.en} {rule.title.zh} {remedies} {patterns}".lower()
        if all(word.lower() in hay for word in words):
            found = True
            _say(f"{rule.id:<52} {rule.root_cause:<28} {rule.title.of(lang)}")
    if not found:
        typer.echo("No rule holds all these words.", err=True)
        raise typer.Exit(1)


@app.command()
def show(ident: str, pack: Packs = None) -> None:
    """One rule as it was understood, and where it stands."""
    import msgspec

    from rules import pack as packs

    loaded = packs.load(pack or [])
    for rule in loaded.rules:
        if rule.id == ident:
            _say(f"{rule.file}:{rule.line}")
            for line in json.dumps(msgspec.to_builtins(rule), ensure_ascii=False, indent=2).splitlines():
                _say(line)
            return
    import difflib

    near = difflib.get_close_matches(ident, [rule.id for rule in loaded.rules], 3)
    typer.echo(shown(f"There is no rule {ident!r}{'; similar: ' + ', '.join(near) if near else ''}."), err=True)
    raise typer.Exit(2)


@app.command()
def lint(path: str) -> None:
    """Check one pack, or a folder of packs: every problem with file, line, column and what would be right, and every pattern that would make
    scans slow. Status 1 where a rule cannot run."""
    from rules import author, cost
    from rules import pack as packs

    loaded = packs.load([path], shipped=False)
    problems = [*loaded.problems, *cost.costly_leaves(loaded), *author.loose_edges(loaded, packs.load()), *author.loose_texts(loaded)]
    for problem in problems:
        _say(f"{problem.level}: {problem}")
    broken = sum(problem.level == "error" for problem in problems)
    _say(f"{len(loaded.rules)} rules can run, {broken} errors, {len(problems) - broken} warnings.")
    if broken or not loaded.rules:
        raise typer.Exit(1)


@app.command()
def test(path: Annotated[Optional[str], typer.Argument(help="A pack; without, all shipped packs.")] = None) -> None:  # noqa: UP045
    """Run the examples: each rule must fire on its own, not on its near misses, and not be outranked on its own example. Status 1 where one fails."""
    from rules import author
    from rules import pack as packs

    loaded = packs.load([path] if path else [])
    own = None
    if path:
        names = {rule.id for rule in packs.load([path], shipped=False).rules}
        own = [rule for rule in loaded.rules if rule.id in names]
    failed = list(author.trials(loaded, own))
    for trial in failed:
        _say(str(trial))
    _say(f"{len(own if own is not None else loaded.rules)} rules tried, {len(failed)} examples failed.")
    if failed:
        raise typer.Exit(1)


@app.command()
def schema() -> None:
    """The JSON Schema of a rule file, for editors."""
    typer.echo(json.dumps(rule_schema(), indent=2, ensure_ascii=False))


def rule_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a file of rules, made from what the loader accepts."""
    from rules import model, reader
    from rules.taxonomy import ROOT_CAUSES

    texts: dict[str, Any] = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "number"]}}]}
    both = {
        "type": "object",
        "required": ["en", "zh"],
        "properties": {"en": {"type": "string"}, "zh": {"type": "string"}},
        "additionalProperties": False,
    }
    scopes = {"oneOf": [{"enum": list(model.SCOPES)}, {"type": "array", "items": {"enum": list(model.SCOPES)}}]}
    duration = {"type": ["string", "number"], "pattern": r"^\d+(\.\d+)?\s*(us|ms|s|m|h)?$"}
    sources = {"enum": list(reader.SOURCES)}
    near = {
        "type": "object",
        "required": ["of"],
        "properties": {"of": {"type": "string"}, "within": duration, "lines": {"type": "integer"}, "same": scopes},
        "additionalProperties": False,
    }
    leaf_fields: dict[str, Any] = dict.fromkeys(("contains", "code", "not_contains", "severity", "module"), texts)
    leaf_fields |= {key: {"type": "string"} for key in ("id", "regex", "fact", "metric", "mismatch", "sql")}
    leaf_fields |= {"ignore_case": {"type": "boolean"}, "source": {"oneOf": [sources, {"type": "array", "items": sources}]}, "near": near}
    leaf = {"type": "object", "properties": leaf_fields, "additionalProperties": False, "oneOf": [{"required": [key]} for key in reader.MATCHERS]}
    node = {"$ref": "#/$defs/node"}
    group = {key: {"oneOf": [node, {"type": "array", "items": node, "minItems": 1}]} for key in reader.GROUPS}
    count = {
        "type": "object",
        "required": ["of"],
        "properties": {"of": leaf, "min": {"type": "integer"}, "max": {"type": "integer"}, "distinct": {"type": "string"}},
        "additionalProperties": False,
    }
    groups = {
        "type": "object",
        "properties": {**group, "within": duration, "same": scopes, "id": {"type": "string"}, "count": count},
        "additionalProperties": False,
        "anyOf": [{"required": [key]} for key in (*reader.GROUPS, "count")],
    }
    fields: dict[str, Any] = {key: {} for key in reader.RULE_KEYS} | {
        "id": {"type": "string", "pattern": r"^[a-z0-9]+([._-][a-z0-9]+)*$"},
        "root_cause": {"enum": list(ROOT_CAUSES)},
        "title": both,
        "note": both,
        "layer": {"enum": list(model.LAYERS)},
        "severity": {"enum": list(model.SEVERITIES)},
        "provenance": {"enum": list(model.PROVENANCES)},
        "strength": {"enum": list(model.STRENGTHS)},
        "role": {"enum": list(model.ROLES)},
        "action": {"enum": list(model.ACTIONS)},
        "match": {"oneOf": [node, {"type": "array", "items": node, "minItems": 1}]},
        "where": {"type": "string", "maxLength": 2000},
        "remedy": {"type": "object", "required": ["en", "zh"], "properties": {"en": texts, "zh": texts}, "additionalProperties": False},
        "examples": {"type": "object", "properties": {"match": texts, "no_match": texts}, "additionalProperties": False},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dsforensics rules",
        "type": "array",
        "items": {
            "type": "object",
            "required": ["id", "root_cause", "title", "layer", "severity", "match"],
            "properties": fields,
            "additionalProperties": False,
        },
        "$defs": {"node": {"oneOf": [leaf, groups]}},
    }
