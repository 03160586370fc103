"""The compiled loop of `sieve`: reads a block once, and names the lines that may hold one of the texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np

from rules.line_class import PROCESS_LONG, PROCESS_WITHIN
from rules.sieve import BITS, HEADS, Plan

_TABLES = (("bits", np.uint8), ("heads", np.int32), ("entries", np.int64), ("choices", np.int64), ("beside", np.int64), ("text", np.uint8))
_SHIFT = np.uint32(32 - BITS)
_HEAD = np.uint32(HEADS - 1)
_CASE = np.uint32(0x20202020)
_EIGHT_CASE = np.uint64(0x2020202020202020)
_ONE = np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_compiled: Callable[..., Any] = numba.njit(cache=True, boundscheck=False, nogil=True)


@_compiled
def _stands(data, size, at, first, end, beside, text):  # type: ignore[no-untyped-def]
    """Whether one of the texts from `first` to `end` stands on the line of `at`."""
    start = stop = at
    while start > 0 and data[start - 1] != 10:
        start -= 1
    while stop < size and data[stop] != 10:
        stop += 1
    for which in range(first, end):
        source, long = beside[which] & 0xFFFFFFFF, beside[which] >> 32
        for begin in range(start, stop - long + 1):
            if data[begin] | 0x20 == text[source]:
                same = True
                for k in range(1, long):
                    if data[begin + k] | 0x20 != text[source + k]:
                        same = False
                        break
                if same:
                    return True
    return False


@_compiled
def _last(data, size, at, gram, entries, choices, beside, text, entry):  # type: ignore[no-untyped-def]
    """Where the last byte stands of one of the entries from `entry` on, with its four bytes at `at`; -1 if none stands there."""
    while entry >= 0:
        first, second = entries[2 * entry], entries[2 * entry + 1]
        if np.uint32(first) == gram:
            source, long = second & 0xFFFFFFFF, (second >> 32) & 0xFF
            begin = np.int64(at) - ((second >> 40) & 0xFF)
            if begin >= 0 and begin + long <= size:
                same = True
                for k in range(long):
                    if data[begin + k] | 0x20 != text[source + k]:
                        same = False
                        break
                choice = (second >> 48) & 0xFFFF
                if same and (choice == 0 or _stands(data, size, begin, choices[2 * choice], choices[2 * choice + 1], beside, text)):
                    return begin + long - 1
        entry = first >> 32
    return np.int64(-1)


@_compiled
def _first(data, at, end, bits, factor):  # type: ignore[no-untyped-def]
    """The first place from `at` on where the table knows the four bytes; `end - 3` or beyond if there is none."""
    while at + np.uint64(7) < end:  # five places at once
        eight = np.uint64(data[at])
        for k in range(1, 8):
            eight |= np.uint64(data[at + np.uint64(k)]) << np.uint64(8 * k)
        eight |= _EIGHT_CASE
        known = np.uint8(0)
        for k in range(5):
            number = np.uint32(np.uint32(eight >> np.uint64(8 * k)) * factor) >> _SHIFT
            known |= ((bits[number >> np.uint32(3)] >> np.uint8(number & np.uint32(7))) & np.uint8(1)) << np.uint8(k)
        if known:
            while not known & np.uint8(1):
                known >>= np.uint8(1)
                at += _ONE
            return at
        at += np.uint64(5)
    while at + np.uint64(3) < end:
        number = np.uint32(_gram(data, at) * factor) >> _SHIFT
        if (bits[number >> np.uint32(3)] >> np.uint8(number & np.uint32(7))) & np.uint8(1):
            return at
        at += _ONE
    return at


@_compiled
def _gram(data, at):  # type: ignore[no-untyped-def]
    """The four bytes at a place, without case."""
    gram = np.uint32(data[at]) | np.uint32(data[at + _ONE]) << np.uint32(8)
    return gram | np.uint32(data[at + np.uint64(2)]) << np.uint32(16) | np.uint32(data[at + np.uint64(3)]) << np.uint32(24) | _CASE


@_compiled
def _line_ends(data, start, stop):  # type: ignore[no-untyped-def]
    ends = np.int64(0)
    while start < stop:  # in runs so short that eight bits count them: the compiler then counts many at once
        some = np.uint8(0)
        for k in range(start, min(start + 255, stop)):
            some += np.uint8(data[k] == 10)
        ends += some
        start += 255
    return ends


@_compiled
def _look_of(data, start, stop, seed):  # type: ignore[no-untyped-def]
    """Numbers for what a line looks like and for the process it names, as in `line_class`."""
    look, process, hexadecimal = seed, seed, False
    for k in range(start, stop):
        byte = data[k]
        if byte >= 48 and byte <= 57:
            byte = np.uint8(48)
        elif byte == 120 and k > start and data[k - 1] >= 48 and data[k - 1] <= 57:  # 0x
            hexadecimal = True
        elif hexadecimal and ((byte >= 97 and byte <= 102) or (byte >= 65 and byte <= 70)):
            byte = np.uint8(48)
        else:
            hexadecimal = False
        look = (look ^ np.uint64(byte)) * _MIX
        look ^= look >> np.uint64(29)
    for k in range(start, min(start + PROCESS_WITHIN, stop)):
        if data[k] == 40:  # (
            for to in range(k, min(k + PROCESS_LONG, stop)):
                process = (process ^ np.uint64(data[to])) * _MIX
                if data[to] == 41:  # )
                    break
            break
    return look, process


@_compiled
def _candidates(data, size, factor, bits, heads, entries, choices, beside, text, seed, lines, starts, stops, looks, processes):  # type: ignore[no-untyped-def]
    """(lines let through, line ends in all). What does not fit into `lines` is only counted."""
    count, line, mark = 0, np.int64(0), np.int64(0)
    at, end = np.uint64(0), np.uint64(size)
    while at < end:
        last = np.int64(0)  # the first line passes, as nothing tells that one begins there; so does a last one that has no end
        if count:
            at = _first(data, at, end, bits, factor)
            if at + np.uint64(3) < end:
                gram = _gram(data, at)
                number = np.uint32(gram * factor) >> _SHIFT
                last = _last(data, size, at, gram, entries, choices, beside, text, heads[(number ^ number >> np.uint32(4)) & _HEAD])
                if last < 0:
                    at += _ONE
                    continue
            elif data[end - _ONE] == 10:
                break
            else:
                last = size - 1
        start = stop = last
        while start > mark and data[start - 1] != 10:
            start -= 1
        while stop < size and data[stop] != 10:
            stop += 1
        line += _line_ends(data, mark, start)
        if count < len(lines):
            lines[count], starts[count], stops[count] = line, start, stop
            looks[count], processes[count] = _look_of(data, start, stop, seed)
        count += 1
        mark = stop
        at = np.uint64(stop)  # the line end may be what the next line is known by
    return count, line + _line_ends(data, mark, size)


Column = np.ndarray[Any, np.dtype[Any]]


class Sieve:
    """A plan with its tables laid out, and memory for what it lets through, used again for every block."""

    def __init__(self, plan: Plan) -> None:
        self._factor = np.uint32(plan.factor)
        self._tables = [np.frombuffer(getattr(plan, name), kind) for name, kind in _TABLES]
        self._seed = np.uint64(int.from_bytes(os.urandom(8), "little"))  # so that no log can be made to have two lines look alike
        self._make(1 << 16)

    def _make(self, room: int) -> None:
        self._found = [*(np.empty(room, np.int64) for _ in range(3)), *(np.empty(room, np.uint64) for _ in range(2))]

    def __call__(self, data: Any, size: int) -> tuple[list[Column], int]:
        """Of the first `size` bytes: columns of the lines let through (line index, start, stop, and numbers for what the line looks
        like and for its process), valid until the next call, and the number of line ends."""
        octets = np.frombuffer(data, np.uint8, size)
        octets.flags.writeable = False  # one type for the compiler, whatever memory it is
        count, lines = _candidates(octets, size, self._factor, *self._tables, self._seed, *self._found)
        if count > len(self._found[0]):
            self._make(2 * count)
            count, lines = _candidates(octets, size, self._factor, *self._tables, self._seed, *self._found)
        return [column[:count] for column in self._found], lines

    def mixed(self, count: int) -> Column:
        """A number for each of `count` expressions, so that the sum of those reported on a line tells which they are."""
        return np.random.default_rng(int(self._seed)).integers(0, 1 << 64, count, np.uint64)

    def with_lines(self, data: Any, columns: list[Column], ends: Sequence[int]) -> list[Column]:
        """The columns with the lines added in which matches end."""
        octets = np.frombuffer(data, np.uint8)
        breaks = np.flatnonzero(octets == 10)
        lines = np.unique(np.searchsorted(breaks, np.maximum(np.array(ends, np.int64) - 1, 0), side="left"))
        lines = lines[~np.isin(lines, columns[0])]
        bounds = np.concatenate(([-1], breaks, [len(octets)]))
        starts, stops = bounds[lines] + 1, bounds[lines + 1]
        looks = np.array([_look_of(octets, *span, self._seed) for span in zip(starts, stops, strict=True)], np.uint64).reshape(-1, 2)
        order = np.argsort(np.concatenate((columns[0], lines)), kind="stable")
        return [np.concatenate(pair)[order] for pair in zip(columns, (lines, starts, stops, looks[:, 0], looks[:, 1]), strict=True)]
