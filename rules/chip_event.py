"""Chip event ids and black-box exception codes, such as 0x80E01801 and 0xB4060007: read from their bits, so that ids
nobody has listed are understood as well.

    event      31-30 side | 29-28 zero | 27-17 node type | 16-9 sensor type | 8-0 event state
    exception  31-30 side | 29-28 type | 27-25 level | 24-17 module | 16-12 sub-module | 11-0 function code

>>> event = decode(0x80E01801)
>>> event.node, event.text.en, event.severity
('HBM', 'uncorrectable (multi-bit) ECC error on access', 3)
"""

from __future__ import annotations

from functools import cache

import msgspec

from rules.model import Text
from rules.tables import table

SEVERITIES = (Text("notice", "提示"), Text("minor", "次要"), Text("major", "重要"), Text("critical", "紧急"))
"""By the number the driver gives to an event's severity."""
LEVELS = {1: Text("notice", "提示"), 2: Text("warning", "警告"), 3: Text("critical", "严重"), 4: Text("emergency", "紧急")}
"""By the level bits of a black-box exception."""
MODULES = {
    0x1: "DRIVER", 0x2: "OS", 0x3: "TS", 0x5: "AICPU", 0xA: "DVPP", 0xB: "AIPP", 0xC: "LPM", 0xD: "MICROWATT", 0xF: "TOOLCHAIN",
    0x13: "BSBC", 0x14: "BIOS", 0x15: "TEEOS", 0x17: "LPFW", 0x18: "NETWORK", 0x1A: "ATF", 0x1B: "HSM", 0x1C: "ISP", 0x1D: "SIL",
    0x1E: "DSS", 0x1F: "COMISOLATOR", 0x20: "AOS_SD", 0x21: "AOS_DP", 0x22: "AOS_LINUX", 0x23: "AOS_CORE", 0x24: "PEK", 0x25: "IMU",
    0x26: "QOS", 0x27: "UB", 0x30: "COMMON", 0x31: "REGDUMP",
}  # fmt: skip
"""Modules of black-box exceptions, by the module bits."""
HANDLING = {
    "NotHandle": Text("no action", "不处理"),
    "SubHealth": Text("sub-health, watch it", "亚健康，需关注"),
    "RestartRequest": Text("restart the request (inference) or the job", "重启推理请求或业务"),
    "RestartBusiness": Text("restart the job", "重启业务"),
    "FreeRestartNPU": Text("reset the NPU once it is free", "待 NPU 空闲后复位"),
    "RestartNPU": Text("reset the NPU", "复位 NPU"),
    "PreSeparateNPU": Text("take the NPU out of scheduling after the job", "业务结束后隔离 NPU"),
    "SeparateNPU": Text("take the NPU out of service", "隔离 NPU"),
}
"""How the cluster software handles an event."""
FAULT_CLASSES = {
    "Hardware": Text("hardware", "硬件"),
    "Software": Text("software", "软件"),
    "Software/Hardware": Text("software or hardware", "软件或硬件"),
    "User": Text("caused by the user's program", "用户程序引起"),
}
"""What the vendor's fault diagnosis files an event under."""
_SIDES = {1: Text("host", "Host 侧"), 2: Text("device", "Device 侧")}


class ChipEvent(msgspec.Struct, frozen=True):
    """One id, decoded. `node_type` and `sensor_type` are those of events; of black-box exceptions they hold module and sub-module."""

    id: int
    blackbox: bool
    side: Text
    """Where it was reported: host or device."""
    node_type: int
    sensor_type: int
    state: int
    """Event state, or function code of an exception."""
    node: str
    """Name of the node (HBM, AIC, PCIE ...) or module; empty when it has no public name."""
    node_text: Text
    text: Text
    """What happened, without the node."""
    known: bool
    """False: the id has no public description, the text only says which bits it has."""
    severity: int | None = None
    """0 notice to 3 critical; of exceptions None (see `level`)."""
    level: int | None = None
    layer: str = "hardware"
    handling: str = ""
    """The cluster software's word for what it does about it, a key of HANDLING."""
    fault_class: str = ""
    """Hardware, Software or both, as the vendor's fault diagnosis files it."""

    @property
    def code(self) -> str:
        return f"0x{self.id:08X}"

    @property
    def meaning(self) -> Text:
        return Text(f"{self.node_text.en}: {self.text.en}", f"{self.node_text.zh}：{self.text.zh}")


def is_blackbox(ident: int) -> bool:
    return bool(ident >> 28 & 3)


def encode(node_type: int, sensor_type: int, state: int, side: int = 2) -> int:
    """The id of an event. `side`: 1 host, 2 device. ValueError when a value does not fit its bits."""
    for name, value, bits in (("node type", node_type, 11), ("sensor type", sensor_type, 8), ("event state", state, 9), ("side", side, 2)):
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{name} must fit {bits} bits, found {value}")
    return side << 30 | node_type << 17 | sensor_type << 9 | state


def encode_exception(module: int, submodule: int, function: int, *, side: int = 2, kind: int = 2, level: int = 0) -> int:
    """The id of a black-box exception. `kind`: 1 error, 2 exception. ValueError when a value does not fit its bits."""
    fields = (
        ("side", side, 2), ("kind", kind, 2), ("level", level, 3),
        ("module", module, 8), ("sub-module", submodule, 5), ("function code", function, 12),
    )  # fmt: skip
    ident = 0
    for name, value, bits in fields:
        if not 0 <= value < 1 << bits or name == "kind" and not value:
            raise ValueError(f"{name} must fit {bits} bits, found {value}")
        ident = ident << bits | value
    return ident


def decode(ident: int) -> ChipEvent:
    """Any 32-bit id (a negative one is taken as the same bits without sign). ValueError beyond 32 bits."""
    if not -(1 << 31) <= ident < 1 << 32:
        raise ValueError(f"an event id has 32 bits, found {ident:#x}")
    ident &= 0xFFFFFFFF
    severity, layer, handling, fault_class, english, chinese = _events().get(ident, ("", "", "", "", "", ""))
    side = _SIDES.get(ident >> 30, Text("unknown side", "未知侧"))
    if is_blackbox(ident):
        module, submodule, function = ident >> 17 & 0xFF, ident >> 12 & 0x1F, ident & 0xFFF
        node = MODULES.get(module, "")
        name = node or f"module {module:#x}"
        unknown = Text(
            f"black-box exception, sub-module {submodule:#x} function code {function:#x}, no public description",
            f"黑匣子异常，子模块 {submodule:#x} 功能码 {function:#x}，无公开说明",
        )
        return ChipEvent(
            ident, True, side, module, submodule, function, node, Text(name, node or f"模块 {module:#x}"),
            Text(english, chinese) if english else unknown, bool(english),
            None, ident >> 25 & 7, layer or "device", handling, fault_class,
        )  # fmt: skip
    node_type, sensor, state = ident >> 17 & 0x7FF, ident >> 9 & 0xFF, ident & 0x1FF
    node, node_text = _nodes().get(node_type, ("", Text(f"node {node_type:#x}", f"节点 {node_type:#x}")))
    text = Text(english, chinese) if english else _states().get((sensor, state))
    known = text is not None
    if text is None:
        text = Text(f"sensor {sensor:#x} state {state:#x}, no public description", f"传感器 {sensor:#x} 状态 {state:#x}，无公开说明")
    return ChipEvent(
        ident, False, side, node_type, sensor, state, node, node_text, text, known,
        int(severity) if severity else None, None, layer or "hardware", handling, fault_class,
    )  # fmt: skip


def listed(ident: int) -> bool:
    """Whether the id is in the vendor's lists, and not only possible by its bits."""
    return ident & 0xFFFFFFFF in _events()


def plausible(ident: int) -> bool:
    """Whether the bits make sense as an id: a known side, and a listed id, a named node or a named module."""
    if ident >> 32 or ident >> 30 not in _SIDES:
        return False
    if ident in _events():
        return True
    if is_blackbox(ident):
        return ident >> 28 & 3 in (1, 2) and ident >> 25 & 7 <= 4 and ident >> 17 & 0xFF in MODULES
    return ident >> 17 & 0x7FF in _nodes() and ident >> 9 & 0xFF != 0


@cache
def _events() -> dict[int, tuple[str, ...]]:
    return {int(row[0], 16): tuple(row[1:]) for row in table("events", 7)}


@cache
def _nodes() -> dict[int, tuple[str, Text]]:
    return {int(number, 16): (name, Text(en, zh)) for number, name, en, zh in table("event_nodes", 4)}


@cache
def _states() -> dict[tuple[int, int], Text]:
    return {(int(sensor, 16), int(state, 16)): Text(en, zh) for sensor, state, en, zh in table("event_states", 4)}
