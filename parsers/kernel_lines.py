"""Compiled reading of the frequent lines of kernel logs, system logs and consoles, on bytes.

    [ 1203.300000] [ascend] [ERROR] [trs_drv] [trs_mbox_send 188] <python3:51377> Mbox send fail
    Oct 14 14:12:01 npu-07 systemd[1]: Started session
    (Worker_TP0 pid=1070) INFO 04-30 23:38:48 [executor.py:932] message
    2026-05-26 15:15:48,667 - trainer - INFO - message

Only the time is read here. What stands around it is interned piece by piece, and each piece is read once by the parser of the kind, on
a line made of it (`columns`); so what a piece means is the parser's to say. A line that may mean more is ASKED.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parsers.kernel import (
    ASKED,
    BOOT,
    CLAIMED,
    CLOCK,
    CODE,
    CODED,
    CR,
    DEVICE,
    DIRTY,
    FUNCTION,
    HEAD,
    LINE,
    LINES,
    LONGEST,
    MESSAGE,
    NONE,
    NOYEAR,
    PID,
    ROLE_ASCEND,
    ROLE_LOGGER,
    ROLE_SITE,
    ROLE_TAG,
    ROLE_VLLM,
    ROLE_WHO,
    ROLE_WORD,
    SITE,
    START,
    STATE,
    STOP,
    STREAM,
    TASK,
    TID,
    TS,
    UNCLEAN,
    WALL,
    compiled,
    days,
    digits,
    intern,
    is_byte,
    number,
    pointer,
)  # fmt: skip
from parsers.kernel_plog import ids

KERNEL, CONSOLE = 0, 1
"""Which lines to expect."""
PIECE = 120
"""Longest piece that is interned."""
_MONTHS = tuple(int.from_bytes(name, "big") for name in b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())


@compiled("i8(CPointer(u1),i8,i8)")
def _clock(data: Any, t: int, stop: int) -> int:
    """Seconds of the `HH:MM:SS` at t; -1 where there is none."""
    if t + 8 > stop or data[t + 2] != 58 or data[t + 5] != 58:
        return -1
    hour, minute, second = number(data, t, t + 2), number(data, t + 3, t + 5), number(data, t + 6, t + 8)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return -1
    return (hour * 60 + minute) * 60 + second


@compiled("i8(CPointer(u1),i8)")
def _month(data: Any, t: int) -> int:
    """1 to 12 for the English name of a month at t, else 0."""
    name = np.int64(data[t]) << 16 | np.int64(data[t + 1]) << 8 | np.int64(data[t + 2])
    for k in range(12):
        if _MONTHS[k] == name:
            return k + 1
    return 0


@compiled("i8(CPointer(u1),i8,i8)")
def _uptime_end(data: Any, p: int, stop: int) -> int:
    """Behind the `[ 1203.300000] ` at p, whose fraction has six digits; -1 where there is none."""
    if not is_byte(data, p, stop, 91):
        return -1
    k = p + 1
    while k < stop and k < p + 13 and data[k] == 32:
        k += 1
    e = digits(data, k, stop, 9)
    if e < 0 or not is_byte(data, e, stop, 46):
        return -1
    f = digits(data, e + 1, stop, 6)
    if f != e + 7 or not is_byte(data, f, stop, 93):
        return -1
    return f + 2 if is_byte(data, f + 1, stop, 32) else f + 1


@compiled("i8(CPointer(u1),i8,i8,i8[:,::1],i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8)")
def _body(data: Any, p: int, stop: int, table: Any, row: int, keys: Any, values: Any, spans: Any, counts: Any, seed: Any) -> int:
    """What follows the prefix of a kernel line. 1: a message, 2: a message of the Ascend driver, -1: ask."""
    if p >= stop:
        return -1
    if data[p] != 91:
        k = p
        while k < stop and k < p + 40 and data[k] != 32 and data[k] != 58:
            k += 1
        if k >= stop or k == p or k >= p + 40:
            return -1
        if data[k] == 58:
            k += 1
        if k < stop and data[k] == 32:
            k += 1
        first = intern(data, p, k, ROLE_WORD, keys, values, spans, counts, seed)
        if first < 0 or (k < stop and (data[k] == 91 or data[k] == 32)):
            return -1
        table[SITE, row] = first
        table[MESSAGE, row] = p
        return 1
    k = p
    groups = 0
    while k < stop and data[k] == 91 and k < p + PIECE:
        e = k + 1
        numbered = False
        while e < stop and e < p + PIECE and data[e] != 93 and data[e] != 91:
            numbered = 48 <= data[e] <= 57
            e += 1
        if not is_byte(data, e, stop, 93):
            return -1
        groups += 1
        named = data[k + 1]
        k = e + 1
        if is_byte(data, k, stop, 32):
            k += 1
        if numbered and groups >= 3 and (97 <= named <= 122 or named == 95):
            break
        numbered = False
    if groups < 3 or not numbered or not is_byte(data, p + 1, stop, 97) or is_byte(data, k, stop, 91) or is_byte(data, k, stop, 32):
        return -1
    site = intern(data, p, k, ROLE_ASCEND, keys, values, spans, counts, seed)
    who = 0
    if is_byte(data, k, stop, 60):
        e = k + 1
        while e < stop and e < k + PIECE and data[e] != 62:
            e += 1
        if not is_byte(data, e, stop, 62):
            return -1
        e += 2 if is_byte(data, e + 1, stop, 32) else 1
        who = intern(data, k, e, ROLE_WHO, keys, values, spans, counts, seed)
        k = e
    if site < 0 or who < 0:
        return -1
    table[SITE, row] = site
    table[FUNCTION, row] = who
    table[MESSAGE, row] = k
    return 2


@compiled("i8(CPointer(u1),i8,i8,i8[:,::1],i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8)")
def _kernel(data: Any, start: int, stop: int, table: Any, row: int, keys: Any, values: Any, spans: Any, counts: Any, seed: Any) -> int:
    """A line of dmesg or of syslog; results as those of `_body`."""
    if data[start] == 91:
        p = _uptime_end(data, start, stop)
        if p < 0:
            return -1
        e = p - 1 if data[p - 1] == 93 else p - 2
        k = e - 7
        s = k
        while 48 <= data[s - 1] <= 57:
            s -= 1
        table[TS, row] = number(data, s, k) * 1000000 + number(data, k + 1, e)
        table[CLOCK, row] = BOOT
        return _body(data, p, stop, table, row, keys, values, spans, counts, seed)
    if start + 20 > stop or data[start + 3] != 32 or data[start + 6] != 32 or data[start + 15] != 32:
        return -1
    month = _month(data, start)
    tens = np.int64(data[start + 4])
    date = np.int64(data[start + 5]) - 48 + (0 if tens == 32 else (tens - 48) * 10)
    clock = _clock(data, start + 7, start + 15)
    if month == 0 or (tens != 32 and (tens < 48 or tens > 51)) or not 48 <= data[start + 5] <= 57 or clock < 0:
        return -1
    day = days(1972, month, date)
    if day == NONE:
        return -1
    k = start + 16
    limit = min(stop, k + PIECE)
    spaces = 0
    while k < limit and data[k] != 58 and data[k] != 91:
        spaces += data[k] == 32
        k += 1
    if k >= limit or spaces != 1 or data[k - 1] == 32:
        return -1
    head = intern(data, start + 16, k, ROLE_TAG, keys, values, spans, counts, seed)
    pid = NONE
    if data[k] == 91:
        e = digits(data, k + 1, stop, 10)
        if e < 0 or not is_byte(data, e, stop, 93) or not is_byte(data, e + 1, stop, 58):
            return -1
        pid = number(data, k + 1, e)
        k = e + 1
    if head < 0 or not is_byte(data, k + 1, stop, 32) or is_byte(data, k + 2, stop, 32):
        return -1
    p = k + 2
    if is_byte(data, p, stop, 91):
        e = _uptime_end(data, p, stop)
        if e > 0:
            p = e
    table[TS, row] = (day * 86400 + clock) * 1000000
    table[CLOCK, row] = NOYEAR
    table[HEAD, row] = head
    table[PID, row] = pid
    return _body(data, p, stop, table, row, keys, values, spans, counts, seed)


@compiled("b1(CPointer(u1),i8,i8)")
def _wraps(data: Any, p: int, stop: int) -> bool:
    """Whether a message may hold the head of another record."""
    if p >= stop:
        return True
    c = data[p]
    if c == 91 or c == 32 or c == 9:
        return True
    if 65 <= c <= 90:
        if p + 1 < stop and (48 <= data[p + 1] <= 57 or 65 <= data[p + 1] <= 90):
            return True
        for k in range(p, min(stop - 1, p + 130)):
            if data[k] == 40 and data[k + 1] == 69:
                return True
    return False


@compiled("i8(CPointer(u1),i8,i8,i8[:,::1],i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8)")
def _console(data: Any, start: int, stop: int, table: Any, row: int, keys: Any, values: Any, spans: Any, counts: Any, seed: Any) -> int:
    """A line of vLLM or of Python's logging. 1: a message, -1: ask."""
    c = data[start]
    if 48 <= c <= 57:
        t = start
        if t + 30 > stop or data[t + 4] != 45 or data[t + 7] != 45 or data[t + 10] != 32 or data[t + 19] != 44 or data[t + 23] != 32:
            return -1
        clock, milli = _clock(data, t + 11, t + 19), number(data, t + 20, t + 23)
        day = days(number(data, t, t + 4), number(data, t + 5, t + 7), number(data, t + 8, t + 10))
        if clock < 0 or milli < 0 or day == NONE or data[t + 24] != 45:
            return -1
        k = t + 23
        dashes = 0
        limit = min(stop - 2, k + PIECE)
        while k < limit:
            if data[k] == 32 and data[k + 1] == 45 and data[k + 2] == 32:
                dashes += 1
                k += 2
                if dashes == 3:
                    break
            else:
                k += 1
        if dashes != 3:
            return -1
        p = k + 1
        for k in range(p, min(stop - 2, p + 200)):
            if data[k + 1] == 45 and (data[k] == 32 or data[k] == 9):  # perhaps file.py:12 - before the message
                return -1
        head = intern(data, t + 23, p, ROLE_LOGGER, keys, values, spans, counts, seed)
        if head < 0 or p >= stop or data[p] == 32 or data[p] == 9:
            return -1
        table[TS, row] = (day * 86400 + clock) * 1000000 + milli * 1000
        table[CLOCK, row] = WALL
        table[HEAD, row] = head
        table[MESSAGE, row] = p
        return 1
    k = start
    if c == 40:
        while k < stop and k < start + PIECE and data[k] != 41:
            k += 1
        if not is_byte(data, k, stop, 41) or not is_byte(data, k + 1, stop, 32):
            return -1
        k += 2
    w = k
    while k < stop and k < w + 9 and 65 <= data[k] <= 90:
        k += 1
    if k == w or not is_byte(data, k, stop, 32):
        return -1
    t = k + 1
    if t + 22 > stop or data[t + 2] != 45 or data[t + 5] != 32 or data[t + 14] != 32 or data[t + 15] != 91:
        return -1
    clock = _clock(data, t + 6, t + 14)
    month, date = number(data, t, t + 2), number(data, t + 3, t + 5)
    day = days(1972, month, date)
    if clock < 0 or day == NONE:
        return -1
    k = t + 16
    colon = 0
    while k < stop and k < t + PIECE and data[k] != 93 and data[k] != 32 and data[k] != 9:
        if data[k] == 58 and colon == 0:
            colon = k
        k += 1
    if not is_byte(data, k, stop, 93) or colon <= t + 16 or digits(data, colon + 1, stop, 7) != k:
        return -1
    p = k + 2 if is_byte(data, k + 1, stop, 32) else k + 1
    if _wraps(data, p, stop):
        return -1
    head = intern(data, start, t, ROLE_VLLM, keys, values, spans, counts, seed)
    site = intern(data, t + 16, k, ROLE_SITE, keys, values, spans, counts, seed)
    if head < 0 or site < 0:
        return -1
    table[TS, row] = (day * 86400 + clock) * 1000000
    table[CLOCK, row] = NOYEAR
    table[HEAD, row] = head
    table[SITE, row] = site
    table[MESSAGE, row] = p
    return 1


@compiled("i8(u1[::1],i8,i8,i4[::1],u1[::1],i4[::1],i8,i8[:,::1],i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8,i8)")
def read_lines(
    octets: Any, start: int, lines: int, ends: Any, flags: Any, marks: Any, marked: int, table: Any, row: int, keys: Any, values: Any, spans: Any,
    counts: Any, seed: Any, form: int,
) -> int:  # fmt: skip
    """A row for each line of a segment, from row `row` on; returns the next free row. `form`: KERNEL or CONSOLE."""
    data = pointer(octets)
    at = start
    mark = 0
    for n in range(lines):
        end = ends[n]
        flag = flags[n]
        stop = end - 1 if flag & CR else end
        table[LINE, row] = n
        table[LINES, row] = 1
        table[START, row] = at
        table[STOP, row] = stop
        table[HEAD, row] = table[SITE, row] = table[FUNCTION, row] = 0
        table[PID, row] = table[TID, row] = table[DEVICE, row] = table[STREAM, row] = table[TASK, row] = NONE
        table[STATE, row] = CLAIMED
        table[CODED, row] = 0
        kind = -1
        if not (flag & DIRTY) and stop - at <= LONGEST and at < stop:
            if form == KERNEL:
                kind = _kernel(data, at, stop, table, row, keys, values, spans, counts, seed)
            else:
                kind = _console(data, at, stop, table, row, keys, values, spans, counts, seed)
            if kind == 2 or (kind == 1 and form == CONSOLE):
                mark = ids(data, table[MESSAGE, row], stop, marks, mark, marked, table, row, keys, values, spans, counts, seed)
                table[STREAM, row] = table[TASK, row] = NONE
                if table[CODED, row]:  # other words are asked for here: Python looks
                    table[STATE, row] |= CODE
                    table[CODED, row] = 0
                if form == CONSOLE:  # only codes are looked for there
                    table[DEVICE, row] = NONE
        if kind < 0:
            table[STATE, row] = ASKED
            table[TS, row] = NONE
            table[CLOCK, row] = WALL
            table[MESSAGE, row] = at
            table[HEAD, row] = table[SITE, row] = table[FUNCTION, row] = table[CODED, row] = 0
        if flag & CR:
            table[STATE, row] |= UNCLEAN
        row += 1
        at = end + 1
    return row
