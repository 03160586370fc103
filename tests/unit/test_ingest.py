"""The first pass finds every line that a rule names, with its place, its record's head and its time in UTC."""

from __future__ import annotations

import msgspec
import pytest

from forensics import ingest
from forensics.archive.ledger import Lost
from forensics.feed import Block, Task
from forensics.ingest import EXTRA, FEW, PER_FILE, Scan, scan
from forensics.scan_worker import ScanWork, Seen
from rules.model import Leaf, Rule, RuleSet, Text
from rules.scan import KEEP, Scanner
from tests.unit.members import Texts, plog


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    leaves = (
        Leaf("timeout", contains=("link timeout",)),
        Leaf("code", regex=r"error code is (?P<code>\d+)"),
        Leaf("chinese", contains=("心跳丢失",)),
    )
    rules = tuple(Rule(f"test.{leaf.id}", "x", Text("a", "b"), "runtime", "error", leaf) for leaf in leaves)
    return Scanner.load(RuleSet((), rules), EXTRA)


def scanned(scanner: Scanner, files: dict[str, bytes], workers: int = 1) -> Scan:
    return scan(Texts(files), scanner, workers)


def test_a_hit_carries_its_line_and_the_head_of_its_record(scanner: Scanner) -> None:
    text = plog("start") + plog("bad, device_id=3", 65, "ERROR", 838) + "  reason: link timeout\n" + plog("end", 70)
    found = scanned(scanner, {"node-2/plog/plog-838_20250904090000000.log": text.encode()})
    (hit,) = found.hits
    assert (hit.line_no, hit.text, text.encode()[hit.byte_offset :].split(b"\n")[0].decode()) == (3, "  reason: link timeout", hit.text)
    assert (hit.severity, hit.module, hit.pid, hit.device, hit.node, hit.kind, hit.grammar) == ("ERROR", "RUNTIME", 838, 3, "node-2", "plog", "plog")
    assert hit.ts == 1756976465000000 and found.inside == {(0, 3): 2}
    assert found.counts == {0: 1}


def test_all_numbers_of_workers_find_the_same(scanner: Scanner) -> None:
    files = {}
    for k in range(5):
        lines = [
            plog(f"n {k} {i} link timeout" if i % 40 == 0 else f"fine {i}", i, "ERROR" if i % 13 == 0 else "INFO", 100 + k) for i in range(40000)
        ]
        files[f"n{k}/plog/plog-{k}_20250904090000000.log"] = "".join(lines).encode()
    one, three = (msgspec.structs.asdict(scanned(scanner, files, workers)) for workers in (1, 3))
    assert one == three
    assert one["counts"][0] == 5 * 1000 and len(one["hits"]) == 5 * KEEP and one["lines"] == 200_000


def test_hits_are_shown_before_the_end(scanner: Scanner) -> None:
    shown: list[tuple[int, int]] = []
    files = {f"{k}.log": (plog("link timeout") + plog("x" * 500) * 10000).encode() for k in range(3)}
    progress: list[int] = []
    scan(Texts(files), scanner, 1, None, lambda hits: shown.append((len(hits), hits[0].line_no)), lambda lines, what: progress.append(lines))
    assert shown == [(1, 1)] * 3 and progress[-1] == 30003 and len(progress) == 3


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "gb18030", "utf-16-le", "utf-16-be"])
def test_places_are_those_of_the_member_in_any_encoding(scanner: Scanner, coding: str) -> None:
    text = plog("第一行") + plog("设备心跳丢失 link timeout", 3)
    mark = b"\xff\xfe" if coding == "utf-16-le" else b""
    data = mark + text.encode(coding)
    found = scanned(scanner, {"plog-1.log": data})
    assert [hit.line_no for hit in found.hits] == [2, 2]
    for hit in found.hits:
        assert data[hit.byte_offset :].decode(coding.replace("-sig", "")) == plog("设备心跳丢失 link timeout", 3)
    assert found.files[0].bytes == len(data) and found.files[0].encoding == coding


def test_colours_and_nuls_hide_nothing(scanner: Scanner) -> None:
    text = "\x1b[31mfirst\x1b[0m\n\0\0\0\nli\0nk \x1b[1mtime\x1b[0mout\n"
    found = scanned(scanner, {"a.txt": text.encode()})
    (hit,) = found.hits
    assert (hit.line_no, hit.byte_offset, hit.text) == (3, text.index("li\0"), "link timeout")


def test_lines_of_docker_are_read_as_what_they_hold(scanner: Scanner) -> None:
    data = b'{"log":"fine\\n","stream":"stdout","time":"2025-09-04T01:00:00Z"}\n'
    data += b'{"log":"link timeout\\n","stream":"stderr","time":"2025-09-04T01:00:01Z"}\n'
    (hit,) = scanned(scanner, {"c-json.log": data}).hits
    assert hit.line_no == 2 and hit.ts == 1756947601000000


def test_error_lines_are_grouped_by_call_site_and_by_what_matched(scanner: Scanner) -> None:
    text = "".join(plog(f"lost {k}", k, "ERROR") for k in range(5)) + plog("link timeout", 6, "ERROR") + plog("fine")
    text += "Traceback (most recent call last):\n" + "".join(f"RuntimeError: case {k}\n" for k in range(3))
    found = scanned(scanner, {"a.log": text.encode()})
    assert found.error_lines == 10
    shapes = {(shape.leaves, shape.shape): (shape.count, shape.line) for shape in found.errors}
    assert shapes[(), "RUNTIME[engine.cc:12]"] == (5, 1) and shapes[(0,), "RUNTIME[engine.cc:12]"] == (1, 6)
    assert shapes[(), "RuntimeError: case #"] == (3, 9)


def test_the_first_error_of_each_process_is_kept_in_order_of_time(scanner: Scanner) -> None:
    late, early = plog("one", 30, "ERROR", 5) + plog("two", 40, "ERROR", 5), plog("three", 20, "ERROR", 6)
    found = scanned(scanner, {"a.log": late.encode(), "b.log": early.encode()})
    assert [(first.pid, first.line, first.file) for first in found.first_errors] == [(6, 1, "b.log"), (5, 1, "a.log")]


def test_facts_and_numbers_come_with_their_lines(scanner: Scanner) -> None:
    found = scanned(scanner, {"n1/env.txt": b"# env\nHCCL_CONNECT_TIMEOUT=120\nASCEND_HOME_PATH=/usr/local/Ascend\n"})
    facts = {fact.name: (fact.value, fact.line_no, fact.text) for fact in found.facts}
    assert facts["env.HCCL_CONNECT_TIMEOUT"] == ("120", 2, "HCCL_CONNECT_TIMEOUT=120")


def test_facts_are_found_in_the_middle_of_a_large_log(scanner: Scanner) -> None:
    text = plog("x" * 800) * 8000 + plog("environment: vLLM API server version 0.11.0") + plog("x" * 800) * 4000
    found = scanned(scanner, {"n1/plog-1.log": text.encode()})
    assert [(fact.name, fact.value, fact.line_no) for fact in found.facts if fact.name == "vllm.version"] == [("vllm.version", "0.11.0", 8001)]


def test_every_line_and_byte_is_accounted_for(scanner: Scanner) -> None:
    files = {"a.log": b"one\ntwo", "b.bin": b"\x7fELF\x02\x01\x01" + bytes(99), "empty": b"", "plog-1.log": plog("x").encode() * 3}
    bundle = Texts(files)
    bundle.lost = [Lost("gone.log", "skipped", "no permission", "无权限", 7), Lost("a.log", "damaged", "cut short", "被截断", 3)]
    found = scan(bundle, scanner, 1)
    rows = {file.path: (file.bytes, file.lines, file.lines_parsed, file.status, file.lost) for file in found.files}
    assert rows == {
        "a.log": (7, 2, 0, "damaged", True), "b.bin": (106, 0, 0, "binary", False), "empty": (0, 0, 0, "read", False),
        "plog-1.log": (3 * len(plog("x")), 3, 3, "read", False), "gone.log": (0, 0, 0, "skipped", True),
    }  # fmt: skip
    assert (found.lines, found.unpacked) == (5, sum(map(len, files.values())))


def test_a_storm_keeps_the_first_lines_of_each_file_and_counts_all(scanner: Scanner) -> None:
    files = {f"{k}.txt": b"link timeout\n" * 3000 for k in range(3)}
    found = scanned(scanner, files)
    assert found.counts[0] == 9000
    kept = [(hit.file_id, hit.line_no) for hit in found.hits]
    assert kept == sorted(kept) and {file for file, _ in kept} == {0, 1, 2} and len(kept) <= 3 * PER_FILE


@pytest.mark.parametrize("workers", [1, 3])
def test_what_a_process_leaves_out_is_what_would_not_be_kept(scanner: Scanner, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    files = {f"{k}.log": "".join(plog(f"{i} link timeout", i, "ERROR") + plog("y" * 500) for i in range(8000)).encode() for k in range(6)}
    monkeypatch.setattr(ingest, "PER_LEAF", 80)
    spared = scanned(scanner, files, workers)

    class Careful(ScanWork):
        """Gives everything, every time."""

        def work(self, task: Task, block: Block) -> list[Seen]:
            return ScanWork(self.scanner).work(task, block)

    monkeypatch.setattr(ingest, "ScanWork", Careful)
    assert msgspec.structs.asdict(spared) == msgspec.structs.asdict(scanned(scanner, files, 1))
    assert len(spared.hits) == 80 + 3 * FEW  # three files fill the leaf


def test_a_part_that_cannot_be_scanned_is_named(scanner: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, task: object, block: object) -> None:
        raise MemoryError

    monkeypatch.setattr(ingest.ScanWork, "work", fails)
    (file,) = scanned(scanner, {"a.log": b"x\n"}).files
    assert file.lost and "out of memory" in file.note and file.note_zh


def test_what_is_kept_is_bounded_however_many_files_there_are(scanner: Scanner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MOST", 30)
    monkeypatch.setattr(ingest, "LATE", 40)
    monkeypatch.setattr(ingest, "FIRSTS", 50)
    monkeypatch.setattr(ingest, "ALL_TWINS", 10)
    files = {f"plog-{k}_1.log": plog(f"worker number {k} met a link timeout on its way", 3000 - k, "ERROR", k).encode() for k in range(1000)}
    files["last.log"] = plog("error code is 507035", 1, "ERROR").encode()
    found = scanned(scanner, files)
    assert found.counts == {0: 1000, 1: 1} and len(found.hits) == 41
    assert [hit.leaf for hit in found.hits][-1] == 1  # a rule that comes late still has its lines
    assert len(found.first_errors) <= 100 and found.first_errors[0].file == "last.log" and found.first_errors[1].file == "plog-999_1.log"
    assert len(found.files) == 1001 and all(member.clock == "local" for member in found.files)
