"""Rules as YAML, for packs that people go on with: what the loader reads back is the same rules."""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Iterator, Sequence

from rules.draft import quoted
from rules.model import Count, Group, Leaf, Node, Rule

PER_FILE = 200
"""Rules in one file."""


def write_pack(folder: str | os.PathLike[str], name: str, rules: Sequence[Rule]) -> list[pathlib.Path]:
    """Write rules as a pack: pack.yaml and one file a layer, or several where there are many. Raises FileExistsError where the folder has one."""
    place = pathlib.Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    header = place / "pack.yaml"
    with open(header, "x", encoding="utf-8") as stream:
        stream.write(f"name: {name}\nversion: 0.1.0\n")
    written = [header]
    for layer in dict.fromkeys(rule.layer for rule in rules):
        own = [rule for rule in rules if rule.layer == layer]
        for number in range(0, len(own), PER_FILE):
            path = place / f"{layer}{f'-{number // PER_FILE + 1}' if number else ''}.yaml"
            path.write_text("\n".join(rule_text(rule) for rule in own[number : number + PER_FILE]), encoding="utf-8")
            written.append(path)
    return written


def rule_text(rule: Rule) -> str:
    """One rule as an item of a list."""
    lines = [
        f"- id: {rule.id}",
        f"  root_cause: {rule.root_cause}",
        f"  title: {{en: {quoted(rule.title.en)}, zh: {quoted(rule.title.zh)}}}",
        *(f"  {name}: {getattr(rule, name)}" for name in ("layer", "severity", "provenance", "strength", "role")),
    ]
    if rule.applies_to:
        wanted = (f"{key}: {_list(one) if isinstance(one, tuple) else quoted(one)}" for key, one in rule.applies_to.items())
        lines.append(f"  applies_to: {{{', '.join(wanted)}}}")
    lines += ["  match:", *(f"    {line}" for line in _node(rule.match))]
    if rule.where:
        lines.append(f"  where: {quoted(rule.where)}")
    if rule.metrics:
        lines.append("  metrics:")
        lines += [f"    - {{series: {quoted(one.series)}, test: {quoted(one.test)}}}" for one in rule.metrics]
    if rule.explains:
        lines.append("  explains:")
        for edge in rule.explains:
            same = f", same: [{', '.join(edge.same)}]" if edge.same else ""
            within = f", within: {edge.within:g}s" if edge.within is not None else ""
            lines.append(f"    - {{rule: {quoted(edge.rule)}{same}{within}}}")
    lines.append(f"  action: {rule.action}")
    if any(rule.remedy.values()):
        lines.append("  remedy:")
        lines += [f"    {lang}: {_list(rule.remedy.get(lang, ()))}" for lang in ("en", "zh")]
    if rule.references:
        lines.append("  references:")
        lines += [f"    - {{title: {quoted(one.title)}, id: {quoted(one.id)}}}" for one in rule.references]
    if rule.note is not None:
        lines.append(f"  note: {{en: {quoted(rule.note.en)}, zh: {quoted(rule.note.zh)}}}")
    if rule.replay is not None:
        params = (f"{key}: {quoted(one) if isinstance(one, str) else json.dumps(one)}" for key, one in rule.replay.params.items())
        lines.append(f"  replay: {{kernel: {quoted(rule.replay.kernel)}, params: {{{', '.join(params)}}}}}")
    if rule.examples.match or rule.examples.no_match:
        lines.append("  examples:")
        lines += [f"    {name}: {_list(getattr(rule.examples, name))}" for name in ("match", "no_match")]
    return "\n".join(lines) + "\n"


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"


def _node(node: Node) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield f"{{{', '.join(_leaf(node))}}}"
    elif isinstance(node, Count):
        most = f", max: {node.max}" if node.max is not None else ""
        distinct = f", distinct: {node.distinct}" if node.distinct else ""
        yield f"count: {{of: {{{', '.join(_leaf(node.of))}}}, min: {node.min}{most}{distinct}}}"
    else:
        yield from _group(node)


def _group(node: Group) -> Iterator[str]:
    if node.within is not None:
        yield f"within: {node.within:g}s"
    if node.same:
        yield f"same: [{', '.join(node.same)}]"
    yield f"{node.op}:"
    for item in node.items:
        first, *rest = _node(item)
        yield f"  - {first}"
        yield from (f"    {line}" for line in rest)


def _leaf(leaf: Leaf) -> Iterator[str]:
    if not re.fullmatch(r"m\d+", leaf.id):
        yield f"id: {leaf.id}"
    for name, key in (("contains", "contains"), ("codes", "code"), ("not_contains", "not_contains"), ("source", "source")):
        if values := getattr(leaf, name):
            yield f"{key}: {_list(values)}"
    for name in ("regex", "fact", "metric", "mismatch", "sql"):
        if value := getattr(leaf, name):
            yield f"{name}: {quoted(value)}"
    for name in ("ignore_case", "optional"):
        if getattr(leaf, name):
            yield f"{name}: true"
    for name in ("severity", "module"):
        if values := getattr(leaf, name):
            yield f"{name}: {_list(values)}"
    if leaf.near is not None:
        parts = [f"of: {leaf.near.of}"]
        parts += [f"within: {leaf.near.within:g}s"] if leaf.near.within is not None else []
        parts += [f"lines: {leaf.near.lines}"] if leaf.near.lines is not None else []
        parts += [f"same: [{', '.join(leaf.near.same)}]"] if leaf.near.same else []
        parts += [f"side: {leaf.near.side}"] if leaf.near.side else []
        yield f"near: {{{', '.join(parts)}}}"
