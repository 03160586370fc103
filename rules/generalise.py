"""From one log line to a pattern that finds it again with other pids, times, devices, addresses, paths and sizes.

    >>> seen = generalise("[ERROR] HCCL(2106,python):2026-03-12-14:36:09.101.552 [wait.cc:212]2391 [Wait]rank 3 got no answer from 10.2.0.7 in 120 s")
    >>> seen.pattern
    '\\\\[Wait\\\\]rank (?P<rank>\\\\d+) got no answer from (?P<from_address>[\\\\d.:]+) in \\\\d+ s'
    >>> seen.captures
    {'rank': '3', 'from_address': '10.2.0.7'}

What a reader needs to name the fault stays as it is: words, error codes, exit codes, names of libraries and kernels' types. The record's
head (time, severity, process, source line) goes: it differs from program to program.
"""

from __future__ import annotations

import re

import msgspec

LONGEST = 4000
"""Characters of a line that are looked at."""
ENOUGH = 140
"""Characters of message from which on a pattern ends at the next pause: more only ties it to one incident."""
WORD = 4
"""Letters in a row without which a text names nothing."""


class Generalised(msgspec.Struct, frozen=True):
    """A line, taken apart."""

    message: str
    """The line without its record's head, and without what makes colours."""
    pattern: str
    """A regex of linear time that finds the line, wherever its record begins; without look-around and back references."""
    text: str
    """The whole pattern as a fixed text, where nothing in it varies; else empty: `contains` will do, no regex is needed."""
    texts: tuple[str, ...]
    """The fixed texts of the pattern, in order: words that each line of this kind holds."""
    captures: dict[str, str]
    """Named groups of the pattern and their values on this line."""


def generalise(line: str) -> Generalised:
    """What is fixed in a log line, and what varies. A line without any word gives a pattern of its digits' places: check `texts`."""
    message = message_of(line)
    pieces = _pieces(message)
    fixed = all(piece.fixed for piece in pieces)
    whole = "".join(piece.raw for piece in pieces)
    texts = tuple(text for text in (part.strip(" ,;:.") for part in _runs(pieces)) if len(text) >= 3)
    captures = {piece.name: piece.raw for piece in pieces if piece.name}
    return Generalised(message, "".join(piece.source for piece in pieces), whole if fixed else "", texts, captures)


# ---------------------------------------------------------------- the record's head

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_DATE = (
    r"(?:\d{4}[-/.]\d\d[-/.]\d\d[T_ -]?|\d\d[-/]\d\d |(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} {1,2}\d{1,2} (?:\d{4} )?)?"
    r"\d\d:\d\d:\d\d(?:[.,:]\d{1,9}){0,3}(?: \d{4}\b)?(?:Z|[ ]?[+-]\d\d:?\d\d)?"
)
_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|EVENT|WARN(?:ING)?|ERROR|CRITICAL|FATAL|trace|debug|info|warn(?:ing)?|error|fatal)"
_HEADS = [
    re.compile(source, re.ASCII)
    for source in (
        r"[\w.@/+-]{1,200}?\.(?:log|txt|out)(?:\.\d{1,3})?[:-]\d{1,9}[:-] ?",  # what grep puts in front
        r"(?:stdout|stderr) [FP] ",
        r"<\d{1,3}>",
        r"\[pod/[\w./-]{1,300}\] ",
        r"\[(?:rank|Rank |default|worker)\d{1,6}\]:? ?",
        r"\((?:[A-Za-z_][\w.:]{0,80})?(?: ?rank=\d{1,6})?(?: ?pid=\d{1,10})(?:, ip=[\w.:]{1,45})?\) ?",
        r"\(PID:\d{1,10}(?:, ?\w{1,20}:-?\d{1,10}){0,6}\) ?",
        rf"\[{_LEVEL}\] ?[A-Z][A-Z0-9_]{{1,30}}\([\w.:, -]{{1,80}}\): ?",  # plog, up to its time
        rf"\[?{_DATE}\]? ?",
        r"\d{4}-\d\d-\d\d ",
        rf"\[{_LEVEL}\] ?",
        rf"{_LEVEL}(?::| +(?=[\[(:-]|\d\d[-/]\d\d ))[ :-]*",
        r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL) +(?=[\w/'\"]+ )",
        r"\[ {0,8}\d{1,9}\.\d{1,9}\] ?",  # since boot
        r"\[[\w./-]{1,120}\.(?:cc|cpp|c|h|hpp|py|go|java|rs)(?::|, line | )\d{1,6}\](?:\d{1,10}(?= ))? ?",
        rf"\[[IWEF]\d{{3,4}}(?: {_DATE})? [\w./-]{{1,80}}:\d{{1,6}}\] ?",  # torch
        r"[\w./-]{1,120}\.(?:cc|cpp|c|h|hpp|py|go|java|rs):\d{1,6}[\]:] ?",
        r"\[(?i:pid|tid|process|thread)?[ :=]{0,2}\d{2,10}\] ?",
        r"[\w.-]{1,64} (?:kernel|[\w./-]{1,60}\[\d{1,10}\]): ",  # a host and a program, behind the time of a system log
        r"[- ]{1,4}(?=\S)",
    )
]
_ROUNDS = 12


def message_of(line: str) -> str:
    """The line without its record's head. Where nothing but a head is there, the line as it is."""
    bare = _ANSI.sub("", line[:LONGEST]).rstrip("\r\n").strip()
    rest = bare
    for _ in range(_ROUNDS):
        found = next((match for head in _HEADS if (match := head.match(rest)) and match.end()), None)
        if found is None:
            break
        rest = rest[found.end() :]
    return rest if re.search(r"[^\W\d_]{2}", rest) else bare


# ---------------------------------------------------------------- what varies


class _Piece(msgspec.Struct):
    raw: str
    source: str
    fixed: bool
    name: str = ""


_NUMBERED = (
    "device|dev|rank|node|host|worker|npu|gpu|card|chip|die|core|stream|task|thread|queue|group|eth|bond|davinci|port|slot|lane|"
    "layer|layers|block|expert|experts|replica|instance|process|container|TP|DP|PP|EP|tp|dp|pp|ep"
)
_VARYING = re.compile(
    rf"(?P<time>(?<!\d){_DATE}(?!\d))"
    r"|(?P<uuid>(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z]))"
    r"|(?P<mac>(?<![0-9A-Za-z:])[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?![0-9A-Za-z:]))"
    r"|(?P<bdf>(?<![0-9A-Za-z:])(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7](?![0-9A-Za-z]))"
    r"|(?P<hex>(?<![0-9A-Za-z_])0[xX][0-9a-fA-F]{1,32}(?![0-9A-Za-z_]))"
    r"|(?P<address>(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\w.]*\w))"
    r"|(?P<source>(?<![\w./])[\w-]{1,80}\.(?:cc|cpp|c|h|hpp|py|go)(?::|, line |\", line )\d{1,6}(?!\d))"
    r"|(?P<path>(?<![\w.:/<])(?:~|\.{1,2})?/[\w.@+%=~-]{1,255}(?:/[\w.@+%=~-]{1,255}){0,40}/?)"
    r"|(?P<version>(?<![\w.])[vV]?\d+(?:\.\d+){1,3}(?:[.+-]?(?:RC|rc|dev|post|alpha|beta|T|B|SPC|[ab])\d+){1,4}(?![\w.]*\w))"
    r"|(?P<numbers>[\[(](?:-?\d+(?:\.\d+)?(?: ?[,x*] ?))+-?\d+(?:\.\d+)?[\])])"
    rf"|(?P<numbered>(?<![A-Za-z])(?:{_NUMBERED})(?P<mark>[_-]?)(?P<digits>\d{{1,6}})(?![0-9A-Za-z.]))"
    r"|(?P<hash>(?<![0-9A-Za-z])(?=[0-9a-fA-F]{0,11}\d)(?=[0-9a-fA-F]{0,11}[a-fA-F])[0-9a-fA-F]{8,128}(?![0-9A-Za-z]))"
    r"|(?P<number>(?<![0-9A-Za-z_.])-?\d+(?:\.\d+)*(?![0-9A-Za-z_]|\.\d))"
    r"|(?P<sized>(?<![0-9A-Za-z_.])\d+(?:\.\d+)?(?=(?:[kKMGTP]?i?[bB]|[mu]?s|min|[hm]|[kMG]?Hz|m?[WVA]|C|dBm|rpm|x)(?![0-9A-Za-z_])))",
    re.ASCII,
)
_CODED = re.compile(
    r"(?:err(?:or)?(?:[ _]?(?:code|no|num|number))?|ret(?:urn|val)?(?:[ _]?(?:code|value|val))?|rc|status(?:[ _]code)?|result|exit(?:[ _]?code)?|"
    r"exitcode|signal|reason|errcode|innercode|type|sensor type|node type|event[ _]?id|xid|cqe\w*)(?: is| was|:? ?->)?[\"' ]{0,2}[=:\[( ]{0,3}$",
    re.IGNORECASE,
)
_CHIP_EVENT = re.compile(r"(?:0[xX])?[89aAbB][0-9A-Fa-f]{7}\Z")
_WELL_KNOWN = re.compile(r"-?(?:107|145|207|507|161|361|561)\d{3}\Z")
_KEY = re.compile(r"([A-Za-z][A-Za-z_ ]{0,40}?)[\"']?(?: is| of| to|:? ?->)?(?: ?[=:] ?| ?\[ ?| ?\( ?| )[\"']?$")
_DIRECT = re.compile(r"([A-Za-z][A-Za-z_]{1,27})[\"']?(?:=\[?|: ?| = |\[)[\"']?$")
_NAMEABLE = re.compile(
    r"(?:.*[^A-Za-z_])?((?:[A-Za-z][a-z]*_?)?(?:device|dev|rank|node|stream|task|pid|tid|port|index|idx|size|len|length|shape|dim|num|count|batch|seq|"
    r"block|group|timeout|bytes|offset|align|head|heads|heads_num|max|min|limit|addr|address|version|world_size|tag|core|chip|card|slot|slice|token|"
    r"tokens|level|step|layer|expert|experts|id)s?(?:_?[A-Za-z]{1,12})?)\Z",
    re.IGNORECASE | re.DOTALL,
)
_TELLING = re.compile(r"[\w.+-]*\.(?:so(?:\.[\d.]*)?|conf|info|json|ya?ml|sh|h|db|o|om|bin)\Z", re.ASCII)


def _pieces(message: str) -> list[_Piece]:
    """The message as fixed and varying pieces, cut at a pause once it says enough."""
    pieces: list[_Piece] = []
    names = _Names()
    at = 0
    for match in _VARYING.finditer(message):
        _fixed(pieces, message[at : match.start()])
        if _said(pieces):
            break
        pieces.extend(_varying(match, message[max(0, match.start() - 60) : match.start()], names))
        at = match.end()
    else:
        _fixed(pieces, message[at:])
        _said(pieces)
    return _trimmed(pieces)


_PAUSE = re.compile(r"[.;,!?。；，！？](?=\s|$|[^\x00-\x7f])|\s[|-]\s|\](?=\s|\[)")


def _said(pieces: list[_Piece]) -> bool:
    """Whether the last text is to be the last piece; cuts it at its first pause behind ENOUGH characters."""
    before = sum(len(piece.raw) for piece in pieces[:-1])
    if not pieces or not pieces[-1].fixed or before + len(pieces[-1].raw) < ENOUGH:
        return False
    if not any(re.search(r"[^\W\d_]{4}", piece.raw) for piece in pieces if piece.fixed):
        return False
    raw = pieces[-1].raw
    pause = next((one.start() for one in _PAUSE.finditer(raw) if before + one.start() >= ENOUGH // 2), None)
    if pause is None and before + len(raw) < 2 * ENOUGH:
        return False
    if pause is None:
        pause = raw.rfind(" ", 0, max(2 * ENOUGH - before, 1))
    pieces[-1] = _text(raw[: pause if pause > 0 else len(raw)])
    return True


def _fixed(pieces: list[_Piece], raw: str) -> None:
    if raw:
        pieces.append(_text(raw))


def _text(raw: str) -> _Piece:
    return _Piece(raw, escaped(raw), True)


def _varying(match: re.Match[str], before: str, names: _Names) -> list[_Piece]:
    """What one varying thing becomes: often fixed texts around a class of characters."""
    kind, raw = str(match.lastgroup), match[0]
    if kind in ("digits", "mark", "numbered"):
        word = raw[: -len(match["digits"])]
        return [_text(word), _group(match["digits"], r"\d+", names.free(word))]
    if kind == "numbers" and _CODED.search(before):
        return [_text(raw)]  # the error words of a core
    if kind == "number" and (_WELL_KNOWN.match(raw) or _CODED.search(before)):
        return [_text(raw)]
    if kind in ("hex", "hash") and (_CHIP_EVENT.match(raw) or (_CODED.search(before) and len(raw) <= 10)):
        return [_text(raw)]
    if kind == "path":
        return _path(raw)
    if kind == "source":
        mark = raw.rstrip("0123456789")
        return [_text(mark), _Piece(raw[len(mark) :], r"\d+", False)]
    source = _CLASSES.get(kind) or {"time": _time(raw), "numbers": rf"{escaped(raw[0])}[\d ,x*.-]+{escaped(raw[-1])}"}.get(kind) or _number(raw)
    name = "" if kind in ("time", "uuid", "hash") else _key(before, kind)
    return [_group(raw, source, names.free(name)) if name else _Piece(raw, source, False)]


_CLASSES = {
    "uuid": "[0-9a-fA-F-]+",
    "mac": "[0-9a-fA-F:]+",
    "bdf": "[0-9a-fA-F:.]+",
    "hex": "0[xX][0-9a-fA-F]+",
    "address": r"[\d.:]+",
    "version": r"[\w.+-]+",
    "hash": "[0-9a-fA-F]+",
    "sized": r"[\d.]+",
}


def _group(raw: str, source: str, name: str) -> _Piece:
    return _Piece(raw, f"(?P<{name}>{source})", False, name)


def _number(raw: str) -> str:
    return "-?" * raw.startswith("-") + (r"[\d.]+" if "." in raw else r"\d+")


def _time(raw: str) -> str:
    return r"[\d:.,TZ /+-]+" if not re.search(r"[A-Z][a-z]", raw) else r"[\w:.,/ +-]+"


def _path(raw: str) -> list[_Piece]:
    """A path goes, but the name of a library or a setting file at its end stays."""
    folder, slash, base = raw.rstrip("/").rpartition("/")
    if base and _TELLING.match(base) and not re.search(r"\d{3}", base):
        return [_Piece(folder + slash, r"[^\s:'\"]*/", False), _text(base)]
    return [_Piece(raw, r"[^\s:'\",;)\]]+", False)]


def _key(before: str, kind: str) -> str:
    """A name for a value from the words in front of it, or an empty text."""
    if kind == "address":
        return "from_address" if re.search(r"from\W*\Z", before) else "to_address" if re.search(r"\bto\W*\Z", before) else "address"
    if kind != "version" and (direct := _DIRECT.search(before)):
        return direct[1]
    found = _KEY.search(before)
    word = _NAMEABLE.match(found[1].strip()) if found else None
    return word[1] if word else ""


class _Names:
    """Names of groups: each given once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def free(self, wish: str) -> str:
        """`wish` in lower case with underlines, and a number where it is taken."""
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", wish).lower()
        snake = re.sub(r"[^a-z0-9]+", "_", snake).strip("_")[:28] or "value"
        name = next(one for one in (snake, *(f"{snake}_{n}" for n in range(2, LONGEST))) if one not in self._taken)
        self._taken.add(name)
        return name


# ---------------------------------------------------------------- putting together

_META = re.compile(r"[.^$*+?{}\[\]\\|()]")


def escaped(raw: str) -> str:
    """A text as a regex that is still easy to read; what cannot be printed is any character, spaces in a row are one or more."""
    out = _META.sub(lambda match: "\\" + match[0], raw)
    out = re.sub(r"[ \t\u00a0\u3000]{2,}|\t", r"\\s+", out)
    return "".join(char if char.isprintable() else "." for char in out)


def _trimmed(pieces: list[_Piece]) -> list[_Piece]:
    """Neighbouring texts joined, blanks at either end dropped, and what varies without a name before the first word."""
    joined: list[_Piece] = []
    for piece in pieces:
        if piece.fixed and joined and joined[-1].fixed:
            joined[-1] = _text(joined[-1].raw + piece.raw)
        else:
            joined.append(piece)
    wordy = [n for n, piece in enumerate(joined) if piece.fixed and re.search(r"[^\W_]{2}", piece.raw)]
    if wordy:
        joined = joined[0 if joined[0].name else wordy[0] :]
    if joined and joined[0].fixed:
        joined[0] = _text(joined[0].raw.lstrip())
    if joined and joined[-1].fixed:
        joined[-1] = _text(joined[-1].raw.rstrip(" \t.;,"))
    return [piece for piece in joined if piece.raw]


def _runs(pieces: list[_Piece]) -> list[str]:
    """Fixed texts, each without what would not be the same in the pattern."""
    return [run for piece in pieces if piece.fixed for run in re.split(r"[^\S ]+| {2,}|[^\x20-\U0010ffff]", piece.raw)]
