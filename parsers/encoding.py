"""In what encoding a member is written, told from its first kilobytes; and whether it is text at all.

    >>> detect("设备心跳丢失\\n".encode("gbk")), detect("设备\\n".encode()), detect(b"\\xff\\xfe[\\0"), detect(b"Ger\\xe4tefehler caf\\xe9\\n")
    ('gb18030', 'utf-8', 'utf-16-le', 'latin-1')
    >>> detect("[ERROR] no mark\\n".encode("utf-16-le")), is_binary(b"\\x7fELF\\x02\\x01\\x01"), is_binary(b"\\0" * 100 + b"[ERROR] HCCL(1,x)\\n")
    ('utf-16-le', True, False)
    >>> decode("设备".encode("gbk") + b" caf\\xe9", "utf-8")       # a stray line of another encoding is still read as far as it goes
    '设备 café'

Logs of one host mix encodings when some modules print Chinese under a GBK locale; so lines are decoded one by one.
"""

from __future__ import annotations

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MAGIC = (
    b"\x7fELF", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"SQLite format 3\0",
    b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF-", b"\x93NUMPY", b"PAR1", b"\xca\xfe\xba\xbe", b"\x89HDF", b"\xd0\xcf\x11\xe0", b"KDUMP",
    b"!<arch>\n", b"OggS",
)  # fmt: skip
_PICKLE = re.compile(rb"\x80[\x02-\x05](?:\x95|c|\}|\]|\(|X|q)")
_CONTROLS = bytes(k for k in range(32) if k not in (0, 7, 8, 9, 10, 11, 12, 13, 27)) + b"\x7f"
_HIGH_RUNS = re.compile(rb"[\x80-\xff]+")
_C1 = re.compile(rb"[\x80-\x9f]")
_THREE = re.compile(rb"[\xe0-\xef][\x80-\xbf]{2}")
_FOUR = re.compile(rb"[\x81-\xfe][0-9][\x81-\xfe][0-9]")


def utf16(head: bytes) -> str:
    """`utf-16-le` or `utf-16-be` where every other byte of ASCII text is a NUL, even without a mark; otherwise empty."""
    sample = head[: 4096 & ~1]
    half = len(sample) // 2
    if half < 4:
        return ""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 0.4 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.1 * half:
        return "utf-16-be"
    return ""


def is_binary(head: bytes) -> bool:
    """Whether a member is no text: by its first bytes, or by too many control characters. NULs alone do not make a log binary:
    power loss and rotation leave runs of them."""
    if head.startswith(_MAGIC) or head[257:262] == b"ustar" or head[8:12] == b"DUCK" or _PICKLE.match(head):
        return True
    if head.startswith(tuple(mark for mark, _ in _MARKS)) or utf16(head):
        return False
    text = head.replace(b"\0", b"")
    if not text:
        return False
    controls = len(text) - len(text.translate(None, _CONTROLS))
    if controls > max(2, len(text) // 20):
        return True
    # NULs sprinkled among few letters are numbers in binary, not a gap in a log
    return b"\0" in head and len(re.findall(rb"[\x20-\x7e]\0[\x01-\xff]|\0[\x01-\x1f\x7f-\xff]\0", head)) > len(head) // 40


def detect(head: bytes) -> str:
    """The encoding of a text: utf-8, utf-8-sig, utf-16-le, utf-16-be, gb18030 or latin-1."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    if wide := utf16(head):
        return wide
    if head.isascii():
        return "utf-8"
    utf = gb = single = 0
    for line in head.split(b"\n")[:4000]:
        if line.isascii():
            continue
        if _is_utf8(line):
            utf += 1
        elif _is_gb(line):
            gb += 1
        elif _C1.search(line):
            utf += 1  # damaged: no Latin-1 text has control characters of the upper half
        else:
            single += 1
    if utf >= gb and utf >= single:
        return "utf-8"
    return "gb18030" if gb >= single else "latin-1"


def decode(line: bytes, encoding: str) -> str:
    """A line as text, never failing and never losing a byte's place among its neighbours: the file's encoding first, then UTF-8,
    GB18030 and Latin-1 for the stretches that do not fit."""
    if encoding.startswith("utf-16"):
        return line.decode(encoding, "replace").removeprefix("\ufeff")
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    order = ("utf-8", "gb18030")
    if name == "gb18030" and not _THREE.search(line):
        order = ("gb18030", "utf-8")  # a short Chinese word in GB18030 can happen to be sound UTF-8
    for one in order:
        if one == "utf-8" or one == name or _is_gb(line):
            try:
                return line.decode(one).removeprefix("\ufeff")
            except UnicodeDecodeError:
                pass
    if name == "latin-1" and not _C1.search(line):
        return line.decode("latin-1")
    out, last = [], 0
    for run in _HIGH_RUNS.finditer(line):
        out.append(line[last : run.start()].decode("ascii"))
        out.append(_stretch(run[0]))
        last = run.end()
    out.append(line[last:].decode("ascii"))
    return "".join(out)


def decode_all(head: bytes, encoding: str) -> str:
    """Several lines as text, each as `decode` reads it."""
    if encoding.startswith("utf-16"):
        return head[: len(head) & ~1].decode(encoding, "replace").removeprefix("\ufeff")
    if head.isascii():
        return head.decode("ascii")
    return "\n".join(line.decode("ascii") if line.isascii() else decode(line, encoding) for line in head.split(b"\n"))


def _stretch(run: bytes) -> str:
    """High bytes between ASCII ones: the first encoding that takes them all."""
    for name in ("utf-8", "gb18030") if len(run) > 1 else ():
        try:
            return run.decode(name)
        except UnicodeDecodeError:
            pass
    return run.decode("latin-1") if len(run) == 1 and run >= b"\xa0" else run.decode("utf-8", "replace")


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(line) - 3 and error.reason == "unexpected end of data"  # cut inside a character
    return True


def _is_gb(line: bytes) -> bool:
    """Whether the high bytes of a line come in pairs, as Chinese does, and not alone between letters, as Latin-1 does."""
    pairs = alone = 0
    for run in _HIGH_RUNS.finditer(_FOUR.sub(b"\xb0\xa1", line)):
        pairs += len(run[0]) // 2
        alone += len(run[0]) % 2
    if pairs <= alone:
        return False
    try:
        line.decode("gb18030")
    except UnicodeDecodeError as error:
        return error.start >= len(line) - 2
    return True
