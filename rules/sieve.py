"""A sieve before the matcher: which lines hold any of a few thousand texts, told at the speed of memory.

The texts are known by four of their bytes each, chosen where ordinary logs have the fewest alike; a table of bits says for every four
bytes of a log whether they may be such, and the text is then compared in place. Letters are compared but for their case (and some signs
with them: a byte counts as with 0x20 set), so a line let through is no hit yet; a line held back surely is none.

What is planned here in Python runs in `sieve_kernel`, which is compiled; importing that takes a third of a second, so small bundles go
without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rules import literals

BITS = 20
"""Of the table: one for each 20-bit hash of four bytes."""
HEADS = 1 << 16
FACTOR = 0x9E3779B1
LONGEST = 32
"""Bytes of a text that are compared."""
SHORTEST = 3


class Plan(msgspec.Struct, frozen=True):
    """Tables as bytes, ready for the compiled loop; numbers of 64 bits but for `heads`, which are of 32."""

    bits: bytes
    heads: bytes
    """By hash: the first entry, -1 if there is none."""
    entries: bytes
    """Two numbers each, so that one look at memory tells all: the next entry with the same head (-1: none) above the four bytes; and, from
    below, where its text begins among all (32 bits), how long that is (8), how far into it the four bytes stand (8), and the number of
    the choice of which one must stand beside it (0: none)."""
    choices: bytes
    """By number: where its texts begin in `beside`, and where they end."""
    beside: bytes
    """Where a text begins among all (32 bits), and how long it is."""
    text: bytes


def folded(text: bytes) -> bytes:
    return bytes(byte | 0x20 for byte in text)


def hash_of(gram: int) -> int:
    return (gram * FACTOR & 0xFFFFFFFF) >> (32 - BITS)


def plan(texts: Iterable[tuple[str, Sequence[str]]]) -> Plan:
    """Tables for texts of at least SHORTEST bytes, each with those of which one must stand on the same line, if there are any."""
    import numpy as np

    wanted: dict[bytes, set[bytes] | None] = {}
    for word, others in texts:
        key, more = folded(word.encode())[:LONGEST], {folded(other.encode())[:LONGEST] for other in others}
        known = wanted.setdefault(key, set())
        wanted[key] = known | more if more and known is not None else None  # what one wants alone, all get alone
    seldom = _background()
    bits = np.zeros(1 << (BITS - 3), np.uint8)
    heads = np.full(HEADS, -1, np.int32)
    entries: list[tuple[int, int]] = []
    choices, beside = [(0, 0)], list[int]()
    body = bytearray()
    used: set[int] = set()
    for text, partners in sorted(wanted.items(), key=lambda item: item[0]):
        begin, choice = len(body), 0
        body += text
        if partners:
            choice = len(choices)
            choices.append((len(beside), len(beside) + len(partners)))
            for partner in sorted(partners):
                beside.append(len(body) | len(partner) << 32)
                body += partner
        if len(text) < 4:
            grams, back = [_number(text + bytes([last])) for last in range(256) if last & 0x20], 0
        else:
            spots = [_number(text[at : at + 4]) for at in range(len(text) - 3)]
            costs = [(seldom[hash_of(gram)], hash_of(gram) not in used) for gram in spots]  # a further bit costs a little too
            back = costs.index(min(costs))
            grams = [spots[back]]
        for gram in grams:
            number = hash_of(gram)
            used.add(number)
            bits[number >> 3] |= 1 << (number & 7)
            head = number & (HEADS - 1)
            entries.append((int(heads[head]) << 32 | gram, begin | len(text) << 32 | back << 40 | choice << 48))
            heads[head] = len(entries) - 1
    entries_, choices_, beside_ = (np.array(some, np.int64).tobytes() for some in (entries, choices, beside))
    return Plan(bits.tobytes(), heads.tobytes(), entries_, choices_, beside_, bytes(body))


def _number(four: bytes) -> int:
    return int.from_bytes(four, "little")


def _background() -> list[int]:
    """By hash: how often ordinary logs hold four bytes of it."""
    import numpy as np

    octets = np.frombuffer(literals.background().encode(), np.uint8).astype(np.uint32) | 0x20
    grams = octets[:-3] | octets[1:-2] << 8 | octets[2:-1] << 16 | octets[3:] << 24
    counts: list[int] = np.bincount((grams * np.uint32(FACTOR)) >> np.uint32(32 - BITS), minlength=1 << BITS).tolist()
    return counts
