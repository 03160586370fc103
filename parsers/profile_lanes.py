"""What the events of a trace say: clocks, waits, copies, pauses, payloads of links, and sums of what is too many to keep.

>>> from parsers.profile_trace import Event, msgspec
>>> lanes = Lanes()
>>> lanes.take(0, [
...     Event("M", "process_name", 7, args=msgspec.Raw(b'{"name": "AI Core Freq"}')),
...     Event("C", "AI Core Freq", 7, ts="1764246877000000.000", args=msgspec.Raw(b'{"MHz": 1200}')),
...     Event("X", "AscendCL@aclrtMalloc", 8, ts="1764246877000000.000", dur=12.5),
... ])
>>> lanes.clocks, lanes.api()
([(1, 1764246877000000000, 1200.0)], [(2, 'acl', 'aclrtMalloc', 12500, 1, 12500, 12500, 12500)])

A lane is named by the metadata of its process; where that is missing, by the number packed into the process id.
"""

from __future__ import annotations

from typing import Any

from parsers.profile_trace import Event, arguments, nanoseconds

KEPT = 300_000
"""Events of one trace kept as rows; further ones are counted."""
_SORTED = {
    7: "CANN", 13: "Ascend Hardware", 14: "AI Core Freq", 15: "Communication", 17: "HBM", 18: "LLC", 19: "NPU MEM", 20: "Stars Soc Info",
    21: "Acc PMU", 22: "QoS", 23: "Overlap Analysis",
}  # fmt: skip
"""Bits 5 to 9 of a process id -> lane."""
_KEPT_TASKS = frozenset({"MEMCPY", "Memcpy", "memcpy", "EVENT_", "Event_", "event_", "Event "})
_LEVELS = {"AscendCL": "acl", "Node": "node", "Runtime": "runtime", "Model": "model", "Communication": "communication", "HCCL": "communication"}
_OVERLAP = frozenset({"Computing", "Communication", "Communication(Not Overlapped)", "Free"})
_PAYLOADS = frozenset({"Memcpy", "Reduce_Inline", "RDMASend", "Reduce_TBE", "SDMA", "Inter_Processor_Sync"})

TRACE_COLUMNS = ("row_no", "lane", "thread", "name", "category", "start_ns", "dur_ns", "size_bytes", "transport", "link", "src_rank", "dst_rank")
TraceRow = tuple[int, str, str, str, str, int | None, int, int | None, str, str, int | None, int | None]


class Lanes:
    """Takes the events of one trace, in order."""

    def __init__(self) -> None:
        self.trace: list[TraceRow] = []
        self.clocks: list[tuple[int, int, float]] = []
        """Event, moment, MHz."""
        self.left_out = 0
        """Events that would have been rows but were too many."""
        self.overlap: dict[str, int] = {}
        """Computing, Communication, Communication(Not Overlapped), Free -> nanoseconds of the whole trace."""
        self.windows: list[tuple[str, int, int]] = []
        """Steps: name, start, end."""
        self.first_overlap = -1
        self._lanes: dict[int | str, str] = {}
        self._threads: dict[tuple[int | str, int | str], str] = {}
        self._api: dict[str, list[float]] = {}
        """Call -> microseconds in all, number, least, most, event of the longest."""
        self._rows = 0

    def take(self, first: int, events: list[Event]) -> None:
        lanes = self._lanes
        for number, event in enumerate(events, first):
            ph = event.ph
            if ph == "X":
                lane = lanes.get(event.pid) or self._guessed(event)
                if lane == "CANN":
                    self._call(number, event)
                elif lane == "Python" or lane == "Python GC":
                    if event.cat == "GC" or "#" in event.name:
                        self._python(number, event)
                elif lane == "Ascend Hardware":
                    if event.name[:6] in _KEPT_TASKS:
                        self._row(number, event, "Ascend Hardware", *self._copied(event))
                elif lane == "Communication" or lane == "HCCL":
                    self._payload(number, event)
                elif lane == "Overlap Analysis" and event.name in _OVERLAP:
                    self.overlap[event.name] = self.overlap.get(event.name, 0) + _span(event)
                    self.first_overlap = number if self.first_overlap < 0 else self.first_overlap
                elif event.cat == "GC":
                    self._python(number, event)
            elif ph == "C":
                if event.name == "AI Core Freq" or lanes.get(event.pid) == "AI Core Freq":
                    mhz, moment = arguments(event).mhz, nanoseconds(event.ts)
                    if mhz is not None and moment is not None:
                        self.clocks.append((number, moment, mhz))
            elif ph == "M":
                self._meta(event)

    def api(self) -> list[tuple[int, str, str, int, int, int, int, int]]:
        """Calls of CANN, summed: event of the longest, level, name, total, count, mean, shortest, longest."""
        out = []
        for name, (total, count, least, most, at) in self._api.items():
            level, _, call = name.partition("@")
            mean = round(total / count * 1000)
            out.append((int(at), _LEVELS[level], call, round(total * 1000), int(count), mean, round(least * 1000), round(most * 1000)))
        return out

    # ------------------------------------------------------------ single events

    def _meta(self, event: Event) -> None:
        if event.name == "process_name":
            self._lanes[event.pid] = arguments(event).name
        elif event.name == "thread_name" and len(self._threads) < 100_000:
            self._threads[event.pid, event.tid] = arguments(event).name[:100]

    def _guessed(self, event: Event) -> str:
        """The lane of a process that no metadata has named so far."""
        if event.name.partition("@")[0] in _LEVELS and "@" in event.name:
            return "CANN"
        if event.cat in ("cpu_op", "GC", "python_function", "enqueue", "dequeue", "fwdbwd"):
            return "Python"
        if isinstance(event.pid, int) and event.pid >= 1 << 15:
            return _SORTED.get(event.pid >> 5 & 31, "")
        return "Overlap Analysis" if event.name in _OVERLAP else ""

    def _call(self, number: int, event: Event) -> None:
        span = event.dur
        known = self._api.get(event.name)
        if known is None:
            if event.name.partition("@")[0] in _LEVELS and len(self._api) < 20_000 and 0 <= span < 1e15:
                self._api[event.name] = [span, 1, span, span, number]
            return
        if not 0 <= span < 1e15:
            return
        known[0] += span
        known[1] += 1
        if span < known[2]:
            known[2] = span
        elif span > known[3]:
            known[3], known[4] = span, number

    def _python(self, number: int, event: Event) -> None:
        if event.name.startswith("ProfilerStep#"):
            start = nanoseconds(event.ts)
            if start is not None and len(self.windows) < 100_000:
                self.windows.append((event.name[13:], start, start + _span(event)))
        elif event.cat == "GC" or "DataLoader" in event.name:
            self._row(number, event, "Python GC" if event.cat == "GC" else "Python")

    def _payload(self, number: int, event: Event) -> None:
        if event.name not in _PAYLOADS and event.name.startswith(("hcom", "Notify", "Group")):
            return
        seen = arguments(event)
        if seen.size is not None and seen.size > 0:
            self._row(number, event, "Communication", int(seen.size), seen.transport, seen.link, _rank(seen.src_rank), _rank(seen.dst_rank))

    @staticmethod
    def _copied(event: Event) -> tuple[Any, ...]:
        seen = arguments(event)
        return (int(seen.data_size) if seen.data_size is not None and 0 <= seen.data_size < 2**62 else None, seen.direction)

    def _row(
        self, number: int, event: Event, lane: str, size: int | None = None, transport: str = "", link: str = "", src: int | None = None,
        dst: int | None = None,
    ) -> None:  # fmt: skip
        if self._rows >= KEPT:
            self.left_out += 1
            return
        self._rows += 1
        thread = self._threads.get((event.pid, event.tid)) or str(event.tid)
        if size is not None and size >= 2**62:
            size = None
        self.trace.append(
            (number, lane, thread, event.name[:300], event.cat[:40], nanoseconds(event.ts), _span(event), size, transport[:40], link[:40], src, dst)
        )


def _span(event: Event) -> int:
    """Nanoseconds an event lasts."""
    dur = event.dur
    return round(dur * 1000) if 0 <= dur < 1e15 else 0


def _rank(value: int | str | None) -> int | None:
    if isinstance(value, str):
        value = int(value) if value.isdigit() and len(value) < 9 else None
    return value if value is not None and 0 <= value < 2**31 - 1 else None
