"""The compiled inner loops of `columns`: find lines in a block of bytes and read the heads of CANN records.

Everything here does what `parsers.plog.read` does, on bytes, for lines that are plain ASCII and of the usual shape; whatever is
out of the ordinary is marked `ASK` and read by `Parser.record` instead. Texts (level, module and process; file and line; function)
are not copied but interned: a row carries the number of a span that Python turns into text once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from parsers.plog import SEVERITIES

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(signature: str) -> Callable[[Function], Function]:
    """Makes a function machine code, for one signature, kept on disk where that is possible.

    Without the runtime that counts references to arrays: it would cost more than all the rest."""
    import numba

    njit: Any = numba.njit  # `_nrt` is not in its types

    def make(function: Function) -> Function:
        try:
            machine = njit(signature, cache=True, nogil=True, _nrt=False)(function)
        except RuntimeError:  # no folder to keep it in
            machine = njit(signature, nogil=True, _nrt=False)(function)
        return cast("Function", machine)

    return make


# flags of a line
CONTROL, CR, HIGH, SPELLED = 1, 2, 4, 8
"""A control character other than tab inside; CR at the end; a byte over 127; something that may be a spelled-out escape."""
DIRTY = CONTROL | HIGH | SPELLED

# columns of the table of rows (int64); NONE where there is no value
LINE, LINES, START, STOP, MESSAGE, TS, HEAD, SITE, FUNCTION, TID, DEVICE, RANK, STREAM, TASK, STATE, WIDTH = range(16)
NONE = -(1 << 62)

# STATE of a row: how it was read, then bits
CLAIMED, ASKED, BARE = 0, 1, 2
"""Read here; to be read by Python; no record at all, a line of its own."""
CODE, UNCLEAN, LATER, DROPPED, RANKED, OTHER = 4, 8, 16, 32, 64, 128
"""May carry an error code; its first line is not plain (CR or bytes over 127); a later line is not; joined to the row above;
its message may name its rank, or a device in another way than device_id."""

LONGEST = 60 << 10
"""A longer line is left to Python."""
CONTINUED = 2000
"""Lines one record may have; further ones stand alone."""

# roles of interned texts
ROLE_HEAD, ROLE_SITE, ROLE_FUNCTION = 1, 2, 3


PAIR, ODD = 1, 2


@compiled("void(u1[::1],i8,i8,u1[::1])")
def _look(data: Any, start: int, count: int, out: Any) -> None:
    """Which of data[start:start+count] need a second look; simple enough to become vector instructions.

    PAIR: the second letter of what an id's or a code's name ends with (id, ce, de, me, lt, No, nk, rn, no) before what may lead to its number;
    ODD: see `find_lines`."""
    here = data[start : start + count]
    before = data[start - 1 : start - 1 + count]
    after = data[start + 1 : start + 1 + count]
    for k in range(count):
        c, b, a = here[k], before[k], after[k]
        pair = ((c == 100) | (c == 68)) & ((b == 105) | (b == 73))
        pair |= (c == 101) & ((b == 99) | (b == 100) | (b == 109))
        pair |= ((c == 116) & (b == 108)) | ((c == 111) & (b == 78)) | ((c == 107) & (b == 110))
        pair |= ((c == 110) & (b == 114)) | ((c == 111) & (b == 110))
        pair &= (a == 32) | (a == 61) | (a == 58) | (a == 91) | (a == 40) | (a == 9) | (a == 48)
        odd = (c < 32) | (c >= 128) | (c == 94) | (c == 92)
        out[k] = np.uint8(pair) | (np.uint8(odd) << np.uint8(1))


@compiled("i8(u1[::1],i8,i8,i4[::1],u1[::1],i4[::1],i8[::1],u1[::1],u8[::1])")
def find_lines(data: Any, start: int, stop: int, ends: Any, flags: Any, marks: Any, found: Any, look: Any, looked: Any) -> int:
    """Offsets of all line ends in data[start:stop], behind which one more byte must exist, and what is special about each line; returns the number of lines.

    A last line without an end counts as one that ends at `stop`. Into `marks` go the places where the name of an id or a code may
    end (`id=`, `device `, `Code:`), their number into found[0]. `look` and `looked` are the same scratch memory as bytes and uint64."""
    count, seen, marked = 0, 0, 0
    line_start = start
    base = start
    tile = len(look)
    while base < stop:
        size = min(tile, stop - base)
        skip = 1 if base == 0 else 0  # there is no byte before the first
        _look(data, base + skip, size - skip, look[skip:])
        if skip:
            look[0] = ODD
        for k in range(size, min(tile, (size + 7) & ~7)):
            look[k] = 0
        for w in range((size + 7) >> 3):
            left = looked[w]
            while left != 0:
                lowest = left & (~left + np.uint64(1))
                left ^= lowest
                # the lowest bit set, as the number of its byte
                byte = np.int64(
                    (((lowest | lowest >> np.uint64(1)) & np.uint64(0x0101010101010101)) * np.uint64(0x0001020304050607)) >> np.uint64(56)
                )
                i = base + 8 * w + byte
                what = look[8 * w + byte]
                c = data[i]
                if what & PAIR:
                    marks[marked] = i
                    marked += 1
                elif c < 32:
                    if c == 10:
                        ends[count] = i
                        flags[count] = seen
                        count += 1
                        seen = 0
                        line_start = i + 1
                    elif c == 13 and (i + 1 == stop or data[i + 1] == 10):
                        seen |= CR
                    elif c != 9:
                        seen |= CONTROL
                elif c >= 128:
                    seen |= HIGH
                elif c == 94:  # ^[ and ^M
                    if i + 1 < stop and (data[i + 1] == 91 or data[i + 1] == 77):
                        seen |= SPELLED
                elif c == 92:  # \x1b \033 \u001b
                    if i + 3 < stop and (
                        (data[i + 1] == 120 and data[i + 2] == 49)
                        or (data[i + 1] == 48 and data[i + 2] == 51)
                        or (data[i + 1] == 117 and data[i + 2] == 48)
                    ):
                        seen |= SPELLED
        base += size
    if line_start < stop:
        ends[count] = stop
        flags[count] = seen
        count += 1
    found[0] = marked
    return count


@compiled("i8(u1[::1],i8,i8)")
def _number(data: Any, start: int, stop: int) -> int:
    """The digits of data[start:stop] as a number, -1 where one is no digit."""
    value = 0
    for k in range(start, stop):
        digit = np.int64(data[k]) - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@compiled("i8(i8,i8,i8)")
def days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date, NONE for one that does not exist."""
    if year < 1 or month < 1 or month > 12 or day < 1:
        return NONE
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 31
    if month == 2:
        longest = 29 if leap else 28
    elif month == 4 or month == 6 or month == 9 or month == 11:
        longest = 30
    if day > longest:
        return NONE
    y = year - 1 if month <= 2 else year
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@compiled("b1(u1)")
def _word(c: int) -> bool:
    """A byte that \\w matches in ASCII."""
    return (97 <= c <= 122) or (65 <= c <= 90) or (48 <= c <= 57) or c == 95


@compiled("i8(u1[::1],i8,i8,i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8)")
def _intern(data: Any, start: int, stop: int, role: int, keys: Any, values: Any, spans: Any, counts: Any, seed: Any) -> int:
    """The number of a text, a new one (from 1) for one not seen before; -1 where the table is full.

    `counts`: [numbers given out, entries of `spans` filled since Python last looked]; `spans` rows: number, role, start, stop."""
    h = seed ^ np.uint64(role)
    prime = np.uint64(0x9E3779B97F4A7C15)
    k = start
    while k + 8 <= stop:
        word = (
            np.uint64(data[k]) | np.uint64(data[k + 1]) << np.uint64(8) | np.uint64(data[k + 2]) << np.uint64(16)
            | np.uint64(data[k + 3]) << np.uint64(24) | np.uint64(data[k + 4]) << np.uint64(32) | np.uint64(data[k + 5]) << np.uint64(40)
            | np.uint64(data[k + 6]) << np.uint64(48) | np.uint64(data[k + 7]) << np.uint64(56)
        )  # fmt: skip
        h = (h ^ word) * prime
        h ^= h >> np.uint64(32)
        k += 8
    word = np.uint64(stop - start) << np.uint64(56)
    shift = np.uint64(0)
    while k < stop:
        word ^= np.uint64(data[k]) << shift
        shift += np.uint64(8)
        k += 1
    h = (h ^ word) * prime
    h ^= h >> np.uint64(29)
    if h == 0:
        h = np.uint64(1)
    size = np.uint64(len(keys) - 1)
    x = h & size
    while keys[x] != 0 and keys[x] != h:
        x = (x + np.uint64(1)) & size
    if keys[x] == h:
        return values[x]
    if counts[0] + 1 >= len(keys) // 2 or counts[1] >= len(spans):
        return -1
    counts[0] += 1
    keys[x] = h
    values[x] = counts[0]
    row = counts[1]
    spans[row, 0], spans[row, 1], spans[row, 2], spans[row, 3] = counts[0], role, start, stop
    counts[1] = row + 1
    return values[x]


@compiled("i8(u1[::1],i8,i8,i8)")
def _digits(data: Any, p: int, stop: int, most: int) -> int:
    """End of the run of digits at p, which must have 1 to `most` of them; -1 otherwise."""
    k = p
    while k < stop and 48 <= data[k] <= 57:
        k += 1
    return k if p < k <= p + most else -1


@compiled("i8(u1[::1],i8,i8)")
def _blank(data: Any, p: int, stop: int) -> int:
    return p + 1 if p < stop and (data[p] == 32 or data[p] == 9) else p


@compiled("b1(u1[::1],i8,i8,i8)")
def _is(data: Any, p: int, stop: int, c: int) -> bool:
    return p < stop and data[p] == c


@compiled("b1(u1[::1],i8,i8)")
def _letter(data: Any, p: int, start: int) -> bool:
    """Whether a letter or underscore stands at p of a text that begins at `start`."""
    return p >= start and (97 <= data[p] <= 122 or 65 <= data[p] <= 90 or data[p] == 95)


@compiled("b1(u1[::1],i8,i8,i8,i8,i8)")
def _ends3(data: Any, start: int, stop: int, a: int, b: int, c: int) -> bool:
    """Whether data[start:stop] ends with these three bytes."""
    return stop - 3 >= start and data[stop - 1] == c and data[stop - 2] == b and data[stop - 3] == a


@compiled("b1(u1[::1],i8,i8,i8,i8,i8,i8)")
def _ends4(data: Any, start: int, stop: int, a: int, b: int, c: int, d: int) -> bool:
    return stop - 4 >= start and data[stop - 1] == d and data[stop - 2] == c and data[stop - 3] == b and data[stop - 4] == a


@compiled("i8(u1[::1],i8,i8,i4[::1],i8,i8,i8[:,::1],i8)")
def _ids(data: Any, start: int, stop: int, marks: Any, at: int, marked: int, table: Any, row: int) -> int:
    """Device, stream and task of a message, as `plog.device_of` and its neighbours find them, into a row; marks a possible code.

    `at`: index of the first mark that may lie in the message; returns that of the first one behind it."""
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
                p = _blank(data, i + 1, stop)
                if (_ends4(data, start, k, 114, 101, 97, 109) and k - 5 >= start and data[k - 5] == 116) or _ends4(data, start, k, 116, 97, 115, 107):
                    if _is(data, p, stop, 61) or _is(data, p, stop, 58):
                        p = _blank(data, p + 1, stop)
                        if _is(data, p, stop, 91):
                            p += 1
                        p = _blank(data, p, stop)
                    elif _is(data, p, stop, 91):
                        p = _blank(data, p + 1, stop)
                    else:
                        p = stop
                    e = _digits(data, p, stop, 10)
                    if e > 0:
                        if data[k - 1] == 109:
                            if stream < 0:
                                stream = _number(data, p, e)
                        elif task < 0:
                            task = _number(data, p, e)
                elif c == 100:
                    q = k
                    if _ends3(data, start, q, 105, 99, 101):
                        q -= 3
                    if _ends3(data, start, q, 100, 101, 118) and not _letter(data, q - 4, start):
                        g = p
                        if _is(data, g, stop, 61) or _is(data, g, stop, 91):
                            g = _blank(data, g + 1, stop)
                        elif _is(data, g, stop, 58):
                            g += 1
                            if _is(data, g, stop, 32):
                                g += 1
                            if _is(data, g, stop, 91):
                                g += 1
                            g = _blank(data, g, stop)
                        else:
                            g = stop
                        e = _digits(data, g, stop, 5)
                        if e > 0 and not _is(data, e, stop, 46):
                            found = _number(data, g, e) * 8 + e - g
                            devices = 1 if devices == 0 or (devices == 1 and found == device) else 2
                            device = found
                    if k > start:  # logicDevId, chipId, phyId: left to Python where no device_id decides
                        w = data[k - 1]
                        other = other or w == 99 or w == 112 or w == 121 or w == 118 or w == 101
                    k = i - 1
                    if k - 1 >= start and (data[k - 1] == 95 or data[k - 1] == 32) and _ends4(data, start, k - 1, 118, 101, 110, 116):
                        for y in range(i + 1, min(i + 9, stop - 1)):
                            if data[y] == 48 and (data[y + 1] == 120 or data[y + 1] == 88):
                                code = True
        elif c == 101:  # e
            if (
                _ends3(data, start, i, 118, 105, 99)
                and i - 5 >= start
                and data[i - 4] == 101
                and data[i - 5] == 100
                and not _letter(data, i - 6, start)
            ):
                p = i + 1
                g = _blank(data, p, stop)
                if _is(data, g, stop, 61) or _is(data, g, stop, 91) or _is(data, g, stop, 40) or _is(data, g, stop, 58):
                    g = _blank(data, g + 1, stop)
                elif _is(data, p, stop, 32):
                    g = p + 1
                else:
                    g = stop
                e = _digits(data, g, stop, 5)
                if e > 0 and not (e < stop and (data[e] == 46 or data[e] == 37 or _word(data[e]))):
                    found = _number(data, g, e) * 8 + e - g
                    devices = 1 if devices == 0 or (devices == 1 and found == device) else 2
                    device = found
            elif data[i - 1] == 100 and data[i - 2] == 111 and i - 3 >= start and (data[i - 3] == 67 or data[i - 3] == 99):  # Code, code
                code = True
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
    if code:
        table[STATE, row] |= CODE
    if other and devices == 0:
        table[STATE, row] |= OTHER
    return at


@compiled("i8(u1[::1],i8,i8)")
def _function(data: Any, p: int, stop: int) -> int:
    """End of a function name at p that a colon follows, else -1."""
    if p >= stop:
        return -1
    c = data[p]
    if not (97 <= c <= 122 or 65 <= c <= 90 or c == 95 or c == 126):
        return -1
    k = p + 1
    limit = min(stop, p + 202)
    while k < limit and _word(data[k]):
        k += 1
    return k if k < stop and data[k] == 58 and k - p <= 201 else -1


@compiled("i8(u1[::1],i8,i8,i8)")
def _bracketed(data: Any, p: int, stop: int, most: int) -> int:
    """End of `[digits]` at p, behind the bracket; -1 where there is none."""
    if not _is(data, p, stop, 91):
        return -1
    e = _digits(data, p + 1, stop, most)
    return e + 1 if e > 0 and _is(data, e, stop, 93) else -1


def _packed(word: str) -> int:
    """An upper-case word of at most 9 letters as one number."""
    value = 0
    for letter in word:
        value = value * 32 + ord(letter) - 64
    return value


_LEVELS = tuple(_packed(word) for word in SEVERITIES if word.isalpha())


@compiled("b1(u1[::1],i8,i8)")
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
        k = _digits(data, k, stop, 2)
        if k < 0:
            return False
        value = _number(data, start + 1, k)
        if value > 5 and value != 15 and value != 16 or data[start + 1] == 48 and k > start + 2:
            return False
    if not _is(data, k, stop, 93):
        return False
    k += 2 if _is(data, k + 1, stop, 32) else 1
    if k < stop and 65 <= data[k] <= 90:
        while k < stop and (65 <= data[k] <= 90 or 48 <= data[k] <= 57 or data[k] == 95):
            k += 1
    else:
        k = _digits(data, k, stop, 3)
        if k < 0:
            return False
    if not _is(data, k, stop, 40):
        return False
    k += 2 if _is(data, k + 1, stop, 45) else 1
    k = _digits(data, k, stop, 30)
    if k < 0 or not _is(data, k, stop, 44):
        return False
    k += 2 if _is(data, k + 1, stop, 32) else 1
    if stop - k > 160:
        return False
    for y in range(k, stop):
        if data[y] == 44:
            return False
    return True


@compiled("i8(u1[::1],i8,i8,i8[:,::1],i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8,i8[::1],b1[::1])")
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
    head = _intern(data, start, k, ROLE_HEAD, keys, values, spans, counts, seed)
    if head > given:
        sound[head] = _head(data, start, k)
    if head > 0 and not sound[head]:
        return 0
    t = k + 2
    if head < 0 or t + 28 > stop or data[t + 27] != 32 or data[t + 23] != 46 or data[t + 19] != 46:
        return -1
    if data[t + 4] != 45 or data[t + 7] != 45 or data[t + 10] != 45 or data[t + 13] != 58 or data[t + 16] != 58:
        return -1
    hour, minute, second = _number(data, t + 11, t + 13), _number(data, t + 14, t + 16), _number(data, t + 17, t + 19)
    milli, micro = _number(data, t + 20, t + 23), _number(data, t + 24, t + 27)
    year, month, date = _number(data, t, t + 4), _number(data, t + 5, t + 7), _number(data, t + 8, t + 10)
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
    table[HEAD, row] = head
    p = t + 28
    site = function = 0
    tid = NONE
    if _is(data, p, stop, 91):
        if p + 7 < stop and data[p + 1] == 115 and data[p + 2] == 116 and data[p + 7] == 58:  # [status:
            return -1
        k = p + 1
        bound = min(stop, p + 270)
        colon = 0
        while k < bound and data[k] != 93 and data[k] != 91:
            if data[k] == 58 and colon == 0:
                colon = k
            k += 1
        if k < bound and data[k] == 93 and colon > p + 1 and colon - p - 1 <= 256 and _digits(data, colon + 1, stop, 9) == k:
            site = _intern(data, p + 1, k, ROLE_SITE, keys, values, spans, counts, seed)
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
            if _is(data, k, stop, 48) or (k < stop and 48 < data[k] <= 57):  # eleven digits
                return -1
            tid = _number(data, q, k)
            p = k + 1 if _is(data, k, stop, 32) else k
            k = _function(data, p, stop)
            if k > 0:
                function = _intern(data, p, k, ROLE_FUNCTION, keys, values, spans, counts, seed)
                p = k + 2 if _is(data, k + 1, stop, 32) else k + 1
    elif first == 91:
        k = _bracketed(data, q, stop, 10)
        if k > 0:
            tid = _number(data, q + 1, k - 1)
            p = k
            k = _bracketed(data, p, stop, 10)
            if k > 0:
                tid = _number(data, p + 1, k - 1)
                p = k
        elif q == p:
            k = q + 1
            while k < stop and k < q + 202 and _word(data[k]):
                k += 1
            if k > q + 1 and _is(data, k, stop, 93):
                if k + 2 < stop and data[k + 1] == 91 and (data[k + 2] == 116 or data[k + 2] == 99):  # [function][tid:7], [ascend][curpid:
                    return -1
                w = k + 2 if _is(data, k + 1, stop, 32) else k + 1
                if _is(data, w, stop, 91):  # perhaps [hdc] [function 123]
                    e = w + 1
                    while e < stop and e < w + 202 and _word(data[e]):
                        e += 1
                    if e > w + 1 and _is(data, e, stop, 32):
                        z = _digits(data, e + 1, stop, 9)
                        small = k - q - 1 <= 64
                        for y in range(q + 1, k):
                            small = small and (97 <= data[y] <= 122 or data[y] == 95)
                        if small and z > 0 and _is(data, z, stop, 93) and e - w - 1 <= 200:
                            function = _intern(data, w + 1, e, ROLE_FUNCTION, keys, values, spans, counts, seed)
                            p = z + 2 if _is(data, z + 1, stop, 32) else z + 1
            elif _is(data, k, stop, 58) or _is(data, k, stop, 45):  # [tid:7], [hccl-group]
                return -1
    elif first == 40 or first == 62:
        k = q
        if first == 62:  # >>> (tid:7)
            return -1
        if k + 5 < stop and data[k] == 40 and data[k + 1] == 116 and data[k + 2] == 105 and data[k + 3] == 100 and data[k + 4] == 58:
            k += 6 if data[k + 5] == 32 else 5
            e = _digits(data, k, stop, 10)
            if e > 0 and _is(data, e, stop, 41):
                tid = _number(data, k, e)
                p = e + 2 if _is(data, e + 1, stop, 32) else e + 1
    elif first == 116 and q + 4 < stop and data[q + 1] == 105 and data[q + 2] == 100 and data[q + 3] == 58:
        return -1
    else:
        k = _function(data, q, stop)
        if k > 0:
            function = _intern(data, q, k, ROLE_FUNCTION, keys, values, spans, counts, seed)
            p = k + 2 if _is(data, k + 1, stop, 32) else k + 1
    if function < 0:
        return -1
    table[SITE, row] = site
    table[FUNCTION, row] = function
    table[TID, row] = tid
    table[MESSAGE, row] = p
    return 1


@compiled("i8(u1[::1],i8,i8,i4[::1],u1[::1],i4[::1],i8,i8[:,::1],i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8,i8[::1],b1[::1])")
def read_plog(
    data: Any,
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
                mark = _ids(data, table[MESSAGE, row], stop, marks, mark, marked, table, row)
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
                table[TID, row] = table[DEVICE, row] = table[STREAM, row] = table[TASK, row] = NONE
                table[STATE, row] = BARE if kind == 0 else ASKED
            table[RANK, row] = NONE
            if flag & (CR | HIGH):
                table[STATE, row] |= UNCLEAN
            open_row = row if kind != 0 else -1
            row += 1
        at = end + 1
    return row
