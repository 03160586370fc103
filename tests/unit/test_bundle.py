"""What the bundle reader promises: every kind of input, by content, nothing written, limits kept, all bytes accounted for."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import socket
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from forensics.archive.ledger import human
from forensics.archive.names import Unique, decode, inside, visible
from forensics.bundle import Bundle, Limits, Lost
from forensics.errors import CaseError, UnreadableBundle, UsageError

LOG = b"".join(
    b"[ERROR] RUNTIME(838,python):2025-09-04-09:50:%02d.%06d [stream.cc:%d]838 sync failed\n" % (n % 60, n * 7919 % 10**6, n) for n in range(3000)
)


def tar(files: dict[str, bytes], **options: object) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **options) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1756950000
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def drain(bundle: Bundle, room: int = 1 << 16) -> dict[str, bytes]:
    view, found = memoryview(bytearray(room)), {}
    for member in bundle.members():
        parts = []
        while count := member.readinto(view):
            parts.append(bytes(view[:count]))
        assert member.path not in found
        found[member.path] = b"".join(parts)
    return found


def read(source: Path | bytes, folder: Path | None = None, **options: object) -> tuple[dict[str, bytes], list[Lost]]:
    if isinstance(source, bytes):
        assert folder is not None
        (folder / "input").write_bytes(source)
        source = folder / "input"
    with Bundle(source, **options) as bundle:  # type: ignore[arg-type]
        return drain(bundle), bundle.lost


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zst,
}


# ---------------------------------------------------------------- kinds of input


@pytest.mark.parametrize("packer", PACKERS)
def test_a_tar_is_read_in_every_compression_whatever_its_name(packer: str, tmp_path: Path) -> None:
    found, lost = read(PACKERS[packer](tar({"plog/a.log": LOG, "b.log": b"x\n", "empty": b""})), tmp_path)
    assert found == {"plog/a.log": LOG, "b.log": b"x\n", "empty": b""} and not lost


@pytest.mark.parametrize("packer", PACKERS)
def test_a_single_file_keeps_its_own_name(packer: str, tmp_path: Path) -> None:
    assert read(PACKERS[packer](LOG), tmp_path) == ({"input": LOG}, [])


@pytest.mark.parametrize("packer", [p for p in PACKERS if p != "plain"])
def test_compressed_streams_one_after_another_are_one_file(packer: str, tmp_path: Path) -> None:
    pack = PACKERS[packer]
    assert read(pack(LOG) + pack(b"second\n") + bytes(512), tmp_path) == ({"input": LOG + b"second\n"}, [])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_is_read_in_every_method(method: int, tmp_path: Path) -> None:
    assert read(zipped({"a.log": LOG, "d/b.log": b"x\n"}, method), tmp_path) == ({"a.log": LOG, "d/b.log": b"x\n"}, [])


def test_archives_inside_archives_are_opened_under_their_own_names(tmp_path: Path) -> None:
    node = gzip.compress(tar({"plog/a.log": LOG}))
    outer = tar(
        {"node1.tar.gz": node, "node2.zip": zipped({"b.log": LOG, "deep.tar": tar({"c.log.zst": zst(b"c\n")})}), "x.log.gz": gzip.compress(b"x\n")}
    )
    found, lost = read(gzip.compress(outer), tmp_path)
    assert found == {
        "node1.tar.gz/plog/a.log": LOG,
        "node2.zip/b.log": LOG,
        "node2.zip/deep.tar/c.log.zst": b"c\n",
        "x.log.gz": b"x\n",
    }
    assert not lost


def test_a_folder_is_read_in_a_fixed_order_and_its_archives_are_opened(tmp_path: Path) -> None:
    for name, data in {
        "b.log": b"b\n",
        "a/z.log": b"z\n",
        "a/b/c.log": b"c\n",
        "n.zip": zipped({"d.log": b"d\n"}),
        "n.tgz": gzip.compress(tar({"e": b"e\n"})),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    found, lost = read(tmp_path)
    assert list(found) == ["b.log", "n.tgz/e", "n.zip/d.log", "a/z.log", "a/b/c.log"]
    assert b"".join(found.values()) == b"b\ne\nd\nz\nc\n" and not lost


def test_digest_size_and_progress_cover_the_whole_input(tmp_path: Path) -> None:
    data = gzip.compress(tar({"a.log": LOG})) + bytes(2000)
    path = tmp_path / "x.tgz"
    path.write_bytes(data)
    with Bundle(path) as bundle:
        drain(bundle)
        assert (bundle.sha256, bundle.size, bundle.compressed_read) == (hashlib.sha256(data).hexdigest(), len(data), len(data))
        assert (bundle.name, bundle.unpacked) == ("x.tgz", len(LOG))


def test_the_digest_of_a_folder_depends_on_paths_and_bytes_only(tmp_path: Path) -> None:
    digests = []
    for name, text in (("one", b"x"), ("two", b"x"), ("three", b"y")):
        (tmp_path / name / "d").mkdir(parents=True)
        (tmp_path / name / "d" / "a.log").write_bytes(text)
        with Bundle(tmp_path / name) as bundle:
            drain(bundle)
            digests.append(bundle.sha256)
            assert bundle.size == 1
    assert digests[0] == digests[1] != digests[2]


def test_a_second_pass_gives_the_same_members(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"a.log": LOG, "b.log": b"b"}))
    for source in (tmp_path, tmp_path / "a.zip"):
        with Bundle(source) as bundle:
            first = drain(bundle)
            with bundle.reopen() as again:
                assert drain(again) == first and again.sha256 == bundle.sha256


def test_members_not_read_to_their_end_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(tar({"a.log": LOG, "b.log": LOG, "c.log": b"c"})))
    with Bundle(tmp_path / "x") as bundle:
        view, paths = memoryview(bytearray(10)), []
        for member in bundle.members():
            paths.append((member.path, member.size, member.readinto(view)))
    assert paths == [("a.log", len(LOG), 10), ("b.log", len(LOG), 10), ("c.log", 1, 1)]


# ---------------------------------------------------------------- standard input and pipes

READER = """
import sys
from pathlib import Path
from forensics.bundle import Bundle
from forensics.errors import ForensicsError
try:
    with Bundle(sys.argv[1], scratch=Path(sys.argv[2]) if len(sys.argv) > 2 else None) as bundle:
        passes = [bundle, bundle.reopen] if len(sys.argv) > 2 else [bundle]
        for one in passes:
            one = one if one is bundle else one()
            view = memoryview(bytearray(5000))
            for member in one.members():
                total = 0
                while count := member.readinto(view):
                    total += count
                print(member.path, total)
            print(one.sha256[:8])
except ForensicsError as error:
    print(type(error).__name__, error)
"""


def reader(*arguments: str | Path, stdin: bytes) -> list[str]:
    done = subprocess.run([sys.executable, "-c", READER, *map(str, arguments)], input=stdin, capture_output=True, timeout=30)
    assert not done.stderr, done.stderr.decode()
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("scratch", [False, True])
def test_standard_input_is_read_and_read_again_from_its_copy(scratch: bool, tmp_path: Path) -> None:
    for data, path in ((gzip.compress(tar({"a.log": LOG})), "a.log"), (zipped({"a.log": LOG}), "a.log"), (LOG, "stdin")):
        want = [f"{path} {len(LOG)}", hashlib.sha256(data).hexdigest()[:8]]
        assert reader("-", *([tmp_path] if scratch else []), stdin=data) == want * (2 if scratch else 1)
    assert not list(tmp_path.iterdir()), "copies have no name"


def test_a_redirected_file_is_read_from_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(zipped({"a.log": LOG}))
    with (tmp_path / "x").open("rb") as stream:
        done = subprocess.run([sys.executable, "-c", READER, "-"], stdin=stream, capture_output=True, timeout=30)
    assert done.stdout.decode().splitlines()[0] == f"a.log {len(LOG)}"


def test_empty_closed_and_endless_standard_input_are_said(tmp_path: Path) -> None:
    assert "is empty" in reader("-", stdin=b"")[0]
    done = subprocess.run([sys.executable, "-c", READER, "-"], preexec_fn=lambda: os.close(0), capture_output=True, timeout=30)
    assert b"standard input is closed" in done.stdout
    with open("/dev/zero", "rb") as endless:
        done = subprocess.run([sys.executable, "-c", READER, "-"], stdin=endless, capture_output=True, timeout=30)
    assert b"standard input is a device" in done.stdout


def test_a_named_pipe_without_a_writer_does_not_hang_and_one_with_a_writer_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forensics.archive.source.WAIT", 0.1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UnreadableBundle, match="nobody writes"):
        Bundle(pipe)

    def write() -> None:
        with pipe.open("wb") as stream:
            time.sleep(0.05)
            stream.write(LOG)

    monkeypatch.setattr("forensics.archive.source.WAIT", 10)
    writer = threading.Thread(target=write)
    writer.start()
    assert read(pipe) == ({"pipe": LOG}, [])
    writer.join()


def test_a_full_scratch_disk_ends_the_run_with_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    data = tar({"n.zip": zipped({"a.log": os.urandom(5000)})})
    (tmp_path / "input").write_bytes(gzip.compress(data))
    with Bundle(tmp_path / "input", limits=Limits(memory=1000), scratch=tmp_path) as bundle:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(CaseError, match="space"):
            drain(bundle)


# ---------------------------------------------------------------- what is no bundle


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_devices_are_refused(device: str) -> None:
    with pytest.raises(UnreadableBundle, match="is a device"):
        Bundle(device)


def test_a_missing_path_is_a_usage_error_and_an_empty_input_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="check the path"):
        Bundle(tmp_path / "no")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.zip").write_bytes(zipped({}))
    for name in ("empty", "folder", "empty.zip"):
        with pytest.raises(UnreadableBundle):
            read(tmp_path / name)


def test_archives_of_other_kinds_are_named_not_taken_for_text(tmp_path: Path) -> None:
    found, lost = read(tar({"a.7z": b"7z\xbc\xaf\x27\x1c" + bytes(100), "b.log": b"x"}), tmp_path)
    assert list(found) == ["b.log"] and lost[0].path == "a.7z" and lost[0].partial and "7-Zip" in lost[0].note


# ---------------------------------------------------------------- links and names


def test_links_and_devices_are_named_and_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    box = tmp_path / "box"
    (box / "d").mkdir(parents=True)
    (box / "a.log").write_text("a\n")
    (box / "out.log").symlink_to(secret)
    (box / "d" / "up").symlink_to("..")
    os.mkfifo(box / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.getcwd()
        os.chdir(box)
        sock.bind("sock")
        os.chdir(here)
        found, lost = read(box)
    assert found == {"a.log": b"a\n"}
    assert {loss.path for loss in lost} == {"out.log", "d/up", "pipe", "sock"}
    assert all(loss.status == "skipped" and not loss.partial and loss.note and loss.note_zh for loss in lost)


def test_the_folder_itself_may_be_given_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "a.log").write_text("a")
    (tmp_path / "link").symlink_to("box")
    assert read(tmp_path / "link")[0] == {"a.log": b"a"}


def test_links_and_devices_of_a_tar_are_named_and_what_follows_is_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (("s", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE), ("c", tarfile.CHRTYPE), ("f", tarfile.FIFOTYPE), ("d", tarfile.DIRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        info = tarfile.TarInfo("a.log")
        info.size = 1
        archive.addfile(info, io.BytesIO(b"a"))
    found, lost = read(out.getvalue(), tmp_path)
    assert found == {"a.log": b"a"} and [loss.path for loss in lost] == ["s", "h", "c", "f"] and not any(loss.partial for loss in lost)


def test_names_that_lead_out_are_read_inside_and_named(tmp_path: Path) -> None:
    names = ("../x.log", "/x.log", "a/../../x.log", "./ok.log")
    found, lost = read(tar(dict.fromkeys(names, b"x")), tmp_path)
    assert list(found) == ["x.log", "x.log (2)", "a/x.log", "ok.log"]
    assert [loss.path for loss in lost] == ["../x.log", "/x.log", "a/../../x.log"] and not any(loss.partial for loss in lost)
    assert list(read(zipped({"C:/x.log": b"x", "..\\y.log": b"y"}), tmp_path)[0]) == ["x.log", "y.log"]


def test_long_and_foreign_names_are_shown_whole_and_without_controls(tmp_path: Path) -> None:
    names = ["d/" * 80 + "x" * 120, "日志/训练.log", "a\nb\x1b[31m\u202e.log"]
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        found, lost = read(tar(dict.fromkeys(names, b"x"), format=form), tmp_path)
        assert list(found) == [*names[:2], "a\\x0ab\\x1b[31m\\u202e.log"] and not lost
    assert decode("日志".encode("gb18030")) == "日志"
    assert decode(b"\xff\xfe\x80.log") == "\\xff\\xfe\\x80.log"
    assert len(visible("n" * 60000)) <= 500 and visible("n" * 60000) != visible("n" * 60001)


def test_inside_and_unique_keep_their_word() -> None:
    assert inside("a/b.log") == ("a/b.log", False) and inside("./a//b") == ("a/b", False) and inside("..") == ("", True)
    unique = Unique()
    assert [unique.claim(name) for name in ("a", "a", "a (2)", "a")] == ["a", "a (2)", "a (2) (2)", "a (3)"]
    assert human(9999) == "9999 bytes" and human(1 << 30) == "1.07 GB" and human(4 << 60) == "4.61 EB"


# ---------------------------------------------------------------- a folder that changes while it is read


def steps(folder: Path, change: Callable[[], None]) -> tuple[dict[str, bytes], list[Lost]]:
    """Read a folder; `change` happens while the first file is being read."""
    view, found = memoryview(bytearray(1 << 20)), {}
    with Bundle(folder) as bundle:
        for number, member in enumerate(bundle.members()):
            if not number:
                change()
            found[member.path] = bytes(view[: member.readinto(view)])
            while member.readinto(view):
                pass
        return found, bundle.lost


def test_files_that_vanish_shrink_grow_or_turn_into_links_are_said(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    box = tmp_path / "box"
    box.mkdir()
    large = LOG * 8
    for name in ("a", "b", "c"):
        (box / name).write_bytes(large)

    def change() -> None:
        os.truncate(box / "a", 100)
        (box / "b").unlink()
        (box / "c").unlink()
        (box / "c").symlink_to(secret)

    found, lost = steps(box, change)
    assert list(found) == ["a"] and large.startswith(found["a"])
    assert [(loss.path, loss.status, loss.partial) for loss in lost] == [("a", "damaged", True), ("b", "skipped", True), ("c", "skipped", False)]
    assert lost[0].bytes == len(large) - len(found["a"])

    def grow() -> None:
        with (box / "a").open("ab") as stream:
            stream.write(b"more")

    found, lost = steps(box, grow)
    assert found["a"] == large[:100] and lost[0].path == "a" and not lost[0].partial and lost[0].bytes == 4


def test_files_that_may_not_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    for name in ("a.log", "b.log", "closed/c.log"):
        (tmp_path / name).write_bytes(b"x")
    real = os.open

    def refuse(path: object, *args: object, **more: object) -> int:
        if path in (b"b.log", b"closed"):
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    found, lost = read(tmp_path)
    assert list(found) == ["a.log"] and [(loss.path, loss.partial) for loss in lost] == [("b.log", True), ("closed", True)]


def test_the_case_folder_inside_the_input_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    for name in ("a.log", "case/events.parquet"):
        (tmp_path / name).write_bytes(b"x")
    assert list(read(tmp_path, exclude=tmp_path / "case")[0]) == ["a.log"]


def test_few_files_are_open_however_many_and_deep_the_folders(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(60):
        deep = deep / "d"
        deep.mkdir()
        (deep / "x.log").write_bytes(b"x")
    most = 0
    with Bundle(tmp_path) as bundle:
        before = len(os.listdir("/proc/self/fd"))
        for member in bundle.members():
            assert member.size == 1
            most = max(most, len(os.listdir("/proc/self/fd")) - before)
    assert most <= 3
