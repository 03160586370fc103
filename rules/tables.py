"""The shipped tables of facts: tab-separated text under `rules/data`, read when first asked for."""

from __future__ import annotations

import os

_FOLDER = os.path.join(os.path.dirname(__file__), "data")


def table(name: str, columns: int) -> list[list[str]]:
    """Rows of `rules/data/<name>.tsv`, each padded to `columns` fields; `#` lines are comments. A missing file raises OSError."""
    rows = []
    with open(os.path.join(_FOLDER, f"{name}.tsv"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    for line in lines:
        if line and not line.startswith("#"):
            row = line.split("\t")
            rows.append(row if len(row) == columns else row + [""] * (columns - len(row)))
    return rows
