"""What the compiled inner loops of `columns` share: finding lines in a block of bytes, interning texts, comparing bytes.

The loops (`kernel_plog`, `kernel_lines`) do what parsers do, on bytes, for lines that are plain ASCII and of the usual shape; whatever
is out of the ordinary is marked ASKED and read by `Parser.record` instead. Texts are not copied but interned: a row carries the
number of a span of bytes, which Python reads once, with the parser itself.

Compiled code is kept beside these files and is made anew when its own file changes, not when one of the others does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numba.extending
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(signature: str) -> Callable[[Function], Function]:
    """Makes a function machine code, for one signature, kept on disk where that is possible.

    Without the runtime that counts references to arrays: it would cost more than all the rest."""
    njit: Any = numba.njit  # `_nrt` is not in its types

    def make(function: Function) -> Function:
        try:
            machine = njit(signature, cache=True, nogil=True, _nrt=False)(function)
        except RuntimeError:  # no folder to keep it in
            machine = njit(signature, nogil=True, _nrt=False)(function)
        return cast("Function", machine)

    return make


def _pointer(context: Any, array: Any) -> Any:
    def lay(inner: Any, builder: Any, signature: Any, given: Any) -> Any:
        return inner.make_array(signature.args[0])(inner, builder, given[0]).data

    types: Any = numba.types
    return types.CPointer(array.dtype)(array), lay


pointer: Callable[[Any], Any] = cast("Any", numba.extending.intrinsic)(_pointer)
"""Where the items of an array lie, to be indexed as in C: without asking, before every access, whether an index is negative."""


# flags of a line
CONTROL, CR, HIGH, SPELLED = 1, 2, 4, 8
"""A control character other than tab inside; CR at the end; a byte over 127; something that may be a spelled-out escape."""
DIRTY = CONTROL | HIGH | SPELLED

# columns of the table of rows (int64); NONE where there is no value
LINE, LINES, START, STOP, MESSAGE, TS, CLOCK, HEAD, SITE, FUNCTION, PID, TID, DEVICE, STREAM, TASK, STATE, CODED, WIDTH = range(18)
NONE = -(1 << 62)

# STATE of a row: how it was read, then bits
CLAIMED, ASKED, BARE = 0, 1, 2
"""Read here; to be read by Python; no record at all, a line of its own."""
CODE, UNCLEAN, LATER, DROPPED, RANKED, OTHER = 4, 8, 16, 32, 64, 128
"""May carry an error code that is not CODED; its first line is not plain (CR or bytes over 127); a later line is not; joined to the row above;
its message may name its rank, or a device in another way than device_id."""

LONGEST = 60 << 10
"""A longer line is left to Python."""
CONTINUED = 2000
"""Lines one record may have; further ones stand alone."""

# roles of interned texts
ROLE_HEAD, ROLE_SITE, ROLE_FUNCTION, ROLE_ASCEND, ROLE_WHO, ROLE_WORD, ROLE_TAG, ROLE_VLLM, ROLE_LOGGER, ROLE_CODE = range(1, 11)

# CLOCK of a row: which clock printed its time
WALL, NOYEAR, BOOT = 0, 1, 2


PAIR, ODD = 1, 2


@compiled("void(u1[::1],i8,i8,u1[::1])")
def glance(data: Any, start: int, count: int, out: Any) -> None:
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
def find_lines(octets: Any, start: int, stop: int, ends: Any, flags: Any, marks: Any, found: Any, look: Any, looked: Any) -> int:
    """Offsets of all line ends in data[start:stop], and what is special about each line; returns the number of lines.

    Behind `stop` one more byte must exist. A last line without an end counts as one that ends at `stop`. Into `marks` go the places
    where the name of an id or a code may end (`id=`, `device `, `Code:`), their number into found[0]. `look` and `looked` are the
    same scratch memory as bytes and uint64."""
    data = pointer(octets)
    count, seen, marked = 0, 0, 0
    line_start = start
    base = start
    tile = len(look)
    while base < stop:
        size = min(tile, stop - base)
        skip = 1 if base == 0 else 0  # there is no byte before the first
        glance(octets, base + skip, size - skip, look[skip:])
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


@compiled("i8(CPointer(u1),i8,i8)")
def number(data: Any, start: int, stop: int) -> int:
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
def word(c: int) -> bool:
    """A byte that \\w matches in ASCII."""
    return (97 <= c <= 122) or (65 <= c <= 90) or (48 <= c <= 57) or c == 95


@compiled("i8(CPointer(u1),i8,i8,i8,u8[::1],i4[::1],i8[:,::1],i8[::1],u8)")
def intern(data: Any, start: int, stop: int, role: int, keys: Any, values: Any, spans: Any, counts: Any, seed: Any) -> int:
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
        return values[x]  # type: ignore[no-any-return]
    if counts[0] + 1 >= len(keys) // 2 or counts[1] >= len(spans):
        return -1
    counts[0] += 1
    keys[x] = h
    values[x] = counts[0]
    row = counts[1]
    spans[row, 0], spans[row, 1], spans[row, 2], spans[row, 3] = counts[0], role, start, stop
    counts[1] = row + 1
    return values[x]  # type: ignore[no-any-return]


@compiled("i8(CPointer(u1),i8,i8,i8)")
def digits(data: Any, p: int, stop: int, most: int) -> int:
    """End of the run of digits at p, which must have 1 to `most` of them; -1 otherwise."""
    k = p
    while k < stop and 48 <= data[k] <= 57:
        k += 1
    return k if p < k <= p + most else -1


@compiled("i8(CPointer(u1),i8,i8)")
def blank(data: Any, p: int, stop: int) -> int:
    return p + 1 if p < stop and (data[p] == 32 or data[p] == 9) else p


@compiled("b1(CPointer(u1),i8,i8,i8)")
def is_byte(data: Any, p: int, stop: int, c: int) -> bool:
    return p < stop and data[p] == c


@compiled("b1(CPointer(u1),i8,i8)")
def letter(data: Any, p: int, start: int) -> bool:
    """Whether a letter or underscore stands at p of a text that begins at `start`."""
    return p >= start and (97 <= data[p] <= 122 or 65 <= data[p] <= 90 or data[p] == 95)


@compiled("b1(CPointer(u1),i8,i8,i8,i8,i8)")
def ends3(data: Any, start: int, stop: int, a: int, b: int, c: int) -> bool:
    """Whether data[start:stop] ends with these three bytes."""
    return stop - 3 >= start and data[stop - 1] == c and data[stop - 2] == b and data[stop - 3] == a


@compiled("b1(CPointer(u1),i8,i8,i8,i8,i8,i8)")
def ends4(data: Any, start: int, stop: int, a: int, b: int, c: int, d: int) -> bool:
    return stop - 4 >= start and data[stop - 1] == d and data[stop - 2] == c and data[stop - 3] == b and data[stop - 4] == a
