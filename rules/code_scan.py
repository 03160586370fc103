"""Finds the codes of a log line at the places where log lines carry them."""

from __future__ import annotations

import re
from functools import lru_cache

from rules import aicore, chip_event, code_forms
from rules.codes import index, owner

_NUMBER = re.compile(r"-?(?:0[xX][0-9A-Fa-f]{1,16}|\d{1,20})")
_WORD_CODES = re.compile(r"[EWM](?<![A-Za-z0-9_./-].)(?:[0-9A-Z]\d{4}|RR\d{5}|IE\d\d[EWI][0-9A-F]{6})(?![A-Za-z0-9_/-])")
_AFTER_CODE = re.compile(r"[cC]ode(?:s| number)?(?: is)?[ =:\[(]{0,3}(0[xX][0-9A-Fa-f]{1,16}|-?\d{1,10}|[0-9A-Fa-f]{8})(?![0-9A-Za-z_]|\.\d)")
_AFTER_RET = re.compile(
    r"[rReE](?:et(?:urn)?|esult|rr[nN]o|rrorNo)(?: is:?| ?->)?[ =:\[(]{1,3}(0[xX][0-9A-Fa-f]{1,16}|-?\d{1,10})(?![0-9A-Za-z_]|\.\d)"
)
_EVENT_ID = re.compile(r"[eE]vent[_ ]?[iI][dD][ =:\[(]{1,3}(?:0[xX])?([0-9A-Fa-f]{8}|-?\d{9,10})(?![0-9A-Za-z])")
_CORE_WORDS = re.compile(r"errcode ?:? ?\([^()]{1,400}\)|error code ?= ?0[xX][0-9a-fA-F]{1,16}(?![0-9A-Za-z])")
_NAMES = re.compile(r"\b(?:ACL_ERROR|ACLNN_ERR|DRV_ERROR|RT_ERROR|TS_ERROR|HCCL_E|DCMI_ERR_CODE|DEV_ERROR)_[A-Z0-9_]+")
_NAMED = re.compile(r"\b(aicpu_errcode|sdma_cqe_status|sdma_cqeStatus|errType) ?[=:] ?(0[xX][0-9A-Fa-f]+|\d+)")
_CORE_CONTEXT = ("core error", "aicore", "aivec", "ivec error", "fftsplus")


@lru_cache(maxsize=8192)
def scan(line: str) -> tuple[str, ...]:
    """Canonical codes of a line, in order, each once."""
    found: list[tuple[int, str]] = []
    if "E" in line or "W" in line:
        for match in _WORD_CODES.finditer(line):
            if match[0] in index().rows or match[0][:3] == "MIE" or owner(match[0]):
                found.append((match.start(), match[0]))
    core = "rrcode" in line or "rror code" in line
    if core:
        for match in _CORE_WORDS.finditer(line):
            error = aicore.decode(match[0])
            if error is not None and (match[0][:7] == "errcode" or any(mark in line for mark in _CORE_CONTEXT) or error.words[0] > 1 << 32):
                found.append((match.start(), error.code))
    taken = {start for start, _ in found}
    if "ode" in line:
        for match in _AFTER_CODE.finditer(line):
            code = _canonical(line[max(0, match.start() - 24) : match.start() + 4], match[1])
            if code and not any(start <= match.start() < start + 12 for start in taken):
                found.append((match.start(), code))
    if "et" in line or "esult" in line or "rr" in line:
        for match in _AFTER_RET.finditer(line):
            code = _canonical(line[max(0, match.start() - 24) : match.start(1)], match[1])
            if code and (code[:7] != "hcclRet" or "hccl" in line or "HCC" in line):
                found.append((match.start(), code))
    if "vent" in line:
        for match in _EVENT_ID.finditer(line):
            event = code_forms.event_of(match[1])
            if event is not None:
                found.append((match.start(), event.code))
    if "_E" in line:
        for match in _NAMES.finditer(line):
            found += [(match.start(), row.code) for row in index().symbols.get(match[0], ())]
    if "aicpu_e" in line or "cqe" in line or "errType" in line:
        for match in _NAMED.finditer(line):
            code = f"{match[1]}={match[2].lower()}"
            if code in index().rows:
                found.append((match.start(), code))
    found.sort()
    return tuple(dict.fromkeys(code for _, code in found))


def _canonical(field: str, value: str) -> str:
    """The canonical code of a number behind a field, or an empty text; `field` is what stands before it, ending with the field's name."""
    lower = field.lower()
    event = code_forms.event_of(value)
    if event is not None and (chip_event.listed(event.id) or "exception" in lower or "event" in lower or "fault" in lower):
        return event.code
    if not _NUMBER.fullmatch(value):
        return ""
    number = int(value, 16 if "x" in value.lower() else 10)
    if "errno" in lower and (number >> 24 == 5 or "[" in lower) and number != 0:
        return f"hcclRet={number & 0xFFFF}" if f"hcclRet={number & 0xFFFF}" in index().rows and number >> 24 in (0, 5) else ""
    by_family = {row.family: row for row in index().numbers.get(number, ())}
    if "drv" in lower or "driver" in lower:
        wanted: tuple[str, ...] = ("driver",)
    elif "hccl" in lower or "hcom" in lower or lower.endswith(("ret[", "ret [")):
        wanted = ("hccl",)
    elif lower.endswith(("retcode", "ret_code", "ret code")):
        wanted = ("ts",) if "x" in value.lower() else ()
    else:
        wanted = ()
    for family in (*wanted, "acl", "aclnn", "ge", "runtime", "ge-inner", "dcmi"):
        if family in by_family and number and number != 0xFFFFFFFF:
            return by_family[family].code
    if number < -1 and ("ret" in lower or "err" in lower) and "exit" not in lower and f"errno={-number}" in index().rows:
        return f"errno={-number}"
    if "errno" in lower and f"errno={number}" in index().rows:
        return f"errno={number}"
    return ""
