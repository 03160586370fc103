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
FACTORS = 32
"""Multipliers tried for the hash."""
LONGEST = 32
"""Bytes of a text that are compared."""
SHORTEST = 3


class Plan(msgspec.Struct, frozen=True):
    """Tables as bytes, ready for the compiled loop; numbers of 64 bits but for `heads`, which are of 32."""

    factor: int
    """What four bytes, as a number, are multiplied with; the upper BITS bits of the product are their hash."""
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


def hash_of(gram: int, factor: int) -> int:
    return (gram * factor & 0xFFFFFFFF) >> (32 - BITS)


def head_of(number: int) -> int:
    """Where a hash has its entries."""
    return (number ^ number >> 4) & (HEADS - 1)


def plan(texts: Iterable[tuple[str, Sequence[str]]]) -> Plan:
    """Tables for texts of at least SHORTEST bytes, each with those of which one must stand on the same line, if there are any."""
    import numpy as np

    wanted: dict[bytes, set[bytes] | None] = {}
    for word, others in texts:
        key, more = folded(word.encode())[:LONGEST], {folded(other.encode())[:LONGEST] for other in others}
        known = wanted.setdefault(key, set())
        wanted[key] = known | more if more and known is not None else None  # what one wants alone, all get alone
    factor, seldom = _best([gram for text in wanted if len(text) <= 4 for gram in _grams(text)])
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
        grams, back = _grams(text), 0
        if len(text) > 4:
            numbers = [hash_of(gram, factor) for gram in grams]
            costs = [(seldom[number], number not in used) for number in numbers]  # a further bit costs a little too
            back = costs.index(min(costs))
            grams = [grams[back]]
        for gram in grams:
            number = hash_of(gram, factor)
            used.add(number)
            bits[number >> 3] |= 1 << (number & 7)
            head = head_of(number)
            entries.append((int(heads[head]) << 32 | gram, begin | len(text) << 32 | back << 40 | choice << 48))
            heads[head] = len(entries) - 1
    entries_, choices_, beside_ = (np.array(some, np.int64).tobytes() for some in (entries, choices, beside))
    return Plan(factor, bits.tobytes(), heads.tobytes(), entries_, choices_, beside_, bytes(body))


def _grams(text: bytes) -> list[int]:
    """All runs of four bytes, as numbers; of a shorter text, with everything that may follow."""
    if len(text) < 4:
        return [int.from_bytes(text + bytes([last]), "little") for last in range(256) if last & 0x20]
    return [int.from_bytes(text[at : at + 4], "little") for at in range(len(text) - 3)]


def _best(forced: list[int]) -> tuple[int, list[int]]:
    """The multiplier with which ordinary logs meet the hashes of the given numbers the least, and, by hash, how often logs hold it."""
    import numpy as np

    octets = np.frombuffer(literals.background().encode(), np.uint8).astype(np.uint32) | 0x20
    grams, often = np.unique(octets[:-3] | octets[1:-2] << 8 | octets[2:-1] << 16 | octets[3:] << 24, return_counts=True)
    given, shift = np.array(forced, np.uint32), np.uint32(32 - BITS)
    best: tuple[int, int, list[int]] | None = None
    for factor in np.random.default_rng(1).integers(1 << 31, 1 << 32, FACTORS, np.uint32) | 1:
        met = np.bincount(grams * factor >> shift, often, 1 << BITS)
        cost = int(met[np.unique(given * factor >> shift)].sum())
        if best is None or cost < best[0]:
            best = cost, int(factor), met.astype(np.int64).tolist()
    assert best is not None
    return best[1:]
