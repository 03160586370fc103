"""Redacted copies: what is secret is gone, what happened stays."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.bundle import Bundle
from forensics.errors import UnreadableBundle, UsageError
from forensics.options import Options
from forensics.pipeline import run
from forensics.redact import copy
from forensics.redact.engine import Learner, Redactor
from forensics.redact.names import NETWORKS, Names, load_key
from forensics.report import data
from tests.unit.planted import forms, plant

KEY = b"k" * 32


def packed(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.uname = len(data), "alice77"
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def contents(path: Path) -> dict[str, bytes]:
    """Members of a copy; of the whole archive too, unpacked, under the name of nothing."""
    raw = path.read_bytes()
    if path.name.endswith(".zst"):
        raw = zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    elif path.name.endswith("gz"):
        raw = gzip.decompress(raw)
    found = {"": raw}
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        for info in archive:
            stream = archive.extractfile(info)
            assert stream is not None
            found[info.name] = stream.read()
    return found


def redacted(text: str, **files: str) -> str:
    """One text, after the learning from it and from `files`."""
    learner = Learner(frozenset({"runtime", "error"}))
    for one in (text, *files.values()):
        learner.read(one.encode() + b"\n")
    return Redactor(Names(KEY), learner.learned).lines(text.encode() + b"\n").decode().removesuffix("\n")


def test_two_hundred_secrets_in_thirty_forms_are_gone_from_all_archives_within_the_bundle(tmp_path: Path) -> None:
    plants = plant(200)
    assert len({form for form, _, _ in plants}) == 30
    groups = ["\n".join(line for _, line, _ in plants[k::8]).encode() + b"\n" for k in range(8)]
    host = next(secret[0] for form, _, secret in plants if form == "syslog-host")
    inner = packed({f"{host}/messages": groups[0], "deep.zip": zipped({"a.log": groups[1], "b.txt.gz": gzip.compress(groups[2])})})
    bundle = tmp_path / "logs.tar.gz"
    bundle.write_bytes(
        packed({
            "console.log": groups[3], f"{host}.tar.gz": inner, "w.txt": groups[4].decode().encode("utf-16"), "x.log.xz": lzma.compress(groups[5]),
            "env/z.txt.zst": zstandard.compress(groups[6]), "sub/plain.tar": packed({"c.txt": groups[7]}, "w"),
        })
    )  # fmt: skip
    target = tmp_path / "out.tar.zst"
    done = copy.copy(str(bundle), target, KEY)
    assert done.members == 8 and not done.left_out
    found = contents(target)
    everything = b"\n".join([*found.values(), *(name.encode() for name in found)])
    left = [(form, secret) for form, _, secrets in plants for secret in secrets if secret.encode() in everything]
    assert not left
    assert b"alice77" not in everything and KEY not in everything
    assert sum(len(data.splitlines()) for name, data in found.items() if name not in ("", copy.MANIFEST)) == 200


@pytest.mark.parametrize("form", sorted(forms()))
def test_what_is_no_secret_of_a_line_stays(form: str) -> None:
    for seed in range(3):
        name, line, secrets = next(one for one in plant(30, seed) if one[0] == form)
        before, _, after = line.partition(secrets[0])
        out = redacted(line)
        assert secrets[0] not in out, name
        words = [word for word in re.findall(r"[A-Za-z]{4,}", before + " " + after) if word not in ("build", "root", "corp")]
        assert all(word in out for word in words), out


@pytest.mark.parametrize(
    "line",
    [
        "[ERROR] RUNTIME(838,python3):2025-09-04-09:50:11.954.123 [engine.cc:12]838 Run:Task run failed, device_id=6, stream_id=2, ret=0x7bc83",
        "firmware version: 7.1.0.3.220  driver version=24.1.0.3, npu-smi 25.2.0.1",
        "fault kernel_name=te_matmul_0f8c1f0c33aa0f8c1f0c33aa0f8c1f0c33aa0f8c1f0c33aa0f8c1f0c33aa0f8c_1",
        "max_num_batched_tokens=4096, eos_token='</s>', tokenizer=/models/q, tokens/s: 12.5, token: 17",
        "event_id: [0x80E01801], Node Type=0x70; Node ID=0; Sensor Type=0xc0; event_state=1; assertion=1",
        "Avg prompt throughput: 102.4 tokens/s, Running: 1 reqs",
        "    at c10::Error::Error(c10::SourceLocation, std::string) and at::native::fe::abc",
        "[    1.204] Serial: 8250/16550 driver, 4 ports, IRQ sharing enabled",
        "0000:82:00.0 Processing accelerators: Huawei device d802 (rev 20)",
        "node0 device 3 rank 3 listens on 127.0.0.1 and 0.0.0.0, mask 255.255.255.0",
        "The error from device(chipId:0, dieId:0), serial number is 9, there is an exception",
        "Installed torch==2.5.1 from https://pypi.org/simple, see https://www.hiascend.com/document",
        "2026-03-12-14-31-07 is a folder, 2026-03-12T14:31:07.803514+08:00 a time",
    ],
)  # fmt: skip
def test_codes_versions_times_and_operators_are_left_alone(line: str) -> None:
    assert redacted(line) == line


def test_a_host_is_the_same_pseudonym_in_prompts_paths_and_messages(tmp_path: Path) -> None:
    out = redacted(
        "[root@atlas-k71 ~]# date\nconnect to atlas-k71 failed\n/nfs/ATLAS-K71/plog/x.log\nxatlas-k71x stays",
        other="Mar 12 14:31:07 atlas-k71 kernel: hello",
    )
    first = re.search(r"root@(\S+) ~", out)
    assert first and out.count(first[1]) == 3 and "xatlas-k71x" in out and "date" in out


def test_a_password_given_once_is_gone_wherever_it_is_repeated() -> None:
    out = redacted("mysql --password=Sup3rGeheim22\nlogin with Sup3rGeheim22 refused")
    assert "Sup3rGeheim22" not in out and out.endswith("refused")


def test_addresses_stay_addresses_and_keep_their_networks() -> None:
    names = Names(KEY)
    names.settle({f"10.0.{k}" for k in range(300)})
    made = {f"10.0.{k}.{n}": names.address(f"10.0.{k}.{n}") for k in range(300) for n in (1, 77, 254)}
    assert len(set(made.values())) == len(made)
    nets = {str(net.network_address).rpartition(".")[0] for net in NETWORKS}
    assert all(value.rpartition(".")[0] in nets for value in made.values())
    assert made["10.0.3.1"].rpartition(".")[0] == made["10.0.3.254"].rpartition(".")[0]


def test_the_same_key_gives_the_same_pseudonyms_and_another_key_others(tmp_path: Path) -> None:
    file = tmp_path / "key"
    one, again = Names(load_key(str(file))), Names(load_key(str(file)))
    assert (file.stat().st_mode & 0o777) == 0o600
    assert one.host("atlas-k71") == again.host("atlas-k71") != Names(load_key(None)).host("atlas-k71")


def test_a_short_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("short")
    with pytest.raises(UsageError, match="16 to 4096"):
        load_key(str(tmp_path / "key"))


def test_keys_that_span_lines_and_blocks_are_gone_and_the_log_behind_them_stays() -> None:
    body = [f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj{k:08d}abcdefgh" for k in range(30)]
    text = "before\n-----BEGIN PRIVATE KEY-----\n" + "\n".join(body) + "\n-----END PRIVATE KEY-----\n[ERROR] RUNTIME after\n"
    redactor = Redactor(Names(KEY), Learner().learned)
    lines = text.encode().splitlines(keepends=True)
    out = (redactor.lines(b"".join(lines[:9])) + redactor.lines(b"".join(lines[9:]))).decode()
    assert not any(line in out for line in body)
    assert out.startswith("before\n-----BEGIN PRIVATE KEY-----\n") and out.endswith("-----END PRIVATE KEY-----\n[ERROR] RUNTIME after\n")
    assert out.count("\n") == text.count("\n")
    half = b"-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n[ERROR] RUNTIME(1,x): [a.cc:1] it was cut off here\n"
    cut = redactor.lines(half).decode()
    assert "MIIEvQ" not in cut and cut.endswith("[ERROR] RUNTIME(1,x): [a.cc:1] it was cut off here\n")


def test_a_secret_is_found_behind_colours() -> None:
    assert "10.77.3.9" not in redacted("\x1b[1;36m(Worker pid=9)\x1b[0m from \x1b[31m10.77.\x1b[0m3.9 refused")


def test_check_names_what_would_be_replaced_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.log").write_text("one\nserver[10.44.7.9] is gone\nserver[10.44.7.9] again\n")
    done = copy.copy(str(tmp_path / "b"), None, KEY, listing=True)
    assert [(one.kind, one.value, one.count, one.file, one.line) for one in done.seen] == [("address", "10.44.7.9", 2, "a.log", 2)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]


def test_members_that_are_no_text_are_left_out_and_named(tmp_path: Path) -> None:
    bundle = tmp_path / "in.tar"
    bundle.write_bytes(packed({"core.bin": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 40, "a.log": b"[INFO] fine\n"}, "w"))
    done = copy.copy(str(bundle), tmp_path / "out.tar.gz", KEY)
    assert [one.path for one in done.left_out] == ["core.bin"]
    manifest = json.loads(contents(tmp_path / "out.tar.gz")[copy.MANIFEST])
    assert manifest["left_out"][0]["path"] == "core.bin" and manifest["members"] == 1


def test_a_damaged_bundle_is_copied_as_far_as_it_goes(tmp_path: Path) -> None:
    raw = packed({"a.log": b"[INFO] fine 10.9.9.9\n" * 200, "b.log": bytes(range(32, 127)) * 4000})
    (tmp_path / "in.tar.gz").write_bytes(raw[: len(raw) // 2])
    done = copy.copy(str(tmp_path / "in.tar.gz"), tmp_path / "out.tar", KEY)
    assert any(one.lost for one in done.left_out)
    assert b"10.9.9.9" not in contents(tmp_path / "out.tar")["a.log"]


def test_nothing_is_left_behind_where_a_copy_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "empty.tar").write_bytes(b"")
    with pytest.raises(UnreadableBundle):
        copy.copy(str(tmp_path / "empty.tar"), tmp_path / "out.tar.zst", KEY)
    (tmp_path / "there.tar").write_bytes(b"x")
    with pytest.raises(UsageError, match="there already"):
        copy.copy(str(tmp_path / "empty.tar"), tmp_path / "there.tar", KEY)
    with pytest.raises(UsageError, match="inside the bundle"):
        copy.copy(str(tmp_path), tmp_path / "inside.tar", KEY)
    with pytest.raises(UsageError, match="ends in"):
        copy.target_of("logs.tar", "copy.rar")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.tar", "there.tar"]
    assert str(copy.target_of("/x/logs.tar.gz", None)) == "logs.redacted.tar.zst"


def test_a_line_too_long_to_be_checked_keeps_its_begin_only(tmp_path: Path) -> None:
    (tmp_path / "long.log").write_bytes(b"[INFO] ok\n" + b"x" * (9 << 20) + b" 10.1.2.3 hunter\n[INFO] end 10.1.2.3\n")
    done = copy.copy(str(tmp_path / "long.log"), tmp_path / "out.tar", KEY)
    data = contents(tmp_path / "out.tar")["long.log"]
    assert b"hunter" not in data and b"10.1.2.3" not in data and b"[INFO] end" in data and len(data) < 100_000
    assert len(done.left_out) == 1 and not done.left_out[0].lost


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=20))
def test_any_bytes_keep_their_number_of_lines(pieces: list[bytes]) -> None:
    data = b"\n".join(pieces) + b"\n"
    learner = Learner()
    learner.read(data)
    out = Redactor(Names(KEY), learner.learned).lines(data)
    assert out.count(b"\n") == data.count(b"\n")


def test_what_was_read_once_is_the_same_bundle_again(tmp_path: Path) -> None:
    """The copy of a copy with the same key is no smaller: pseudonyms are secrets of the same forms."""
    (tmp_path / "a.log").write_text("[root@atlas-k71 ~]# ssh bob33@10.3.4.5\n")
    copy.copy(str(tmp_path / "a.log"), tmp_path / "one.tar.zst", KEY)
    with Bundle(tmp_path / "one.tar.zst") as bundle:
        assert sorted(member.path for member in bundle.members()) == ["a.log", copy.MANIFEST]


def test_folders_of_profiles_keep_what_tells_that_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "b" / "atlas-k71_20000_20251127120000123_ascend_pt"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b" / "node-k72_20000_20251127120000123_ascend_pt").mkdir()
    (tmp_path / "b" / "node-k72_20000_20251127120000123_ascend_pt" / "b.csv").write_text("x,y\n1,2\n")
    copy.copy(str(tmp_path / "b"), tmp_path / "out.tar", KEY)
    names = sorted(contents(tmp_path / "out.tar"))
    assert all(name.split("/")[0].endswith("_20000_20251127120000123_ascend_pt") for name in names if name.endswith(".csv"))
    assert not any("node-k72" in name for name in names)


def test_the_report_of_triage_is_redacted_and_says_the_same(tmp_path: Path) -> None:
    plog = "[ERROR] HCCL(88,python3):2026-03-12-14:31:07.803.514 [rank.cc:12][88]server[10.77.3.9] timeout, retCode=0x7bc83\n"
    folder = tmp_path / "atlas-logs" / "node-k71"
    folder.mkdir(parents=True)
    (folder / "plog-88_20260312143107803.log").write_text(plog)
    (folder / "messages").write_text("Mar 12 14:31:07 atlas-k71 kernel: [1.1] [ascend] [ERROR] [devdrv] [f 88] <k:1:1> lost (dev_id=1)\n")
    (folder / "env.txt").write_text("HCCL_IF_IP=10.77.3.9\nHF_TOKEN=hf_abcdefghijklmnopqrstuv\nASCEND_HOME_PATH=/home/alice7/Ascend/latest\n")
    work = run([str(tmp_path / "atlas-logs")], Options(out=str(tmp_path / "x.case"), index=False), None)
    try:
        before, after = work.triage, work.redacted()
    finally:
        work.close()
    text = data.encode(data.report(after)).decode()
    assert not [secret for secret in ("10.77.3.9", "k71", "alice7", "hf_abc") if secret in text]
    assert [d.finding.rule.id for d in before.diagnoses] == [d.finding.rule.id for d in after.diagnoses]
    assert [d.confidence for d in before.diagnoses] == [d.confidence for d in after.diagnoses] and after.case == ""
    assert [(c.code, c.count) for c in before.codes] == [(c.code, c.count) for c in after.codes] and before.bundle.nodes == ["atlas-k71"]


def test_python_is_enough_to_run_it() -> None:
    done = subprocess.run([sys.executable, "-c", "import forensics.redact.copy"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
