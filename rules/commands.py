"""`dsforensics rules ...`: the commands for people who write rules, found by the command line through its entry points."""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any, Optional

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="List, search, check, test and write rules. / 列出、检索、检查、测试和编写规则。",
)

Packs = Annotated[Optional[list[str]], typer.Option("--pack", help="Folder of a further pack.", metavar="DIR")]  # noqa: UP045
Lang = Annotated[str, typer.Option("--lang", help="en or zh.")]


def shown(text: str) -> str:
    """A text from a pack, harmless on a terminal."""
    return "".join(c if c == "\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else "·" for c in text)


def _say(text: str) -> None:
    typer.echo(shown(text))


@app.command("list")
def list_rules(
    pack: Packs = None,
    lang: Lang = "en",
    of: Annotated[Optional[str], typer.Option("--of", help="Only rules of this pack, layer or root cause; * allowed.", metavar="NAME")] = None,  # noqa: UP045
) -> None:
    """List rules: id, root cause, title."""
    import fnmatch

    from rules import pack as packs

    found = False
    for rule in packs.load(pack or []).rules:
        if of is None or any(fnmatch.fnmatchcase(name, of) for name in (rule.pack, rule.layer, rule.root_cause, rule.id)):
            found = True
            _say(f"{rule.id:<52} {rule.root_cause:<28} {rule.title.of(lang)}")
    if not found:
        typer.echo("No rule has this pack, layer, root cause or id.", err=True)
        raise typer.Exit(1)


@app.command()
def causes(words: Annotated[Optional[list[str]], typer.Argument(help="Only causes with all these words.")] = None, lang: Lang = "en") -> None:  # noqa: UP045
    """List the root causes that rules can name, and how many name each."""
    from collections import Counter

    from rules import pack as packs
    from rules.taxonomy import ROOT_CAUSES

    counts = Counter(rule.root_cause for rule in packs.load().rules if rule.role == "cause")
    found = False
    for slug, name in ROOT_CAUSES.items():
        if all(word.lower() in f"{slug} {name.en} {name.zh}".lower() for word in words or ()):
            found = True
            _say(f"{slug:<32} {counts[slug]:>4}  {name.of(lang)}")
    if not found:
        typer.echo("No root cause holds all these words.", err=True)
        raise typer.Exit(1)


@app.command()
def search(words: list[str], pack: Packs = None, lang: Lang = "en") -> None:
    """Find rules by words. All of them must stand in id, title, remedy, patterns or root cause."""
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
    """Show one rule as its author would write it, and where it stands."""
    from rules import pack as packs
    from rules.written import rule_text

    loaded = packs.load(pack or [])
    for rule in loaded.rules:
        if rule.id == ident:
            _say(f"# {rule.file}:{rule.line}")
            for line in rule_text(rule).splitlines():
                _say(line)
            return
    import difflib

    near = difflib.get_close_matches(ident, [rule.id for rule in loaded.rules], 3)
    typer.echo(shown(f"There is no rule {ident!r}{'; similar: ' + ', '.join(near) if near else ''}."), err=True)
    raise typer.Exit(2)


@app.command()
def lint(path: str) -> None:
    """Check a pack, or a folder of packs. Every problem comes with file, line, column and what would be right; patterns that would make scans
    slow are named, and what a draft still wants. Status 1 where a rule cannot run."""
    from rules import author, cost
    from rules import lint as checks
    from rules import pack as packs

    loaded, shipped = packs.load([path], shipped=False), packs.load()
    problems = [*loaded.problems, *cost.costly_leaves(loaded), *author.loose_edges(loaded, shipped), *author.loose_texts(loaded)]
    problems += [*checks.unfinished(loaded), *checks.overlaps(loaded, shipped)]
    for problem in problems:
        _say(f"{problem.level}: {problem}")
    broken = sum(problem.level == "error" for problem in problems)
    _say(f"{len(loaded.rules)} rules can run, {broken} errors, {len(problems) - broken} warnings.")
    if broken or not loaded.rules:
        raise typer.Exit(1)


@app.command()
def test(path: Annotated[Optional[str], typer.Argument(help="A pack; without, all shipped packs.")] = None) -> None:  # noqa: UP045
    """Run the examples of rules. With the rules of all packs at work, each rule must fire on its own examples, come first on them, and not fire
    on its near misses. Examples that rules of two root causes claim are named as well. Status 1 where an example fails."""
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
    taken = [trial for trial in author.thefts(loaded, own) if not any(trial.rule == one.rule and trial.example == one.example for one in failed)]
    for trial in taken:
        _say(f"two causes: {trial}")
    _say(f"{len(own if own is not None else loaded.rules)} rules tried, {len(failed)} examples failed, {len(taken)} claimed by two root causes.")
    if failed:
        raise typer.Exit(1)


@app.command("import-fd")
def import_fd(
    path: Annotated[Optional[str], typer.Argument(metavar="FILE|DIR", help="kg-config.json, or its folder. Default: that installed.")] = None,  # noqa: UP045
    out: Annotated[Optional[str], typer.Option("--out", "-o", metavar="DIR", help="Write the rules as a pack of your own, to be changed.")] = None,  # noqa: UP045
) -> None:
    """Read the rules of an installed ascend-fd. Says what of its knowledge base can run and what is left out. Nothing is copied: to use it,
    give `--pack ascend-fd`, or `--pack FILE`, to triage. Status 1 where there is none."""
    from collections import Counter

    from rules import ascend_fd
    from rules import pack as packs

    found = ascend_fd.find(path)
    if found is None:
        place = f"at {path!a}" if path else "installed here (looked for the module ascend_fd and the command ascend-fd)"
        typer.echo(shown(f"There is no knowledge base of ascend-fd {place}; give its kg-config.json."), err=True)
        raise typer.Exit(1)
    loaded = packs.load([found], shipped=False)
    for problem in loaded.problems:
        if problem.level == "error":
            typer.echo(shown(f"error: {problem}"), err=True)
    counts = Counter(rule.role for rule in loaded.rules)
    edges = sum(len(rule.explains) for rule in loaded.rules)
    _say(
        f"{found}: {len(loaded.rules)} rules ({counts['cause']} causes, {counts['symptom']} consequences, {counts['noise']} harmless), {edges} edges."
    )
    _, left_out = ascend_fd.convert(found.read_bytes(), str(found))
    reasons = Counter(problem.message.partition(": ")[2] for problem in left_out if problem.level != "error")
    for reason, count in reasons.most_common(10):
        _say(f"{count:>5}  {reason}")
    if not loaded.rules:
        raise typer.Exit(1)
    if out is None:
        _say("Use it with: dsforensics triage BUNDLE --pack " + ("ascend-fd" if path is None else str(found)))
        return
    from rules.written import write_pack

    try:
        files = write_pack(out, ascend_fd.PACK, loaded.rules)
    except OSError as error:
        typer.echo(shown(f"The pack cannot be written to {out!a}: {error}."), err=True)
        raise typer.Exit(3) from None
    _say(f"Written to {out}: {len(files)} files. Use it with: dsforensics triage BUNDLE --pack {out}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of a rule file."""
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
        "properties": {
            "of": {"type": "string"},
            "within": duration,
            "lines": {"type": "integer"},
            "same": scopes,
            "side": {"enum": ["before", "after"]},
        },
        "additionalProperties": False,
    }
    leaf_fields: dict[str, Any] = dict.fromkeys(("contains", "code", "not_contains", "severity", "module"), texts)
    leaf_fields |= {key: {"type": "string"} for key in ("id", "regex", "fact", "metric", "mismatch", "sql")}
    leaf_fields |= {
        "ignore_case": {"type": "boolean"},
        "optional": {"type": "boolean"},
        "source": {"oneOf": [sources, {"type": "array", "items": sources}]},
        "near": near,
    }
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
