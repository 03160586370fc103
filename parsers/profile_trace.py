"""trace_view.json and msprof_*.json: a stream of events, read in pieces, whole or cut off.

>>> import io
>>> text = b'[{"ph": "X", "name": "Free", "pid": 7, "tid": 3, "ts": "1764246877000200.125", "dur": 4.5}, {"ph": "X", "name": "EVENT_WA'
>>> reader = Reader(io.BytesIO(text).read)
>>> [(first, [event.name for event in events]) for first, events in reader.pieces()], reader.end
([(0, ['Free'])], 'cut')
>>> nanoseconds("1764246877000200.125")
1764246877000200125

The file is an array of events, or an object with one under `traceEvents`; it is written in two goes, so that an export that was killed
leaves it without an end. What can be read of it is read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import msgspec

PIECE = 4 << 20
LONGEST = 64 << 20
"""Bytes in which the end of an event must come."""
_COMMA = re.compile(rb"\},\s{0,2}\{")
TRIES = 6
"""Places a broken piece is split at, in search of one that leaves a side whole."""
MOST_LOST = 2000
"""Broken places after which the rest is given up."""
SPAN = 64 << 10
_BETWEEN = re.compile(rb"\}\s*,\s*\Z")
_OPEN = re.compile(rb'\s*(?:\[|\{\s*(?:"[^"]{1,60}"\s*:\s*(?:"[^"]*"|[-\d.eE]+|true|false|null)\s*,\s*)*"traceEvents"\s*:\s*\[)')


class Event(msgspec.Struct, gc=False):
    """One event; times as printed (microseconds)."""

    ph: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: str | int | float = 0
    dur: float = 0.0
    cat: str = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")


class Arguments(msgspec.Struct, gc=False):
    """What is used of an event's arguments."""

    name: str = ""
    mhz: float | None = msgspec.field(default=None, name="MHz")
    task_type: str = msgspec.field(default="", name="Task Type")
    size: int | float | None = msgspec.field(default=None, name="size(Byte)")
    data_size: int | float | None = msgspec.field(default=None, name="data size(Byte)")
    direction: str = msgspec.field(default="", name="memcpy direction")
    transport: str = msgspec.field(default="", name="transport type")
    link: str = msgspec.field(default="", name="link type")
    src_rank: int | str | None = msgspec.field(default=None, name="src rank")
    dst_rank: int | str | None = msgspec.field(default=None, name="dst rank")


_events = msgspec.json.Decoder(list[Event], strict=False)
_raws = msgspec.json.Decoder(list[msgspec.Raw])
_event = msgspec.json.Decoder(Event, strict=False)
_arguments = msgspec.json.Decoder(Arguments, strict=False)


def arguments(event: Event) -> Arguments:
    """The arguments of an event; empty ones where they are of another shape."""
    try:
        return _arguments.decode(event.args)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Arguments()


def nanoseconds(ts: str | int | float) -> int | None:
    """A time in microseconds, printed with or without decimals, as nanoseconds; exact where it is a text."""
    text = str(ts).strip() if not isinstance(ts, float) else repr(ts)
    whole, _, part = text.partition(".")
    digits = whole.lstrip("-")
    if digits.isdigit() and digits.isascii() and len(digits) < 17 and (not part or (part.isdigit() and part.isascii())):
        return int(whole) * 1000 + (int((part + "000")[:3]) if part else 0)
    try:
        value = float(text) * 1000
        return round(value) if abs(value) < 2**62 else None
    except (ValueError, OverflowError):
        return None


class Reader:
    """Reads one file; `pieces` once, then `end`, `lost` and `events` are known."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.end = ""
        """whole; cut: the file stops in the middle; damaged: something in it is no event."""
        self.lost = 0
        """Events (or runs of bytes) that could not be read."""
        self.events = 0

    def pieces(self) -> Iterator[tuple[int, list[Event]]]:
        """Number of the first event (from 0) and some events, in order."""
        data = self._read(PIECE)
        while data and len(data) < 4096 and (more := self._read(PIECE)):
            data += more
        opened = _OPEN.match(data.lstrip(b"\xef\xbb\xbf"))
        if opened is None:
            self.end = "damaged" if data.strip() else "cut"
            return
        data = data.lstrip(b"\xef\xbb\xbf")[opened.end() :]
        enough = 0
        while True:
            more = self._read(PIECE)
            if not more:
                break
            if len(data) < enough:
                data += more
                continue
            if (comma := self._boundary(data)) >= 0:
                events = self._decoded(data[:comma])
                if events is not None:
                    yield self.events, events
                    self.events += len(events)
                    data, enough = data[comma + 1 :], 0
                elif len(data) > LONGEST:
                    yield from self._one_by_one(data)
                    data = b""
            elif len(data) > LONGEST:
                self.end, self.lost = "damaged", self.lost + 1
                return
            else:
                enough = 2 * len(data)
            data += more
        yield from self._last(data)

    def _boundary(self, data: bytes) -> int:
        """Where a comma between two events stands, as far back as there is one that splits the data into whole events."""
        at = len(data)
        for _ in range(8):
            at = data.rfind(b"{", 0, at)
            if at <= 0:
                return -1
            found = _BETWEEN.search(data, max(0, at - 64), at)
            if found is not None:
                comma = data.index(b",", found.start())
                if self._decoded(data[: comma], probe=True) is not None:
                    return comma
        return -1

    _probe: tuple[int, list[Event]] | None = None

    def _decoded(self, data: bytes, probe: bool = False) -> list[Event] | None:
        if not probe and self._probe is not None and self._probe[0] == len(data):
            events, self._probe = self._probe[1], None
            return events
        text = b"[" + data + b"]"
        try:
            events = _events.decode(text)
        except msgspec.ValidationError:  # an event of an odd shape, in what may be whole JSON
            found = self._lenient(text)
            if found is None:
                return None
            events = found
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if probe:
            self._probe = len(data), events
        return events

    def _lenient(self, text: bytes) -> list[Event] | None:
        out, odd = [], 0
        try:
            raws = _raws.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        for raw in raws:
            try:
                out.append(_event.decode(raw))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                out.append(Event())  # keeps the numbers of those behind it
                odd += 1
        self.lost += odd
        return out

    def _last(self, data: bytes) -> Iterator[tuple[int, list[Event]]]:
        """What is left at the end of the file: whole events, then the end of the array, or a piece of one more event."""
        stop = data.rstrip().rstrip(b",").rstrip()
        ends = [len(stop) - 1] if stop.endswith(b"]") else []
        if stop.endswith(b"}"):  # of the object around the array
            ends += [at for at in (stop.rfind(b"]"), stop.find(b"}], ") + 1) if at > 0]
        for at in ends:
            events = self._decoded(stop[:at]) if stop[:at].strip() else []
            if events is not None:
                self.end = self.end or "whole"
                if events:
                    yield self.events, events
                    self.events += len(events)
                return
        if not stop:
            self.end = "cut"
            return
        yield from self._one_by_one(stop.removesuffix(b"]"))
        self.end = "damaged" if self.lost else "cut"

    def _one_by_one(self, data: bytes) -> Iterator[tuple[int, list[Event]]]:
        """Events up to a broken place and behind it, as many at a time as decode together. What is broken at the very end is a cut."""
        waiting = [data]
        broken = 0
        while waiting:
            part = waiting.pop(0)
            if not part.strip():
                continue
            if self.lost + broken > MOST_LOST:
                self.lost += broken
                return
            events = self._whole(part)
            if events is not None:
                self.lost, broken = self.lost + broken, 0
                if events:
                    yield self.events, events
                    self.events += len(events)
                continue
            middle = self._split(part)
            if middle < 0:
                broken += 1
            else:
                waiting[:0] = [part[:middle], part[middle + 1 :]]

    def _whole(self, data: bytes) -> list[Event] | None:
        """Events beside a broken place: a piece of one event's arguments may look like an event, but says no `ph`."""
        lost = self.lost
        events = self._decoded(data)
        if events is None or all(event.ph for event in events):
            return events
        self.lost = lost
        return None

    def _split(self, data: bytes) -> int:
        """A comma between two events near the middle of `data`, one on whose left or right all is sound if there is; -1: no comma at all."""
        half = len(data) // 2
        found = [place.start() + 1 for place in itertools.islice(_COMMA.finditer(data, half), TRIES)]
        before = [place.start() + 1 for place in itertools.islice(_COMMA.finditer(data, max(0, half - SPAN), half), 64)]
        near = [*found, *before[-TRIES:]]
        if not near and half > SPAN:
            near = [place.start() + 1 for place in itertools.islice(_COMMA.finditer(data, 0, half), 1)]
        for comma in near:
            if self._whole(data[:comma]) is not None or self._whole(data[comma + 1 :]) is not None:
                return comma
        return near[0] if near else -1
