"""All patterns of all rules, matched in one pass over the bytes of a log.

A single vectorscan database looks for the rarest texts that each pattern cannot do without (`literals`): one, or some of them in
their order; a regex that needs no text at all stands in it as itself, relaxed. What the database reports is then confirmed on the one
line it points at, by the rule's own words. So the cost of a scan hardly depends on how many rules there are, and a regex that could run
away is held by a time limit on one line.
"""

from __future__ import annotations

import bisect
import hashlib
import mmap
import os
import re
from array import array
from collections.abc import Hashable, Sequence
from typing import Any

import hyperscan
import msgspec

from rules import literals, looks, sieve
from rules.cache import cpu, read_cache, write_cache
from rules.judge import Judge, TooLong
from rules.line_class import LONGEST, MOST, Alike, LineClass, look_of, process_of
from rules.looks import Expression, Look
from rules.model import Leaf, RuleSet
from rules.model import leaves_of as leaves_of

KEEP = 32
"""Hit lines kept of one leaf and chunk; the rest is counted."""
LINE_HEAD, LINE_TAIL = 65536, 4096
"""Of a longer line only the head and the tail are matched against regexes."""

SIFTED = 60
"""Lines of the background up to which the texts of an expression are left to the sieve: a line let through for nothing costs the matcher
what 30 lines cost the sieve."""
MET = 120
"""Times the background may hold texts that have to stand beside others: looking for those costs what a few lines cost the sieve."""
_SMALL = 1 << 20
Buffer = bytes | bytearray | memoryview | mmap.mmap


class ExtraPattern(msgspec.Struct, frozen=True):
    """A pattern that rides along with the rules: an error marker, a fact. Reported under index -1-k."""

    name: str
    regex: str
    ignore_case: bool = False
    capture: bool = False
    """Whether its captures are wanted; without, the line is not looked at again."""
    texts: tuple[str, ...] = ()
    """Of which each of its lines holds one, in either case, where the regex does not tell; a line end stands for the begin of a line."""


class LeafRef(msgspec.Struct, frozen=True):
    rule: int
    leaf: Leaf


class LineHit(msgspec.Struct, gc=False):
    """One confirmed line: `start`, `end` are its byte offsets in the chunk, `line` its index there."""

    leaf: int
    line: int
    start: int
    end: int
    captures: dict[str, str]


class Marked(msgspec.Struct, gc=False):
    """Lines of one look with an extra pattern that wants no captures (an error marker): the first of them, and how many there are."""

    line: int
    start: int
    end: int
    matched: tuple[int, ...]
    """Leaves and extras, in order."""
    count: int
    lines: list[tuple[int, int, int]] = []
    """The first of them, as (line, start, end), and the last."""
    last: tuple[int, int, int] = (0, 0, 0)


class ChunkHits(msgspec.Struct):
    hits: list[LineHit]
    """By position; at most KEEP of each leaf."""
    counts: dict[int, int]
    """Leaf or extra -> lines it matched on."""
    marked: list[Marked]
    lines: int
    """Line ends in the chunk."""
    cut: set[int]
    """Leaves whose regex ran into the time limit."""


class Program(msgspec.Struct, frozen=True):
    """What compiling the patterns comes to, as it is kept in the cache."""

    targets: list[tuple[int, ...]]
    """By number of the expression: the leaves, and extras as -1-k, that it reports for."""
    needs: list[tuple[tuple[str, ...], ...]]
    """By leaf: sets of texts of each of which a line must hold one, before its regex is asked."""
    database: bytes
    loose: bytes
    """A database of those expressions alone that the sieve knows no text of; empty where there are none."""
    sieve: sieve.Plan


class Scanner:
    """The compiled patterns. Load before forking: the databases are shared, each process makes its own scratch."""

    def __init__(self, leaves: list[LeafRef], extra: list[ExtraPattern], program: Program):
        self.leaves, self.extra = leaves, extra
        self._program = program
        self._whole = _Database(program.database)
        self._loose = _Database(program.loose)
        self._sieve: Any = None
        self._judges: dict[int, Judge] = {}
        self._plain = {n for n, ref in enumerate(leaves) if len(ref.leaf.contains) == 1 and not ref.leaf.not_contains}
        self._marks = frozenset(-1 - k for k, pattern in enumerate(extra) if not pattern.capture)
        self._plain |= self._marks
        self._classes: dict[Hashable, LineClass] = {}
        self._mixed: Any = None

    @classmethod
    def load(cls, rules: RuleSet, extra: Sequence[ExtraPattern] = ()) -> Scanner:
        """Compile the patterns, or load them from the cache beside this package's byte code."""
        leaves = [LeafRef(n, leaf) for n, rule in enumerate(rules.rules) for leaf in leaves_of(rule.match) if leaf.of_line]
        seed = msgspec.msgpack.encode((leaves, list(extra), looks.VERSION, literals.edition(), getattr(hyperscan, "__version__", ""), cpu()))
        name = f"patterns-{hashlib.sha256(seed).hexdigest()[:24]}.hsdb"
        if (cached := read_cache(name)) is not None:
            try:
                return cls(leaves, list(extra), msgspec.msgpack.decode(cached, type=Program))
            except (msgspec.DecodeError, msgspec.ValidationError, hyperscan.error):
                pass
        program = _program(looks.looks([ref.leaf for ref in leaves]), extra)
        write_cache(name, msgspec.msgpack.encode(program))
        return cls(leaves, list(extra), program)

    def sharpen(self) -> None:
        """Get ready for much to scan: load the compiled sieve, which takes a third of a second and spares the matcher most lines."""
        if self._sieve is not None:
            return
        from rules.sieve_kernel import Sieve  # deferred: see above

        self._sieve = Sieve(self._program.sieve)
        self._mixed = self._sieve.mixed(len(self._program.targets))

    # ------------------------------------------------------------ scanning

    def scan(self, data: Buffer, size: int, keep: int = KEEP) -> ChunkHits:
        """Match all patterns on the first `size` bytes of `data`, which should end at a line end."""
        view = memoryview(data)[:size]
        if self._sieve is not None and size >= _SMALL:
            alike, lines = self._sifted(view, keep)
        else:
            alike, lines = _alike(view, *self._whole.scan(view), keep)
        return self._confirm(view, alike, lines, keep)

    def _sifted(self, view: memoryview, keep: int) -> tuple[list[Alike], int]:
        """As `_alike`, with the matcher reading only lines that the sieve lets through."""
        import numpy as np

        columns, lines = self._sieve(view, len(view))
        _, ends = self._loose.scan(view)
        if ends:
            columns = self._sieve.with_lines(view, columns, ends)
        starts, stops = columns[1].tolist(), columns[2].tolist()
        ids, ends = self._whole.scan(b"\n".join([view[start:stop] for start, stop in zip(starts, stops, strict=True)]))
        if not ids:
            return [], lines
        # lines by number of candidate, each with what is reported on it
        widths = columns[2] - columns[1] + 1
        begins = np.cumsum(widths) - widths
        at = np.searchsorted(begins, np.maximum(np.array(ends, np.int64) - 1, 0), side="right") - 1
        pairs = np.unique(at << 24 | np.array(ids, np.int64))
        at, numbers = pairs >> 24, pairs & 0xFFFFFF
        bounds = np.flatnonzero(np.diff(at, prepend=-1, append=len(columns[0])))
        at = at[bounds[:-1]]
        # those that look alike and have the same reported
        keys = columns[3][at] + np.add.reduceat(self._mixed[numbers], bounds[:-1])
        _, firsts, of, counts = np.unique(keys ^ columns[4][at], return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(of, kind="stable")
        rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        some = order[rank < keep]
        members: list[list[tuple[int, int, int]]] = [[] for _ in firsts]
        chosen = at[some]
        for which, line, start, stop in zip(of[some].tolist(), *(columns[k][chosen].tolist() for k in range(3)), strict=True):
            members[which].append((line, start, stop))
        ends_of = at[order[np.cumsum(counts) - 1]]
        lasts = zip(*(columns[k][ends_of].tolist() for k in range(3)), strict=True)
        packed = numbers.astype(np.uint32).tobytes()
        spans = zip((4 * bounds[firsts]).tolist(), (4 * bounds[firsts + 1]).tolist(), strict=True)
        rows = zip(keys[firsts].tolist(), spans, counts.tolist(), members, lasts, strict=True)
        return [Alike(key, packed[begin:end], count, some, last) for key, (begin, end), count, some, last in rows], lines

    def _confirm(self, view: memoryview, alike: list[Alike], lines: int, keep: int) -> ChunkHits:
        found = ChunkHits([], {}, [], lines, set())
        counts, classes = found.counts, self._classes
        if len(classes) > MOST:
            classes.clear()
        wanted: list[tuple[int, int, int, LineClass]] = []
        for some in alike:
            kind = classes.get(some.key)
            first = some.lines[0]
            if kind is None:
                kind = self._class(some.reported, line_text(view, *first[1:]), found.cut)
                classes[some.key] = kind
            for target in kind.matched:
                counts[target] = counts.get(target, 0) + some.count
            if kind.marked:
                found.marked.append(Marked(*first, tuple(sorted(kind.matched)), some.count, some.lines, some.last))
            if kind.wanted:
                wanted += [(*line, kind) for line in some.lines]
        wanted.sort(key=lambda one: one[0])
        found.marked.sort(key=lambda one: one.line)
        kept: dict[int, int] = {}
        for line, start, end, kind in wanted:
            text: str | None = None
            for target in kind.wanted:
                number = kept.get(target, 0)
                if number < keep:
                    kept[target] = number + 1
                    captures: dict[str, str] | None = None
                    if target not in self._plain:
                        text = line_text(view, start, end) if text is None else text
                        captures = self._captures(target, text, found.cut)
                    found.hits.append(LineHit(target, line, start, end, captures or {}))
        return found

    def _class(self, ids: bytes, text: str, cut: set[int]) -> LineClass:
        """What lines like this one match."""
        numbers = array("I", ids)
        targets = dict.fromkeys(target for number in numbers for target in self._program.targets[number])
        matched = (target for target in targets if target in self._plain or self._captures(target, text, cut) is not None)
        return LineClass(tuple(matched), self._marks)

    # ------------------------------------------------------------ one line

    def _captures(self, target: int, text: str, cut: set[int]) -> dict[str, str] | None:
        """What the leaf captures on this line; None where the line is none of its own."""
        judge = self._judges.get(target)
        if judge is None:
            judge = self._judges[target] = self._judge(target)
        try:
            return judge.captures(text)
        except TooLong:
            cut.add(target)
            self._judges[target] = Judge("", refused=("",))  # says no from here on
            return None

    def _judge(self, target: int) -> Judge:
        if target < 0:
            pattern = self.extra[-1 - target]
            return Judge(pattern.regex, pattern.ignore_case)
        leaf, needs = self.leaves[target].leaf, self._program.needs[target]
        return Judge("" if leaf.contains else looks.source_of(leaf), leaf.ignore_case, leaf.contains, leaf.not_contains, needs)


class _Database:
    """A vectorscan database, with scratch memory of its own in every process."""

    def __init__(self, packed: bytes) -> None:
        self._database = hyperscan.loadb(packed, hyperscan.HS_MODE_BLOCK) if packed else None
        self._scratch: tuple[int, Any] | None = None

    def scan(self, data: Any) -> tuple[list[int], list[int]]:
        """Numbers of the expressions reported, and where each match ends."""
        ids: list[int] = []
        ends: list[int] = []
        add_id, add_end = ids.append, ends.append

        def report(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            add_id(number)
            add_end(end)

        if self._database is not None and len(data):
            if self._scratch is None or self._scratch[0] != os.getpid():
                self._scratch = os.getpid(), hyperscan.Scratch(self._database)
            self._database.scan(data, match_event_handler=report, scratch=self._scratch[1])
        return ids, ends


def _program(found: Sequence[Look], extra: Sequence[ExtraPattern]) -> Program:
    ids: dict[Expression, list[int]] = {}
    for index, look in enumerate(found):
        for expression in look.expressions:
            ids.setdefault(expression, []).append(index)
    for k, pattern in enumerate(extra):
        one = looks.loose(pattern.regex, pattern.ignore_case)
        ids.setdefault(msgspec.structs.replace(one, texts=pattern.texts) if pattern.texts else one, []).append(-1 - k)
    given = {pattern.texts for pattern in extra if pattern.texts}
    loose = [one for one in ids if one.texts not in given and not _sievable(one)]
    packed, alone = (hyperscan.dumpb(looks.database(some)) if some else b"" for some in (list(ids), loose))
    held = set(ids).difference(loose)
    plan = sieve.plan((text, one.beside) for one in ids if one in held for text in one.texts)
    return Program([tuple(dict.fromkeys(some)) for some in ids.values()], [look.needs for look in found], packed, alone, plan)


def _sievable(one: Expression) -> bool:
    """Whether it has texts that are worth looking for: long enough, and seldom in ordinary logs in either case."""
    short = not one.texts or min(len(text.encode()) for text in one.texts) < sieve.SHORTEST
    if short:
        return False
    if one.beside and literals.often(frozenset(one.texts), True) <= MET:
        return literals.lines_of((frozenset(one.texts), frozenset(one.beside)), True) <= SIFTED
    return literals.often(frozenset(one.texts), True) <= SIFTED


def line_text(data: Buffer, start: int, end: int) -> str:
    """A line as text; of a very long one the head and the tail."""
    view = memoryview(data)
    if end - start > LINE_HEAD + LINE_TAIL:
        raw = bytes(view[start : start + LINE_HEAD]) + b" ... " + bytes(view[end - LINE_TAIL : end])
    else:
        raw = bytes(view[start:end])
    return raw.rstrip(b"\r").decode("utf-8", "replace")


def _alike(view: memoryview, ids: Sequence[int], ends: Sequence[int], keep: int) -> tuple[list[Alike], int]:
    """The lines reported on, put together that look alike; at most `keep` of each; and the number of line ends."""
    found: dict[int, set[int]] = {}
    if len(view) < _SMALL:
        breaks: Any = [match.start() for match in re.finditer(b"\n", view)]
        for number, end in zip(ids, ends, strict=True):
            found.setdefault(bisect.bisect_left(breaks, end - 1 if end else 0), set()).add(number)
    else:
        import numpy as np  # deferred: a small bundle never needs it

        breaks = np.flatnonzero(np.frombuffer(view, np.uint8) == 10)
        at = np.searchsorted(breaks, np.maximum(np.array(ends, np.int64) - 1, 0), side="left").tolist()
        for number, line in zip(ids, at, strict=True):
            found.setdefault(line, set()).add(number)
    groups: dict[Hashable, Alike] = {}
    for line in sorted(found):
        start = int(breaks[line - 1]) + 1 if line else 0
        stop = int(breaks[line]) if line < len(breaks) else len(view)
        reported = array("I", sorted(found[line])).tobytes()
        text = bytes(view[start:stop])
        look = look_of(text)
        key: Hashable = reported, look if len(look) <= LONGEST else hashlib.sha256(look).digest()
        whose = key, process_of(text)
        group = groups.get(whose)
        if group is None:
            groups[whose] = Alike(key, reported, 1, [(line, start, stop)], (line, start, stop))
        else:
            group.count += 1
            group.last = line, start, stop
            if len(group.lines) < keep:
                group.lines.append((line, start, stop))
    return list(groups.values()), len(breaks)
