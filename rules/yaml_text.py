"""YAML as plain data with positions, read from the parser's events: no tags, no anchors, no duplicate keys, bounded depth and size.

Built on events rather than on a loader, so that nothing is ever constructed that was not asked for and no nesting can exhaust the stack.
"""

from __future__ import annotations

from typing import Any

import yaml

from rules.model import Problem

DEPTH = 40
NODES = 400_000
BYTES = 4 << 20


class Mapping(dict[str, Any]):
    """A mapping that knows where it and its keys stand: `line`, `column` (from 1) and `at[key]`."""

    line: int = 1
    column: int = 1

    def __init__(self, line: int, column: int) -> None:
        super().__init__()
        self.line, self.column = line, column
        self.at: dict[str, tuple[int, int]] = {}


class Sequence(list[Any]):
    """A list that knows where its items stand: `at[index]`."""

    def __init__(self, line: int, column: int) -> None:
        super().__init__()
        self.line, self.column = line, column
        self.at: list[tuple[int, int]] = []


class YamlProblem(Exception):
    """The text cannot be read; `problem` says where and why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def read(data: bytes, file: str) -> list[Any]:
    """All documents of a YAML text. Raises YamlProblem."""
    if len(data) > BYTES:
        raise YamlProblem(Problem(file, 1, 1, f"the file has {len(data)} bytes, at most {BYTES} are read; split it"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YamlProblem(Problem(file, line, 1, "the text is not UTF-8; save the file as UTF-8")) from None
    try:
        return _documents(text, file)
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise YamlProblem(Problem(file, line, column, f"this is not valid YAML: {error.problem or error.context}")) from None
    except yaml.YAMLError as error:
        raise YamlProblem(Problem(file, 1, 1, f"this is not valid YAML: {' '.join(str(error).split())[:200]}")) from None
    except (RecursionError, ValueError) as error:
        raise YamlProblem(Problem(file, 1, 1, f"this is not valid YAML: {type(error).__name__}")) from None


def _documents(text: str, file: str) -> list[Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    out: list[Any] = []
    stack: list[Any] = []  # open containers; a mapping is followed by its pending key or None
    keys: list[tuple[str, int, int] | None] = []
    count = 0

    def fail(event: Any, message: str) -> YamlProblem:
        return YamlProblem(Problem(file, event.start_mark.line + 1, event.start_mark.column + 1, message))

    def put(value: Any, event: Any) -> None:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if not stack:
            out.append(value)
        elif isinstance(stack[-1], Sequence):
            stack[-1].append(value)
            stack[-1].at.append((line, column))
        elif keys[-1] is None:
            if not isinstance(value, str):
                raise fail(event, "a key must be a text")
            if value in stack[-1]:
                raise fail(event, f"the key {value!r} stands here for the second time; keep one of them")
            keys[-1] = (value, line, column)
        else:
            name, key_line, key_column = keys[-1]
            stack[-1][name] = value
            stack[-1].at[name] = (key_line, key_column)
            keys[-1] = None

    event: Any
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, (yaml.ScalarEvent, yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            count += 1
            if count > NODES:
                raise fail(event, f"the file holds more than {NODES} values; split it")
            if event.anchor:
                raise fail(event, "anchors (&name) are not allowed; write the text out")
            if event.tag and not event.tag.startswith("tag:yaml.org,2002:"):
                raise fail(event, f"tags such as {event.tag[:40]} are not allowed")
            if event.tag and "python" in event.tag:
                raise fail(event, "tags that make Python objects are not allowed")
        if isinstance(event, yaml.AliasEvent):
            raise fail(event, "aliases (*name) are not allowed; write the text out")
        if isinstance(event, yaml.ScalarEvent):
            is_key = bool(stack) and isinstance(stack[-1], Mapping) and keys[-1] is None
            put(event.value if is_key else _scalar(event), event)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            if len(stack) >= DEPTH:
                raise fail(event, f"nested more than {DEPTH} deep")
            mark: Any = event.start_mark
            kind = Sequence if isinstance(event, yaml.SequenceStartEvent) else Mapping
            made = kind(mark.line + 1, mark.column + 1)
            put(made, event)
            stack.append(made)
            keys.append(None)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            stack.pop()
            keys.pop()
    return out


def _scalar(event: Any) -> Any:
    """A plain scalar as bool, number or null where YAML 1.2 core says so; everything else stays text."""
    value: str = event.value
    if event.style or (event.tag and event.tag.endswith(":str")):
        return value
    if value in ("", "~", "null", "Null", "NULL"):
        return None
    if value in ("true", "True", "TRUE"):
        return True
    if value in ("false", "False", "FALSE"):
        return False
    if len(value) <= 20 and (value[0].isdigit() or value[0] in "-+."):
        for kind in (int, float):
            try:
                return kind(value) if value.isascii() and "_" not in value else value
            except ValueError:
                continue
    return value
