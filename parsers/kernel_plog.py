"""Compiled reading of CANN records, the bulk of most bundles: what `parsers.plog.read` does, on bytes.

Device, stream and task are found by the marks that `kernel.find_lines` leaves; error codes, ranks and rarer ways to name a device are
left to Python where a mark says that there may be one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parsers.kernel import (
    ASKED,
    BARE,
    CLAIMED,
    CLOCK,
    CODE,
    CODED,
    CONTINUED,
    CONTROL,
    CR,
    DEVICE,
    DIRTY,
    FUNCTION,
    HEAD,
    HIGH,
    LATER,
    LINE,
    LINES,
    LONGEST,
    MESSAGE,
    NONE,
    OTHER,
    PID,
    RANKED,
    ROLE_CODE,
    ROLE_FUNCTION,
    ROLE_HEAD,
    ROLE_SITE,
    SITE,
    SPELLED,
    START,
    STATE,
    STOP,
    STREAM,
    TASK,
    TID,
    TS,
    UNCLEAN,
    WALL,
    blank,
    compiled,
    days,
    digits,
    ends3,
    ends4,
    intern,
    is_byte,
    letter,
    number,
    pointer,
    word,
)  # fmt: skip
from parsers.plog import SEVERITIES


@compiled("b1(u1)")
def _hex(c: int) -> bool:
    return (48 <= c <= 57) or (97 <= c <= 102) or (65 <= c <= 70)


@compiled("i8(CPointer(u1),i8,i8,i8)")
def _code(data: Any, start: int, i: int, stop: int) -> int:
    """Begin of the value of the error code whose name (`ErrCode`, `error code`, `retcode`) ends with the `ode` at i; -1 where there is none."""
    c, r = data[i - 3], data[i - 4] if i - 4 >= start else 0
    upper = c == 67
    if ends3(data, start, i - 3, 114, 101, 116) or (upper and ends3(data, start, i - 3, 82, 101, 116)):  # retcode, retCode, RetCode
        pass
    elif ends3(data, start, i - 3, 101, 114, 114) or (upper and ends3(data, start, i - 3, 69, 114, 114)):  # errcode, errCode, ErrCode
        pass
    elif upper and ends4(data, start, i - 3, 114, 114, 111, 114):  # rrorCode
        pass
    elif not upper and r == 95 and ends3(data, start, i - 4, 114, 101, 116):  # ret_code
        pass
    elif not upper and r == 32 and ends4(data, start, i - 4, 114, 114, 111, 114):  # rror code
        pass
    else:
        return -1
    p = i + 1
    if is_byte(data, p, stop, 32) and is_byte(data, p + 1, stop, 105):
        if not is_byte(data, p + 2, stop, 115) or not is_byte(data, p + 3, stop, 32):
            return -1
        p += 4
        if is_byte(data, p, stop, 58):
            p += 1
        return p + 1 if is_byte(data, p, stop, 32) else p
    if is_byte(data, p, stop, 58):
        p += 1
        return p + 1 if is_byte(data, p, stop, 32) else p
    if is_byte(data, p, stop, 32):
        p += 1
    if is_byte(data, p, stop, 91):
        return p + 1
    if is_byte(data, p, stop, 61):
        p += 1
        return p + 1 if is_byte(data, p, stop, 32) else p
    return -1


@compiled("i8(CPointer(u1),i8,i8)")
def _value(data: Any, p: int, stop: int) -> int:
    """End of the value of a code at p (`EZ9999`, 0x91, -1), -1 where there is none."""
    k = p
    if p < stop and (data[p] == 69 or data[p] == 87 or data[p] == 73):
        k = p + 6
        if k > stop or not ((48 <= data[p + 1] <= 57) or (65 <= data[p + 1] <= 90)) or number(data, p + 2, k) < 0:
            return -1
    elif is_byte(data, p, stop, 48) and is_byte(data, p + 1, stop, 120):
        k = p + 2
        while k < stop and k < p + 18 and _hex(data[k]):
            k += 1
        if k == p + 2:
            return -1
    else:
        k = digits(data, p + 1 if is_byte(data, p, stop, 45) else p, stop, 10)
        if k < 0:
            return -1
    return -1 if k < stop and word(data[k]) and data[k] != 95 else k


@compiled("i8(CPointer(u1),i8,i8,i4[::1],i8,i8,i8[:,::1],i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8)")
def ids(
    data: Any, start: int, stop: int, marks: Any, at: int, marked: int, table: Any, row: int, keys: Any, values: Any, spans: Any, counts: Any,
    seed: Any,
) -> int:  # fmt: skip
    """Device, stream, task and code of a message, as `plog.device_of` and its neighbours find them, into a row; marks a code that is
    left to Python.

    `at`: index of the first mark that may lie in the message; returns that of the first one behind it."""
    coded = 0
    event = False
    stream = task = -1
    device = -1  # the number times 8 plus its count of digits: "03" and "3" are two texts
    devices = 0  # 0, 1 or 2 for several
    other = code = False
    while at < marked and marks[at] < start + 2:
        at += 1
    while at < marked and marks[at] < stop - 1:
        i = np.int64(marks[at])
        at += 1
        following = data[i + 1]
        c = data[i]
        if c == 100 or c == 68:  # d, D
            b = data[i - 1]
            if b == 105 or b == 73:  # id, Id, iD, ID
                k = i - 1 - (1 if data[i - 2] == 95 and i - 2 >= start else 0)  # end of the word before _id
                p = blank(data, i + 1, stop)
                if (ends4(data, start, k, 114, 101, 97, 109) and k - 5 >= start and data[k - 5] == 116) or ends4(data, start, k, 116, 97, 115, 107):
                    if is_byte(data, p, stop, 61) or is_byte(data, p, stop, 58):
                        p = blank(data, p + 1, stop)
                        if is_byte(data, p, stop, 91):
                            p += 1
                        p = blank(data, p, stop)
                    elif is_byte(data, p, stop, 91):
                        p = blank(data, p + 1, stop)
                    else:
                        p = stop
                    e = digits(data, p, stop, 10)
                    if e > 0:
                        if data[k - 1] == 109:
                            if stream < 0:
                                stream = number(data, p, e)
                        elif task < 0:
                            task = number(data, p, e)
                elif c == 100:
                    q = k
                    if ends3(data, start, q, 105, 99, 101):
                        q -= 3
                    own = ends3(data, start, q, 100, 101, 118) and not letter(data, q - 4, start)
                    if own:
                        g = p
                        if is_byte(data, g, stop, 61) or is_byte(data, g, stop, 91):
                            g = blank(data, g + 1, stop)
                        elif is_byte(data, g, stop, 58):
                            g += 1
                            if is_byte(data, g, stop, 32):
                                g += 1
                            if is_byte(data, g, stop, 91):
                                g += 1
                            g = blank(data, g, stop)
                        else:
                            g = stop
                        e = digits(data, g, stop, 5)
                        if e > 0 and not is_byte(data, e, stop, 46):
                            found = number(data, g, e) * 8 + e - g
                            devices = 1 if devices == 0 or (devices == 1 and found == device) else 2
                            device = found
                    if k > start and not own:  # logicDevId, chipId, phyId: left to Python where no device_id decides
                        w = data[k - 1]
                        other = other or w == 99 or w == 112 or w == 121 or w == 118 or w == 101
                    k = i - 1
                    if k - 1 >= start and (data[k - 1] == 95 or data[k - 1] == 32) and ends4(data, start, k - 1, 118, 101, 110, 116):
                        for y in range(i + 1, min(i + 9, stop - 1)):
                            if data[y] == 48 and (data[y + 1] == 120 or data[y + 1] == 88):
                                event = True
        elif c == 101:  # e
            if (
                ends3(data, start, i, 118, 105, 99)
                and i - 5 >= start
                and data[i - 4] == 101
                and data[i - 5] == 100
                and not letter(data, i - 6, start)
            ):
                p = i + 1
                g = blank(data, p, stop)
                if is_byte(data, g, stop, 61) or is_byte(data, g, stop, 91) or is_byte(data, g, stop, 40) or is_byte(data, g, stop, 58):
                    g = blank(data, g + 1, stop)
                elif is_byte(data, p, stop, 32):
                    g = p + 1
                else:
                    g = stop
                e = digits(data, g, stop, 5)
                if e > 0 and not (e < stop and (data[e] == 46 or data[e] == 37 or word(data[e]))):
                    found = number(data, g, e) * 8 + e - g
                    devices = 1 if devices == 0 or (devices == 1 and found == device) else 2
                    device = found
            elif data[i - 1] == 100 and data[i - 2] == 111 and i - 3 >= start and (data[i - 3] == 67 or data[i - 3] == 99):  # Code, code
                if coded == 0:
                    p = _code(data, start, i, stop)
                    e = _value(data, p, stop) if p > 0 else -1
                    if e > 0:
                        coded = intern(data, p, e, ROLE_CODE, keys, values, spans, counts, seed)
            elif following == 61 and data[i - 1] == 109 and i + 2 < stop and data[i + 2] == 69:  # module_name=E
                code = True
        elif c == 116:  # result
            if data[i - 1] == 108 and data[i - 2] == 117:
                code = True
        elif c == 111 or c == 110:  # errNo[ ErrorNo: errno[ return[
            code = code or following != 32
        elif c == 107 and following == 91 and data[i - 2] == 97:  # ank[
            table[STATE, row] |= RANKED
    table[DEVICE, row] = device >> 3 if devices == 1 else NONE
    table[STREAM, row] = stream if stream >= 0 else NONE
    table[TASK, row] = task if task >= 0 else NONE
    table[CODED, row] = max(coded, 0)
    if event or coded < 0 or (code and coded == 0):  # a chip event is told before any other code, those before all the rest
        table[STATE, row] |= CODE
    if other and devices == 0:
        table[STATE, row] |= OTHER
    return at


@compiled("i8(CPointer(u1),i8,i8)")
def _function(data: Any, p: int, stop: int) -> int:
    """End of a function name at p that a colon follows, else -1."""
    if p >= stop:
        return -1
    c = data[p]
    if not (97 <= c <= 122 or 65 <= c <= 90 or c == 95 or c == 126):
        return -1
    k = p + 1
    limit = min(stop, p + 202)
    while k < limit and word(data[k]):
        k += 1
    return k if k < stop and data[k] == 58 and k - p <= 201 else -1


@compiled("i8(CPointer(u1),i8,i8,i8)")
def _bracketed(data: Any, p: int, stop: int, most: int) -> int:
    """End of `[digits]` at p, behind the bracket; -1 where there is none."""
    if not is_byte(data, p, stop, 91):
        return -1
    e = digits(data, p + 1, stop, most)
    return e + 1 if e > 0 and is_byte(data, e, stop, 93) else -1


def _packed(word: str) -> int:
    """An upper-case word of at most 9 letters as one number."""
    value = 0
    for one in word:
        value = value * 32 + ord(one) - 64
    return value


_LEVELS = tuple(_packed(word) for word in SEVERITIES if word.isalpha())


@compiled("b1(CPointer(u1),i8,i8)")
def _head(data: Any, start: int, stop: int) -> bool:
    """Whether data[start:stop] is `[LEVEL] MODULE(pid,process` as `plog` knows it."""
    k = start + 1
    while k < stop and 65 <= data[k] <= 90:
        k += 1
    if k > start + 1:
        level = 0
        for y in range(start + 1, min(k, start + 10)):
            level = level * 32 + np.int64(data[y]) - 64
        known = False
        for y in range(len(_LEVELS)):
            known = known or level == _LEVELS[y]
        if not known:
            return False
    else:
        k = digits(data, k, stop, 2)
        if k < 0:
            return False
        value = number(data, start + 1, k)
        if value > 5 and value != 15 and value != 16 or data[start + 1] == 48 and k > start + 2:
            return False
    if not is_byte(data, k, stop, 93):
        return False
    k += 2 if is_byte(data, k + 1, stop, 32) else 1
    if k < stop and 65 <= data[k] <= 90:
        while k < stop and (65 <= data[k] <= 90 or 48 <= data[k] <= 57 or data[k] == 95):
            k += 1
    else:
        k = digits(data, k, stop, 3)
        if k < 0:
            return False
    if not is_byte(data, k, stop, 40):
        return False
    k += 2 if is_byte(data, k + 1, stop, 45) else 1
    k = digits(data, k, stop, 30)
    if k < 0 or not is_byte(data, k, stop, 44):
        return False
    k += 2 if is_byte(data, k + 1, stop, 32) else 1
    if stop - k > 160:
        return False
    for y in range(k, stop):
        if data[y] == 44:
            return False
    return True


@compiled("i8(CPointer(u1),i8,i8,i8[:,::1],i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8,i8[::1],b1[::1])")
def _plog(
    data: Any, start: int, stop: int, table: Any, row: int, keys: Any, values: Any, spans: Any, counts: Any, seed: Any, day: Any, sound: Any
) -> int:
    """Read the head of a CANN record. 1: done, 0: the line is none, -1: ask Python."""
    limit = min(stop, start + 240) - 1
    k = start + 1
    while k < limit and not (data[k] == 41 and data[k + 1] == 58):
        k += 1
    if k >= limit:
        return 0
    given = counts[0]
    head = intern(data, start, k, ROLE_HEAD, keys, values, spans, counts, seed)
    if head > given:
        sound[head] = _head(data, start, k)
    if head > 0 and not sound[head]:
        return 0
    t = k + 2
    if head < 0 or t + 28 > stop or data[t + 27] != 32 or data[t + 23] != 46 or data[t + 19] != 46:
        return -1
    if data[t + 4] != 45 or data[t + 7] != 45 or data[t + 10] != 45 or data[t + 13] != 58 or data[t + 16] != 58:
        return -1
    hour, minute, second = number(data, t + 11, t + 13), number(data, t + 14, t + 16), number(data, t + 17, t + 19)
    milli, micro = number(data, t + 20, t + 23), number(data, t + 24, t + 27)
    year, month, date = number(data, t, t + 4), number(data, t + 5, t + 7), number(data, t + 8, t + 10)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59 or milli < 0 or micro < 0:
        return -1
    stamp = (year * 16 + month) * 32 + date
    if year < 0 or month < 0 or month > 15 or date < 0 or date > 31:
        return -1
    if stamp != day[0]:
        day[0], day[1] = stamp, days(year, month, date)
    if day[1] == NONE:
        return -1
    table[TS, row] = (((day[1] * 24 + hour) * 60 + minute) * 60 + second) * 1000000 + milli * 1000 + micro
    table[CLOCK, row] = WALL
    table[HEAD, row] = head
    table[PID, row] = NONE
    p = t + 28
    site = function = 0
    tid = NONE
    if is_byte(data, p, stop, 91):
        if p + 7 < stop and data[p + 1] == 115 and data[p + 2] == 116 and data[p + 7] == 58:  # [status:
            return -1
        k = p + 1
        bound = min(stop, p + 270)
        colon = 0
        while k < bound and data[k] != 93 and data[k] != 91:
            if data[k] == 58 and colon == 0:
                colon = k
            k += 1
        if k < bound and data[k] == 93 and colon > p + 1 and colon - p - 1 <= 256 and digits(data, colon + 1, stop, 9) == k:
            site = intern(data, p + 1, k, ROLE_SITE, keys, values, spans, counts, seed)
            if site < 0:
                return -1
            p = k + 1
    q = p
    first = 0
    if q < stop:
        first = np.int64(data[q])
        if first == 32:
            q += 1
            first = np.int64(data[q]) if q < stop else 0
    if 48 <= first <= 57:
        if site:
            k = q
            while k < stop and k < q + 10 and 48 <= data[k] <= 57:
                k += 1
            if is_byte(data, k, stop, 48) or (k < stop and 48 < data[k] <= 57):  # eleven digits
                return -1
            tid = number(data, q, k)
            p = k + 1 if is_byte(data, k, stop, 32) else k
            k = _function(data, p, stop)
            if k > 0:
                function = intern(data, p, k, ROLE_FUNCTION, keys, values, spans, counts, seed)
                p = k + 2 if is_byte(data, k + 1, stop, 32) else k + 1
    elif first == 91:
        k = _bracketed(data, q, stop, 10)
        if k > 0:
            tid = number(data, q + 1, k - 1)
            p = k
            k = _bracketed(data, p, stop, 10)
            if k > 0:
                tid = number(data, p + 1, k - 1)
                p = k
        elif q == p:
            k = q + 1
            while k < stop and k < q + 202 and word(data[k]):
                k += 1
            if k > q + 1 and is_byte(data, k, stop, 93):
                if is_byte(data, k + 1, stop, 91):  # [function][tid:7], [ascend][curpid:, [MODULE][function][7]
                    e = k + 2
                    while e < stop and e < k + 202 and word(data[e]):
                        e += 1
                    if k + 2 < stop and (data[k + 2] == 116 or data[k + 2] == 84 or data[k + 2] == 99 or is_byte(data, e + 1, stop, 91)):
                        return -1
                w = k + 2 if is_byte(data, k + 1, stop, 32) else k + 1
                if is_byte(data, w, stop, 91):  # perhaps [hdc] [function 123]
                    e = w + 1
                    while e < stop and e < w + 202 and word(data[e]):
                        e += 1
                    if e > w + 1 and is_byte(data, e, stop, 32):
                        z = digits(data, e + 1, stop, 9)
                        small = k - q - 1 <= 64
                        for y in range(q + 1, k):
                            small = small and (97 <= data[y] <= 122 or data[y] == 95)
                        if small and z > 0 and is_byte(data, z, stop, 93) and e - w - 1 <= 200:
                            function = intern(data, w + 1, e, ROLE_FUNCTION, keys, values, spans, counts, seed)
                            p = z + 2 if is_byte(data, z + 1, stop, 32) else z + 1
            elif is_byte(data, k, stop, 58) or is_byte(data, k, stop, 45):  # [tid:7], [hccl-group]
                return -1
    elif first == 40 or first == 62:
        k = q
        if first == 62:  # >>> (tid:7)
            return -1
        if k + 5 < stop and data[k] == 40 and data[k + 1] == 116 and data[k + 2] == 105 and data[k + 3] == 100 and data[k + 4] == 58:
            k += 6 if data[k + 5] == 32 else 5
            e = digits(data, k, stop, 10)
            if e > 0 and is_byte(data, e, stop, 41):
                tid = number(data, k, e)
                p = e + 2 if is_byte(data, e + 1, stop, 32) else e + 1
    elif first == 116 and q + 4 < stop and data[q + 1] == 105 and data[q + 2] == 100 and data[q + 3] == 58:
        return -1
    else:
        k = _function(data, q, stop)
        if k > 0:
            function = intern(data, q, k, ROLE_FUNCTION, keys, values, spans, counts, seed)
            p = k + 2 if is_byte(data, k + 1, stop, 32) else k + 1
    if function < 0:
        return -1
    table[SITE, row] = site
    table[FUNCTION, row] = function
    table[TID, row] = tid
    table[MESSAGE, row] = p
    return 1


@compiled("i8(u1[::1],i8,i8,i4[::1],u1[::1],i4[::1],i8,i8[:,::1],i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8,i8[::1],b1[::1])")
def read_plog(
    octets: Any,
    start: int,
    lines: int,
    ends: Any,
    flags: Any,
    marks: Any,
    marked: int,
    table: Any,
    row: int,
    keys: Any,
    values: Any,
    spans: Any,
    counts: Any,
    seed: Any,
    day: Any,
    sound: Any,
) -> int:
    """Rows of a segment whose lines are plog records and what continues them, from row `row` on; returns the next free row."""
    data = pointer(octets)
    at = start
    mark = 0
    open_row = -1  # the row that a continuation belongs to
    for n in range(lines):
        end = ends[n]
        flag = flags[n]
        stop = end - 1 if flag & CR else end
        kind = 0
        if (flag & DIRTY) or end - at > LONGEST:
            # Chinese text that does not begin like a record continues one
            kind = -1 if (flag & (CONTROL | SPELLED)) or end - at > LONGEST or (at < stop and data[at] == 91) else 0
        elif at < stop and data[at] == 91:
            table[STATE, row] = CLAIMED
            kind = _plog(data, at, stop, table, row, keys, values, spans, counts, seed, day, sound)
            if kind == 1:
                mark = ids(data, table[MESSAGE, row], stop, marks, mark, marked, table, row, keys, values, spans, counts, seed)
        if kind == 0 and open_row >= 0 and table[LINES, open_row] < CONTINUED:
            table[LINES, open_row] += 1
            table[STOP, open_row] = stop
            if flag & (CR | HIGH):
                table[STATE, open_row] |= LATER
        else:
            table[LINE, row] = n
            table[LINES, row] = 1
            table[START, row] = at
            table[STOP, row] = stop
            if kind != 1:
                table[TS, row] = NONE
                table[MESSAGE, row] = at
                table[HEAD, row] = table[SITE, row] = table[FUNCTION, row] = 0
                table[CLOCK, row] = WALL
                table[CODED, row] = 0
                table[PID, row] = table[TID, row] = table[DEVICE, row] = table[STREAM, row] = table[TASK, row] = NONE
                table[STATE, row] = BARE if kind == 0 else ASKED
            if flag & (CR | HIGH):
                table[STATE, row] |= UNCLEAN
            open_row = row if kind != 0 else -1
            row += 1
        at = end + 1
    return row
