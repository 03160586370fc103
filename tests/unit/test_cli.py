"""The command line as a shell sees it: exit statuses, streams, signals. The pipeline behind it is a fake; the program is the real one."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from forensics import options
from forensics.cli import app
from forensics.errors import UsageError
from forensics.guard import guarded
from tests.unit import fake_dsforensics
from tests.unit.shell import PROGRAM, ROOT, dsforensics, environment

CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["triage", "sound"], 0),
        (["triage", "sound", "--fail-on", "high"], 1),
        (["triage", "damaged", "--fail-on", "low"], 4),
        (["triage"], 2),
        (["triage", "sound", "--no-such-option"], 2),
        (["triage", "sound", "--format", "yaml"], 2),
        (["triage", "sound", "--workers", "0"], 2),
        (["triage", "sound", "--tz", "Mars/Olympus"], 2),
        (["triage", "sound", "--since", "yesterday"], 2),
        (["triage", "sound", "--max-bytes", "many"], 2),
        (["triage", "sound", "--pack", "/nonexistent"], 2),
        (["triage", "missing"], 2),
        (["triage", "unreadable"], 3),
        (["triage", "crash"], 3),
        (["triage", "panic"], 3),
        (["triage", "full"], 3),
        (["no-such-command"], 2),
    ],
)
def test_the_exit_status_says_how_it_went_and_no_end_is_a_traceback(
    words: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for name, module in fake_dsforensics.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    before = signal.getsignal(signal.SIGTERM)
    got = guarded(lambda: app(words, prog_name="dsforensics"))
    signal.signal(signal.SIGTERM, before)
    out, err = capfdbinary.readouterr()
    assert got == status, err
    assert b"Traceback" not in err
    assert not CONTROL.search(out + err)
    if status in (2, 3):
        assert err.strip()
        assert not out


def test_an_error_is_one_sentence_on_standard_error() -> None:
    done = dsforensics("triage", "unreadable")
    assert done.stderr == b"dsforensics: The bundle \\x1b[31mx could not be read: it is no archive.\n"


def test_the_trace_of_a_defect_is_shown_only_when_asked_for() -> None:
    assert b"DSFORENSICS_DEBUG=1" in dsforensics("triage", "crash").stderr
    assert b"Traceback" in dsforensics("triage", "crash", DSFORENSICS_DEBUG="1").stderr


def test_a_partly_read_bundle_is_said_on_standard_error_unless_quiet() -> None:
    assert b"1 part of the bundle could not be read" in dsforensics("triage", "damaged").stderr
    assert b"could not be read" not in dsforensics("triage", "damaged", "-q").stderr


def test_json_goes_to_standard_output_and_the_same_bytes_into_the_case(tmp_path: Path) -> None:
    done = dsforensics("triage", "sound", "--format", "json", "--quiet", "-o", str(tmp_path))
    assert json.loads(done.stdout)["schema"] == "dsforensics.report/1"
    assert (tmp_path / "report.json").read_bytes() == done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_a_case_folder_that_cannot_be_written_is_status_3(tmp_path: Path) -> None:
    done = dsforensics("triage", "sound", "-o", str(tmp_path / "gone"))
    assert done.returncode == 3
    assert b"could not be written" in done.stderr


def test_a_reader_that_goes_away_ends_the_output_quietly_and_the_index_is_still_finished() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = dsforensics("triage", "long", stdout=write)
    finally:
        os.close(write)
    assert done.returncode == 0
    assert done.stderr == b"finished\nclosed\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["triage", "sound"], ["--help"], ["--version"]])
def test_a_full_standard_output_is_said_and_fails(words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = dsforensics(*words, stdout=full.fileno())
    assert done.returncode == 3
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_an_ascii_stream_gets_ascii_text_but_json_stays_utf8() -> None:
    posix = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    text = dsforensics("triage", "sound", **posix)
    assert text.returncode == 0
    assert text.stdout.isascii()
    assert b" -> " in text.stdout
    chinese = dsforensics("triage", "sound", "--lang", "zh", **posix)
    assert chinese.returncode == 0
    assert chinese.stdout.isascii()
    assert "读越出" in dsforensics("triage", "sound", "--format", "json", **posix).stdout.decode("utf-8")


def test_the_language_is_that_of_the_locale() -> None:
    assert "共 431 行错误日志" in dsforensics("triage", "sound", LC_ALL="zh_CN.UTF-8").stdout.decode("utf-8")
    assert b"Explained 412" in dsforensics("triage", "sound", LC_ALL="", LANG="de_DE.UTF-8").stdout


def test_colours_only_where_wanted() -> None:
    colours = {"TERM": "xterm-256color"}
    assert b"\x1b" not in dsforensics("triage", "sound", **colours).stdout
    assert b"\x1b[1m" in dsforensics("triage", "sound", FORCE_COLOR="1", **colours).stdout
    assert b"\x1b" not in dsforensics("triage", "sound", FORCE_COLOR="1", NO_COLOR="1", **colours).stdout
    assert b"\x1b" not in dsforensics("triage", "sound", "--no-color", FORCE_COLOR="1", **colours).stdout


def test_a_terminal_gets_its_colours_and_its_width() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        child = subprocess.Popen(
            [*PROGRAM, "triage", "sound"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
            env=environment(TERM="xterm", COLUMNS="60"), cwd=ROOT,
        )  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = screen.read(65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        assert child.wait() == 0
        assert child.stderr is not None
        child.stderr.close()
    assert b"\x1b[1;31m" in shown
    plain = re.sub(rb"\x1b\[[0-9;]*m", b"", shown).decode("utf-8")
    assert max(len(line) for line in plain.splitlines()) <= 60


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cleans_up_and_leaves_with_its_status(number: signal.Signals, status: int) -> None:
    child = subprocess.Popen([*PROGRAM, "triage", "hold"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert child.stderr is not None
    assert child.stderr.readline() == b"holding\n"
    child.send_signal(number)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out, err) == (status, b"", b"cleaned\n")


def test_help_loads_nothing_heavy() -> None:
    heavy = ("duckdb", "polars", "pyarrow", "numpy", "numba", "torch", "textual", "rich", "hyperscan", "msgspec", "rules.model", "yaml")
    program = (
        "import sys\nfrom forensics.guard import guarded\nfrom forensics.cli import app\n"
        f"assert guarded(lambda: app(['--help'])) == 0\nprint([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment(), check=True)
    assert done.stderr == b"[]\n"
    for name in (b"triage", b"report", b"sql", b"code", b"doctor", b"parsers"):
        assert b"\n  " + name + b" " in done.stdout


def test_times_zones_and_sizes_are_read_as_written() -> None:
    assert options.moment("2025-09-04T01:02:03Z", "--since") == datetime(2025, 9, 4, 1, 2, 3, tzinfo=timezone.utc)
    assert options.moment("2025-09-04 01:02", "--since").tzinfo is None
    assert str(options.zone("Asia/Shanghai")) == "Asia/Shanghai"
    assert str(options.zone("+0800")) == "UTC+08:00"
    assert str(options.zone("-3")) == "UTC-03:00"
    assert options.byte_count("64G", "--max-bytes") == 64 << 30
    assert options.byte_count("10 MiB", "--max-bytes") == 10 << 20
    for wrong in ("../../etc/passwd", "+25:00", "\x1b[31m", ""):
        with pytest.raises(UsageError):
            options.zone(wrong)
