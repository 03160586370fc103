"""The knowledge base of an installed ascend-fd, run as a pack: its `kg-config.json` is read where it lies and never copied.

    >>> base = b'{"knowledge-repository": {"X_01": {"attribute": {"cause_en": "Link down"}, "regex": {"in": ["port", "is down"]}}}}'
    >>> rules, problems = convert(base, "kg-config.json")
    >>> rules[0].id, rules[0].match.regex
    ('ascend-fd.x_01', 'port.*is down')

An entry holds lists of keywords that stand on one line in their order (one list, or several of which one suffices; in the logs of
trainings they may also stand on ten lines), a cause, what to do in two languages, and which other entries follow from it. What the entry
means as a root cause is our own reading (`data/fd_modes.tsv`); an entry that is not listed there becomes a cause of its own name.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from rules.generalise import escaped
from rules.looks import check_regex
from rules.model import Explains, Group, Leaf, Near, Node, Problem, Reference, Rule, Text
from rules.tables import table

PACK = "ascend-fd"
FILE = "kg-config.json"
BYTES = 64 << 20
ENTRIES = 20_000
LONG = 36
"""Letters of keywords from which on they are taken to be a message of its own; fewer are found with other causes as well."""
APART = 10
"""Lines over which the keywords of one entry may be spread in the log of a training."""
WORD = 8
"""Letters that each keyword needs to be looked for on a line of its own."""
_SOURCES = {
    "CANN_Plog": ("plog", "console"), "CANN_Device": ("device", "plog"), "CANN_Amct": ("plog", "console"),
    "TrainLog": ("console",), "MindIO": ("console",), "PyMotor_vLLM_Log": ("console", "mindie"), "MindIE": ("mindie", "console"),
    "NPU_OS": ("device-os", "firmware", "bbox", "kernel"), "NPU_Device": ("device-os", "firmware", "hccn-tool"),
    "NPU_History": ("bbox", "device-os"), "NPU_Host": ("kernel",),
    "OS": ("kernel",), "OS-dmesg": ("kernel",), "OS-vmcore-dmesg": ("kernel",), "OS-sysmon": ("kernel",),
    "NodeDLog": ("cluster",), "BMCLogDumpLog": ("bmc",), "LCNE_LOG": ("bmc", "cluster"), "LCNELog": ("bmc", "cluster"),
    "DL_DevicePlugin": ("cluster",), "DL_Volcano_Scheduler": ("cluster",), "DL_Volcano_Controller": ("cluster",),
    "DL_Npu_Exporter": ("cluster",), "DL_Docker_Runtime": ("cluster",),
}  # fmt: skip
"""Its kinds of files and ours."""
_SPREAD = frozenset({"TrainLog", "PyMotor_vLLM_Log"})
_LAYERS = {"NPU": "device", "CANN": "runtime", "AI Framework": "framework", "MindIE": "application", "HostOS": "environment"}


def find(given: str | None = None) -> Path | None:
    """The knowledge base: a file, one in a folder, or that of the ascend-fd installed here or found on PATH. Nothing of it is run."""
    roots = [Path(given)] if given else [*_importable(), *_on_path()]
    for root in roots:
        if root.is_file():
            return root
        for place in (root / FILE, root / "configuration" / FILE, root / "ascend_fd" / "configuration" / FILE):
            if place.is_file():
                return place
    return None


def _importable() -> Iterator[Path]:
    from importlib import util

    spec = util.find_spec("ascend_fd")
    yield from (Path(place) for place in (spec.submodule_search_locations or [] if spec else []))


def _on_path() -> Iterator[Path]:
    """The site-packages of the interpreter that the command ascend-fd names in its first line."""
    command = shutil.which("ascend-fd")
    if command is None:
        return
    with open(command, "rb") as stream:
        first = stream.readline(4096).decode("utf-8", "replace").strip()
    if first.startswith("#!"):
        home = Path(first[2:].split()[0]).parent.parent
        yield from sorted(home.glob("lib/python3*/site-packages/ascend_fd"))


def convert(data: bytes, shown: str) -> tuple[list[Rule], list[Problem]]:
    """The rules of a knowledge base given as the text of its file."""
    if len(data) > BYTES:
        return [], [Problem(shown, 1, 1, f"the file has more than {BYTES} bytes; that is no knowledge base of ascend-fd")]
    try:
        base = json.loads(data)
    except (ValueError, RecursionError) as error:
        return [], [Problem(shown, getattr(error, "lineno", 1), getattr(error, "colno", 1), f"this is not valid JSON: {str(error)[:120]}")]
    entries = base.get("knowledge-repository") if isinstance(base, dict) else None
    if not isinstance(entries, dict):
        return [], [Problem(shown, 1, 1, "this is no knowledge base of ascend-fd: a JSON object with `knowledge-repository` was expected")]
    problems: list[Problem] = []
    rules: dict[str, Rule] = {}
    lines = _lines(data)
    for code, entry in itertools.islice(entries.items(), ENTRIES):
        at = Problem(shown, lines.get(code, 1), 1, "")
        rule = _rule(str(code), _nested(entry) if isinstance(entry, dict) else {}, at, problems)
        if rule is not None and rule.id not in rules:
            rules[rule.id] = rule
    for number, words in enumerate(_lists(list((base.get("blacklist") or {}).values())) if isinstance(base.get("blacklist"), dict) else []):
        if max(map(len, words)) >= 6:
            leaf = Leaf("line", regex=".*".join(map(escaped, words)))
            title = Text("Masked by the blacklist of ascend-fd", "被 ascend-fd 黑名单屏蔽")
            ident = f"{PACK}.blacklist-{number + 1}"
            rules[ident] = Rule(ident, "unknown", title, "application", "info", leaf, "official", "weak", "noise", pack=PACK, file=shown, line=1)
    return [_linked(rule, rules) for rule in rules.values()], problems


def _lines(data: bytes) -> dict[str, int]:
    """Entry -> the line of the file on which it begins, for messages."""
    key = re.compile(rb'^ {4,12}"([\w.-]{1,80})" ?: ?\{', re.M)
    found: dict[str, int] = {}
    line, at = 1, 0
    for match in key.finditer(data):
        line += data.count(b"\n", at, match.start())
        at = match.start()
        found.setdefault(match[1].decode("utf-8", "replace"), line)
    return found


def _nested(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry whose keys may be written with dots, as those of users are: `attribute.cause_zh`, `regex.in`."""
    out: dict[str, Any] = {}
    for key, value in entry.items():
        head, dot, tail = str(key).partition(".")
        if not dot:
            out.setdefault(head, value)
        elif isinstance(out.setdefault(head, {}), dict):
            out[head][tail] = value
    return out


class _Mode(msgspec.Struct, frozen=True):
    cause: str
    layer: str
    generic: bool
    action: str


@cache
def _modes() -> dict[str, _Mode]:
    return {ident: _Mode(cause, layer, generic == "1", action) for ident, cause, layer, generic, action in table("fd_modes", 5)}


def reading() -> bytes:
    """Changes with our reading of the entries."""
    return repr(sorted(_modes().items())).encode()


def _ident(code: str) -> str:
    return f"{PACK}.{re.sub(r'[^a-z0-9]+', '_', code.lower()).strip('_') or 'entry'}"


def _rule(code: str, entry: dict[str, Any], at: Problem, problems: list[Problem]) -> Rule | None:
    """One entry as a rule; None, and a problem, where it cannot be one."""

    def left_out(reason: str) -> None:
        problems.append(msgspec.structs.replace(at, message=f"{code[:80]}: {reason}", level="warning"))

    regex = entry.get("regex")
    lists = _lists(regex.get("in") if isinstance(regex, dict) else None)
    if not lists:
        left_out("has no keywords: it is made by the program itself, not found in a text; left out")
        return None
    kinds = [kind.strip() for kind in re.split(r"[|,]", str(entry.get("source_file") or "")) if kind.strip()]
    match = _match(lists, kinds)
    if match is None:
        left_out("its keywords are too short to be looked for; left out")
        return None
    said = entry.get("attribute")
    said = said if isinstance(said, dict) else {}
    title = _both(said, "cause", code)
    mode = _modes().get(code)
    known = mode or _Mode(
        _ident(code).replace(".", "-").replace("_", "-"), _LAYERS.get(str(said.get("component")), "application"), False, "investigate"
    )
    firm = not known.generic and all(sum(map(len, words)) >= LONG for words in lists)
    consequence = known.cause == "-"
    english, chinese = (_steps(said.get(f"suggestion_{lang}")) for lang in ("en", "zh"))
    return Rule(
        id=_ident(code),
        root_cause="unknown" if consequence else known.cause,
        title=title,
        layer=known.layer,
        severity="warning",  # the base states none; of two rules that say as much, one with examples and near misses comes first
        match=match,
        provenance="official",
        strength="moderate" if firm else "weak",
        role="symptom" if consequence else "cause",
        explains=tuple(_edges(entry.get("rule"), left_out)),
        action=known.action,
        remedy={"en": english or chinese, "zh": chinese or english},
        references=(Reference("MindCluster Ascend FaultDiag", code),),
        note=_both(said, "description", "") if any(said.get(f"description_{lang}") for lang in ("en", "zh")) else None,
        pack=PACK,
        file=at.file,
        line=at.line,
    )


def _lists(value: Any) -> list[list[str]]:
    """Lists of keywords, of which one has to be there; one list may stand without brackets of its own."""
    items = value if isinstance(value, list) else [value]
    lists = [items] if all(isinstance(one, str) for one in items) else [one for one in items if isinstance(one, list)]
    return [
        [word for word in one if word.strip()] for one in lists if all(isinstance(word, str) for word in one) and any(word.strip() for word in one)
    ]


def _match(lists: list[list[str]], kinds: list[str]) -> Node | None:
    sources = tuple(dict.fromkeys(source for kind in kinds for source in _SOURCES.get(kind, ())))
    if any(kind not in _SOURCES for kind in kinds):
        sources = ()
    nodes: list[Node] = []
    for number, words in enumerate(lists):
        leaf = Leaf(f"line{number or ''}", regex=".*".join(map(escaped, words)), source=sources)
        if max(len(word.strip()) for word in words) >= 3 and not check_regex(leaf):
            nodes.append(leaf)
        if len(words) > 1 and _SPREAD & {*kinds} and all(len(word) >= WORD for word in words):
            nodes.append(_spread(words, number, sources))
    if not nodes:
        return None
    return nodes[0] if len(nodes) == 1 else Group("any", tuple(nodes))


def _spread(words: list[str], number: int, sources: tuple[str, ...]) -> Group:
    """The keywords on lines that follow each other closely."""
    first = Leaf(f"s{number}_0", contains=(words[0],), source=sources)
    near = Near(first.id, lines=APART)
    rest = [Leaf(f"s{number}_{n}", contains=(word,), source=sources, near=near) for n, word in enumerate(words[1:], 1)]
    return Group("sequence", (first, *rest))


def _both(said: dict[str, Any], field: str, otherwise: str) -> Text:
    texts = {lang: " ".join(str(said.get(f"{field}_{lang}") or "").replace("{}", "…").split())[:600] for lang in ("en", "zh")}
    return Text(texts["en"] or texts["zh"] or otherwise, texts["zh"] or texts["en"] or otherwise)


def _steps(value: Any) -> tuple[str, ...]:
    """The steps of a remedy; a line that goes on with the one before is joined to it."""
    steps: list[str] = []
    for line in value if isinstance(value, list) else [value]:
        if isinstance(line, str) and line.strip():
            text = re.sub(r"^\d{1,2}[.、]\s*", "", line.strip()).rstrip("；;")
            if steps and line[:1] == " ":
                steps[-1] += " " + text
            else:
                steps.append(text)
    return tuple(step[:1000] for step in steps[:20])


def _edges(value: Any, left_out: Any) -> Iterator[Explains]:
    """What follows from an entry, on the same card where both lines know theirs."""
    for one in value if isinstance(value, list) else []:
        if isinstance(one, dict) and isinstance(one.get("dst_code"), str):
            if one.get("expression"):
                left_out(f"that {one['dst_code'][:60]} follows from it depends on an expression of its own; this edge is left out")
            else:
                yield Explains(_ident(one["dst_code"]), ("device",))


def _linked(rule: Rule, rules: dict[str, Rule]) -> Rule:
    """Without edges to entries that are made by the program itself."""
    return msgspec.structs.replace(rule, explains=tuple(one for one in rule.explains if one.rule in rules))
