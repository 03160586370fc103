"""What the bundle reader promises of archives that are damaged or made to harm: no error, no hang, all that is sound is kept."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.archive.tar import number
from forensics.archive.zstd import ZstdFrames
from forensics.bundle import Bundle, Limits, Lost
from forensics.errors import UnreadableBundle

LOG = b"".join(
    b"[ERROR] RUNTIME(838,python):2025-09-04-09:50:%02d.%06d [stream.cc:%d]838 sync failed\n" % (n % 60, n * 7919 % 10**6, n) for n in range(2000)
)
SMALL = LOG[:1500]


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def header(name: bytes, size: int | bytes, kind: bytes = b"0") -> bytes:
    field = size if isinstance(size, bytes) else b"%011o\0" % size
    block = bytearray(
        name.ljust(100, b"\0") + b"0000644\0" * 3 + field + b"00000000000\0" + b" " * 8 + kind + bytes(100) + b"ustar\x0000" + bytes(247)
    )
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def read(data: bytes, folder: Path, limits: Limits | None = None, scratch: Path | None = None) -> tuple[dict[str, bytes], list[Lost]]:
    """Members and losses; no members where the bundle is unreadable. Every loss is in both languages."""
    path = folder / "input"
    path.write_bytes(data)
    view, found = memoryview(bytearray(1 << 16)), {}
    with Bundle(path, limits, scratch) as bundle:
        try:
            for member in bundle.members():
                parts = []
                while count := member.readinto(view):
                    parts.append(bytes(view[:count]))
                found[member.path] = b"".join(parts)
        except UnreadableBundle:
            assert not found
        assert all(loss.note and loss.note_zh and loss.path.replace("\u3000", "").isprintable() for loss in bundle.lost)
        return found, bundle.lost


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "bzip2": lambda data: bz2.compress(data, 1),
    "xz": lzma.compress,
    "zstd": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}


# ---------------------------------------------------------------- cut and changed compression


@pytest.mark.parametrize("packer", PACKERS)
def test_a_cut_stream_gives_what_is_there_and_says_so(packer: str, tmp_path: Path) -> None:
    packed = PACKERS[packer](LOG)
    for keep in (len(packed) - 3, len(packed) // 2, 5):
        found, lost = read(packed[:keep], tmp_path)
        assert LOG.startswith(found.get("input", b"")) and len(lost) == 1 and lost[0].partial and lost[0].status == "damaged"
        assert "cut off" in lost[0].note
        if keep == len(packed) - 3:
            assert found["input"] == LOG


@pytest.mark.parametrize("packer", PACKERS)
def test_all_that_comes_before_the_damage_is_given(packer: str, tmp_path: Path) -> None:
    first = PACKERS[packer](LOG)
    for damaged in (first[:-4] + bytes(4), first + first[:40] + b"\xff" * 300):
        found, lost = read(damaged, tmp_path)
        assert found["input"][: len(LOG)] == LOG and lost[0].partial


def test_damage_far_into_a_gzip_costs_no_sound_byte_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = b"".join(zlib.crc32(b"%d" % n).to_bytes(4, "big").hex().encode() for n in range(20000))
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    good = packer.compress(noise) + packer.flush(zlib.Z_FULL_FLUSH)
    for tape in (4 << 20, 1000):  # kept in memory, and read again from the file
        monkeypatch.setattr("forensics.archive.compress.TAPE", tape)
        found, lost = read(good + b"\xff" * 1000, tmp_path)
        assert found["input"] == noise and lost[0].partial


@pytest.mark.parametrize(("place", "word"), [(-8, "checksum"), (-4, "checksum")])
def test_a_wrong_checksum_or_length_of_gzip_is_said_and_all_bytes_are_given(place: int, word: str, tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(LOG))
    packed[place] ^= 1
    found, lost = read(bytes(packed), tmp_path)
    assert found == {"input": LOG} and word in lost[0].note


def test_other_bytes_after_the_end_are_named(tmp_path: Path) -> None:
    for pack in PACKERS.values():
        found, lost = read(pack(SMALL) + b"something else", tmp_path)
        assert found == {"input": SMALL} and "other bytes" in lost[0].note


def test_zstd_frames_are_cut_right_however_they_are_fed() -> None:
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
    data = (
        skippable
        + zstandard.ZstdCompressor(write_checksum=True).compress(LOG)
        + skippable
        + zstandard.ZstdCompressor().compress(SMALL)
        + b"tail-of-it"
    )
    for step in (1, 7, 4096, len(data)):
        frames, out = ZstdFrames(1 << 27), []
        for at in range(0, len(data), step):
            if frames.eof:
                break
            out.append(frames.decompress(data[at : at + step]))
            while not frames.needs_input and not frames.eof:
                out.append(frames.decompress(b""))
        assert b"".join(out) == LOG + SMALL
        assert frames.eof and b"tail-of-it".startswith(frames.unused_data[:10])


def test_a_decoder_that_wants_too_much_memory_is_refused(tmp_path: Path) -> None:
    found, lost = read(b"\x28\xb5\x2f\xfd\x00\xff" + b"\x0b\0\0A" * 3, tmp_path)
    assert not found and "memory" in lost[0].note
    assert "memory" in read(lzma.compress(SMALL, preset=9), tmp_path, Limits(window=1 << 20))[1][0].note


# ---------------------------------------------------------------- tar


def test_a_cut_tar_keeps_all_it_has_and_names_what_is_missing(tmp_path: Path) -> None:
    whole = tar({"a.log": SMALL, "b.log": LOG})
    found, lost = read(whole[: 512 + 1536 + 512 + 5000], tmp_path)
    assert found == {"a.log": SMALL, "b.log": LOG[:5000]}
    assert [(loss.path, loss.bytes) for loss in lost] == [("b.log", len(LOG) - 5000)]
    assert "header" in read(whole[: 2048 + 100], tmp_path)[1][0].note
    assert "no end mark" in read(whole[:2048], tmp_path)[1][0].note


def test_a_damaged_header_costs_no_line_of_text(tmp_path: Path) -> None:
    data = bytearray(tar({"a.log": SMALL, "b.log": SMALL, "c.log": SMALL}))
    data[2048 + 148] ^= 1
    found, lost = read(bytes(data), tmp_path)
    assert found["a.log"] == found["c.log"] == SMALL and found["b.log"].rstrip(b"\0") == SMALL
    assert [(loss.path, loss.partial) for loss in lost] == [("b.log", True)]
    data[2048 : 2048 + 512] = b"\xa5" * 512
    found, lost = read(bytes(data), tmp_path)
    assert SMALL in found["bytes-at-2048"] and found["c.log"] == SMALL


@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lost=st.integers(1, 700))
def test_after_missing_bytes_the_next_header_is_found_wherever_it_begins(tmp_path: Path, lost: int) -> None:
    whole = tar({"a.log": SMALL, "b.log": SMALL, "c.log": SMALL, "d.log": SMALL})
    found, _ = read(whole[:700] + whole[700 + lost :], tmp_path)
    assert found["c.log"] == found["d.log"] == SMALL


def test_tars_one_after_another_are_all_read(tmp_path: Path) -> None:
    assert read(tar({"a.log": SMALL}) + tar({"b.log": SMALL}), tmp_path) == ({"a.log": SMALL, "b.log": SMALL}, [])


def test_headers_without_a_usable_size_cost_their_member_only(tmp_path: Path) -> None:
    for size in (b"12x4567zzzz\0", b"\xff" * 12):
        found, lost = read(header(b"bad.log", size) + tar({"a.log": SMALL}), tmp_path)
        assert found == {"a.log": SMALL} and lost[0].path == "bad.log" and lost[0].partial


def test_numbers_of_a_tar_header() -> None:
    assert number(b"0000644\0") == 0o644 and number(b" 644 \0") == 0o644 and number(b"\0" * 8) == 0
    assert number(b"\x80" + (1 << 62).to_bytes(11, "big")) == 1 << 62 and number(b"\xff" * 12) == -1
    assert number(b"12x4567zzzz\0") is None


@pytest.mark.parametrize(
    "records", [b"99 path=x\n", b"abc path=x\n", b"0 path=x\n", b"8 path=xxxxxxx", b"12 size=abc\n", b"9" * 5000 + b" path=x\n", b"11 size=-1\n"]
)
def test_a_damaged_pax_header_costs_nothing_but_itself(records: bytes, tmp_path: Path) -> None:
    pax = header(b"PaxHeaders/x", len(records), b"x") + records + bytes(-len(records) % 512)
    found, lost = read(tar({"a.log": SMALL})[:2048] + pax + tar({"b.log": SMALL}), tmp_path)
    assert found == {"a.log": SMALL, "b.log": SMALL} and lost and not lost[0].partial


def test_a_global_pax_header_moves_no_member(tmp_path: Path) -> None:
    records = b"18 path=../../../x\n" + b"10 size=5\n"
    pax = header(b"g", len(records), b"g") + records + bytes(-len(records) % 512)
    assert read(pax + tar({"b.log": SMALL}), tmp_path)[0] == {"b.log": SMALL}


def test_sparse_members_give_their_stored_bytes(tmp_path: Path) -> None:
    body = b"1\n0\n1500\n".ljust(512, b"\0") + SMALL
    records = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n25 GNU.sparse.name=s.log\n"
    pax = header(b"x", len(records), b"x") + records.ljust(512, b"\0")
    new = pax + header(b"GNUSparseFile.0/s", len(body)) + body + bytes(-len(body) % 512)
    old = header(b"o.log", len(SMALL), b"S") + SMALL + bytes(-len(SMALL) % 512)
    found, lost = read(new + old + tar({"a.log": SMALL}), tmp_path)
    assert found == {"s.log": SMALL, "o.log": SMALL, "a.log": SMALL}
    assert all("sparse" in loss.note and not loss.partial for loss in lost) and len(lost) == 2


# ---------------------------------------------------------------- zip


def test_a_zip_without_its_directory_is_read_by_its_local_headers(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        whole = zipped({"a.log": SMALL, "b.log": LOG, "c.log": SMALL}, method)
        found, lost = read(whole[: whole.index(b"PK\1\2")], tmp_path)
        assert found == {"a.log": SMALL, "b.log": LOG, "c.log": SMALL} and "directory" in lost[0].note and lost[0].partial


def test_a_streamed_zip_without_its_directory_is_read_too(tmp_path: Path) -> None:
    class Pipe(io.RawIOBase):
        data = b""

        def writable(self) -> bool:
            return True

        def write(self, part: object) -> int:
            self.data += bytes(part)  # type: ignore[call-overload]
            return len(bytes(part))  # type: ignore[call-overload]

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", SMALL)
        archive.writestr(zipfile.ZipInfo("s.log"), SMALL)
        archive.writestr("b.log", LOG)
    assert read(pipe.data, tmp_path) == ({"a.log": SMALL, "s.log": SMALL, "b.log": LOG}, [])
    assert read(pipe.data[: pipe.data.index(b"PK\1\2")], tmp_path)[0] == {"a.log": SMALL, "s.log": SMALL, "b.log": LOG}


def test_entries_that_moved_are_found_by_their_own_headers(tmp_path: Path) -> None:
    whole = zipped({"a.log": SMALL, "b.log": LOG, "c.log": SMALL})
    place = whole.index(b"PK\3\4", 4)
    found, _ = read(whole[:place] + b"inserted" + whole[place:], tmp_path)
    assert found == {"a.log": SMALL, "b.log": LOG, "c.log": SMALL}


def test_a_program_in_front_of_a_zip_does_no_harm(tmp_path: Path) -> None:
    assert read(b"MZ" + b"\x90" * 5000 + zipped({"a.log": SMALL}), tmp_path) == ({"a.log": SMALL}, [])


def test_a_second_end_record_in_the_comment_hides_nothing(tmp_path: Path) -> None:
    out = io.BytesIO(zipped({"a.log": SMALL}))
    with zipfile.ZipFile(out, "a") as archive:
        archive.comment = b"PK\5\6" + bytes(18) + b"tail"
    assert read(out.getvalue(), tmp_path) == ({"a.log": SMALL}, [])


def test_encrypted_and_unknown_entries_are_named(tmp_path: Path) -> None:
    for place, value in ((8, 1), (10, 77)):  # flags, method in the central directory
        whole = bytearray(zipped({"a.log": SMALL, "b.log": LOG}))
        struct.pack_into("<H", whole, whole.index(b"PK\1\2") + place, value)
        found, lost = read(bytes(whole), tmp_path)
        assert found == {"b.log": LOG} and [(loss.path, loss.partial, loss.bytes) for loss in lost] == [("a.log", True, len(SMALL))]


def test_a_wrong_checksum_of_an_entry_is_said(tmp_path: Path) -> None:
    whole = bytearray(zipped({"a.log": SMALL, "b.log": LOG}))
    whole[whole.index(b"PK\1\2") + 16] ^= 1
    found, lost = read(bytes(whole), tmp_path)
    assert found == {"a.log": SMALL, "b.log": LOG} and [(loss.path, "checksum" in loss.note) for loss in lost] == [("a.log", True)]


# ---------------------------------------------------------------- bombs and limits

TIGHT = Limits(ratio=50, ratio_floor=1 << 20)


def test_a_member_that_grows_too_much_is_cut_and_the_next_one_is_read(tmp_path: Path) -> None:
    found, lost = read(gzip.compress(tar({"a.log": SMALL, "core": bytes(6 << 20), "b.log": SMALL})), tmp_path, TIGHT)
    assert found["a.log"] == found["b.log"] == SMALL and len(found["core"]) < 2 << 20
    assert [(loss.path, loss.partial) for loss in lost] == [("core", True)] and "200" not in lost[0].note


@pytest.mark.parametrize("packer", PACKERS)
def test_a_compressed_bomb_is_stopped_near_the_limit(packer: str, tmp_path: Path) -> None:
    found, lost = read(PACKERS[packer](bytes(30 << 20)), tmp_path, TIGHT)
    assert len(found["input"]) < 3 << 20 and lost[0].partial and "limit" in lost[0].note


def test_bytes_nobody_sees_are_bounded_too(tmp_path: Path) -> None:
    pax = gzip.compress(header(b"x", 40 << 20, b"x")) + gzip.compress(bytes(40 << 20)) + gzip.compress(tar({"a.log": SMALL}))
    begun = time.monotonic()
    found, lost = read(pax, tmp_path, TIGHT)
    assert time.monotonic() - begun < 5 and not found and any("grows" in loss.note for loss in lost)


def test_entries_of_a_zip_that_share_bytes_are_read_once(tmp_path: Path) -> None:
    whole = zipped({"a.log": SMALL})
    start = whole.index(b"PK\1\2")
    central, end = whole[start:-22], whole[-22:]
    many = whole[:start] + central * 1000 + end[:8] + struct.pack("<HHI", 1000, 1000, 1000 * len(central)) + end[16:]
    found, lost = read(many, tmp_path)
    assert found == {"a.log": SMALL} and len(lost) == 999 and all("overlap" in loss.note for loss in lost)


def test_a_zip_in_zip_bomb_stops_the_bundle(tmp_path: Path) -> None:
    leaf = zipped({"0.log": bytes(1 << 20)})
    for level in range(3):
        leaf = zipped({f"{level}-{n}.zip": leaf for n in range(8)})
    found, lost = read(zipped({"a.log": SMALL, "b.zip": leaf}), tmp_path, TIGHT)
    assert found["a.log"] == SMALL and sum(map(len, found.values())) < 12 << 20 and lost[-1].partial


def test_depth_members_and_headers_have_limits(tmp_path: Path) -> None:
    nested = SMALL
    for _ in range(12):
        nested = gzip.compress(nested)
    found, lost = read(tar({"a.log": SMALL, "deep.gz": nested}), tmp_path)
    assert found == {"a.log": SMALL} and "8 levels" in lost[0].note
    levels = b""
    for level in range(8, 0, -1):
        levels = gzip.compress(tar({f"{level}.log": SMALL, **({"in.tgz": levels} if levels else {})}))
    assert len(read(levels, tmp_path)[0]) == 8, "a tar and its compression are one level"
    found, lost = read(tar({f"{n}.log": b"x" for n in range(20)}), tmp_path, Limits(members=5))
    assert len(found) == 5 and "more than 5 members" in lost[0].note
    found, lost = read(header(b"x", 5000, b"L") + bytes(5120) + tar({"a.log": SMALL}), tmp_path, Limits(header_bytes=1000))
    assert found == {"a.log": SMALL} and not lost[0].partial


def test_a_large_inner_zip_goes_to_the_scratch_folder_or_is_named(tmp_path: Path) -> None:
    inner = zipped({"a.log": LOG}, zipfile.ZIP_STORED)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    packed = gzip.compress(tar({"n.zip": inner, "b.log": SMALL}))
    assert read(packed, tmp_path, Limits(memory=10_000), scratch) == ({"n.zip/a.log": LOG, "b.log": SMALL}, [])
    assert not list(scratch.iterdir())
    found, lost = read(packed, tmp_path, Limits(memory=10_000))
    assert found == {"b.log": SMALL} and lost[0].path == "n.zip" and lost[0].partial
    assert read(tar({"n.zip": inner}), tmp_path, Limits(memory=10_000)) == ({"n.zip/a.log": LOG}, []), "in a plain tar it is read where it lies"


def test_harmless_losses_are_counted_once_they_are_many(tmp_path: Path) -> None:
    links = b"".join(header(b"l%d" % n, 0, b"2") for n in range(50))
    found, lost = read(links + tar({"a.log": SMALL}), tmp_path, Limits(lost=10))
    assert found == {"a.log": SMALL} and len(lost) == 11 and "40 further" in lost[-1].note


# ---------------------------------------------------------------- anything at all

SOUND = {"tar": tar({"a.log": SMALL, "b.log": SMALL * 3, "c.log": SMALL}), "zip": zipped({"a.log": SMALL, "b.log": SMALL * 3, "c.log": SMALL})}
SOUND |= {f"tar.{name}": pack(SOUND["tar"]) for name, pack in PACKERS.items()}
MIDDLE = {"tar": 512 + 1536, "zip": SOUND["zip"].index(b"PK\3\4", 4)}
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["flip", "cut", "double", "fill"]), st.integers(1, 255)), min_size=1, max_size=6)


def changed(data: bytes, changes: list[tuple[float, str, int]], first: int = 0) -> bytes:
    out = bytearray(data)
    for where, how, amount in changes:
        place = first + int(where * (len(out) - 1 - first))
        if how == "flip":
            out[place] ^= amount
        elif how == "cut":
            del out[place : place + amount]
        elif how == "double":
            out[place:place] = out[place : place + amount]
        else:
            out[place : place + amount] = b"\xff" * amount
        if len(out) <= first + 1:
            break
    return bytes(out)


@pytest.mark.parametrize("kind", SOUND)
@settings(max_examples=40, derandomize=True, deadline=5000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES, keep=st.floats(0.01, 1))
def test_no_change_of_an_archive_raises_or_hangs(kind: str, tmp_path: Path, changes: list[tuple[float, str, int]], keep: float) -> None:
    data = changed(SOUND[kind], changes)
    data = data[: max(int(len(data) * keep), 1)]
    found, lost = read(data, tmp_path)
    assert found or lost or not data


@pytest.mark.parametrize("kind", MIDDLE)
@settings(max_examples=40, derandomize=True, deadline=5000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_what_lies_before_the_damage_is_kept(kind: str, tmp_path: Path, changes: list[tuple[float, str, int]]) -> None:
    found, _ = read(changed(SOUND[kind], changes, MIDDLE[kind]), tmp_path)
    assert found["a.log"] == SMALL


@pytest.mark.parametrize("kind", SOUND)
@settings(max_examples=25, derandomize=True, deadline=5000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keep=st.floats(0, 1))
def test_a_cut_archive_never_claims_to_be_whole(kind: str, tmp_path: Path, keep: float) -> None:
    whole = SOUND[kind]
    cut = int(keep * (len(whole) - 1))
    if kind == "tar":
        cut = min(cut, len(whole) - 9000)  # inside the last member: the zeros behind it may be missing
    found, lost = read(whole[: max(cut, 513 if kind == "tar" else 20)], tmp_path)
    assert any(loss.partial for loss in lost)
    assert all((SMALL * 3).startswith(data) for path, data in found.items() if path != "input")  # "input": less than a header was there
