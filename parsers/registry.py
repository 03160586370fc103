"""All parsers, and which of them a member belongs to: by what stands in it first, by its path only in doubt.

>>> classify("x.txt", b"[ERROR] RUNTIME(7,main):2025-10-14-06:12:40.118.362 [api.cc:1]7 rtMalloc:out of memory\\n").kind
'plog'
>>> classify("plog/plog-7_20251014061240118.log", b"\\x7fELF\\x02\\x01\\x01").kind
'binary'
>>> classify("notes.txt", "设备心跳丢失\\n".encode("gbk"))
Classified(kind='text', encoding='gb18030')
"""

from __future__ import annotations

import functools
import re

import msgspec

from parsers import encoding, prefix
from parsers.base import Parser, clean
from parsers.bbox import BboxParser
from parsers.bmc import BmcParser
from parsers.cluster import ClusterParser
from parsers.console import ConsoleParser
from parsers.device_app import DeviceAppParser
from parsers.device_log import DeviceOsParser
from parsers.environment import EnvironmentParser
from parsers.error_block import ErrorBlockParser
from parsers.firmware import FirmwareParser
from parsers.hccn_tool import HccnToolParser
from parsers.kernel_log import KernelParser
from parsers.metrics_text import MetricsParser
from parsers.mindie import MindieParser
from parsers.mindspore import MindsporeParser
from parsers.npu_smi import NpuSmiParser
from parsers.plog import UNSURE, PlogParser
from parsers.profile import TABLES, ProfileDatabaseParser, ProfileParser, RawProfileParser, is_database
from parsers.rows import Document
from parsers.text import TextParser

HEAD = 16 << 10
"""Bytes of a member that are looked at; more are not needed."""

PARSERS: tuple[Parser, ...] = (
    PlogParser(),
    DeviceAppParser(),
    DeviceOsParser(),
    FirmwareParser(),
    BboxParser(),
    KernelParser(),
    MindieParser(),
    MindsporeParser(),
    ErrorBlockParser(),
    ConsoleParser(),
    NpuSmiParser(),
    HccnToolParser(),
    EnvironmentParser(),
    ClusterParser(),
    BmcParser(),
    ProfileParser(),
    ProfileDatabaseParser(),
    RawProfileParser(),
    MetricsParser(),
    TextParser(),
)
"""Of equal claims the earlier parser wins."""


class Classified(msgspec.Struct, frozen=True):
    """What a member is. `kind` is "binary" for what is no text; it has no parser."""

    kind: str
    encoding: str = "utf-8"

    @property
    def parser(self) -> Parser | None:
        return None if self.kind == "binary" else parser(self.kind)


@functools.cache
def _by_kind() -> dict[str, Parser]:
    return {one.kind: one for one in PARSERS}


def parser(kind: str) -> Parser:
    """The parser of a source kind; KeyError for an unknown one."""
    return _by_kind()[kind]


def classify(path: str, head: bytes) -> Classified:
    """Kind and encoding of a member, from its path in the bundle and its first kilobytes (`HEAD` of them suffice)."""
    head = head[:HEAD]
    if len(head) > SHORT:
        return _classified(path, head)
    # a bundle may hold a hundred thousand small files that differ in nothing but their numbers
    shape = path.translate(_FOLD), head.translate(_FOLD_BYTES)
    known = _known.get(shape)
    if known is None:
        if len(_known) >= SHAPES:
            _known.clear()
        known = _known[shape] = _classified(path, head)
    return known


SHORT = 2 << 10
"""A member up to this size is judged once for all members that look like it."""
SHAPES = 4000
_known: dict[tuple[str, bytes], Classified] = {}
_OWN = b'{\n  "schema": "dsforensics.'
_FOLD = str.maketrans("123456789", "000000000")
_FOLD_BYTES = bytes.maketrans(b"123456789", b"000000000")


def _classified(path: str, head: bytes) -> Classified:
    if is_database(path, head):
        return Classified("profile-db")
    if encoding.is_binary(head) or head.startswith(_OWN):  # a report or manifest of ours quotes lines of logs, and is none
        return Classified("binary")
    coding = encoding.detect(head)
    text = encoding.decode_all(head, coding)
    kind, best = "text", 0
    for version in _versions(text):
        for one in PARSERS:
            claim = one.claims(path, version)
            if claim > best:
                kind, best = one.kind, claim
    if kind == "plog" and best <= UNSURE:
        kind = "console"  # whose parser reads CANN's records as well
    return Classified(kind, coding)


def _versions(text: str) -> list[str]:
    """The head as it stands, and without the prefixes that a transport put before its lines, where it has such."""
    lines = [clean(line) for line in _LINE_END.split(text)[:200]]
    if len(lines) > 1 and len(text) >= HEAD // 4:
        lines.pop()  # cut in its middle
    peeled = [seen.rest if (seen := prefix.peel(line[:4000])) is not None else line for line in lines]
    return ["\n".join(lines)] if peeled == lines else ["\n".join(lines), "\n".join(peeled)]


_LINE_END = re.compile(r"\r*\n|\r(?=\[)")


def extract(text: str, kind: str) -> Document:
    """Facts and numbers of a whole text, whatever its kind: people paste npu-smi tables and version lists into any file.

    What several extractors find on one line is kept once; line numbers count from 1, at `\\n` only.
    """
    out = Document()
    if kind == "binary" or kind in TABLES:
        return out
    for one in PARSERS:
        if "extract" in type(one).__dict__:
            found = one.extract(text)
            out.facts += found.facts
            out.metrics += found.metrics
    return Document(list(dict.fromkeys(out.facts)), list(dict.fromkeys(out.metrics)))
