"""What a run of bytes is, by its first bytes and never by its name."""

from __future__ import annotations

HEAD = 512
"""Bytes `detect` wants to see."""

COMPRESSED = frozenset(("gzip", "bzip2", "xz", "zstd"))
UNSUPPORTED = {"7z": "7-Zip", "rar": "RAR", "lz4": "LZ4", "compress": "compress (.Z)", "lzip": "lzip", "lzop": "lzop"}
"""Archives that are known but not read."""

_FIRST = frozenset(b"\x1f\x28\xfd7R\x04\x89BPL")


def detect(head: bytes) -> str:
    """The kind of archive that begins with `head`: a member of COMPRESSED or UNSUPPORTED, "tar", "zip"; "" for anything else."""
    if head and head[0] in _FIRST:
        found = _magic(head)
        if found:
            return found
    if head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50:  # a skippable frame
        return "zstd"
    if len(head) >= 512 and (head[257:263] in (b"ustar\0", b"ustar ") or is_tar(head)):  # with a damaged first header it is still one
        return "tar"
    return ""


def _magic(head: bytes) -> str:
    if head.startswith(b"\x1f\x8b\x08"):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zstd"
    if len(head) >= 5 and b"\xfd7zXZ\0".startswith(head[:6]):  # also one that was cut there
        return "xz"
    if head[:3] == b"BZh" and head[3:4].isdigit() and (b"1AY&SY".startswith(head[4:10]) or head[4:10] == b"\x17\x72\x45\x38\x50\x90"):
        return "bzip2"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08PK\x03\x04", b"PK00PK\x03\x04")):
        return "zip"
    if head.startswith(b"7z\xbc\xaf\x27\x1c"):
        return "7z"
    if head.startswith(b"Rar!\x1a\x07"):
        return "rar"
    if head.startswith(b"\x04\x22\x4d\x18"):
        return "lz4"
    if head.startswith((b"\x1f\x9d", b"\x1f\xa0")) and not head[:64].isascii():
        return "compress"
    if head.startswith(b"LZIP\x01"):
        return "lzip"
    if head.startswith(b"\x89LZO\0\r\n\x1a\n"):
        return "lzop"
    return ""


def is_tar(block: bytes) -> bool:
    """Whether a block of 512 bytes is a tar header: its checksum must hold."""
    field = block[148:156].strip(b"\0 ")
    if not field.isdigit() or not block[0] and block[257:262] != b"ustar":
        return False
    try:
        want = int(field, 8)
    except ValueError:
        return False
    return checksum_holds(block, want)


def checksum_holds(block: bytes, want: int) -> bool:
    """Unsigned as the standard says, or signed as some old tars wrote it."""
    total = sum(block) - sum(block[148:156]) + 256
    if total == want:
        return True
    return total - 256 * sum(byte > 127 for byte in block[:148] + block[156:]) == want
