"""[AIC_INFO] lines of plog: shapes, types, addresses and arguments of the kernel that failed. Enough to ask constraints, not to rerun.

[AIC_INFO] input:0;shape:[4,16,128];format:ND;dtype:DT_FLOAT16;addr:0x12c041200000;size:16384 bytes

>>> facts = read(["[AIC_INFO] input:0;shape:[4,16,128];format:ND;dtype:DT_FLOAT16;addr:0x12c041200010;size:16384 bytes"])
>>> facts.tensors[0].shape, [problem.en for problem in facts.problems()]
([4, 16, 128], ['input 0 begins at 0x12c041200010, which is no multiple of 32 bytes'])
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from replay.result import Words

TENSOR = re.compile(
    r"\b(?P<side>input|output):(?P<n>\d+);shape:\[(?P<shape>[\d, ]*)\];format:(?P<format>\w+);dtype:(?P<dtype>\w+);addr:(?P<addr>0x[0-9a-fA-F]+|0)"
    r"(?:;size:(?P<size>\d+))?"
)
ARGUMENTS = re.compile(
    r"args(?:\((?P<first>\d+) to (?P<last>\d+)\))? (?P<when>before|after) execute\s*(?:\((?P<first2>\d+) to (?P<last2>\d+)\))?\s*:(?P<rest>[^;\n]*)"
)
FILL = 0xA5A5A5A5
"""Upper half of the runtime's fill words: the end of the arguments."""
WORD = re.compile(r"0x[0-9a-fA-F]+|\b\d+\b")
CUBE = ("FRACTAL_NZ", "FRACTAL_Z")


class AicTensor(msgspec.Struct):
    side: str
    number: int
    shape: list[int]
    format: str
    dtype: str
    address: int
    size: int | None = None


class AicInfo(msgspec.Struct):
    tensors: list[AicTensor] = []
    before: list[int] = []
    """Arguments before the kernel ran, as 64-bit words; pointers mostly."""
    after: list[int] = []

    def problems(self) -> list[Words]:
        """What is wrong with them whatever the kernel: arguments overwritten, missing, misaligned or overlapping."""
        out = []
        if self.before and self.after:
            changed = [n for n, (a, b) in enumerate(zip(self.before, self.after, strict=False)) if a != b and FILL not in (a >> 32, b >> 32)]
            if changed:
                listed = ", ".join(map(str, changed[:8]))
                out.append(
                    Words(
                        f"arguments {listed} changed while the kernel ran: they were overwritten", f"参数 {listed} 在 kernel 执行期间被改写（踩内存）"
                    )
                )
        words = self.after or self.before
        if words and not any(words):
            out.append(Words("all arguments are zero: the argument buffer was never copied", "所有参数均为 0：参数缓冲区未拷贝到设备"))
        for one in self.tensors:
            name, name_zh = f"{one.side} {one.number}", f"{'输入' if one.side == 'input' else '输出'} {one.number}"
            step = 512 if one.format in CUBE else 32
            if one.address == 0:
                out.append(
                    Words(f"{name} has the address 0: an optional input, or a tensor that was freed", f"{name_zh} 地址为 0：可选输入，或张量已被释放")
                )
            elif one.address % step:
                out.append(
                    Words(
                        f"{name} begins at {one.address:#x}, which is no multiple of {step} bytes",
                        f"{name_zh} 起始地址 {one.address:#x} 未按 {step} 字节对齐",
                    )
                )
        return out + self._overlaps()

    def _overlaps(self) -> list[Words]:
        out = []
        for a in self.tensors:
            for b in self.tensors:
                if a.side == "input" and b.side == "output" and a.size and b.size and a.address and b.address and a.address != b.address:
                    if a.address < b.address + b.size and b.address < a.address + a.size:
                        out.append(
                            Words(f"input {a.number} and output {b.number} overlap in memory", f"输入 {a.number} 与输出 {b.number} 的内存重叠")
                        )
        return out


def read(lines: Iterable[str]) -> AicInfo:
    """From the lines of one failure."""
    info = AicInfo()
    for line in lines:
        for match in TENSOR.finditer(line):
            shape = [int(part) for part in match["shape"].split(",") if part.strip() and len(part.strip()) < 19]
            size = int(match["size"]) if match["size"] and len(match["size"]) < 19 else None
            info.tensors.append(
                AicTensor(
                    match["side"],
                    int(match["n"][:6]),
                    shape,
                    match["format"],
                    match["dtype"],
                    int(match["addr"], 16) if match["addr"] != "0" else 0,
                    size,
                )
            )
        if arguments := ARGUMENTS.search(line):
            words = [int(word, 16) if word.startswith("0x") else int(word[:20]) for word in WORD.findall(arguments["rest"].split("addr:")[0])]
            (info.before if arguments["when"] == "before" else info.after).extend(words[:64])
    return info
