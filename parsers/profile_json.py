"""Small JSON files of a profile: what was captured, on which rank, with which variables, and how collectives went.

>>> kind('{"config": {"common_config": {}}, "rank_id": "3", "cann_version": "8.3.RC1"}')
'profiler_info'
>>> info(b'{"rank_id": "3", "cann_version": "8.3.RC1", "config": {"experimental_config": {"_profiler_level": "Level1"}}}').rank
3
>>> kind('{"num_prompts": 240, "completed": 240, "request_throughput": 1.7, "mean_ttft_ms": 1200.5}')
'bench'
>>> bench(b'{"mean_ttft_ms": 1200.5, "backend": "vllm", "ttfts": [1, 2]}')
[('mean_ttft_ms', 1200.5, 1)]

Every reader takes the bytes of one whole file and raises ValueError, with what is wrong, where they are no such JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

_KEYS = re.compile(r'"([A-Za-z_][^"\n]{0,60})"\s*:')
_STEP = re.compile(r"(?:step)?_?(\d+)\Z", re.IGNORECASE)
LINKS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO", "UB")


def kind(head: str) -> str:
    """What a JSON text is, by the keys in its first kilobytes; empty: none of ours."""
    start = head.lstrip("\ufeff \t\r\n")
    if not start.startswith("{"):
        return ""
    keys = set(_KEYS.findall(head[:16384]))
    if "Communication Time Info" in keys or "Communication Bandwidth Info" in keys:
        return "communication"
    if "Transport Type" in keys and "Transit Size(MB)" in keys:
        return "communication_matrix"
    if "ENV_VARIABLES" in keys or "parallel_group_info" in keys:
        return "profiler_metadata"
    if "config" in keys and keys & {"common_config", "experimental_config", "rank_id", "start_info", "torch_npu_version"}:
        return "profiler_info"
    if "DeviceInfo" in keys and keys & {"aic_frequency", "ai_core_num", "aiv_num"}:
        return "device_info"
    if keys & {"request_throughput", "output_throughput"} and any(key.endswith(("_ttft_ms", "_tpot_ms", "_itl_ms", "_e2el_ms")) for key in keys):
        return "bench"
    return ""


class Info(msgspec.Struct):
    """What a capture was set up to do."""

    rank: int | None = None
    cann: str = ""
    torch_npu: str = ""
    level: str = ""
    aic_metrics: str = ""
    schedule: bool | None = None


class Metadata(msgspec.Struct):
    """Variables and parallel groups of one process."""

    variables: list[tuple[str, str, int]] = []
    """Name, value, line."""
    peers: str = ""
    """Ranks with the same text do equal work (same pipeline stage)."""


class Device(msgspec.Struct):
    aic_num: int | None = None
    aiv_num: int | None = None
    rated_mhz: float | None = None


def info(data: bytes) -> Info:
    """profiler_info[_<rank>].json"""
    top = _object(data)
    config = _dict(top.get("config"))
    common, more = _dict(config.get("common_config")), _dict(config.get("experimental_config"))
    return Info(
        rank=_int(top.get("rank_id")),
        cann=_text(top.get("cann_version")),
        torch_npu=_text(top.get("torch_npu_version")),
        level=_text(more.get("_profiler_level") or more.get("profiler_level")),
        aic_metrics=_text(more.get("_aic_metrics") or more.get("aic_metrics")),
        schedule=bool(common["schedule"]) if "schedule" in common else None,
    )


def metadata(data: bytes) -> Metadata:
    """profiler_metadata.json"""
    top = _object(data)
    lines = _Lines(data)
    found = Metadata()
    for name, value in sorted(_dict(top.get("ENV_VARIABLES")).items()):
        if isinstance(value, (str, int, float)) and str(value) != "" and len(str(name)) < 100:
            found.variables.append((str(name), str(value)[:2000], lines.of(str(name))))
    groups = _dict(top.get("parallel_group_info"))
    arguments = _dict(top.get("distributed_args"))
    for key, group in sorted(groups.items()):
        name = _text(_dict(group).get("group_name")) or str(key)
        place = _int(_dict(group).get("group_rank"))
        members = _dict(group).get("global_ranks")
        pipeline = re.fullmatch(r"(?:\w+_)?pp(?:_\w+)?|pipeline\w*", name, re.IGNORECASE) is not None
        if pipeline and place is not None and isinstance(members, list) and len(members) > 1:
            found.peers = f"stage {place}"
    if not found.peers and (_int(arguments.get("pp") or arguments.get("pipeline_model_parallel_size")) or 1) > 1:
        stages = _int(arguments.get("pp") or arguments.get("pipeline_model_parallel_size")) or 1
        world, rank = _int(arguments.get("world_size")), _int(arguments.get("rank"))
        found.peers = f"stage {rank * stages // world}" if world and rank is not None and world % stages == 0 else "stage unknown"
    return found


def device_info(data: bytes) -> Device:
    """info.json.<device> of raw msprof data"""
    found = Device()
    devices = _object(data).get("DeviceInfo")
    for one in devices if isinstance(devices, list) else [devices]:
        one = _dict(one)
        found.aic_num = _int(one.get("ai_core_num")) or found.aic_num
        found.aiv_num = _int(one.get("aiv_num")) or found.aiv_num
        rated = _float(one.get("aic_frequency"))
        if rated:
            found.rated_mhz = rated if rated > 20 else rated * 1000  # some releases print GHz
    return found


def bench(data: bytes) -> list[tuple[str, float, int]]:
    """Name, value and line of every number of a benchmark's result; lists of single requests are left out."""
    try:
        top = _object(data)
    except ValueError:
        rows = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
        if len(rows) < 2:
            raise
        return [(name, value, number) for number, line in rows for name, value, _ in bench(line)]  # one result a line, appended
    lines = _Lines(data)
    out = []
    for name, value in top.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            out.append((str(name)[:100], float(value), lines.of(str(name))))
    return out


class Operation(msgspec.Struct):
    """One collective or point-to-point operation of one step. Times in nanoseconds; None where the file does not say."""

    step: str
    kind: str
    """collective or p2p."""
    op: str
    group: str
    line: int
    start_ns: int | None
    elapse_ns: int | None
    transit_ns: int | None
    wait_ns: int | None
    sync_ns: int | None
    idle_ns: int | None
    wait_ratio: float | None
    sync_ratio: float | None
    links: list[tuple[str, float | None, int | None, float | None, float | None]]
    """Link, MB, nanoseconds, GB/s, share of large packets; links that carried nothing are left out."""
    packets: list[tuple[str, float, float, float]]
    """Link, MB of one packet, how many, nanoseconds."""
    total: bool = False
    """Whether it is the sum over all operations of the step, which the file holds as well."""


def communication(data: bytes) -> Iterator[Operation]:
    """Operations of communication.json, step by step."""
    lines = _Lines(data)
    try:
        steps = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise ValueError(str(error)[:200]) from error
    for step, raw in steps.items():
        for kind_, operations in _dict(_decoded(raw)).items():
            for name, body in _dict(operations).items():
                yield _operation(_step(step), str(kind_), str(name), _dict(body), lines)


def _operation(step: str, kind_: str, name: str, body: dict[str, Any], lines: _Lines) -> Operation:
    times = _dict(body.get("Communication Time Info"))
    op, _, group = name.partition("@")
    links, packets = [], []
    for link, numbers in _dict(body.get("Communication Bandwidth Info")).items():
        numbers = _dict(numbers)
        size = _float(numbers.get("Transit Size(MB)"))
        span = _float(numbers.get("Transit Time(ms)"))
        if not size and not span:
            continue
        share = _float(numbers.get("Large Packet Ratio"))
        links.append((str(link)[:20], size, _ns(span), _float(numbers.get("Bandwidth(GB/s)")), share))
        for packet, count in _dict(numbers.get("Size Distribution")).items():
            mb = _float(packet)
            if mb is not None and isinstance(count, list) and len(count) == 2 and (_float(count[0]) or 0) > 0:
                packets.append((str(link)[:20], mb, _float(count[0]) or 0.0, float(_ns(_float(count[1])) or 0)))
    start = _float(times.get("Start Timestamp(us)"))
    elapse, transit, wait, sync, idle = (
        _ns(_float(times.get(f"{which} Time(ms)"))) for which in ("Elapse", "Transit", "Wait", "Synchronization", "Idle")
    )
    return Operation(
        step, kind_[:20], op[:300], group[:100], lines.of(name), None if not start else round(start * 1000), elapse, transit, wait, sync, idle,
        _float(times.get("Wait Time Ratio")), _float(times.get("Synchronization Time Ratio")), links, packets, op == "Total Op Info",
    )  # fmt: skip


def matrix(data: bytes) -> Iterator[tuple[str, str, str, str, int, int, int, str, float | None, int | None, float | None]]:
    """Links of communication_matrix.json: step, kind, operation, group, line, source, destination, transport, MB, nanoseconds, GB/s."""
    lines = _Lines(data)
    try:
        steps = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise ValueError(str(error)[:200]) from error
    for step, raw in steps.items():
        for kind_, operations in _dict(_decoded(raw)).items():
            for name, pairs in _dict(operations).items():
                op, _, group = str(name).partition("@")
                line = lines.of(str(name))
                for pair, numbers in _dict(pairs).items():
                    source, _, target = str(pair).partition("-")
                    numbers = _dict(numbers)
                    if not (source.isdigit() and target.isdigit()):
                        continue
                    yield (
                        _step(step), str(kind_)[:20], (_text(numbers.get("Op Name")) or op)[:300], f"{op}@{group}"[:200], line, int(source[:9]),
                        int(target[:9]), _text(numbers.get("Transport Type")), _float(numbers.get("Transit Size(MB)")),
                        _ns(_float(numbers.get("Transit Time(ms)"))), _float(numbers.get("Bandwidth(GB/s)")),
                    )  # fmt: skip


# ---------------------------------------------------------------- parts


class _Lines:
    """Line of a key in a file; most profiler files are one line, others are indented."""

    def __init__(self, data: bytes) -> None:
        self._data = data if b"\n" in data.rstrip() else b""
        self._at, self._line = 0, 1

    def of(self, key: str) -> int:
        """Line (from 1) on which `key` stands next; where it is not found, the last one."""
        if not self._data:
            return 1
        at = self._data.find(b'"' + key.encode("utf-8", "replace") + b'"', self._at)
        if at < 0:
            at = self._data.find(b'"' + key.encode("utf-8", "replace") + b'"')
            if at < 0:
                return self._line
            return self._data.count(b"\n", 0, at) + 1
        self._line += self._data.count(b"\n", self._at, at)
        self._at = at
        return self._line


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data.lstrip(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)[:200]) from error
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {type(value).__name__}")
    return value


def _decoded(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)[:200]) from error


def _step(name: str) -> str:
    found = _STEP.match(name)
    return found[1] if found else ""


def _dict(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return str(value)[:200] if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def _float(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and abs(number) < 1e18 else None


def _int(value: Any) -> int | None:
    number = _float(value)
    return None if number is None or abs(number) > 2**31 else int(number)


def _ns(ms: float | None) -> int | None:
    return None if ms is None or abs(ms) > 1e12 else round(ms * 1_000_000)
