"""A triage with who and where replaced: the same model, so that every form of the report is redacted alike."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from forensics.redact.engine import Redactor
from forensics.result import CodeSeen, Triage
from rules.model import Pack, Rule

_OURS = (Rule, Pack, CodeSeen)
"""Texts of rule packs and of the catalogue of codes, none of the bundle's."""
_FIXED = frozenset(
    {
        "version", "kind", "parser", "encoding", "status", "clock", "zone", "role", "grammar", "severity", "level", "sha256", "explains",
        "supported_by", "leaf",
    }
)  # fmt: skip
"""Fields that hold words of ours or digests."""
T = TypeVar("T")


def redacted(triage: Triage, redactor: Redactor) -> Triage:
    """A copy of `triage` without names. It names no case: the path of that tells of this machine."""
    out = _clean(triage, redactor)
    out.case = ""
    return out


def _clean(value: T, redactor: Redactor) -> T:
    made: Any = value
    if isinstance(value, str):
        made = redactor.text(value)
    elif isinstance(value, _OURS):
        pass
    elif isinstance(value, msgspec.Struct):
        fields = {
            name: field if name in _FIXED else _clean(field, redactor) for name, field in ((n, getattr(value, n)) for n in value.__struct_fields__)
        }
        made = type(value)(**fields)
    elif isinstance(value, dict):
        made = {key: _clean(item, redactor) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        made = type(value)(_clean(item, redactor) for item in value)
    return made  # type: ignore[no-any-return]
