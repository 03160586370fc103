"""What is installed, what each part is for, and what is missing: looked up without importing any of it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from typing import Literal

import msgspec

from forensics.extension import found
from forensics.report.page import Look, Page

PARTS = (
    ("hyperscan", "matches all rules in one pass", True),
    ("regex", "takes captures from the lines that matched, under a time limit", True),
    ("isal", "unpacks gzip and zip at several times the usual speed", True),
    ("zstandard", "unpacks zstd", True),
    ("duckdb", "holds the case and answers SQL", True),
    ("pyarrow", "writes the stored lines as Parquet", True),
    ("polars", "gives the rows of SQL", True),
    ("numpy", "columns of the stored lines", True),
    ("numba", "compiles the reader of lines", True),
    ("PyYAML", "reads rule packs", True),
    ("msgspec", "checks data where it comes in", True),
    ("typer", "the command line", True),
    ("rich", "text and tables of the browser", True),
    ("textual", "the browser of cases", True),
    ("textual-plotext", "plots in the browser", True),
    ("torch", "replays kernels on the CPU", False),
    ("torch_npu", "replays kernels on an NPU", False),
    ("safetensors", "reads dumped tensors for a replay", False),
)
"""Distribution, what it is for, whether triage needs it."""


class Check(msgspec.Struct, frozen=True):
    name: str
    state: Literal["ok", "missing", "note"]
    value: str
    purpose: str
    needed: bool = True


def own_version() -> str:
    """The installed version; "unknown" when run from a source tree that is not installed."""
    try:
        return importlib.metadata.version("dsforensics")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def examine() -> list[Check]:
    """All checks, the machine first."""
    checks = [
        Check("dsforensics", "ok", own_version(), "this tool"),
        Check("Python", "ok" if sys.version_info >= (3, 10) else "missing", platform.python_version(), "3.10 or later"),
        Check("machine", "ok", f"{platform.system()} {platform.machine()}, {_cores()} CPU cores", "workers that scan"),
    ]
    for name, purpose, needed in PARTS:
        try:
            checks.append(Check(name, "ok", importlib.metadata.version(name), purpose, needed))
        except importlib.metadata.PackageNotFoundError:
            checks.append(Check(name, "missing", "", purpose, needed))
    for name, point in found().items():
        checks.append(Check(f"command {name}", "ok", point.value, "further command"))
    from replay.listing import backends

    for name, works, why in backends():
        checks.append(Check(f"replay {name.partition('-')[0]}", "ok" if works else "missing", "works" if works else "", why, False))
    from rules.cache import CACHE  # deferred: own_version must not load the matcher

    writable = os.access(CACHE if CACHE.is_dir() else CACHE.parent, os.W_OK)
    kept = "compiled rules are kept there" if writable else "not writable: rules are compiled anew at every run"
    checks.append(Check("cache", "ok" if writable else "note", str(CACHE), kept))
    return checks


def render(checks: list[Check], look: Look) -> str:
    page = Page(look)
    name_width = max(len(check.name) for check in checks) + 2
    value_width = min(24, max(len(check.value) for check in checks)) + 2
    words = {"ok": ("ok", "green"), "note": ("note", "yellow"), "missing": ("missing", "red")}
    for check in checks:
        word, style = words[check.state] if check.state != "missing" or check.needed else ("optional", "yellow")
        label = f"{word:<10}{check.name:<{name_width}}{check.value:<{value_width}}"
        label = label if label.endswith(" ") else label + "  "
        page.row(label, check.purpose, label_style=style, column=max(len(label), 10 + name_width + value_width))
    return page.text()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
