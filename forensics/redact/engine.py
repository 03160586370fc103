"""Finds secrets in blocks of lines, and replaces them.

First all lines are read once to learn: a host that names itself in a prompt is the same host where only its name stands, and a password
that was given as an option is the same in the message that repeats it. Then, with all names known, every block is searched for all
forms and all names in one pass of vectorscan, and only the lines it points at are looked at more closely.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import hyperscan
import msgspec
import numpy as np

from forensics.redact.forms import FORMS, Form
from forensics.redact.judges import host_like
from forensics.redact.names import GENERIC_USERS, Names

NAMES = 50_000
"""Names that are learned at most; beyond, those of further ones are replaced where a form shows them."""
SHORTEST = {"host": 4, "user": 4, "secret": 8, "hex": 12, "serial": 6}
"""Signs from which a learned name is looked for everywhere; a shorter one would be found in too many words."""
LONG = 8192
"""Bytes from which a line is searched around what was found only."""
AROUND = 600

_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?)?")
_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]{2,60})-----\r?$", re.MULTILINE)
_PEM_END = re.compile(rb"-----END [A-Z0-9 ]{2,60}-----")
_BODY = re.compile(rb"[A-Za-z0-9+/=]{16,}")
_PROFILE = re.compile(r"_\d+_\d{14,17}_ascend_\w+$")
"""What stands behind the host in the name of a folder of profiles, and says that it is one."""


class Seen(msgspec.Struct):
    """One secret: how often, and where first."""

    form: str
    kind: str
    value: str
    pseudonym: str
    count: int = 0
    file: str = ""
    line: int = 0


class Learned(msgspec.Struct):
    """What the first reading found out."""

    values: dict[str, str] = {}
    """Name -> kind, of all that is looked for everywhere."""
    networks: set[str] = set()


class _Base:
    """A database of expressions, and the lines they report on."""

    def __init__(self, expressions: list[tuple[bytes, int]]):
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=[expression for expression, _ in expressions],
            ids=list(range(len(expressions))),
            elements=len(expressions),
            flags=[flags for _, flags in expressions],
        )
        self._scratch = hyperscan.Scratch(self._database)

    def ends(self, data: bytes) -> tuple[list[int], list[int]]:
        """Numbers of the expressions that matched, and where each match ended."""
        ids: list[int] = []
        ends: list[int] = []
        add_id, add_end = ids.append, ends.append

        def report(pattern: int, _start: int, end: int, _flags: int, _context: object) -> None:
            add_id(pattern)
            add_end(end)

        self._database.scan(data, match_event_handler=report, scratch=self._scratch)
        return ids, ends


@functools.cache
def _of_forms() -> tuple[_Base, list[int]]:
    """The cheap patterns of all forms, and the form of each."""
    expressions, forms = [], []
    for number, form in enumerate(FORMS):
        for cheap in form.cheap:
            flags = hyperscan.HS_FLAG_MULTILINE | (hyperscan.HS_FLAG_CASELESS if form.ignore_case else 0)
            expressions.append((cheap.encode(), flags))
            forms.append(number)
    return _Base(expressions), forms


def _literal(text: bytes) -> bytes:
    return b"".join(bytes([c]) if chr(c).isalnum() and c < 128 else b"\\x%02x" % c for c in text)


class Learner:
    """First reading: what names there are. `protected`: words, in lower case, that are too common in logs to be anybody's name."""

    def __init__(self, protected: frozenset[str] = frozenset()):
        self._base, self._forms = _of_forms()
        self._protected = protected
        self.learned = Learned()

    def read(self, data: bytes) -> None:
        """Whole lines of a member."""
        data = plain(data)
        for form, match in _matches(self._base, self._forms, data):
            if form.name == "address":
                self.learned.networks.add(match["v"].rpartition(b".")[0].decode())
            elif form.learn:
                for group, kind in form.parts.items():
                    if match[group] is not None:
                        self._learn(match[group], kind)

    def read_path(self, path: str) -> None:
        """The path of a member: its folders may be named after hosts."""
        self.read(path.encode("utf-8", "surrogateescape") + b"\n")

    def node(self, name: str) -> None:
        """A host that the reader of the bundle has recognised, such as by the folder its logs lie in."""
        raw = _PROFILE.sub("", name).encode("utf-8", "surrogateescape")
        if host_like(raw):
            self._learn(raw, "host")

    def _learn(self, raw: bytes, kind: str) -> None:
        value = raw.decode("utf-8", "surrogateescape").strip("'\"\\.,;:")
        if len(value) < SHORTEST.get(kind, 6) or len(value) > 2000 or len(self.learned.values) >= NAMES:
            return
        odd = re.search(r"[\d._@-]", value) is not None
        if kind == "user" and (value.lower() in GENERIC_USERS or not odd and (len(value) < 5 or value.lower() in self._protected)):
            return
        if kind == "host":
            if not host_like(raw.rstrip(b".")) or (not odd and (len(value) < 5 or value.lower() in self._protected)):
                return
            short = value.partition(".")[0]
            if short != value and len(short) >= SHORTEST["host"] and re.search(r"[\d-]", short):
                self.learned.values.setdefault(short, "host")
        if kind == "secret" and not re.search(r"\d", value) and value.lower() in self._protected:
            return
        if value.lower() not in self._protected:
            self.learned.values.setdefault(value, kind)


class Redactor:
    """Second reading: replaces. `counts` is by form; `seen` is kept where `listing`."""

    def __init__(self, names: Names, learned: Learned, listing: bool = False):
        self.names = names
        names.settle(learned.networks)
        self._base, self._forms = _of_forms()
        self._literals: list[tuple[str, int]] = []
        expressions = []
        for value, kind in sorted(learned.values.items()):
            if names.of(kind, value) == value:
                continue
            flags = hyperscan.HS_FLAG_CASELESS if kind == "host" else 0
            raw = value.encode("utf-8", "surrogateescape")
            expressions.append((_literal(raw), flags))
            self._literals.append((kind, len(raw)))
        self._known = _Base(expressions) if expressions else None
        self.counts: dict[str, int] = {}
        self.seen: dict[tuple[str, str], Seen] | None = {} if listing else None
        self._inside = False
        self._strings: dict[str, str] = {}

    def begin(self) -> None:
        """A member begins: it is not inside the key that the last one ended in."""
        self._inside = False

    def lines(self, data: bytes, file: str = "", line: int = 0) -> bytes:
        """Whole lines of a member, replaced; `line`: how many lines of the member came before."""
        data = self._keys(plain(data))
        spans = self._spans(data)
        if not spans:
            return data
        out, at = [], 0
        for start, end, form, kind, value in spans:
            pseudonym = self.names.of(kind, value)
            if pseudonym != value:
                out += [data[at:start], pseudonym.encode("utf-8", "surrogateescape")]
                at = end
                self._count(form, kind, value, pseudonym, file, line, data, start)
        out.append(data[at:])
        return b"".join(out)

    def text(self, text: str) -> str:
        """One string of a report, or a path."""
        known = self._strings.get(text)
        if known is None:
            self._inside = False
            raw = self.lines(text.encode("utf-8", "surrogateescape") + b"\n")
            known = raw[:-1].decode("utf-8", "surrogateescape")
            if len(self._strings) < 200_000:
                self._strings[text] = known
        return known

    # ------------------------------------------------------------ where

    def _spans(self, data: bytes) -> list[tuple[int, int, str, str, str]]:
        """(start, end, form, kind, value), in order, none overlapping: the longer one wins, of the other its rest is replaced."""
        raw: list[tuple[int, int, str, str]] = []
        if self._known is not None:
            for number, end in zip(*self._known.ends(data), strict=True):
                kind, size = self._literals[number]
                if not _within_word(data, end - size, end):
                    raw.append((end - size, end, f"known-{kind}", kind))
        for form, match in _matches(self._base, self._forms, data):
            for group, kind in form.parts.items():
                start, end = match.span(group)
                if start >= 0 and end > start:
                    raw.append((start, end, form.name, kind))
        if not raw:
            return []
        raw.sort(key=lambda span: (span[0], -span[1]))
        kept: list[tuple[int, int, str, str]] = []
        for start, end, form_name, kind in raw:
            if kept and start < kept[-1][1]:
                last = kept[-1]
                if end <= last[1]:
                    continue
                if last[0] < start:  # they cross: what sticks out is replaced by itself
                    start, kind = last[1], "secret" if kind in ("secret", "prompt") else kind
                else:
                    kept.pop()
            kept.append((start, end, form_name, kind))
        return [(start, end, form_name, kind, data[start:end].decode("utf-8", "surrogateescape")) for start, end, form_name, kind in kept]

    def _count(self, form: str, kind: str, value: str, pseudonym: str, file: str, line: int, data: bytes, start: int) -> None:
        self.counts[form] = self.counts.get(form, 0) + 1
        if self.seen is None:
            return
        seen = self.seen.get((kind, value))
        if seen is None:
            if len(self.seen) >= NAMES:
                return
            seen = self.seen[kind, value] = Seen(form, kind, value, pseudonym, 0, file, line + data.count(b"\n", 0, start) + 1 if file else 0)
        seen.count += 1

    def _keys(self, data: bytes) -> bytes:
        """Keys and certificates that stand on lines of their own, from BEGIN to END, over the borders of blocks."""
        if not self._inside and b"-----BEGIN " not in data:
            return data
        out, at = [], 0
        while at < len(data):
            if not self._inside:
                begin = _PEM.search(data, at)
                if begin is None:
                    break
                out.append(data[at : begin.end()])
                at, self._inside = begin.end(), True
            stop = _PEM_END.search(data, at)
            end = stop.start() if stop else len(data)
            body = data[at:end]
            # what is no key ends it: a log goes on behind a key that was cut off
            odd = next((m for m in re.finditer(rb"^[^\n]*[^\n\w+/=\s:,.-][^\n]*$", body, re.MULTILINE)), None)
            if odd is not None:
                end = at + odd.start()
                body = data[at:end]
            out.append(_BODY.sub(lambda m: self.names.shape(m[0].decode(), "key").encode(), body))
            self.counts["key"] = self.counts.get("key", 0) + (len(body.strip()) > 0)
            at = end
            if stop or odd is not None:
                self._inside = False
        out.append(data[at:])
        return b"".join(out)


def plain(data: bytes) -> bytes:
    """Without colours and NULs, between whose signs a secret could hide."""
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    return data.replace(b"\0", b"") if b"\0" in data else data


def _matches(base: _Base, forms: list[int], data: bytes) -> Iterable[tuple[Form, re.Match[bytes]]]:
    """Every match of a form in a block."""
    ids, ends = base.ends(data)
    if not ids:
        return
    numbers, stops = np.array(ids, np.int64), np.array(ends, np.int64)
    breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    lines = np.searchsorted(breaks, np.maximum(stops - 1, 0), side="left")
    which = np.array(forms, np.int64)[numbers]
    keys, at = np.unique((lines << 16) | which, return_index=True)
    bounds = np.concatenate(([-1], breaks, [len(data)]))
    firsts = stops[at]
    for key, end in zip(keys.tolist(), firsts.tolist(), strict=True):
        line, form = key >> 16, FORMS[key & 0xFFFF]
        start, stop = int(bounds[line]) + 1, int(bounds[line + 1])
        if stop - start > LONG:
            start = max(start, end - AROUND)
        judge = form.judge
        for match in form.exact.finditer(data, start, stop):
            if judge is None or judge(match):
                yield form, match


_ALNUM = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def _within_word(data: bytes, start: int, end: int) -> bool:
    """Whether a name is a part of a longer word."""
    if start > 0 and data[start - 1] in _ALNUM and data[start] in _ALNUM:
        return True
    return end < len(data) and data[end] in _ALNUM and data[end - 1] in _ALNUM
