"""What the one pass looks for on behalf of each leaf: the rarest texts its lines cannot do without, or its regex itself, relaxed.

These expressions of bytes are compiled together into one vectorscan database; what they report is confirmed line by line (see `scan`).
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Sequence
from typing import Any

import hyperscan
import msgspec
import regex

from rules import catalog, literals
from rules.cache import read_cache, write_cache
from rules.judge import SECONDS
from rules.model import Leaf, Problem, RuleSet, leaves_of

VERSION = 17
"""Of the way patterns are turned into expressions: part of the caches' keys."""
LOOKS = 50_000
"""Leaves whose looks are kept in the cache."""
BESIDE = 4
"""Texts that the sieve looks for on the line of another."""
_FLAGS = hyperscan.HS_FLAG_MULTILINE


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


class Expression(msgspec.Struct, frozen=True, array_like=True):
    """What the database is given."""

    source: bytes
    flags: int
    texts: tuple[str, ...]
    """A line that it reports on holds one of these, in either case; empty where nothing is known."""
    beside: tuple[str, ...] = ()
    """And one of these, if there are any."""

    @property
    def literal(self) -> bool:
        """Whether it is a text, no regex."""
        return len(self.texts) == 1 and self.source == escaped(self.texts[0])


class Look(msgspec.Struct, frozen=True):
    """What is looked for on behalf of one leaf."""

    expressions: tuple[Expression, ...]
    needs: tuple[tuple[str, ...], ...]
    """Sets of texts of each of which a line must hold one, before its regex is asked."""


def looks(leaves: list[Leaf]) -> list[Look]:
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
        known[key] = Look(tuple(telling(leaf)), needs)
    if fresh:
        write_cache(name, msgspec.msgpack.encode({key: known[key] for key in (list(known) if len(known) < LOOKS else keys)}))
    return [known[key] for key in keys]


_ANY_DIGIT = re.compile(r"\\d|(?<=\[)0-9|(?<=[a-zA-Z_])0-9|\{\d*,?\d*\}|\(\?P<\w+>")
_DIGIT = re.compile(r"[0-9]|0[xX]")


def telling(leaf: Leaf) -> list[Expression]:
    """The expressions of a leaf such that lines that differ in their digits alone are judged alike if the same expressions report on them:
    words with digits that are not looked for anyway are added, and a regex that names digits is looked for as it stands."""
    found = expressions_of(leaf)
    texts = {one.texts[0] for one in found if one.literal}
    words = [word for word in (*leaf.contains, *leaf.not_contains) if word not in texts and _DIGIT.search(word)]
    if not leaf.contains:
        source = _ANY_DIGIT.sub("", source_of(leaf))
        for text in sorted(texts, key=len, reverse=True):
            source = source.replace(text, "").replace(re.escape(text), "")
        if _DIGIT.search(source):
            found = [loose(source_of(leaf), leaf.ignore_case)]
    return [*found, *(Expression(escaped(word), _flags(leaf.ignore_case), (word,)) for word in words)]


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


def expressions_of(leaf: Leaf) -> list[Expression]:
    """Expressions, with their flags, of which at least one reports on every line that the leaf can match: the rarest texts that it needs,
    or the regex itself where it needs none, or only such as logs are full of."""
    chains, folded = chains_of(leaf)
    if len(leaf.contains) == 1:  # where it stands is a hit, unconfirmed
        return [Expression(escaped(leaf.contains[0]), _flags(folded), leaf.contains)]
    if not leaf.contains and (not chains or literals.met(chains, folded) > literals.OFTEN):
        return [loose(source_of(leaf), leaf.ignore_case)]
    return list(dict.fromkeys(one for chain in chains for one in _expressions(chain, folded)))


def _expressions(chain: literals.Chain, folded: bool) -> list[Expression]:
    if len(chain) > 1:
        source = b".*".join(b"(?:" + b"|".join(map(escaped, sorted(texts))) + b")" for texts in chain)
        return [Expression(source, _flags(folded), *_sifted([chain]))]
    texts, folded = literals.compact(chain[0], folded)
    cut = sorted(literals.cut(text, folded) for text in texts)
    return [Expression(escaped(text), _flags(folded), (text,)) for text in cut]


def loose(source: str, ignore_case: bool) -> Expression:
    """A regex as it stands, relaxed, with the texts that it needs all the same."""
    tree = literals.required(source, ignore_case)
    chains = literals.chains(source, ignore_case)
    return Expression(relaxed(source).encode(), _flags(ignore_case), *_sifted([tuple(tree)] if len(chains) == 1 and len(tree) > 1 else chains))


def _sifted(chains: list[literals.Chain]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the sieve looks for (`Expression.texts` and `beside`): of each chain the texts that logs hold the least, in either case."""
    if not chains:
        return (), ()
    sets = [sorted((_lower(texts) for texts in chain), key=lambda texts: literals.often(texts, True)) for chain in chains]
    texts = frozenset().union(*(some[0] for some in sets))
    beside = min(sets[0][1:], key=len, default=frozenset[str]()) if len(sets) == 1 else frozenset[str]()
    return tuple(sorted(texts)), tuple(sorted(beside)) if len(beside) <= BESIDE else ()


def _lower(texts: literals.Texts) -> literals.Texts:
    return frozenset(text.lower() for text in texts)


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


def _compile(expressions: Sequence[Expression]) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[one.source for one in expressions],
        ids=list(range(len(expressions))),
        elements=len(expressions),
        flags=[one.flags for one in expressions],
    )
    return database


def _with_prefilter(expressions: Sequence[Expression]) -> list[Expression] | None:
    """The expressions with look-around and back references approximated; None where even that is refused."""
    softened = [msgspec.structs.replace(one, flags=one.flags | hyperscan.HS_FLAG_PREFILTER) for one in expressions]
    try:
        _compile(softened)
    except hyperscan.error:
        return None
    return softened


def database(expressions: Sequence[Expression]) -> Any:
    """All expressions compiled together; each reports under its index."""
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
                ready.append(soft[0] if soft else Expression(b"\\x00never\\x00", _FLAGS, ()))
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
