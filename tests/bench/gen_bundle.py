"""Writes a made-up incident bundle of any size, the same for the same seed: `python tests/bench/gen_bundle.py OUT.tar.gz --mb 1000`.

The mix is that of a busy training node: most bytes are plog of many processes, then device logs, console logs of vLLM and Python,
kernel logs and syslog, and a few short texts (npu-smi, versions). About one line in twenty is an error, some with continuation
lines; a little dirt is strewn in (bad UTF-8, NULs, colours, CRLF, a long line). One process dies of an AI Core exception.
"""

from __future__ import annotations

import argparse
import io
import random
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

START = 1_756_976_400  # 2025-09-04 09:00:00
MODULES = ("RUNTIME", "GE", "HCCL", "ASCENDCL", "DRV", "HCCP", "FE", "AICPU", "PROFILING", "TDT")
WORDS = "alloc bind buffer channel commit context copy create device event flush graph handle kernel launch link memory model node notify "
WORDS += "op page queue rank reduce register release ring session shape sink socket stream submit sync task tensor tiling wait window"
KEYS = ("device_id", "stream_id", "task_id", "model_id", "size", "addr", "seq", "used", "free", "rank", "tag", "cost", "head", "tail")
ERRORS = (
    "[EXEC]execute failed, reason=[aicore exception], error code is 507015, device={a}, stream={b}, task={c}",
    "Stream Synchronize failed, stream_id={b}, retCode=0x91, [the model stream execute failed].",
    "The error from device(chipId:{a}, dieId:0), serial number is {c}, there is an aicore error exception, core id is {b}, "
    "error code = 0x800000, dump info: pc start: {x}, current: {x}.",
    "Malloc device memory failed, size={c}, device_id={a}.",
    "get socket timeout role[{b}], local[192.0.2.{a}] link timeout, HCCL_CONNECT_TIMEOUT may be insufficient, timeout[120 s]",
    "queue of slot {b} rejected entry {c}, ret={a}",
    "worker {a} of pool {b} did not answer, last seen at {x}",
)
CONTINUED = (
    "        rtStreamSynchronize execute failed, reason=[model stream failed][FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]",
    "        TraceBack (most recent call last):",
    "        Solution: collect the plog of the time of the fault and look for the first error.",
    "        kernel_name=te_matmulv2_{c}, fault kernel info ext=none, program id={b}.",
)


class Numbers:
    """Values with the locality of a log: most repeat, counters move."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.counter = rng, rng.randint(100, 9000)
        self.addresses = [f"0x12c0{rng.getrandbits(32):08x}" for _ in range(48)]

    def fields(self) -> dict[str, object]:
        self.counter += 1
        return {"a": self.counter & 7, "b": self.counter % 37, "c": self.counter, "x": self.addresses[self.counter % 48]}


def clock(at: float) -> str:
    return time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime(START + at)) + f".{int(at * 1e3) % 1000:03d}.{int(at * 1e6) % 1000:03d}"


def templates(rng: random.Random, count: int) -> list[str]:
    """Message bodies of call sites, with `{a}` (small), `{b}`, `{c}` (counter) and `{x}` (address) to fill."""
    words = WORDS.split()
    found = []
    for _ in range(count):
        verb, noun = rng.choice(words).title(), rng.choice(words).title()
        body = ", ".join(f"{key}={{{rng.choice('aabcx')}}}" for key in rng.sample(KEYS, rng.randint(2, 6)))
        tail = rng.choice((".", " success.", ", begin.", ", wait for completion on the current context."))
        found.append(f"[{noun.lower()}_{rng.choice(words)}.cc:{rng.randint(20, 4000)}]{{tid}} {verb}{noun}: {body}{tail}")
    return found


def plog(rng: random.Random, process: str) -> Iterator[str]:
    pid = rng.randint(300, 99999)
    numbers, bodies = Numbers(rng), templates(rng, 240)
    at, module, loop = rng.random() * 600, "RUNTIME", 0
    while True:
        at += rng.expovariate(1100)
        loop = loop + 1 if rng.random() < 0.93 else rng.randrange(240)
        level = "INFO"
        body = bodies[loop % 240]
        luck = rng.random()
        if luck > 0.95:
            level, body = "ERROR", f"[stream_{loop % 9}.cc:{loop % 97 + 100}]{{tid}} Report{loop % 7}: " + ERRORS[min(int(rng.expovariate(0.8)), 6)]
        elif luck > 0.86:
            level = rng.choice(("WARNING", "EVENT", "DEBUG"))
        if loop % 5 == 0:
            module = MODULES[loop // 5 % len(MODULES)]
        fields = numbers.fields()
        yield f"[{level}] {module}({pid},{process}):{clock(at)} {body.format(tid=pid + loop % 7, **fields)}\n"
        if level == "ERROR" and luck > 0.985:
            for line in CONTINUED[: loop % 4 + 1]:
                yield line.format(**fields) + "\n"
        if luck < 0.00002:
            yield (
                "mojibake \udcff\udcfe 内存不足\n",
                "nul\0\0\0 tail\n",
                "\x1b[31mred\x1b[0m plain\n",
                "crlf\r\n",
                "long " + "0x0000 " * 4000 + "\n",
            )[loop % 5]


def vllm(rng: random.Random, process: str) -> Iterator[str]:
    pid, at = rng.randint(300, 99999), rng.random() * 600
    while True:
        at += rng.random()
        head = f"({process} pid={pid}) {{}} " + time.strftime("%m-%d %H:%M:%S", time.gmtime(START + at))
        if rng.random() < 0.97:
            yield head.format("INFO") + (
                f" [loggers.py:127] Engine 000: Avg prompt throughput: {rng.random() * 9000:.1f} tokens/s, Avg generation throughput: "
                f"{rng.random() * 2000:.1f} tokens/s, Running: {rng.randint(0, 64)} reqs, KV cache usage: {rng.random() * 100:.1f}%\n"
            )
        else:
            for line in (
                "Traceback (most recent call last):",
                '  File "/opt/vllm/v1/engine/core.py", line 699, in run',
                "RuntimeError: engine stopped",
            ):
                yield head.format("ERROR") + f" [core.py:708] {line}\n"


def python(rng: random.Random, process: str) -> Iterator[str]:
    at = rng.random() * 600
    while True:
        at += rng.random() / 20
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(START + at)) + f",{int(at * 1000) % 1000:03d}"
        level = "ERROR" if rng.random() > 0.99 else "INFO"
        numbers = f"loss {rng.random() * 4:.5f} grad {rng.random():.4f} tokens {rng.getrandbits(16)}"
        yield f"{stamp} - trainer.loop - {level} - step {int(at * 20)} {numbers}\n"


def dmesg(rng: random.Random, process: str) -> Iterator[str]:
    at = 1000.0
    while True:
        at += rng.expovariate(3)
        who = f"[{at:13.6f}] "
        if rng.random() < 0.9:
            yield who + f"[ascend] [devdrv] [devdrv_msg_chan {rng.randint(1, 400)}] <python:{rng.randint(1, 9999)}> dev_id:{rng.randint(0, 7)} ok\n"
        else:
            yield (
                who
                + f"[ascend] [ERROR] [drv_pcie] [pcie_link {rng.randint(1, 400)}] link error 0x{rng.getrandbits(16):x}, dev_id={rng.randint(0, 7)}\n"
            )


def syslog(rng: random.Random, process: str) -> Iterator[str]:
    at = 0.0
    while True:
        at += rng.expovariate(1)
        stamp = time.strftime("%b %e %H:%M:%S", time.gmtime(START + at))
        yield f"{stamp} {process} systemd[{rng.randint(1, 900)}]: Started session {rng.randint(1, 9000)}, unit {rng.getrandbits(20):x}.\n"


Grammar = Callable[[random.Random, str], Iterator[str]]


def layout(files: int) -> list[tuple[str, Grammar, str]]:
    """Path, grammar and process of each large member."""
    found: list[tuple[str, Grammar, str]] = []
    for i in range(files):
        node, device, turn = f"node{i % 2}", i // 2 % 8, i % 20
        if turn < 11:
            found.append((f"{node}/log/{'run' if i % 3 else 'debug'}/plog/plog-{2000 + i}_20250904090000{i:03d}.log", plog, "python3"))
        elif turn < 16:
            found.append((f"{node}/log/debug/device-{device}/device-{2000 + i}_20250904090000{i:03d}.log", plog, "aicpu_scheduler"))
        elif turn == 16:
            found.append((f"{node}/console/serve-{i}.log", vllm, f"Worker_TP{device}"))
        elif turn == 17:
            found.append((f"{node}/console/train-rank{device}-{i}.log", python, ""))
        elif turn == 18:
            found.append((f"{node}/hostlogs/dmesg-{i}.log", dmesg, ""))
        else:
            found.append((f"{node}/hostlogs/messages-{i}", syslog, node))
    return found


SMALL = {
    "ascend_install.info": "version=8.1.RC1\nCANN Version: 8.1.RC1\n",
    "env.txt": "HCCL_CONNECT_TIMEOUT=120\nASCEND_RT_VISIBLE_DEVICES=0,1,2,3\nPYTORCH_NPU_ALLOC_CONF=expandable_segments:True\n",
    "pip_list.txt": "Package Version\n------- -------\ntorch 2.5.1\ntorch_npu 2.5.1\nvllm 0.9.1\n",
}


def fill(path: str, grammar: Grammar, process: str, size: int, seed: int) -> bytes:
    rng = random.Random(seed)
    out, total = io.BytesIO(), 0
    for line in grammar(rng, process):
        total += out.write(line.encode("utf-8", "surrogateescape"))
        if total >= size:
            return out.getvalue()
    raise AssertionError


def write(out: Path, mb: float, files: int, seed: int) -> None:
    def add(name: str, data: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mtime = len(data), START
        tar.addfile(info, io.BytesIO(data))

    rng = random.Random(seed)
    plan = layout(files)
    weights = [min(rng.lognormvariate(0, 0.9), 4.0) for _ in plan]
    stream: Any
    if out.name.endswith("gz"):
        import gzip

        stream = gzip.GzipFile(out, "wb", compresslevel=6, mtime=0)
    elif out.name.endswith("zst"):
        import zstandard

        stream = zstandard.ZstdCompressor(level=3).stream_writer(out.open("wb"))
    else:
        stream = out.open("wb")
    with stream, tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for name, text in SMALL.items():
            add(f"node0/{name}", text.encode())
        for i, ((path, grammar, process), weight) in enumerate(zip(plan, weights, strict=True)):
            add(path, fill(path, grammar, process, int(weight / sum(weights) * mb * 1e6), seed * 1000 + i))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="*.tar, *.tar.gz or *.tar.zst")
    parser.add_argument("--mb", type=float, default=100)
    parser.add_argument("--files", type=int, default=0, help="number of large members; default: one for 5 MB, at least 20")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    write(given.out, given.mb, given.files or max(20, int(given.mb / 5)), given.seed)


if __name__ == "__main__":
    main()
