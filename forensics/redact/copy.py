"""A bundle in, an archive of the same members out, with who and where replaced.

What lay in archives inside the bundle lies in folders of their names; what was compressed is not. Members that are no text cannot be
checked, and are left out. `redaction.json` in the copy says what was done, and holds nothing of what was replaced.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from forensics import transcode
from forensics.archive.ledger import Lost
from forensics.bundle import Bundle, Limits, Member
from forensics.errors import CaseError, ForensicsError, UsageError
from forensics.origin import of_path
from forensics.redact.engine import Learner, Redactor, Seen
from forensics.redact.names import Names
from forensics.safe_text import safe
from forensics.several import Several
from parsers import registry

BLOCK = 4 << 20
HEAD = 64 << 10
LONGEST = 8 << 20
"""Of a line that has not ended by then its first HEAD bytes are kept: what follows could not be searched as a whole."""
HELD = 32 << 20
"""A redacted member up to this size waits in memory for its place in the archive; a larger one in the scratch folder."""
MANIFEST = "redaction.json"
SCHEMA = "dsforensics.redaction/1"
_PACKED = re.compile(r"\.(?:gz|zst|xz|bz2)(?= \(\d+\)$|$)", re.IGNORECASE)

OnProgress = Callable[[str, int, int, str], None]
"""(stage, bytes of the input done, bytes in all, member at hand); stage: learn or write."""


class LeftOut(msgspec.Struct):
    """A member, or a part of one, that is not in the copy."""

    path: str
    reason: str
    reason_zh: str
    lost: bool
    """Whether it could not be read, rather than not be checked."""


class Copied(msgspec.Struct):
    """What came of a run."""

    target: str
    members: int
    bytes: int
    """Of the members, before compression."""
    counts: dict[str, int]
    left_out: list[LeftOut]
    seen: list[Seen]
    """What was replaced by what, where that was asked for."""


class OutputFailed(ForensicsError):
    """The copy could not be written."""

    status = 3


def target_of(source: str, out: str | None) -> Path:
    """Where the copy goes: the name given, or the bundle's own with `.redacted.tar.zst`. Raises UsageError for an ending that is none."""
    if out is None:
        name = "stdin" if source == "-" else os.path.basename(os.path.abspath(source)) or "root"
        while (stem := re.sub(r"\.(?:tar|tgz|tbz2|txz|zip|gz|bz2|xz|zst)$", "", name, flags=re.IGNORECASE)) not in (name, ""):
            name = stem
        return Path(f"{name}.redacted.tar.zst")
    if not out.lower().endswith((".tar.zst", ".tar.gz", ".tgz", ".tar")):
        raise UsageError(f"-o wants a name that ends in .tar.zst, .tar.gz or .tar; found {safe(out)!r}.")
    return Path(out)


def learn(bundle: Bundle | Several, learner: Learner, on_progress: OnProgress | None = None) -> None:
    """First reading of a bundle: what names there are."""
    for member in bundle.members():
        if on_progress is not None:
            on_progress("learn", bundle.compressed_read, bundle.size, member.path)
        learner.read_path(member.path)
        if node := of_path(member.path).node:
            learner.node(node)
        reader = Reader(member)
        for block in reader.blocks():
            learner.read(block)
            if on_progress is not None:
                on_progress("learn", bundle.compressed_read, bundle.size, member.path)


def copy(
    source: str, target: Path | None, key: bytes, *, limits: Limits | None = None, protected: frozenset[str] = frozenset(), force: bool = False,
    listing: bool = False, on_progress: OnProgress | None = None,
) -> Copied:
    """Write the redacted copy of the bundle at `source` to `target`; without a target, only find out what would be replaced.

    The copy appears under its name when it is whole, or not at all. Raises ForensicsError: UsageError, UnreadableBundle, OutputFailed."""
    if target is not None and target.exists() and not force:
        raise UsageError(f"{safe(str(target))} is there already: choose another name with -o, or replace it with --force.")
    if target is not None and source != "-" and os.path.isdir(source) and Path(os.path.abspath(source)) in Path(os.path.abspath(target)).parents:
        raise UsageError(f"{safe(str(target))} would lie inside the bundle itself: choose a place outside it with -o.")
    place = target.parent if target is not None else Path(tempfile.gettempdir())
    try:
        scratch = Path(tempfile.mkdtemp(prefix=".dsforensics-redact-", dir=place))
    except OSError as error:
        raise OutputFailed(f"Nothing can be written to {safe(str(place))}: {error.strerror or error}. Choose another place with -o.") from error
    bundles: list[Bundle] = []
    try:
        bundles.append(Bundle(source, limits, scratch))
        learner = Learner(protected)
        learn(bundles[0], learner, on_progress)
        bundles.append(bundles[0].reopen())
        redactor = Redactor(Names(key), learner.learned, listing)
        if target is None:
            return _copied(bundles[1], redactor, None, scratch, "", on_progress)
        half = scratch / "copy"
        with _archive(half, target.name) as archive:
            done = _copied(bundles[1], redactor, archive, scratch, str(target), on_progress)
        os.chmod(half, 0o666 & ~_umask())
        os.replace(half, target)
        return done
    except CaseError as error:
        raise OutputFailed(str(error)) from error
    except OSError as error:
        raise OutputFailed(f"The copy could not be written: {error.strerror or error}. Make room, or choose another place with -o.") from error
    finally:
        for bundle in bundles:
            bundle.close()
        shutil.rmtree(scratch, ignore_errors=True)


def _copied(
    bundle: Bundle, redactor: Redactor, archive: tarfile.TarFile | None, scratch: Path, target: str, on_progress: OnProgress | None
) -> Copied:
    left_out: list[LeftOut] = []
    taken = {MANIFEST}
    members = total = 0
    for member in bundle.members():
        shown = redactor.text(_PACKED.sub("", member.path))
        reader = Reader(member)
        redactor.begin()
        with tempfile.SpooledTemporaryFile(max_size=HELD, dir=str(scratch)) as held:
            line = 0
            for block in reader.blocks():
                held.write(redactor.lines(block, member.path, line))
                if redactor.seen is not None:
                    line += block.count(b"\n")
                if on_progress is not None:
                    on_progress("write", bundle.compressed_read, bundle.size, member.path)
            if reader.binary:
                left_out.append(LeftOut(shown, "no text: what it holds cannot be checked", "非文本，其内容无法检查", False))
                continue
            if reader.cut:
                left_out.append(
                    LeftOut(shown, f"{reader.cut} lines longer than 8 MB: their begin was kept", f"{reader.cut} 行超过 8 MB，仅保留开头", False)
                )
            size = held.tell()
            held.seek(0)
            if archive is not None:
                _add(archive, _free(shown, taken), cast(IO[bytes], held), size, member.mtime)
            members, total = members + 1, total + size
    for lost in bundle.lost:
        left_out.append(_lost(lost, redactor))
    done = Copied(target, members, total, dict(sorted(redactor.counts.items())), left_out, _list(redactor))
    if archive is not None:
        raw = _manifest(done)
        _add(archive, MANIFEST, io.BytesIO(raw), len(raw), None)
    return done


class Reader:
    """A member as blocks of whole UTF-8 lines; nothing of one that is no text."""

    def __init__(self, member: Member):
        self._member = member
        self.binary = False
        self.cut = 0

    def blocks(self) -> Iterator[bytes]:
        head = _read(self._member, HEAD)
        seen = registry.classify(self._member.path, head)
        if seen.kind == "binary" and not head.startswith(b"{"):  # a report or manifest is none for a triage, but text
            self.binary = True
            return
        form = transcode.form(seen.encoding, head)
        source: transcode.Source = self._member
        waiting = head
        if form in transcode.WIDE:
            source, waiting = transcode.Lines(self._member, head, form), b""
        while piece := _read(source, BLOCK):
            waiting += piece
            end = waiting.rfind(b"\n") + 1
            if not end and form == "cr":
                end = waiting.rfind(b"\r") + 1
            if end:
                yield waiting[:end]
                waiting = waiting[end:]
            elif len(waiting) > LONGEST:
                self.cut += 1
                yield waiting[:HEAD] + b" ...\n"
                waiting = self._behind(source)
        if waiting:
            yield waiting

    @staticmethod
    def _behind(source: transcode.Source) -> bytes:
        """What follows the end of the line at hand."""
        while piece := _read(source, BLOCK):
            at = piece.find(b"\n") + 1
            if at:
                return piece[at:]
        return b""


def _read(source: transcode.Source, size: int) -> bytes:
    """`size` bytes, fewer at the end only."""
    view = memoryview(bytearray(size))
    have = 0
    while have < size and (count := source.readinto(view[have:])):
        have += count
    return bytes(view[:have])


# ---------------------------------------------------------------- the archive


@contextlib.contextmanager
def _archive(path: Path, name: str) -> Iterator[tarfile.TarFile]:
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(open(path, "wb"))
        stream: Any = raw
        if name.lower().endswith(".zst"):
            import zstandard

            stream = stack.enter_context(zstandard.ZstdCompressor(level=3).stream_writer(raw, closefd=False))
        elif name.lower().endswith(("gz",)):
            stream = stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
        yield stack.enter_context(tarfile.open(mode="w|", fileobj=stream, format=tarfile.PAX_FORMAT, encoding="utf-8"))


def _add(archive: tarfile.TarFile, path: str, stream: IO[bytes], size: int, mtime: float | None) -> None:
    """One member, owned by nobody: the owner of the original is a name too."""
    info = tarfile.TarInfo(path.encode("utf-8", "replace").decode())
    info.size, info.mtime, info.mode = size, int(mtime or 0), 0o644
    archive.addfile(info, stream)


def _free(path: str, taken: set[str]) -> str:
    """The path, with a number where another member was given it."""
    free, number = path, 2
    while free in taken:
        stem, dot, ending = path.rpartition(".")
        free = f"{stem}-{number}.{ending}" if dot and "/" not in ending else f"{path}-{number}"
        number += 1
    taken.add(free)
    return free


def _lost(lost: Lost, redactor: Redactor) -> LeftOut:
    return LeftOut(redactor.text(lost.path), redactor.text(lost.note), redactor.text(lost.note_zh), lost.partial)


def _list(redactor: Redactor) -> list[Seen]:
    return sorted((redactor.seen or {}).values(), key=lambda one: (one.kind, -one.count, one.value))


def _manifest(done: Copied) -> bytes:
    from forensics.doctor import own_version

    value = {
        "schema": SCHEMA,
        "tool": own_version(),
        "members": done.members,
        "replaced": done.counts,
        "left_out": [{"path": one.path, "reason": one.reason} for one in done.left_out],
        "remark": "Pseudonyms are keyed; the key is not in this archive.",
    }
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
