"""The table of published codes and its indices: by canonical code, by number, by symbol. Loaded when first asked for.

The canonical code of a row is its own word where that is unmistakable (507001, 0x7110001, EZ9999, ERR00100, MIE04E020204), and the log
field with its value where the bare number means different things in different places (retCode=0x26, drvRetCode=17, hcclRet=4, errno=12).
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from rules.model import Text
from rules.tables import table

FAMILIES = {
    "acl": Text("ACL / runtime", "ACL / Runtime"),
    "aclnn": Text("aclnn", "aclnn"),
    "ge": Text("graph engine", "图引擎 GE"),
    "ge-inner": Text("graph engine, inner", "图引擎 GE 内部码"),
    "runtime": Text("runtime, inner", "Runtime 内部码"),
    "ts": Text("task scheduler retCode", "任务调度器 retCode"),
    "hccl": Text("HCCL result", "HCCL 返回码"),
    "driver": Text("driver", "驱动返回码"),
    "dcmi": Text("DCMI / npu-smi", "DCMI / npu-smi"),
    "errno": Text("Linux errno", "Linux errno"),
    "aicpu": Text("AI CPU errcode", "AI CPU errcode"),
    "sdma": Text("SDMA status", "SDMA 状态"),
    "cqe": Text("STARS errType", "STARS errType"),
    "cann": Text("CANN message code", "CANN 消息码"),
    "cann-prefix": Text("CANN message code, by its prefix", "CANN 消息码（按前缀）"),
    "torch_npu": Text("torch_npu", "torch_npu"),
    "mindie": Text("MindIE", "MindIE"),
    "bmc": Text("BMC event", "BMC 事件"),
    "event": Text("chip event", "芯片事件"),
    "bbox": Text("black-box exception", "黑匣子异常码"),
    "public-fault": Text("cluster public fault", "集群公共故障"),
    "aicore": Text("AI Core error word", "AI Core 错误字"),
}
"""Families of codes, in the order in which the readings of a bare number are shown."""
SMALL = ("ts", "hccl", "driver", "errno", "aicpu", "sdma", "cqe")
"""Families whose numbers are small and collide: read only together with their field."""
RANK = {family: rank for rank, family in enumerate(FAMILIES)}
_VALUE = re.compile(r"(?:[A-Za-z_]+=)?(-?(?:0x[0-9A-Fa-f]+|\d+))")


class Row(msgspec.Struct, frozen=True, gc=False):
    code: str
    symbol: str
    family: str
    layer: str
    en: str
    zh: str
    generic: bool
    source: str

    @property
    def number(self) -> int | None:
        """The value as a number; None for codes that are words."""
        if self.family in ("cann", "cann-prefix", "torch_npu", "mindie"):
            return None
        found = _VALUE.fullmatch(self.code)
        return int(found[1], 16 if "x" in found[1] else 10) if found else None


class Index(msgspec.Struct, frozen=True):
    rows: dict[str, Row]
    """By canonical code."""
    numbers: dict[int, list[Row]]
    symbols: dict[str, list[Row]]
    """By symbol; generic names such as Invalid_Argument, which many codes share, are not in it."""
    up: dict[str, list[str]]
    """Code -> the codes it is turned into, next layer up."""
    down: dict[str, list[str]]
    notes: dict[str, Text]
    aliases: dict[str, tuple[tuple[str, ...], Text]]
    """Name in circulation that no header has -> codes that may be meant, and what to know about it."""


@cache
def index() -> Index:
    source = dict(table("sources", 2))
    rows: dict[str, Row] = {}
    numbers: dict[int, list[Row]] = {}
    symbols: dict[str, list[Row]] = {}
    for code, symbol, family, layer, en, zh, generic, short in table("codes", 8):
        row = rows[code] = Row(code, symbol, family, layer, en, zh, generic == "1", source[short])
        number = row.number
        if number is not None:
            numbers.setdefault(number, []).append(row)
        if symbol and symbol == symbol.upper() and family not in ("cann", "torch_npu"):
            symbols.setdefault(symbol, []).append(row)
    up: dict[str, list[str]] = {}
    down: dict[str, list[str]] = {}
    for low, high in table("chains", 2):
        up.setdefault(low, []).append(high)
        down.setdefault(high, []).append(low)
    notes = {code: Text(en, zh) for code, en, zh in table("notes", 3)}
    aliases = {name: (tuple(codes.split(",")), Text(en, zh)) for name, codes, en, zh in table("aliases", 4)}
    return Index(rows, numbers, symbols, up, down, notes, aliases)


def owner(code: str) -> Row | None:
    """The prefix row of a CANN message code such as EZ1234: who prints codes of this kind."""
    rows = index().rows
    return rows.get(f"{code[:2]}xxxx") or (rows["Wxxxxx"] if code[:1] == "W" and f"E{code[1:2]}xxxx" in rows else None)
