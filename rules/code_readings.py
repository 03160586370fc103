"""The readings of a code: from the tables, and from the bits of codes that no table has."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from rules import aicore, chip_event, code_forms
from rules.catalog import Meaning, Part, Related
from rules.code_scan import scan
from rules.codes import RANK, Row, index, owner
from rules.model import Text

_HEAD = re.compile(r"[EW][0-9A-Z]\d{4}")
_MINDIE = re.compile(r"MIE(\d\d)([EWI])([0-9A-F]{2})([0-9A-F]{2})([0-9A-F]{2})")
_HCCL_NUMBER = re.compile(r"errno ?\[?\(?(0x[0-9a-f]{9,16}|0x0*5[0-9a-f]{6})\b", re.I)
_NUMBER = re.compile(r"-?(?:0[xX][0-9A-Fa-f]{1,16}|\d{1,20})")
_FIELD = re.compile(r"(?P<name>[A-Za-z][A-Za-z_ -]{0,40}?) ?(?:->|[=:\[(]| is | )+ ?(?P<value>-?0[xX][0-9A-Fa-f]+|-?\d+|[0-9A-Fa-f]{8})[\])]?,?")

_BY_FIELD: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern, re.I), families)
    for pattern, families in (
        (r"drv|driver|^hal|^devdrv", ("driver", "errno")),
        (r"hccl|hcom|^ret ?\[$", ("hccl",)),
        (r"aicpu", ("aicpu",)),
        (r"sdma", ("sdma",)),
        (r"errtype", ("cqe",)),
        (r"dcmi|npu-smi|dsmi", ("dcmi", "driver")),
        (r"^(system )?errno$|kernel|^linux", ("errno",)),
        (r"event|exception code|fault ?(code|id)|alarm", ("event", "bbox", "public-fault")),
        (r"bmc|sel\b", ("bmc",)),
        (r"inner", ("runtime", "ge-inner")),
        (r"ret_?code|^ts$|tsch", ("ts", "acl", "runtime", "dcmi")),
        (r"runtime|^acl$", ("acl", "runtime")),
    )
)
"""Log fields and contexts -> the families their numbers belong to."""
_COMPONENTS = {
    "00": "Cert", "01": "Benchmark", "02": "Client", "03": "MS", "04": "Server", "05": "LLM", "06": "SD", "07": "RT", "08": "Torch",
}  # fmt: skip
_MS_PARTS = {"10": "controller", "20": "coordinator", "30": "deployer", "40": "common"}
_MS_KINDS = {
    "00": Text("exception caught, see the text with it", "捕获到异常，详见随附信息"),
    "01": Text("input from outside is illegal", "外部输入不合法"),
    "02": Text("inner parameter check failed", "内部参数校验失败"),
    "03": Text("out of range", "超出范围"),
    "04": Text("operation done twice", "重复操作"),
    "05": Text("not found", "未找到"),
    "06": Text("a resource reached its limit", "资源达到阈值"),
    "07": Text("resource exhausted", "资源耗尽"),
    "08": Text("timed out", "超时"),
    "09": Text("link broken, peer unreachable", "通信链路中断"),
    "0A": Text("a call inside failed", "内部调用失败"),
    "0B": Text("service or resource unavailable", "服务或资源不可用"),
    "0C": Text("refused in the present state", "当前状态不允许该操作"),
    "0D": Text("interrupted", "操作中断"),
    "0E": Text("data lost or damaged", "数据丢失或损坏"),
    "0F": Text("not authenticated", "未通过身份认证"),
    "10": Text("permission denied", "无操作权限"),
}
_LEVELS = {"E": Text("error", "错误"), "W": Text("warning", "警告"), "I": Text("information", "信息")}


@lru_cache(maxsize=4096)
def readings(text: str, context: str) -> tuple[Meaning, ...]:
    """Of one code, or of the codes in a line."""
    found = _one(text, context)
    if not found and any(mark in text for mark in " :=[("):
        found = [meaning for code in scan(text) for meaning in _one(code, context)]
    return tuple({(meaning.family, meaning.code): meaning for meaning in found}.values())


@lru_cache(maxsize=4096)
def pattern(code: str) -> str:
    """The regex of all readings of a code; of an unknown one its own text as a whole word."""
    patterns = list(dict.fromkeys(_pattern_of(meaning.family, meaning.code) for meaning in readings(code, "")))
    if not patterns:
        word = re.sub(r"[^0-9A-Za-z_ ]", lambda found: "\\" + found[0], code)
        return f"(?:^|[^0-9A-Za-z_]){word}(?:[^0-9A-Za-z_]|$)"
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"


def similar(wanted: str, count: int) -> list[str]:
    """Known codes or symbols close to an upper-case text."""
    import difflib  # deferred: only for a code that is not found

    found = _NUMBER.search(wanted)
    pools: tuple[dict[str, str], ...]
    if found and found[0] == wanted and "X" not in wanted:
        pools = ({row.code: row.code for row in index().rows.values() if row.code.isdecimal()},)
    elif found and found[0] == wanted:
        pools = ({row.code.upper(): row.code for row in index().rows.values() if row.code.startswith("0x")},)
    else:
        pools = ({code.upper(): code for code in index().rows}, {symbol: symbol for symbol in (*index().symbols, *index().aliases)})
    close: list[str] = []
    for pool in pools:
        close += [pool[name] for name in difflib.get_close_matches(wanted, list(pool), count, 0.72)]
    close.sort(key=lambda name: -difflib.SequenceMatcher(None, wanted, name.upper()).ratio())
    return close[:count]


def _one(text: str, context: str = "") -> list[Meaning]:
    """Readings of a text that is one code."""
    known = index()
    upper = text.upper()
    if text in known.rows:
        rows = [known.rows[text]]
        return _ordered([_of_row(row) for row in rows] + (_numbers(text, context) if _NUMBER.fullmatch(text) else []))
    if upper in known.rows:
        return [_of_row(known.rows[upper])]
    if text in known.aliases or upper in known.aliases:
        codes, note = known.aliases.get(text) or known.aliases[upper]
        return [msgspec.structs.replace(_of_row(known.rows[code]), note=note) for code in codes]
    if _HEAD.fullmatch(upper):
        return _by_prefix(upper)
    if found := _MINDIE.fullmatch(upper):
        return [_of_mindie(found)]
    if found := _HCCL_NUMBER.search(text):
        return _of_hccl(int(found[1], 16))
    if upper in known.symbols:
        return _ordered([_of_row(row) for row in known.symbols[upper]])
    error = aicore.decode(text) if "code" in text else None
    if error is not None and not (len(error.words) == 1 and error.david and error.words[0] > 99 and error.words[0] in known.numbers):
        rest = _field(text, context) if len(error.words) == 1 and error.words[0] > 0xFFFF else []
        return [_of_core(error), *rest]
    if _NUMBER.fullmatch(text) or re.fullmatch(r"[0-9A-Fa-f]{8}", text):
        return _numbers(text, context)
    return _field(text, context)


def _field(text: str, context: str) -> list[Meaning]:
    """`ErrCode=507001`, `retCode=0x26`, `ret[4]`, `driver -12`."""
    found = _FIELD.fullmatch(text)
    if not found:
        return []
    name = found["name"].strip()
    return _numbers(found["value"], context or ("ret[" if name == "ret" and "[" in text else name))


def _numbers(text: str, context: str) -> list[Meaning]:
    """Readings of a number: decimal or hexadecimal, with sign or as the same bits without."""
    known, values = index(), []
    if _NUMBER.fullmatch(text):
        values.append(int(text, 16 if "x" in text.lower() else 10))
    if re.fullmatch(r"[0-9A-Fa-f]{8}", text):
        values.append(int(text, 16))
    found: list[Meaning] = []
    for value in values:
        for same in dict.fromkeys((value, value & 0xFFFFFFFF if value < 0 else value, value - (1 << 32) if 1 << 31 <= value < 1 << 32 else value)):
            found += [_of_row(row) for row in known.numbers.get(same, ())]
            if -134 < same < 0 and (value < 0 or same < -1) and f"errno={-same}" in known.rows:
                found.append(_of_row(known.rows[f"errno={-same}"]))
    event = code_forms.event_of(text)
    if event is not None:
        found.append(_of_event(event))
    if text in known.rows:
        found.append(_of_row(known.rows[text]))
    found = list({(meaning.family, meaning.code): meaning for meaning in found}.values())
    for pattern, families in _BY_FIELD:
        if context and pattern.search(context):
            fitting = [meaning for meaning in found if meaning.family in families]
            if fitting:
                return sorted(fitting, key=lambda meaning: families.index(meaning.family))
    return _ordered(found)


def _ordered(found: list[Meaning]) -> list[Meaning]:
    unique = {(meaning.family, meaning.code): meaning for meaning in found}
    return sorted(unique.values(), key=lambda meaning: RANK[meaning.family])


@lru_cache(maxsize=1024)
def _of_row(row: Row) -> Meaning:
    known = index()
    related = [Related(code, known.rows[code].symbol, "up") for code in _chain(row.code, known.up)]
    below = known.down.get(row.code, ())
    if len(below) <= 12:  # a catch-all has hundreds: no use as a hint
        related += [Related(code, known.rows[code].symbol, "down") for code in _chain(row.code, known.down)]
    return Meaning(
        row.code, row.symbol, row.family, row.layer, Text(row.en, row.zh), row.generic, code_forms.row_spellings(row), tuple(related[:16]),
        row.source, (), known.notes.get(row.code),
    )  # fmt: skip


def _chain(code: str, links: dict[str, list[str]]) -> list[str]:
    out: list[str] = []
    todo = list(links.get(code, ()))
    while todo:
        step = todo.pop(0)
        if step not in out:
            out.append(step)
            todo += links.get(step, ())
    return out


def _by_prefix(code: str) -> list[Meaning]:
    """A CANN message code that no table has: its prefix still names the component."""
    row = owner(code)
    if row is None:
        return []
    en, zh = f"Not in the catalogue; by its prefix from {row.en}", f"目录中没有该码；按前缀来自：{row.zh}"
    return [Meaning(code, "", "cann-prefix", row.layer, Text(en, zh), True, (code,), source=row.source)]


def _of_mindie(found: re.Match[str]) -> Meaning:
    component, level, part, _, kind = found.groups()
    name, severity = _COMPONENTS.get(component, f"component {component}"), _LEVELS[level]
    en, zh = f"MindIE {name}: {severity.en} without public description", f"MindIE {name}：{severity.zh}，无公开说明"
    parts = [Part("component", component, Text(f"MindIE {name}", f"MindIE {name}")), Part("level", level, severity)]
    if component == "03" and kind in _MS_KINDS:
        where = _MS_PARTS.get(part, part)
        en, zh = f"MindIE MS {where}: {_MS_KINDS[kind].en}", f"MindIE MS {where}：{_MS_KINDS[kind].zh}"
        parts += [Part("part", part, Text(where, where)), Part("kind", kind, _MS_KINDS[kind])]
    code = found[0]
    return Meaning(code, "", "mindie", "application", Text(en, zh), True, (code,), source="MindIE error code reference", parts=tuple(parts))


def _of_hccl(number: int) -> list[Meaning]:
    """The number of an HCCL log line: module 5, sub-module, and the HcclResult in the low 16 bits."""
    row = index().rows.get(f"hcclRet={number & 0xFFFF}")
    if row is None or number >> 24 not in (0, 5):
        return []
    part = Part("sub-module", f"{number >> 16 & 0xFF:#x}", Text("sub-module of HCCL", "HCCL 子模块"))
    return [msgspec.structs.replace(_of_row(row), parts=(part,))]


def _of_event(event: chip_event.ChipEvent) -> Meaning:
    number = Text(event.node_text.en, event.node_text.zh)
    parts = [
        Part("side", f"{event.id >> 30}", event.side),
        Part("module" if event.blackbox else "node", f"{event.node_type:#x}", number),
        Part(
            "sub-module" if event.blackbox else "sensor",
            f"{event.sensor_type:#x}",
            Text("sub-module", "子模块") if event.blackbox else Text("sensor type", "传感器类型"),
        ),
        Part("function code" if event.blackbox else "state", f"{event.state:#x}", event.text),
    ]
    if event.severity is not None:
        parts.append(Part("severity", str(event.severity), chip_event.SEVERITIES[event.severity]))
    if event.level:
        parts.append(Part("level", str(event.level), chip_event.LEVELS.get(event.level, Text("unknown level", "未知级别"))))
    if event.handling:
        parts.append(Part("cluster handling", event.handling, chip_event.HANDLING.get(event.handling, Text(event.handling, event.handling))))
    if event.fault_class:
        parts.append(
            Part("fault class", event.fault_class, chip_event.FAULT_CLASSES.get(event.fault_class, Text(event.fault_class, event.fault_class)))
        )
    family = "bbox" if event.blackbox else "event"
    source = "driver and cluster event lists" if chip_event.listed(event.id) else "bits of the id"
    return Meaning(
        event.code, event.node, family, event.layer, event.meaning, not event.known, code_forms.event_spellings(event.id), (), source,
        tuple(parts), index().notes.get(event.code),
    )  # fmt: skip


def _of_core(error: aicore.CoreError) -> Meaning:
    parts = tuple(
        Part(bit.place, bit.symbol, bit.meaning, bit.kind, aicore.CLASSES[bit.kind][1]) for bit in error.bits
    ) + tuple(Part(place, "", Text("no public meaning", "无公开含义")) for place in error.unknown)  # fmt: skip
    symbol = error.bits[0].symbol if len(error.bits) == 1 else ""
    layer = "hardware" if error.bits and set(error.kinds) <= {"ecc"} else "operator"
    note = None if error.bits else error.suspects
    return Meaning(
        error.code, symbol, "aicore", layer, error.verdict, not error.bits, code_forms.core_spellings(error), (), "runtime error tables",
        parts, note,
    )  # fmt: skip


def _pattern_of(family: str, code: str) -> str:
    if family in ("event", "bbox"):
        return code_forms.event_pattern(int(code, 16))
    if family == "aicore":
        error = aicore.decode(code)
        assert error is not None, code
        return code_forms.core_pattern(error)
    row = index().rows.get(code)
    return code_forms.row_pattern(row) if row else f"(?:^|[^0-9A-Za-z_]){code}(?:[^0-9A-Za-z_]|$)"
