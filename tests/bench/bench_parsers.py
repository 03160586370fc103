"""What reading one record costs: `python -m tests.bench.bench_parsers` prints microseconds a line for each kind.

Measured on one busy core of a 2-CPU virtual machine (`split` of a line of eight words: 0.11 us): plog 4-5, device 4-5, device-os 8,
firmware 4-5, kernel 6-7, bbox 2, mindie, cluster and console 3-8.
"""

from __future__ import annotations

import time
from pathlib import Path

from parsers import encoding, registry
from parsers.base import Parser, clean

ROOT = Path(__file__).parent.parent / "data" / "formats"


def lines_of(kind: str) -> list[str]:
    """The lines of all samples of a kind, without those of extraordinary length."""
    out = []
    for row in (ROOT / "index.tsv").read_text().splitlines()[1:]:
        sample, of_kind, *_ = row.split("\t")
        if of_kind == kind:
            data = (ROOT / f"{sample}.txt").read_bytes()
            coding = encoding.detect(data[: registry.HEAD])
            out += [clean(encoding.decode(line, coding)) for line in data.split(b"\n") if 0 < len(line) < 3000]
    return out


def microseconds(parser: Parser, lines: list[str], tries: int = 100) -> float:
    best = 1e9
    for _ in range(tries):
        start = time.perf_counter()
        for line in lines:
            parser.record(line)
        best = min(best, (time.perf_counter() - start) / len(lines))
    return best * 1e6


def main() -> None:
    for parser in registry.PARSERS:
        if lines := lines_of(parser.kind):
            print(f"{parser.kind:12} {len(lines):5} lines {microseconds(parser, lines):6.2f} us")


if __name__ == "__main__":
    main()
