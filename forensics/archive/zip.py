"""zip: by its central directory, and by the local headers where that is damaged.

Entries are read in the order in which they lie in the file. Entries that share bytes with an earlier one (overlap bombs) are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from forensics.archive.compress import Checked, Decoder
from forensics.archive.ledger import Ledger, human, human_zh
from forensics.archive.names import Place, decode, visible
from forensics.archive.stream import Blob, BlobStream, Stream
from forensics.archive.tar import Entry
from forensics.archive.zip_directory import LOCAL, Directory, Header, find_directory, search

_METHODS = {8: "deflate", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}


class Zip:
    """The entries of one zip. `used` is told of packed bytes as they are read."""

    def __init__(self, blob: Blob, path: str, ledger: Ledger, place: Place, used: Callable[[int], None]) -> None:
        self._blob, self._path, self._ledger, self._place, self._used = blob, path, ledger, place, used

    def entries(self) -> Iterator[Entry]:
        directory = find_directory(self._blob)
        if directory is None:
            self._ledger.lose(
                self._path,
                "damaged",
                "the zip's directory is missing or damaged: its entries were looked for by their own headers",
                "zip 中央目录缺失或损坏：已按各条目自身的头部查找",
            )
            yield from self._by_local_headers()
            return
        if directory.promised != len(directory.order) & 0xFFFF and directory.promised != len(directory.order):
            self._ledger.lose(
                self._path,
                "damaged",
                f"the zip says it has {directory.promised} entries, its directory names {len(directory.order)}",
                f"zip 标称有 {directory.promised} 个条目，目录中仅有 {len(directory.order)} 个",
            )
        missing, before = 0, -1
        for index, header in enumerate(directory.headers()):
            self._ledger.member()
            name = header.text()
            if name.endswith("/") and not header.size:
                continue
            start = self._data_begins(header, directory.shift)
            if start is None:
                missing += 1
                continue
            if header.offset == before:
                self._skipped(
                    name,
                    "limit: the entry shares its bytes with another one (overlap bomb) and was not read",
                    "达到上限：该条目与其他条目共用数据（重叠炸弹），未读取",
                    header.size,
                )
                continue
            before = header.offset
            found = self._entry(header, name, start, max(header.offset + directory.room(index), start), self._used)
            if found:
                yield found[0]
        if missing:
            self._ledger.lose(
                self._path,
                "damaged",
                f"{missing} of {len(directory.order)} entries are not where the zip's directory says: they were looked for by their own headers",
                f"{len(directory.order)} 个条目中有 {missing} 个不在 zip 目录所指的位置：已按各条目自身的头部查找",
            )
            yield from self._by_local_headers(directory)

    def _data_begins(self, header: Header, shift: int) -> int | None:
        """Where the packed bytes begin, and the local header (`header.offset`); None where there is no header in either place it may be."""
        for offset in {header.offset, header.offset - shift}:
            local = self._blob.read(offset, LOCAL.size)
            if len(local) == LOCAL.size and local[:4] == b"PK\x03\x04":
                header.offset = offset
                return offset + LOCAL.size + int(sum(LOCAL.unpack(local)[9:11]))
        return None

    def _by_local_headers(self, directory: Directory | None = None) -> Iterator[Entry]:
        """Entry by entry from the front, without those the directory led to; where sizes are missing, the data's own end mark tells."""
        at, paid_to, descriptor = 0, 0, 0
        read: dict[int, int] = {}
        for known in directory.headers() if directory else ():
            begin = self._data_begins(known, directory.shift if directory else 0)
            if begin is not None:
                read[known.offset] = begin + known.packed
        while (at := search(self._blob, b"PK\x03\x04", at)) >= 0:
            if at in read:
                at = max(read.pop(at), at + 4)
                continue
            fields = self._blob.read(at, LOCAL.size)
            if len(fields) < LOCAL.size:
                return
            _, _, flags, method, stamp_time, stamp_date, crc, packed, size, n_name, n_extra = LOCAL.unpack(fields)
            if not 0 < n_name <= 4096 or method > 99:
                at += 4
                continue
            self._ledger.member()
            start = at + LOCAL.size + n_name + n_extra
            names = self._blob.read(at + LOCAL.size, n_name + n_extra)
            streamed = bool(flags & 8) and not packed
            if streamed and method == 0:
                if 0 <= descriptor < start:
                    descriptor = search(self._blob, b"PK\x07\x08", start)
                packed = size = (descriptor if descriptor >= 0 else self._blob.size) - start
            elif streamed:
                packed = max(self._blob.size - start, 0)
            elif method == 0 and self._blob.read(start + packed, 2) not in (b"PK", b""):  # the size is not to be trusted
                following = search(self._blob, b"PK\x03\x04", start)
                packed = (following if following >= 0 else self._blob.size) - start
            stamp = stamp_date << 16 | stamp_time
            header = Header(
                names[:n_name], flags, method, stamp, None if streamed else crc, packed, None if streamed and method else size, names[n_name:]
            )
            name = header.text()
            used = self._used if start >= paid_to else lambda count: None
            end = start
            if not name.endswith("/"):
                found = self._entry(header, name, start, self._blob.size, used)
                if found:
                    entry, decoder = found
                    yield entry
                    end = start + header.packed
                    if decoder:
                        end = start if decoder.damaged else start + decoder.used
                    paid_to = max(paid_to, min(end, self._blob.size))
            at = max(end, start)

    # ------------------------------------------------------------ one entry

    def _entry(self, header: Header, name: str, start: int, stop: int, used: Callable[[int], None]) -> tuple[Entry, Decoder | None] | None:
        """The entry whose packed bytes begin at `start` and lie before `stop`, with its decoder; None where it is not read."""
        if header.system == 3 and header.attributes >> 28 == 0o12:
            target = visible(decode(self._blob.read(start, min(header.packed, 200)))) if header.method == 0 else ""
            self._ledger.lose(
                self._place.show(name),
                "skipped",
                f"symbolic link to {target}, never followed" if target else "symbolic link, never followed",
                f"指向 {target} 的符号链接，不会跟随" if target else "符号链接，不会跟随",
                partial=False,
            )
            return None
        if header.flags & 0x2041:
            self._skipped(
                name, "encrypted: unpack it with its password and give the folder", "已加密：请先用密码解压，再以文件夹形式输入", header.size
            )
            return None
        if header.method and header.method not in _METHODS:
            title = "Deflate64" if header.method == 9 else f"number {header.method}"
            self._skipped(name, f"packed by a method that is not read ({title})", f"压缩方法（{title}）不受支持", header.size)
            return None
        path = self._place.claim(name)
        there = min(header.packed, max(min(stop, self._blob.size) - start, 0))
        stream: Stream = BlobStream(self._blob, start, there, used)
        decoder = None
        if header.method:
            stream = decoder = Decoder(stream, _METHODS[header.method], path, self._ledger, single=True, size=header.size)
        elif there < header.packed:
            self._ledger.lose(
                path,
                "damaged",
                f"cut off: {human(there)} of {human(header.packed)} are there",
                f"被截断：共 {human_zh(header.packed)}，仅有 {human_zh(there)}",
                header.packed - there,
            )
        packed = stream

        def wrong(got: int, checksum: bool) -> None:
            if packed.damaged or not header.method and there < header.packed:
                return  # said already
            if checksum:
                note, zh = (
                    f"the checksum is wrong: {human(got)} were read but may hold wrong bytes",
                    f"校验和不符：已读取 {human_zh(got)}，其中可能有错误字节",
                )
            else:
                note, zh = f"{got} bytes were found where the zip says {header.size}", f"实际 {got} 字节，zip 标称 {header.size} 字节"
            self._ledger.lose(path, "damaged", note, zh, (header.size or 0) - got)

        return Entry(path, Checked(stream, header.size, header.crc, wrong), header.size, header.mtime), decoder

    def _skipped(self, name: str, note: str, note_zh: str, size: int | None) -> None:
        self._ledger.lose(self._place.show(name), "skipped", note, note_zh, size or 0)
