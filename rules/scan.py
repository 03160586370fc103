"""All patterns of all rules, matched in one pass over the bytes of a log.

A single vectorscan database looks for the rarest texts that each pattern cannot do without (`literals`): one, or some of them in
their order; a regex that needs no text at all stands in it as itself, relaxed. What the database reports is then confirmed on the one
line it points at, by the rule's own words. So the cost of a scan hardly depends on how many rules there are, and a regex that could run
away is held by a time limit on one line.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import mmap
import os
import pathlib
import platform
import re
from collections.abc import Sequence
from typing import Any

import hyperscan
import msgspec
import regex

from rules import catalog, literals
from rules.judge import SECONDS, Judge, TooLong
from rules.model import Count, Leaf, Node, Problem, RuleSet

VERSION = 5
"""Of the way patterns are turned into expressions: part of the cache's key."""
KEEP = 32
"""Hit lines kept of one leaf and chunk; the rest is counted."""
LOOKS = 50_000
"""Leaves whose looks are kept in the cache."""
CONFIRM = 48
"""Lines of one leaf and chunk that are looked at; in a storm the further ones are taken as read."""
LINE_HEAD, LINE_TAIL = 65536, 4096
"""Of a longer line only the head and the tail are matched against regexes."""

_FLAGS = hyperscan.HS_FLAG_MULTILINE
_SMALL = 1 << 20

Buffer = bytes | bytearray | memoryview | mmap.mmap


class ExtraPattern(msgspec.Struct, frozen=True):
    """A pattern that rides along with the rules: an error marker, a fact. Reported under index -1-k."""

    name: str
    regex: str
    ignore_case: bool = False
    capture: bool = False
    """Whether its captures are wanted; without, the line is not looked at again."""


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


class ChunkHits(msgspec.Struct):
    hits: list[LineHit]
    """By position; at most KEEP of each leaf."""
    counts: dict[int, int]
    """Leaf or extra -> lines it matched on."""
    marked: list[tuple[int, int, int, tuple[int, ...]]]
    """Lines with an extra pattern that wants no captures (an error marker): line index, start, end, what matched."""
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


class Scanner:
    """The compiled patterns. Load before forking: the database is shared, each process makes its own scratch."""

    def __init__(self, leaves: list[LeafRef], extra: list[ExtraPattern], database: Any, program: Program):
        self.leaves, self.extra, self.targets, self._needs = leaves, extra, program.targets, program.needs
        self._database = database
        self._scratch: tuple[int, Any] | None = None
        self._judges: dict[int, Judge] = {}
        self._plain = {n for n, ref in enumerate(leaves) if len(ref.leaf.contains) == 1 and not ref.leaf.not_contains}
        self._marks = {-1 - k for k, pattern in enumerate(extra) if not pattern.capture}
        self._plain |= self._marks

    @classmethod
    def load(cls, rules: RuleSet, extra: Sequence[ExtraPattern] = ()) -> Scanner:
        """Compile the patterns, or load them from the cache beside this package's byte code."""
        leaves = [LeafRef(n, leaf) for n, rule in enumerate(rules.rules) for leaf in leaves_of(rule.match) if leaf.of_line]
        seed = msgspec.msgpack.encode((leaves, list(extra), VERSION, literals.edition(), getattr(hyperscan, "__version__", ""), _cpu()))
        name = f"patterns-{hashlib.sha256(seed).hexdigest()[:24]}.hsdb"
        if (cached := read_cache(name)) is not None:
            try:
                program = msgspec.msgpack.decode(cached, type=Program)
                return cls(leaves, list(extra), hyperscan.loadb(program.database, hyperscan.HS_MODE_BLOCK), program)
            except (msgspec.DecodeError, msgspec.ValidationError, hyperscan.error):
                pass
        ids: dict[tuple[bytes, int], list[int]] = {}
        looks = _looks([ref.leaf for ref in leaves])
        for index, look in enumerate(looks):
            for expression in look.expressions:
                ids.setdefault(expression, []).append(index)
        for k, pattern in enumerate(extra):
            ids.setdefault((relaxed(pattern.regex).encode(), _flags(pattern.ignore_case)), []).append(-1 - k)
        database = _database(list(ids)) if ids else None
        packed = hyperscan.dumpb(database) if database else b""
        program = Program([tuple(dict.fromkeys(v)) for v in ids.values()], [look.needs for look in looks], packed)
        if database is not None:
            write_cache(name, msgspec.msgpack.encode(program))
        return cls(leaves, list(extra), database, program)

    # ------------------------------------------------------------ scanning

    def scan(self, data: Buffer, size: int, keep: int = KEEP) -> ChunkHits:
        """Match all patterns on the first `size` bytes of `data`, which should end at a line end."""
        ids: list[int] = []
        ends: list[int] = []
        add_id, add_end = ids.append, ends.append

        def report(pattern: int, _start: int, end: int, _flags: int, _context: object) -> None:
            add_id(pattern)
            add_end(end)

        if self._database is not None and size:
            self._database.scan(memoryview(data)[:size], match_event_handler=report, scratch=self._own_scratch())
        if size < _SMALL:
            pairs, lines = _lines_small(bytes(memoryview(data)[:size]), ids, ends)
        else:
            pairs, lines = _lines_large(data, size, ids, ends)
        return self._confirm(data, pairs, lines, keep)

    def _own_scratch(self) -> Any:
        if self._scratch is None or self._scratch[0] != os.getpid():
            self._scratch = (os.getpid(), hyperscan.Scratch(self._database))
        return self._scratch[1]

    def _confirm(self, data: Buffer, pairs: list[tuple[int, int, int, int]], lines: int, keep: int) -> ChunkHits:
        """`pairs`: (line index, line start, line end, pattern), sorted, each once."""
        found = ChunkHits([], {}, [], lines, set())
        counts, position, total = found.counts, 0, len(pairs)
        while position < total:
            line, start, end, _ = pairs[position]
            text: str | None = None
            matched: list[int] = []
            asked: set[int] = set()  # a line may hold several of the texts that one leaf is looked for by
            marked = False
            while position < total and pairs[position][0] == line:
                for target in self.targets[pairs[position][3]]:
                    if target in asked:
                        continue
                    asked.add(target)
                    seen = counts.get(target, 0)
                    captures: dict[str, str] | None = {}
                    if target not in self._plain and seen < CONFIRM:
                        if text is None:
                            text = line_text(data, start, end)
                        captures = self._captures(target, text, found.cut)
                        if captures is None:
                            continue
                    counts[target] = seen + 1
                    matched.append(target)
                    if target in self._marks:
                        marked = True
                    elif seen < keep:
                        found.hits.append(LineHit(target, line, start, end, captures or {}))
                position += 1
            if marked:
                found.marked.append((line, start, end, tuple(sorted(matched))))
        return found

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
        leaf = self.leaves[target].leaf
        return Judge("" if leaf.contains else source_of(leaf), leaf.ignore_case, leaf.contains, leaf.not_contains, self._needs[target])


def leaves_of(node: Node) -> list[Leaf]:
    """All leaves below a match node, in order."""
    if isinstance(node, Leaf):
        return [node]
    if isinstance(node, Count):
        return [node.of]
    return [leaf for item in node.items for leaf in leaves_of(item)]


def line_text(data: Buffer, start: int, end: int) -> str:
    """A line as text; of a very long one the head and the tail."""
    view = memoryview(data)
    if end - start > LINE_HEAD + LINE_TAIL:
        raw = bytes(view[start : start + LINE_HEAD]) + b" ... " + bytes(view[end - LINE_TAIL : end])
    else:
        raw = bytes(view[start:end])
    return raw.rstrip(b"\r").decode("utf-8", "replace")


def _lines_small(data: bytes, ids: list[int], ends: list[int]) -> tuple[list[tuple[int, int, int, int]], int]:
    breaks = [match.start() for match in re.finditer(b"\n", data)]
    pairs = set()
    for pattern, end in zip(ids, ends, strict=True):
        line = bisect.bisect_left(breaks, end - 1 if end else 0)
        start = breaks[line - 1] + 1 if line else 0
        pairs.add((line, start, breaks[line] if line < len(breaks) else len(data), pattern))
    return sorted(pairs), len(breaks)


def _lines_large(data: Buffer, size: int, ids: list[int], ends: list[int]) -> tuple[list[tuple[int, int, int, int]], int]:
    import numpy as np  # deferred: a small bundle never needs it

    breaks = np.flatnonzero(np.frombuffer(data, np.uint8, size) == 10)
    if not ids:
        return [], len(breaks)
    lines = np.searchsorted(breaks, np.maximum(np.array(ends, np.int64) - 1, 0), side="left")
    keys = np.unique((lines << 24) | np.array(ids, np.int64))
    lines, patterns = keys >> 24, keys & 0xFFFFFF
    bounds = np.concatenate(([-1], breaks, [size]))
    starts, stops = bounds[lines] + 1, bounds[lines + 1]
    return list(zip(lines.tolist(), starts.tolist(), stops.tolist(), patterns.tolist(), strict=True)), len(breaks)


# ---------------------------------------------------------------- expressions


def _flags(ignore_case: bool) -> int:
    return _FLAGS | (hyperscan.HS_FLAG_CASELESS if ignore_case else 0)


def escaped(literal: str) -> bytes:
    """A literal as an expression of bytes."""
    return b"".join(bytes([c]) if chr(c).isalnum() and c < 128 else b"\\x%02x" % c for c in literal.encode())


def source_of(leaf: Leaf) -> str:
    """The regex of a leaf that has one, or is one of codes."""
    return leaf.regex or "|".join(catalog.code_pattern(code) for code in leaf.codes)


def _needed(leaf: Leaf) -> list[literals.Texts]:
    return [] if leaf.contains else literals.required(source_of(leaf), leaf.ignore_case)


class Look(msgspec.Struct, frozen=True):
    """What is looked for on behalf of one leaf."""

    expressions: tuple[tuple[bytes, int], ...]
    needs: tuple[tuple[str, ...], ...]


def _looks(leaves: list[Leaf]) -> list[Look]:
    """The look of every leaf; those that were worked out before are taken from the cache, so that a pack more costs its own rules only."""
    name = f"looks-{VERSION}-{literals.edition().hex()[:16]}.msgpack"
    known: dict[bytes, Look] = {}
    if (cached := read_cache(name)) is not None:
        with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError):
            known = msgspec.msgpack.decode(cached, type=dict[bytes, Look])
    keys = [hashlib.sha256(msgspec.msgpack.encode(leaf)).digest()[:16] for leaf in leaves]
    fresh = {key: leaf for key, leaf in zip(keys, leaves, strict=True) if key not in known}
    for key, leaf in fresh.items():
        needs = tuple(tuple(sorted(texts)) for texts in _needed(leaf))
        known[key] = Look(tuple(expressions_of(leaf)), needs)
    if fresh:
        write_cache(name, msgspec.msgpack.encode({key: known[key] for key in (list(known) if len(known) < LOOKS else keys)}))
    return [known[key] for key in keys]


def chains_of(leaf: Leaf) -> tuple[list[literals.Chain], bool]:
    """Chains of texts of which each line that the leaf matches holds one, and whether in either case; none where nothing can be promised."""
    if not leaf.contains:
        source = source_of(leaf)
        return literals.chains(source, leaf.ignore_case), literals.folds(source, leaf.ignore_case)
    one, *others = sorted(dict.fromkeys(leaf.contains), key=literals.rarity, reverse=True)
    others = [word for word in others if literals.apart(one, word)] if literals.frequency(one, leaf.ignore_case) > literals.SELDOM else []
    if not others:
        return [(frozenset({one}),)], leaf.ignore_case
    return [(frozenset({one}), frozenset({others[0]})), (frozenset({others[0]}), frozenset({one}))], leaf.ignore_case


def expressions_of(leaf: Leaf) -> list[tuple[bytes, int]]:
    """Expressions, with their flags, of which at least one reports on every line that the leaf can match: the rarest texts that it needs,
    or the regex itself where it needs none, or only such as logs are full of."""
    chains, folded = chains_of(leaf)
    if len(leaf.contains) == 1:  # where it stands is a hit, unconfirmed
        return [(escaped(leaf.contains[0]), _flags(folded))]
    if not leaf.contains and (not chains or literals.met(chains, folded) > literals.OFTEN):
        return [(relaxed(source_of(leaf)).encode(), _flags(leaf.ignore_case))]
    return list(dict.fromkeys(one for chain in chains for one in _expressions(chain, folded)))


def _expressions(chain: literals.Chain, folded: bool) -> list[tuple[bytes, int]]:
    if len(chain) > 1:
        return [(b".*".join(b"(?:" + b"|".join(map(escaped, sorted(texts))) + b")" for texts in chain), _flags(folded))]
    texts, folded = literals.compact(chain[0], folded)
    return [(escaped(literals.cut(text, folded)), _flags(folded)) for text in sorted(texts)]


_NAMED = re.compile(r"\(\?P<\w+>")
_TAIL = re.compile(r"(?<!\\)(?P<loop>[+*]\??|\{\d*,?\d*\}\??)(?P<close>\)*)$")
_ATOM = re.compile(r"(?:\\[a-zA-Z]|\.|\[\^?\]?(?:\\.|[^\]\\])*\])$")


_BOUNDED = re.compile(r"(?P<atom>\\[a-zA-Z]|(?<!\\)\.|(?<!\\)\[\^?\]?(?:\\.|[^\]\\])*\])\{(?P<low>\d*)(?:,(?P<high>\d*))?\}")


def _unbounded(match: re.Match[str]) -> str:
    """A counted repeat costs a state for each count; without an upper bound it costs one, and the line itself is the bound."""
    low, high = int(match["low"] or 0), match["high"]
    if (high is None and low < 4) or (high and int(high) < 4):
        return match[0]
    return match["atom"] + ("+" if low else "*")


def relaxed(source: str) -> str:
    """The regex without names and counts, and without a repeat at its end, which would report once for every character."""
    out = _BOUNDED.sub(_unbounded, _NAMED.sub("(", source))
    for _ in range(8):
        tail = _TAIL.search(out)
        if tail is None:
            return out
        body, loop, close = out[: tail.start()], tail["loop"], tail["close"]
        atom = _ATOM.search(body)
        if atom is None:
            return out  # a group or a literal repeats: leave it
        if loop[0] == "+" or (loop[0] == "{" and not loop.startswith(("{0", "{,"))):
            return body + close
        if close:  # an optional atom inside a group may leave it empty
            return out
        out = body[: atom.start()]
    return out


_BACKWARDS = re.compile(r"(?<!\\)(?:\\\\)*(\(\?<?[=!]|\(\?P=|\\[1-9])")


def check_regex(leaf: Leaf) -> str:
    """What is wrong with a leaf's regex as such, or an empty text."""
    if not leaf.regex:
        return ""
    if found := _BACKWARDS.search(leaf.regex):
        return f"`{found[1]}` cannot be matched in linear time; leave out back references and look-around"
    try:
        pattern = regex.compile(leaf.regex, regex.I if leaf.ignore_case else 0)
    except regex.error as error:
        return f"the regex cannot be read: {error}"
    try:
        if pattern.search("", timeout=SECONDS) is not None:
            return "the regex matches an empty line, so it would match everything; give it a literal part"
    except TimeoutError:
        return "the regex takes too long on an empty line"
    return ""


def check_expression(leaf: Leaf) -> str:
    """Whether a leaf can be matched in linear time: what is wrong, or an empty text. Compiles it alone."""
    ones = expressions_of(leaf)
    try:
        _compile(ones)
    except hyperscan.error as error:
        if _with_prefilter(ones) is None:
            return f"the regex cannot be matched in linear time ({_reason(error)}); leave out back references and huge repeats"
    return ""


def _reason(error: Exception) -> str:
    return " ".join(str(part) for part in error.args)[:160]


def _compile(expressions: list[tuple[bytes, int]]) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[source for source, _ in expressions],
        ids=list(range(len(expressions))),
        elements=len(expressions),
        flags=[flags for _, flags in expressions],
    )
    return database


def _with_prefilter(expressions: list[tuple[bytes, int]]) -> list[tuple[bytes, int]] | None:
    """The expressions with look-around and back references approximated; None where even that is refused."""
    softened = [(source, flags | hyperscan.HS_FLAG_PREFILTER) for source, flags in expressions]
    try:
        _compile(softened)
    except hyperscan.error:
        return None
    return softened


def _database(expressions: list[tuple[bytes, int]]) -> Any:
    try:
        return _compile(expressions)
    except hyperscan.error:  # some need the prefilter; find out which
        ready = []
        for one in expressions:
            try:
                _compile([one])
                ready.append(one)
            except hyperscan.error:
                soft = _with_prefilter([one])
                ready.append(soft[0] if soft else (b"\\x00never\\x00", _FLAGS))
        return _compile(ready)


def broken_leaves(rules: RuleSet) -> list[Problem]:
    """The problems of all patterns of a rule set. They are compiled together; only when that fails, one by one."""
    problems, regexes = [], []
    for rule in rules.rules:
        for leaf in leaves_of(rule.match):
            if message := check_regex(leaf):
                problems.append(Problem(rule.file, rule.line, 1, f"{rule.id}: {leaf.id}: {message}"))
            elif leaf.regex and not literals.required(leaf.regex, leaf.ignore_case):
                regexes.append((rule, leaf))  # of others only texts are compiled, and a text can always be matched
    try:
        if regexes:
            _compile([one for _, leaf in regexes for one in expressions_of(leaf)])
    except hyperscan.error:
        for rule, leaf in regexes:
            if message := check_expression(leaf):
                problems.append(Problem(rule.file, rule.line, 1, f"{rule.id}: {leaf.id}: {message}"))
    return problems


# ---------------------------------------------------------------- cache

CACHE = pathlib.Path(__file__).parent / "__pycache__"
"""Where compiled patterns and read packs are kept: beside this package's byte code."""
CACHE_FILES = 16


def _cpu() -> str:
    """What a compiled database depends on."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith(("flags", "Features")):
                    return platform.machine() + hashlib.sha256(line.encode()).hexdigest()[:12]
    except OSError:
        pass
    return platform.machine() + platform.processor()


def read_cache(name: str) -> bytes | None:
    """A cached file from beside this package's byte code."""
    try:
        return (CACHE / name).read_bytes()
    except OSError:
        return None


def write_cache(name: str, data: bytes) -> None:
    """Keep `data` beside this package's byte code, as Python keeps its own; silently not, where that is not allowed."""
    part = CACHE / f"{name}.{os.getpid()}"
    try:
        CACHE.mkdir(exist_ok=True)
        part.write_bytes(data)
        os.replace(part, CACHE / name)
        kept = sorted(CACHE.glob(name.split("-")[0] + "-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in kept[CACHE_FILES:]:
            old.unlink(missing_ok=True)
    except OSError:
        part.unlink(missing_ok=True)
