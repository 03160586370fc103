"""Error words of AI Core and vector core records, read bit by bit.

Chips from 910 to A3 print up to three hexadecimal words, `error code = 0x800000` or `errcode:(0x800000, 0x4000, 0)`. The 950 prints the
numbers of the bits themselves, in decimal: `error code = 95`, `errcode:(95, 266)`. No bit at all means a timeout or a trap.

>>> [bit.symbol for bit in decode("errcode:(0x800000, 0x4000, 0)").bits]
['MTE_BIU_RDWR_RESP', 'CCU_ADDR_ERR']
>>> decode("error code = 0").verdict.en
'no error bit is set: the task timed out, or the kernel ran into a trap (assert)'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

from rules.model import Text
from rules.tables import table

_WORDS = re.compile(r"errcode ?:? ?\(([^()]{1,400})\)|error code ?(?:=|:|is) ?(0[xX][0-9a-fA-F]{1,16}|\d{1,4}(?:, ?\d{1,3})*)(?![0-9a-zA-Z])")
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,16}")
_THIRD_LOW, _THIRD_HIGH = 17, 32
"""Of the third word bits 0-16 go on at index 128, bits 32-63 at index 145."""

CLASSES: dict[str, tuple[Text, Text]] = {
    "oob_gm": (
        Text("access to an invalid global memory address", "访问了非法的全局内存（GM）地址"),
        Text(
            "wrong shape, stride or offset; index values out of range (gather, embedding, KV slots); tensor freed or reused while the"
            " kernel ran; workspace too small. An HBM error (see chip events) sets the same bit",
            "shape、stride 或偏移错误；索引值越界（gather、embedding、KV slot）；运行中张量被释放或复用；workspace 过小。"
            "HBM 故障（看芯片事件）也会置此位",
        ),
    ),
    "oob_scalar_addr": (
        Text("address check of the scalar unit failed", "标量单元地址检查失败"),
        Text("wrong base pointer or offset, or an on-chip buffer too small for the tile", "基址或偏移错误，或片上缓存放不下分块"),
    ),
    "oob_ub": (
        Text("past the end of the unified buffer (UB)", "UB 越界"),
        Text("tile larger than UB; wrong count, repeat or stride, often in the tail block", "分块超过 UB；count、repeat 或 stride 错误，常见于尾块"),
    ),
    "oob_l0": (
        Text("past the end of an L0 buffer", "L0 缓存越界"),
        Text("tile larger than L0, or a shape the kernel was not written for", "分块超过 L0，或 kernel 不支持该 shape"),
    ),
    "oob_l1": (
        Text("past the end of the L1 buffer", "L1 缓存越界"),
        Text("tile larger than L1, or a shape the kernel was not written for", "分块超过 L1，或 kernel 不支持该 shape"),
    ),
    "oob_onchip": (
        Text("past the end of an on-chip buffer", "片上缓存越界"),
        Text("tile too large, or wrong count or stride, often in the tail block", "分块过大，或 count、stride 错误，常见于尾块"),
    ),
    "align": (
        Text("address breaks an alignment rule", "地址不满足对齐要求"),
        Text(
            "offset of a view not a multiple of 32 bytes, element count that does not fill 32 bytes, other dtype, own kernel",
            "视图偏移不是 32 字节整数倍、元素数不足 32 字节、数据类型变化、自定义 kernel",
        ),
    ),
    "align_or_instr": (
        Text("illegal instruction, mostly an unaligned UB address", "非法指令，多为 UB 地址未对齐"),
        Text("alignment first; then an operator binary of another chip or version", "先查对齐，再查算子二进制是否与芯片/版本不符"),
    ),
    "shape_cfg": (
        Text("a parameter of a data move or convolution breaks its limits", "搬运或卷积类指令的参数不合法"),
        Text(
            "convolution shape (pad, stride, kernel against map), burst of length or count zero",
            "卷积 shape（pad、stride、核与特征图）、burst 长度或次数为 0",
        ),
    ),
    "instr": (
        Text("instruction undefined, or its settings are illegal", "指令未定义或配置非法"),
        Text("operator binary built for another chip or version, or code memory overwritten", "算子二进制与芯片/版本不符，或指令内存被踩"),
    ),
    "instr_fetch": (
        Text("instruction could not be fetched", "取指失败"),
        Text("operator binary unloaded too early, or stack or program counter destroyed", "算子二进制被提前卸载，或栈/PC 被破坏"),
    ),
    "numeric": (
        Text(
            "numbers the instruction does not take: division by zero, log or root of a negative, INF or NAN",
            "数值异常：除零、负数求对数或开方、INF/NAN",
        ),
        Text("bad input data, or a loss that blew up", "输入数据异常或 loss 发散"),
    ),
    "conflict": (
        Text("one on-chip address read and written at a time", "片上同一地址读写冲突"),
        Text("synchronisation missing in the kernel (pipe barrier, set/wait flag)", "kernel 缺少同步（pipe barrier、set/wait flag）"),
    ),
    "sync": (
        Text("flag counter out of range, or a wrong set/wait", "同步标志计数越限或 set/wait 错误"),
        Text("set and wait flags of the kernel do not pair", "kernel 的 set/wait 不配对"),
    ),
    "ecc": (
        Text("memory bit error inside the core", "核内存储 bit 错误（ECC/奇偶）"),
        Text("hardware: compare with the chip events of this device", "硬件故障：结合该设备的芯片事件确认"),
    ),
    "bus": (
        Text("the bus answered with an error", "总线返回错误"),
        Text("L2 or interconnect fault, or a bad address", "L2/片上互联故障，或地址非法"),
    ),
    "data": (
        Text("data exception on an access", "访问时数据异常"),
        Text("wrong address range, or a fault of the memory behind it", "地址范围错误，或其后的存储故障"),
    ),
    "stack": (
        Text("call depth or stack exceeded", "调用深度或栈超限"),
        Text("recursion or large local data in the kernel", "kernel 递归或局部变量过大"),
    ),
    "timeout": (
        Text("unit timed out", "单元执行超时"),
        Text("endless loop or dead wait in the kernel", "kernel 死循环或死等"),
    ),
    "trap": (
        Text("the kernel ran into a trap", "kernel 触发 trap"),
        Text("an assert of the kernel, see the lines printed with it", "kernel 断言，查看随之打印的内容"),
    ),
    "other": (
        Text("other error of the core", "其它核内错误"),
        Text("the errorStr of the record", "查看记录中的 errorStr"),
    ),
}  # fmt: skip
"""Class of a bit -> what it says, and what to suspect first."""


class Bit(msgspec.Struct, frozen=True):
    david: bool
    """Bit of the 950's map, not of the map of 910 to A3."""
    index: int
    symbol: str
    kind: str
    """Key of CLASSES."""
    fragment: str
    """Words that the log's errorStr holds for this bit, in builds up to spring 2026."""
    fragment_new: str
    """The same in later builds; empty: unchanged."""
    meaning: Text

    @property
    def place(self) -> str:
        """Where it is printed: word and bit, or the number itself."""
        if self.david:
            return str(self.index)
        word, bit = position(self.index)
        return f"w{word} bit {bit} ({1 << bit:#x})"


class CoreError(msgspec.Struct, frozen=True):
    """A decoded record."""

    code: str
    """Canonical: `error code = 0x800000`, `errcode:(0x800000, 0x4000, 0)`, `error code = 95`, `errcode:(95, 266)`."""
    words: tuple[int, ...]
    """The printed words; of the 950 the bit numbers."""
    david: bool
    bits: tuple[Bit, ...]
    unknown: tuple[str, ...]
    """Bits that the tables do not know, as printed."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Classes of the bits, in the order of the bits, each once."""
        return tuple(dict.fromkeys(bit.kind for bit in self.bits))

    @property
    def verdict(self) -> Text:
        """One line over all bits."""
        if not self.bits and not self.unknown:
            return Text(
                "no error bit is set: the task timed out, or the kernel ran into a trap (assert)",
                "没有任何错误位：任务超时，或 kernel 触发 trap（断言）",
            )
        if not self.bits:
            return Text(f"bits without public meaning: {', '.join(self.unknown)}", f"无公开含义的错误位：{'、'.join(self.unknown)}")
        says = [CLASSES[kind][0] for kind in self.kinds]
        return Text("; ".join(text.en for text in says), "；".join(text.zh for text in says))

    @property
    def suspects(self) -> Text:
        """What to look at first."""
        if not self.bits:
            return Text("endless loop, dead wait or an assert in the kernel; see 507014, 507034, 507016, 507036",
                        "kernel 死循环、死等或断言，参见 507014、507034、507016、507036")  # fmt: skip
        texts = [CLASSES[kind][1] for kind in self.kinds]
        return Text("; ".join(text.en for text in texts), "；".join(text.zh for text in texts))


def position(index: int) -> tuple[int, int]:
    """(word, bit) of an index of the 910 to A3 map. ValueError outside 0..176."""
    if not 0 <= index < 128 + _THIRD_LOW + 32:
        raise ValueError(f"an index of this map lies between 0 and 176, found {index}")
    if index < 128:
        return index // 64, index % 64
    third = index - 128
    return 2, third if third < _THIRD_LOW else third - _THIRD_LOW + _THIRD_HIGH


def indices(words: Sequence[int]) -> tuple[list[int], list[str]]:
    """Map indices of the bits set in up to three words, and the set bits that lie in no map (as `w2 bit 20`)."""
    found: list[int] = []
    strange: list[str] = []
    for word, value in enumerate(words):
        rest = value
        while rest:
            bit = (rest & -rest).bit_length() - 1
            rest &= rest - 1
            if word < 2 and bit < 64:
                found.append(word * 64 + bit)
            elif word == 2 and bit < _THIRD_LOW:
                found.append(128 + bit)
            elif word == 2 and _THIRD_HIGH <= bit < 64:
                found.append(128 + _THIRD_LOW + bit - _THIRD_HIGH)
            else:
                strange.append(f"w{word} bit {bit}")
    return found, strange


def encode(found: Iterable[int]) -> tuple[int, int, int]:
    """The three words that have exactly these indices set."""
    words = [0, 0, 0]
    for index in found:
        word, bit = position(index)
        words[word] |= 1 << bit
    return words[0], words[1], words[2]


def of_words(words: Sequence[int]) -> CoreError:
    """Decode one to three error words of the chips from 910 to A3."""
    known, (found, strange) = _bits(False), indices(words)
    parts = [f"{value:#x}" if value else "0" for value in words]
    code = f"errcode:({', '.join(parts)})" if len(parts) > 1 else f"error code = {parts[0]}"
    bits = tuple(known[index] for index in found if index in known)
    missing = [f"w{position(index)[0]} bit {position(index)[1]}" for index in found if index not in known]
    return CoreError(code, tuple(words), False, bits, tuple(missing + strange))


def of_numbers(numbers: Sequence[int]) -> CoreError:
    """Decode the bit numbers that the 950 prints."""
    known = _bits(True)
    code = f"errcode:({', '.join(map(str, numbers))})" if len(numbers) > 1 else f"error code = {numbers[0]}"
    bits = tuple(known[number] for number in numbers if number in known)
    return CoreError(code, tuple(numbers), True, bits, tuple(str(number) for number in numbers if number not in known))


def decode(text: str) -> CoreError | None:
    """The last error word or triple in a text (the triple of a record says more than its first line); None when there is none."""
    best: CoreError | None = None
    for found in _WORDS.finditer(text):
        error = parse(found[1] or found[2])
        if error is not None and (best is None or len(error.words) >= len(best.words)):
            best = error
    return best


def parse(words: str) -> CoreError | None:
    """`0x800000, 0x4000, 0`, `0x10`, `95`, `95, 266`, without what stands around them; None when it is nothing of the kind."""
    parts = [part.strip() for part in words.split(",")]
    if not all(_HEX.fullmatch(part) for part in parts):
        return None
    if any(part[:2] in ("0x", "0X") for part in parts):
        if len(parts) > 3:
            return None
        return of_words([int(part, 16) for part in parts])
    if not all(part.isdecimal() for part in parts):
        return None
    numbers = [int(part) for part in parts]
    if not any(numbers):
        return of_words(numbers[:3])
    return of_numbers(numbers) if max(numbers) < 384 else None


@cache
def _bits(david: bool) -> dict[int, Bit]:
    chip = "d" if david else "v"
    return {
        int(index): Bit(david, int(index), symbol, kind, old, new, Text(en, zh))
        for where, index, symbol, kind, old, new, en, zh in table("aicore", 8)
        if where == chip
    }


def all_bits(david: bool = False) -> tuple[Bit, ...]:
    """Every bit the tables know, by index."""
    return tuple(bit for _, bit in sorted(_bits(david).items()))
