"""A verdict as text for a terminal, and as JSON. Everything that comes out of a file is made harmless."""

from __future__ import annotations

import json
import textwrap
import unicodedata
from typing import Any

import msgspec

from replay.plot_text import drawn
from replay.result import STATUS_WORDS, Verdict

COLOURS = {"confirmed": "31;1", "refuted": "32;1", "not-testable": "33", "precision": "33", "unknown": "35;1", "unavailable": "2"}
LABELS = {
    "kernel": ("kernel", "算子"), "verdict": ("verdict", "结论"), "judged": ("judged", "判定对象"), "error": ("error", "误差"),
    "fault": ("fault", "故障"), "breaks": ("breaks", "违反约束"), "note": ("note", "说明"), "next": ("next", "下一步"),
    "plot": ("Error by {axis}, in noise units; clean up to {limit:g}", "误差分布（横轴 {axis}，单位为噪声；不超过 {limit:g} 为正常）"),
}  # fmt: skip
AXES = {"position": "位置", "token": "token", "request": "请求", "row": "行", "column": "列"}


def safe(text: str) -> str:
    """One line that no terminal obeys; what could act on one is spelled out."""
    out = []
    for char in text:
        kind = unicodedata.category(char)
        out.append(char if kind not in ("Cc", "Cf", "Cs", "Zl", "Zp") else ascii(char)[1:-1])
    return "".join(out)


def rendered(verdict: Verdict, lang: str = "en", width: int = 100, colour: bool = False, ascii_only: bool = False) -> str:
    """The verdict for a reader; ends in a line feed."""
    at = 1 if lang == "zh" else 0

    def row(label: str, text: str) -> list[str]:
        name = LABELS[label][at]
        wide = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in name)
        room = max(30, width - 12) // (2 if lang == "zh" else 1)
        lines = textwrap.wrap(safe(text), room, break_on_hyphens=False) or [""]
        return [name + " " * max(1, 10 - wide) + lines[0], *(" " * 10 + line for line in lines[1:])]

    status = STATUS_WORDS[verdict.status].of(lang)
    painted = f"\x1b[{COLOURS[verdict.status]}m{status}\x1b[0m" if colour else status
    head = row("verdict", "")[0].rstrip()
    wide = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in head)
    lines = [*row("kernel", " · ".join(part for part in (verdict.kernel, verdict.dtype, verdict.shape) if part)), head + " " * (10 - wide) + painted]
    lines += [" " * 10 + part for part in textwrap.wrap(safe(verdict.reason.of(lang)), max(30, width - 12) // (2 if lang == "zh" else 1))]
    if verdict.subject:
        runs = f", {verdict.runs} x" if verdict.runs > 1 else ""
        lines += row("judged", verdict.subject + runs)
    if verdict.score is not None and verdict.noise is not None:
        tried = f"; {verdict.tried} models" if verdict.tried else ""
        lines += row("error", f"{verdict.score:.4g} x {verdict.noise:.3g}{tried}")
    for fit in verdict.faults:
        params = ", ".join(f"{key}={value}" for key, value in fit.params.items())
        lines += row("fault", f"{fit.name}{f' ({params})' if params else ''}: {fit.title.of(lang)} [{fit.score:.3g}]")
    for one in verdict.violations:
        lines += row("breaks", f"{one.operator}: {one.constraint} ({one.found}); {one.message or ('silent' if one.silent else '')} [{one.source}]")
    for note in verdict.notes:
        lines += row("note", note.of(lang))
    if verdict.plot is not None and len(verdict.plot.bins) > 1:
        axis = AXES[verdict.plot.axis] if lang == "zh" else verdict.plot.axis
        lines += ["", LABELS["plot"][at].format(axis=axis, limit=verdict.plot.limit)]
        lines += ["  " + line for line in drawn(verdict.plot, width - 2, ascii_only)]
    if verdict.command:
        lines += ["", *row("next", verdict.command)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def as_json(verdict: Verdict) -> str:
    """Strict JSON; numbers that are none as null."""
    return json.dumps(_strict(msgspec.to_builtins(verdict)), ensure_ascii=True, indent=2, allow_nan=False) + "\n"


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _strict(one) for key, one in value.items()}
    return [_strict(one) for one in value] if isinstance(value, list) else value
