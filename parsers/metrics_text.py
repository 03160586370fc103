"""Numbers of a serving engine: Prometheus text (vLLM, MindIE), and the block that a benchmark prints at its end.

>>> text = '''# TYPE vllm:num_requests_waiting gauge
... vllm:num_requests_waiting{engine="0",model_name="m"} 141.0
... vllm:kv_cache_usage_perc{engine="0"} 0.999 1764247065000'''
>>> MetricsParser().claims("metrics.prom", text)
93
>>> [(row.name, row.value, row.label, row.line_no, row.ts) for row in samples(text.split("\\n"), None)]
[('service.num_requests_waiting', 141.0, 'engine="0",model_name="m"', 2, None), ('service.kv_cache_usage_perc', 0.999, 'engine="0"', 3, \
1764247065000000)]
>>> block = "============ Serving Benchmark Result ============\\nMean TTFT (ms):                          1200.50"
>>> [(row.name, row.value, row.line_no) for row in MetricsParser().extract(block).metrics]
[('bench.mean_ttft_ms', 1200.5, 2)]

A scrape has no time in it: `scraped` takes it from the file's name. Histogram buckets are left out, their sums and counts kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import ClassVar

from parsers.base import Parser
from parsers.clock import stamp14
from parsers.rows import Document, Metric, Record

_TYPE = re.compile(r"^# (?:TYPE|HELP) [A-Za-z_:][\w:]* ", re.MULTILINE)
_SAMPLE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]{0,199})(?:\{(?P<labels>.*)\})?[ \t]+(?P<value>[-+]?[\w.+-]{1,40})(?:[ \t]+(?P<ts>-?\d{1,20}))?[ \t]*\Z"
)
_SERVICE = re.compile(
    r"^(?:vllm:\w+|(?:request_(?:received|success|failed)_total|num_requests_(?:running|waiting|swapped)|time_to_first_token_seconds_\w+"
    r"|npu_cache_usage_perc|num_preemptions_total|avg_\w+_throughput_toks_per_s|prompt_tokens_total))[{ \t]",
    re.MULTILINE,
)
_LEFT_OUT = re.compile(r"(?:python|process|go|promhttp|http)_|.*_(?:bucket|created)\Z")
_EPOCH = re.compile(r"(?<!\d)(1[5-9]\d{8})(\d{3})?(?!\d)")
_STAMP = re.compile(r"(?<!\d)(20\d{6})[-_T]?(\d{6})(?!\d)")
_ISO = re.compile(r"\W*(20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_BENCH = "Serving Benchmark Result"
_BENCH_LINE = re.compile(r"(?P<name>[A-Z][\w ()/%.-]{2,60}?):\s{2,}(?P<value>[-\d.]{1,20})\s*\Z")


class MetricsParser(Parser):
    kind: ClassVar[str] = "metrics"

    def claims(self, path: str, head: str) -> int:
        typed, service = _TYPE.search(head) is not None, len(_SERVICE.findall(head))
        if not (typed or service >= 3):
            return 0
        lines = [line for line in head.split("\n")[:300] if line.strip()]
        fit = sum(line.startswith("# ") or _SAMPLE.match(line.rstrip("\r")) is not None for line in lines[:-1] or lines)
        if fit < 0.8 * max(1, len(lines) - 1):  # a log into which somebody pasted a scrape stays a log
            return 0
        return 93 if typed else 91

    def record(self, line: str) -> Record | None:
        return None

    def extract(self, text: str) -> Document:
        """Numbers of the benchmark blocks in a text."""
        out = Document()
        at = text.find(_BENCH)
        if at < 0:
            return out
        first = text.count("\n", 0, at)
        for number, line in enumerate(text[at:].split("\n", 200)[:200], first + 1):
            found = _BENCH_LINE.match(line.strip())
            if found and (value := _number(found["value"])) is not None:
                out.metrics.append(Metric(f"bench.{_bench_name(found['name'])}", value, line_no=number))
        return out


def samples(lines: Iterable[str], scraped: int | None) -> Iterator[Metric]:
    """The samples of a scrape, or of several one behind the other. `scraped`: its time (UTC, microseconds since 1970) where that is known;
    a line that is a time by itself, as loops print one between two scrapes, sets that of those behind it."""
    for number, line in enumerate(lines, 1):
        if not line or line[0] == "#":
            continue
        found = _SAMPLE.match(line)
        if found is None:
            scraped = _time(line) or scraped
            continue
        name = found["name"]
        base = name.rpartition(":")[2]
        if _LEFT_OUT.match(base):
            continue
        value = _number(found["value"])
        if value is None:
            continue
        own = int(found["ts"]) if found["ts"] else None
        ts = scraped if own is None or not 10**11 < own < 10**14 else own * 1000
        yield Metric(f"service.{base}", value, line_no=number, ts=ts, label=(found["labels"] or "").rstrip(",")[:300])


def scraped(path: str) -> int | None:
    """The time that a file's name states: seconds or milliseconds since 1970 (UTC), or a date with a time (as if it were UTC)."""
    name = path.rpartition("/")[2]
    if found := _EPOCH.search(name):
        return int(found[1]) * 1_000_000 + int(found[2] or 0) * 1000
    if found := _STAMP.search(name):
        return stamp14(found[1] + found[2])
    return None


def _time(line: str) -> int | None:
    text = line.strip()
    if len(text) > 80:
        return None
    if (found := _EPOCH.fullmatch(text)) is not None:
        return int(found[1]) * 1_000_000 + int(found[2] or 0) * 1000
    if (iso := _ISO.match(text)) is not None:
        return round(datetime.fromisoformat(iso[1]).replace(tzinfo=timezone.utc).timestamp() * 1_000_000)
    return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _bench_name(printed: str) -> str:
    """`Mean TTFT (ms)` -> mean_ttft_ms, `Request throughput (req/s)` -> request_throughput."""
    words = re.sub(r"\((?!ms\))[^)]*\)", "", printed).replace("(", " ").replace(")", " ")
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_").replace("total_generated_tokens", "total_output_tokens")
