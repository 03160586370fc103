"""Packs: folders of YAML read into rules, every mistake located and kept; the sound rules of a broken pack still run."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import pathlib
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rules import ascend_fd, looks, query, yaml_text
from rules.cache import read_cache, write_cache
from rules.model import Option, Pack, Problem, Rule, RuleSet, leaves_of
from rules.reader import ID, read_rule

SHIPPED = pathlib.Path(__file__).parent / "packs"
FORMAT = "7"
"""Part of the cache key: changes with the shape of Rule."""
RULES = 20_000
"""At most so many rules are taken from one pack."""


# ---------------------------------------------------------------- finding packs


def load(folders: Sequence[str | os.PathLike[str]] = (), shipped: bool = True) -> RuleSet:
    """All rules of the shipped packs, of the user's own, of installed ones, and of `folders` (each a pack or a folder of packs)."""
    roots = [SHIPPED, *_user_folders(), *_installed()] if shipped else []
    folders = [_named(folder) for folder in folders]
    missing = [Problem(str(folder), 1, 1, "no such folder or file; give the folder of a pack") for folder in folders if not os.path.lexists(folder)]
    roots += [pathlib.Path(folder) for folder in folders if os.path.lexists(folder)]
    return _merged([_load(root) for root in roots], missing)


def _named(folder: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """What `ascend-fd` stands for: the knowledge base of the one that is installed; any other name stands for itself."""
    if folder != ascend_fd.PACK or os.path.lexists(folder):
        return folder
    return ascend_fd.find() or folder


def _load(root: pathlib.Path) -> RuleSet:
    """The rules of one folder, or of a knowledge base of ascend-fd, from the cache where its files have not changed."""
    if root.suffix == ".json" and root.is_file():
        return _load_base(root)
    read: list[tuple[str, str, bytes | Problem]] = []
    digest = hashlib.sha256(FORMAT.encode())
    for path in _yaml_files(root):
        shown = path.relative_to(root.parent).as_posix() if path.is_relative_to(root.parent) else path.as_posix()
        data = _read_plain(path, shown)
        read.append((str(path.parent), shown, data))
        digest.update(repr((str(path), data if isinstance(data, bytes) else str(data))).encode())
    name = f"rules-{digest.hexdigest()[:24]}.msgpack"
    if (cached := read_cache(name)) is not None:
        with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError):
            return msgspec.msgpack.decode(cached, type=RuleSet)
    rules = _build(read)
    write_cache(name, msgspec.msgpack.encode(rules))
    return rules


def _load_base(root: pathlib.Path) -> RuleSet:
    data = _read_plain(root.resolve(), root.as_posix(), ascend_fd.BYTES)
    if isinstance(data, Problem):
        return RuleSet((), (), (data,))
    seed = FORMAT.encode() + root.as_posix().encode() + ascend_fd.reading() + data
    name = f"rules-{hashlib.sha256(seed).hexdigest()[:24]}.msgpack"
    if (cached := read_cache(name)) is not None:
        with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError):
            return msgspec.msgpack.decode(cached, type=RuleSet)
    found, problems = ascend_fd.convert(data, root.as_posix())
    sound, broken = _sound(found)
    left_out = [problem for problem in problems if problem.level == "warning"]
    if left_out:
        message = f"{len(left_out)} entries or edges are left out; `dsforensics rules import-fd {root}` says why"
        problems = [problem for problem in problems if problem.level != "warning"] + [Problem(root.as_posix(), 1, 1, message, "warning")]
    pack = Pack(ascend_fd.PACK, hashlib.sha256(data).hexdigest()[:12], len(sound), str(root))
    rules = RuleSet((pack,), tuple(sound), (*problems, *broken))
    write_cache(name, msgspec.msgpack.encode(rules))
    return rules


def _merged(parts: list[RuleSet], problems: list[Problem]) -> RuleSet:
    """Several sets as one; a rule whose id an earlier set has is left out."""
    rules: dict[str, Rule] = {}
    for part in parts:
        problems += part.problems
        for rule in part.rules:
            if rule.id in rules:
                problems.append(_taken(rule, rules[rule.id]))
            else:
                rules[rule.id] = rule
    return RuleSet(tuple(pack for part in parts for pack in part.packs), tuple(rules.values()), tuple(problems))


def _taken(rule: Rule, first: Rule) -> Problem:
    return Problem(rule.file, rule.line, 1, f"the id {rule.id!r} is taken by {first.file}:{first.line}; give this rule its own")


def _user_folders() -> list[pathlib.Path]:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    folder = pathlib.Path(base, "dsforensics", "packs")
    return [folder] if folder.is_dir() else []


def _installed() -> list[pathlib.Path]:
    """Packs that other distributions bring: entry points of the group dsforensics.packs that name a package."""
    from importlib import metadata, util

    found = []
    for point in metadata.entry_points(group="dsforensics.packs"):
        spec = util.find_spec(point.module)
        found += [pathlib.Path(place) for place in (spec.submodule_search_locations or []) if spec] if spec else []
    return found


def _yaml_files(root: pathlib.Path) -> list[pathlib.Path]:
    if root.is_file() or root.is_symlink():
        return [root]
    out = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        out += [pathlib.Path(folder, name) for name in sorted(names) if name.endswith((".yaml", ".yml"))]
    return out


def _read_plain(path: pathlib.Path, shown: str, most: int = yaml_text.BYTES) -> bytes | Problem:
    """The bytes of a regular file; links, devices and pipes are not opened."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        kind = "is a link; put the file itself there" if path.is_symlink() else f"cannot be read: {error.strerror}"
        return Problem(shown, 1, 1, f"the file {kind}")
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return Problem(shown, 1, 1, "this is no regular file")
        return stream.read(most + 1)


# ---------------------------------------------------------------- building


def _build(files: list[tuple[str, str, bytes | Problem]]) -> RuleSet:
    problems: list[Problem] = []
    packs: dict[str, tuple[str, str]] = {}
    options: dict[str, tuple[Option, ...]] = {}
    rules: dict[str, Rule] = {}
    owners: dict[str, str] = {}
    for folder, shown, data in files:
        packs.setdefault(folder, (os.path.basename(folder) or "pack", "0"))
        if isinstance(data, Problem):
            problems.append(data)
            continue
        try:
            documents = yaml_text.read(data, shown)
        except yaml_text.YamlProblem as error:
            problems.append(error.problem)
            continue
        if os.path.basename(shown) in ("pack.yaml", "pack.yml"):
            header, wrong = _header(documents, shown, packs[folder][0])
            packs[folder] = header
            options[folder], amiss = _options(documents, shown)
            problems += wrong + amiss
            continue
        for item, at in _rule_items(documents):
            rule, wrong = read_rule(item, shown, at, packs[folder][0])
            if rule is not None and rule.id in rules:
                wrong.append(_taken(rule, rules[rule.id]))
                rule = None
            problems += wrong
            if rule is not None and len(rules) < RULES:
                rules[rule.id] = rule
                owners[rule.id] = folder
    sound, broken = _sound(list(rules.values()))
    unknown = [lost for rule in sound if (lost := _unknown_option(rule, options.get(owners[rule.id], ()))) is not None]
    sound = [rule for rule in sound if (rule.file, rule.line) not in {(lost.file, lost.line) for lost in unknown}]
    problems += broken + unknown
    counted = [owners[rule.id] for rule in sound]
    made = [Pack(name, version, counted.count(folder), folder, options.get(folder, ())) for folder, (name, version) in packs.items()]
    named = {folder: name for folder, (name, _) in packs.items()}
    final = tuple(msgspec.structs.replace(rule, pack=named[owners[rule.id]]) for rule in sound)
    return RuleSet(tuple(pack for pack in made if pack.rules), final, tuple(problems))


def _sound(rules: list[Rule]) -> tuple[list[Rule], list[Problem]]:
    """Rules whose patterns can be matched, and what is wrong with the others."""
    problems = looks.broken_leaves(RuleSet((), tuple(rules)))
    broken = {(problem.file, problem.line) for problem in problems}
    return [rule for rule in rules if (rule.file, rule.line) not in broken], problems


def _header(documents: list[Any], shown: str, name: str) -> tuple[tuple[str, str], list[Problem]]:
    head = documents[0] if documents and isinstance(documents[0], yaml_text.Mapping) else None
    if head is None:
        return (name, "0"), [Problem(shown, 1, 1, "pack.yaml needs at least `name:` and `version:`")]
    problems = []
    given, version = head.get("name"), head.get("version")
    if isinstance(given, str) and ID.match(given):
        name = given
    else:
        problems.append(Problem(shown, *head.at.get("name", (1, 1)), "`name` must be lower-case words joined by - or ."))
    if not isinstance(version, (str, int, float)) or len(str(version)) > 40:
        problems.append(Problem(shown, *head.at.get("version", (1, 1)), "`version` must be a short text such as 1.0.0"))
        version = "0"
    return (name, str(version)), problems


def _options(documents: list[Any], shown: str) -> tuple[tuple[Option, ...], list[Problem]]:
    """`options:` of pack.yaml: name -> {value, unit, source}."""
    head = documents[0] if documents and isinstance(documents[0], yaml_text.Mapping) else {}
    given = head.get("options")
    if given is None:
        return (), []
    at = head.at.get("options", (1, 1)) if isinstance(head, yaml_text.Mapping) else (1, 1)
    if not isinstance(given, yaml_text.Mapping):
        return (), [Problem(shown, *at, "`options` is a mapping such as {least_us: {value: 20, unit: us, source: vendor advisor}}")]
    found, problems = [], []
    for name, one in given.items():
        value = one.get("value") if isinstance(one, yaml_text.Mapping) else None
        if not query.parameters(f"${name}") or isinstance(value, bool) or not isinstance(value, (int, float, str)):
            problems.append(Problem(shown, *given.at.get(name, at), f"the option {name!r} needs a lower-case name and {{value: a number or a text}}"))
            continue
        if not isinstance(one.get("source"), str):
            message = f"the option {name!r} does not say where its value is from: `source:`"
            problems.append(Problem(shown, *given.at.get(name, at), message, "warning"))
        number = value if isinstance(value, str) else float(value)
        found.append(Option(name, number, str(one.get("unit") or ""), str(one.get("source") or "")))
    return tuple(found), problems


def _unknown_option(rule: Rule, options: tuple[Option, ...]) -> Problem | None:
    names = {option.name for option in options}
    wanted = {name for leaf in leaves_of(rule.match) for name in query.parameters(leaf.sql)} - names
    if not wanted:
        return None
    return Problem(rule.file, rule.line, 1, f"{rule.id}: the query names ${min(wanted)}, which is no option of pack.yaml")


def set_options(rules: RuleSet, given: Mapping[str, str]) -> RuleSet:
    """The rules with options of their packs set to other values: `pack.name` -> value. ValueError for one that is not there or does not fit."""
    packs = list(rules.packs)
    for path, text in given.items():
        pack, _, name = path.partition(".")
        place = next((n for n, one in enumerate(packs) if one.name == pack and any(option.name == name for option in one.options)), None)
        if place is None:
            known = sorted(f"{one.name}.{option.name}" for one in packs for option in one.options)
            near = difflib.get_close_matches(path, known, 1)
            raise ValueError(f"there is no option {path!r}{f'; did you mean {near[0]!r}?' if near else ''}")
        options = []
        for option in packs[place].options:
            if option.name == name:
                value: float | str = text
                if not isinstance(option.value, str):
                    try:
                        value = float(text)
                    except ValueError:
                        raise ValueError(f"{path} is a number{f' ({option.unit})' if option.unit else ''}; found {text!r}") from None
                option = msgspec.structs.replace(option, value=value, source="set by the user")
            options.append(option)
        packs[place] = msgspec.structs.replace(packs[place], options=tuple(options))
    return msgspec.structs.replace(rules, packs=tuple(packs))


def _rule_items(documents: list[Any]) -> Iterable[tuple[Any, tuple[int, int]]]:
    """Rules of a file: a list, several documents, or a list under `rules:`."""
    for document in documents:
        if isinstance(document, yaml_text.Mapping) and isinstance(document.get("rules"), yaml_text.Sequence) and "id" not in document:
            document = document["rules"]
        if isinstance(document, yaml_text.Sequence):
            yield from zip(document, document.at, strict=True)
        elif document is not None:
            yield document, (getattr(document, "line", 1), getattr(document, "column", 1))
