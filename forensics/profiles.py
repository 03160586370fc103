"""Profiles of a bundle, gathered while it is read: each file goes to the reader of its layout, its rows into tables (profile_tables).

    profiles = Profiles(case_scratch)         # ingest hands every file of a kind in parsers.profile.TABLES to `take`
    tables = profiles.finish(found)           # the tables as rules ask them, or None where the bundle has no profile

Files are streamed: memory does not grow with them. The database lies in the scratch folder of the case until it becomes the case's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forensics import profile_settle
from forensics.feed import File, Source
from forensics.origin import of_path
from forensics.profile_load import Loader
from forensics.result import Note
from forensics.transcode import Lines
from parsers import metrics_text, profile_json
from parsers.profile import shape
from rules.model import FactRow, MetricRow

if TYPE_CHECKING:
    from forensics.ingest import Scan
    from rules.query import Tables

SMALL = 256 << 20
"""Bytes up to which a JSON file is read as a whole."""
METRICS = 400_000
"""Samples of serving metrics kept."""
_ROOT = re.compile(r"(?:^|/)([^/]+_ascend_(?:pt|ms)|PROF_\d{3,}[^/]*|cluster_analysis_output)(?=/)")
_INNER = re.compile(r"/?(?:ASCEND_PROFILER_OUTPUT|mindstudio_profiler_output|analyze|device_\d+|host)(?:/.*)?\Z")
_NAMED_RANK = re.compile(r"profiler_info_(\d{1,6})\.json\Z|profiler_(\d{1,6})\.db\Z")


class Profile(msgspec.Struct):
    """One capture of one process."""

    number: int
    path: str
    node: str
    rank: int | None = None
    device: int | None = None
    tool: str = ""
    info: profile_json.Info = msgspec.field(default_factory=profile_json.Info)
    peers: str = ""
    chip: profile_json.Device = msgspec.field(default_factory=profile_json.Device)
    named: int | None = None
    """Rank as a file name states it."""


class Profiles:
    """Takes files as they come, in the order of the bundle."""

    def __init__(self, scratch: Callable[[], Path]) -> None:
        self.loader = Loader(scratch)
        self.profiles: dict[str, Profile] = {}
        self.facts: list[FactRow] = []
        self.metrics: list[MetricRow] = []
        self.notes: dict[int, Note] = {}
        """File -> what could not be read of it."""
        self.left_out = 0

    def profile(self, path: str) -> Profile:
        """The capture that a file belongs to."""
        root = root_of(path)
        if root not in self.profiles:
            self.profiles[root] = Profile(len(self.profiles), root, of_path(path).node, tool=_tool(root))
        return self.profiles[root]

    # ------------------------------------------------------------ one file

    def take(self, file: File, source: Source, head: bytes) -> None:
        """Read one file to its end. `head`: what was read of it before; sets the sizes of `file`."""
        reader = _Input(source, head, file.encoding)
        try:
            self._read(file, reader)
        except Exception as error:
            self.loader.report(error)
            raise
        finally:
            reader.drain()
            file.bytes, file.lines = reader.raw_bytes, reader.lines

    def _read(self, file: File, reader: _Input) -> None:
        if file.kind == "profile-db":
            self._database(file, reader)
        elif file.kind == "metrics":
            self._scrape(file, reader)
        else:
            self._profile(file, reader)

    def _profile(self, file: File, reader: _Input) -> None:
        text = reader.head.decode("utf-8", "replace")
        what = shape(text)
        if what == "table":
            self._table(file, reader)
        elif what == "trace":
            self._trace(file, reader)
        else:
            self._json(file, reader, profile_json.kind(text))

    def _table(self, file: File, reader: _Input) -> None:
        from parsers.profile_csv import open_table

        table = open_table(reader.read, reader.head)
        if table is None:
            return
        profile = self.profile(file.path)
        core = "COMMUNICATION" if "communication_statistic" in file.path.rpartition("/")[2] else ""
        self.loader.table(file, profile.number, table, core)
        if table.problem or table.bad_rows:
            self._remark(
                file,
                f"{table.bad_rows} rows with a wrong number of cells were left out" if table.bad_rows else f"reading stopped: {table.problem}",
                f"{table.bad_rows} 行列数不符，未计入" if table.bad_rows else f"读取中止：{table.problem}",
            )
        self.loader.file(file, profile.number, table.layout.name, table.rows, table.bad_rows, "damaged" if table.problem else "read")

    def _trace(self, file: File, reader: _Input) -> None:
        profile = self.profile(file.path)
        end, lost, left_out = self.loader.trace(file, profile.number, reader.read)
        if end != "whole":
            english = "the file ends in the middle: what stands in it was read" if end == "cut" else f"{lost} places could not be read"
            chinese = "文件不完整，已读取其中的全部事件" if end == "cut" else f"{lost} 处无法读取"
            self._remark(file, english, chinese)
            self.loader.note(file.file_id, profile.number, "trace-cut" if end == "cut" else "trace-damaged", english, chinese)
        if left_out:
            self._remark(file, f"{left_out} further events were only counted", f"另有 {left_out} 个事件仅计数")

    def _json(self, file: File, reader: _Input, kind: str) -> None:
        data = reader.all(SMALL)
        if data is None:
            self._remark(file, f"it is larger than {SMALL >> 20} MB and was not read", f"超过 {SMALL >> 20} MB，未读取")
            return
        try:
            rows = self._document(file, data, kind)
        except ValueError as error:
            profile = self.profile(file.path)
            self._remark(file, f"it is no whole JSON: {error}", f"不是完整的 JSON：{error}")
            self.loader.note(file.file_id, profile.number, "json-damaged", str(error), str(error))
            self.loader.file(file, profile.number, kind, 0, 0, "damaged")
        else:
            if kind != "bench":
                self.loader.file(file, self.profile(file.path).number, kind, rows, 0, "read")

    def _document(self, file: File, data: bytes, kind: str) -> int:
        if kind == "bench":
            found = profile_json.bench(data)
            node = of_path(file.path).node
            self._metrics(MetricRow(f"bench.{name}", value, "", node, None, None, "", file.file_id, file.path, line) for name, value, line in found)
            return len(found)
        profile = self.profile(file.path)
        if kind == "profiler_info":
            profile.info = profile_json.info(data)
            if named := _NAMED_RANK.search(file.path):
                profile.named = int(named[1])
            for name, value in (("cann.version", profile.info.cann), ("torch_npu.version", profile.info.torch_npu)):
                if value:
                    self._fact(file, name, value, 1, f"{name.partition('.')[0]}_version = {value}")
            return 1
        if kind == "profiler_metadata":
            told = profile_json.metadata(data)
            profile.peers = told.peers
            for name, value, line in told.variables:
                self._fact(file, f"env.{name}", value, line, f"ENV_VARIABLES: {name}={value}")
            return len(told.variables)
        if kind == "device_info":
            profile.chip = profile_json.device_info(data)
            return 1
        if kind == "communication":
            return self.loader.communication(file, profile.number, profile_json.communication(data))
        return self.loader.matrix(file, profile.number, profile_json.matrix(data))

    def _scrape(self, file: File, reader: _Input) -> None:
        moment = metrics_text.scraped(file.path)
        if moment is None and file.mtime:
            moment = round(file.mtime * 1_000_000)
        origin = of_path(file.path)
        self._metrics(
            MetricRow(one.name, one.value, "", origin.node, origin.device, one.ts, one.label, file.file_id, file.path, one.line_no)
            for one in metrics_text.samples(reader.text_lines(), moment)
        )

    def _database(self, file: File, reader: _Input) -> None:
        from parsers.profile_db import Database

        copy = self.loader.scratch() / "profile-copy.db"
        with copy.open("wb") as stream:
            while piece := reader.read(1 << 20):
                stream.write(piece)
        profile = self.profile(file.path)
        try:
            with Database(str(copy)) as base:
                rows = self.loader.database(file, profile.number, base)
                if base.rank is not None and profile.info.rank is None:
                    profile.info.rank = base.rank
                profile.device = base.device if profile.device is None else profile.device
                if base.soc:
                    self._fact(file, "soc", base.soc, 0, f"NPU_INFO: {base.soc}")
                for name, value in base.variables:
                    self._fact(file, f"env.{name}", value, 0, f"META_DATA ENV_VARIABLES: {name}={value}")
                problems = list(base.problems)
            if named := _NAMED_RANK.search(file.path):
                profile.named = int(named[2])
            if problems:
                self._remark(file, "; ".join(problems[:3]), "；".join(problems[:3]))
            self.loader.file(file, profile.number, "database", rows, 0, "damaged" if problems else "read")
        except ValueError as error:
            self._remark(file, f"the database cannot be read: {error}", f"数据库无法读取：{error}")
            self.loader.note(file.file_id, profile.number, "database-damaged", str(error), str(error))
        finally:
            copy.unlink(missing_ok=True)
            reader.lines = 0

    # ------------------------------------------------------------ the end

    def finish(self, found: Scan) -> Tables | None:
        """Facts and numbers go to `found`, remarks to its members; the tables, complete, or None where there is nothing to ask them."""
        known = {(fact.name, fact.value, fact.node) for fact in found.facts}
        found.facts += [fact for fact in self.facts if (fact.name, fact.value, fact.node) not in known]
        found.metrics += self.metrics
        for member in found.files:
            if (note := self.notes.get(member.file_id)) is not None:
                member.note, member.note_zh = _joined(member.note, note.en, "; "), _joined(member.note_zh, note.zh, "；")
        if self.left_out:
            found.notes.append(Note(f"{self.left_out} samples of serving metrics were left out.", f"另有 {self.left_out} 条服务指标未保存。"))
        try:
            return self._settled(found)
        except Exception as error:
            self.loader.report(error)
            raise

    def _settled(self, found: Scan) -> Tables | None:
        profile_settle.raw(self, found.files)
        if not self.profiles and not any(row.name.startswith(("service.", "bench.")) for row in found.metrics):
            return None
        return profile_settle.settled(self, found)

    def close(self) -> None:
        self.loader.close()

    # ------------------------------------------------------------ parts

    def _metrics(self, rows: Iterable[MetricRow]) -> None:
        for row in rows:
            if len(self.metrics) >= METRICS:
                self.left_out += 1
            else:
                self.metrics.append(row)

    def _fact(self, file: File, name: str, value: str, line: int, text: str) -> None:
        self.facts.append(FactRow(name, value, of_path(file.path).node, None, file.file_id, file.path, line, text[:500]))

    def _remark(self, file: File, english: str, chinese: str) -> None:
        known = self.notes.get(file.file_id)
        self.notes[file.file_id] = Note(_joined(known.en, english, "; "), _joined(known.zh, chinese, "；")) if known else Note(english, chinese)


def root_of(path: str) -> str:
    """The folder of the capture that a file belongs to; without one of the usual names, the folder the file lies in."""
    if found := _ROOT.search(path):
        return path[: found.end(1)]
    return _INNER.sub("", path.rpartition("/")[0]) or "."


def _tool(root: str) -> str:
    name = root.rpartition("/")[2]
    if name.endswith("_ascend_ms"):
        return "mindspore"
    return "torch_npu" if name.endswith("_ascend_pt") else "msprof" if name.startswith("PROF_") else "cluster" if name.startswith("cluster_") else ""


def _joined(old: str, new: str, between: str) -> str:
    return f"{old}{between}{new}" if old else new


class _Input:
    """A file as its readers see it: from the first byte, as UTF-8, with what was read of it counted."""

    def __init__(self, source: Source, head: bytes, encoding: str) -> None:
        self.raw_bytes = len(head)
        self.lines = 0
        self._open_end = False
        self._source: Source = source
        self._turned: Lines | None = None
        if encoding not in ("utf-8", "utf-8-sig") and head and encoding:
            self._turned = Lines(source, head, encoding)
            self._source, head = self._turned, b""
        self._scratch = memoryview(bytearray(1 << 20))
        self._head = head or self._some()
        self.head = self._head[:16384]
        self._count(head)

    def _count(self, piece: bytes) -> None:
        if piece:
            self.lines += piece.count(b"\n") + (0 if piece.endswith(b"\n") else 1) - self._open_end
            self._open_end = not piece.endswith(b"\n")

    def _some(self, limit: int = 1 << 20) -> bytes:
        count = self._source.readinto(self._scratch[:limit])
        piece = bytes(self._scratch[:count])
        if self._turned is None:
            self.raw_bytes += count
        else:
            self.raw_bytes = self._turned.bytes_read
        self._count(piece)
        return piece

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, as many as there are; empty at the end."""
        parts = [self._head[:size]]
        self._head = self._head[size:]
        left = size - len(parts[0])
        while left > 0 and (piece := self._some(min(left, 1 << 20))):
            parts.append(piece)
            left -= len(piece)
        return b"".join(parts)

    def all(self, limit: int) -> bytes | None:
        """The whole file; None where it is larger."""
        data = self.read(limit + 1)
        return data if len(data) <= limit else None

    def text_lines(self) -> Iterable[str]:
        rest = b""
        while piece := self.read(1 << 20):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace").rstrip("\r")
            if len(rest) > 4 << 20:
                rest = b""  # no line of a scrape is as long as that
        if rest:
            yield rest.decode("utf-8", "replace")

    def drain(self) -> None:
        self._head = b""
        while self._some():
            pass
