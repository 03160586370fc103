#!/usr/bin/env python3
"""Gathers on an Ascend NPU server what a triage of an incident wants, into one archive with a manifest.

    python3 collect.py -o logs.tar.gz --log /work/serve.log
    python3 collect.py --help

One file, the standard library only, Python 3.7 or later: copy it to the server and run it there, best as root, as soon as possible after
the incident and before anything is reset. It changes nothing on the server, and leaves nothing there but the archive. Every command has a
time limit, the whole run has one, and every file and the whole archive have a size limit; what could not be had is in the archive's
manifest.json, with the reason. Values of variables and options that look like passwords, keys or tokens are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import gzip
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import IO, Any, Callable, Iterator  # noqa: UP035  (collections.abc is no type in 3.7)

VERSION = "1"
SCHEMA = "dsforensics.collect/1"
ROOT = "/"
"""Where the files of this machine are looked for."""
KIB, MIB = 1 << 10, 1 << 20
COMMAND_BYTES = 32 * MIB
"""Output of one command that is kept."""
STUCK = 2
"""Commands of one tool that may hang before the rest of its queries is left out."""
EXPORT_SECONDS = 420
FOLDERS = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/Ascend/driver/tools", "/usr/local/dcmi",
)  # fmt: skip
"""Where tools are looked for besides PATH, which is short under sudo and cron."""

NAMES = re.compile(
    r"(?:ASCEND|HCCL|HCCP|HCOMM|ACL|ACLNN|NPU|PYTORCH|TORCH|VLLM|ATB|ASDOPS|LCCL|LCAL|MINDIE|MIES|MS|GLOG|GE|TE|OMP|RANK|RAY|INF|COMBINED|CPU|TASK"
    r"|SGLANG|TRANSFORMERS|HF|MASTER|WORLD|LOCAL|GLOO|TP|MALLOC|MOONCAKE|DEEPEP|STREAMS|PER|TTP|TRITON|OPP|TOOLCHAIN|PROFILING|DUMP|MOE|ENABLE|P2P"
    r"|TORCHINDUCTOR|INDUCTOR|OOM|TUNE|MINDX|MINDIO|ELASTIC|SOC|MULTI|CM|CUDA|NCCL|SLURM|OMPI|KUBERNETES_NODE|VC|MA|AUTOFUSE|MAX|CANN|DISABLE|NODE)_\w+"
    r"|PATH|LD_LIBRARY_PATH|LD_PRELOAD|PYTHONPATH|PYTHONHASHSEED|TZ|LANG|LC_ALL|HOME|HOSTNAME|RANK|WORLD_SIZE|LOCAL_RANK|NNODES|DEVICE_ID|CONDA_PREFIX"
    r"|VIRTUAL_ENV|RANKTABLEFILE"
)
"""Variables that matter; others are left out."""
SECRET = re.compile(
    r"TOKEN(?!IZERS)|SECRET|PASSW|PASSPHRASE|API_?KEY|ACCESS_?KEY|CREDENTIAL|PRIVATE|AUTH|_AK$|_SK$|^AK$|^SK$", re.IGNORECASE
)  # fmt: skip
SECRET_OPTION = re.compile(
    r"((?:^|[\s\0\"'])(?:--?[\w-]*(?:password|passwd|token|secret|api[_-]?key|access[_-]?key|credential)[\w-]*|[A-Z_]*(?:PASSWORD|TOKEN|SECRET|API_?KEY"
    r"|ACCESS_?KEY)[A-Z_]*)(?:=|[\s\0]+))(?![-\s])(\"[^\"]*\"|'[^']*'|[^\s\0\"',]+)"
)
COUNTS = re.compile(r"(?:max|num|eos|bos|pad|min|batched)[\w-]*tokens?|tokens(?=[=\s\0])", re.IGNORECASE)

CARD_QUERIES = ("board", "health", "ecc", "usages", "memory", "temp", "power", "common", "pcie-err", "current-fault-event", "sys-time", "proc-mem",
                "hccs", "spod-info")  # fmt: skip
"""`npu-smi info -t ...` of each card; of each chip where the card's answer asks for one."""
CHIP_QUERIES = frozenset({"health", "pcie-err", "sys-time", "proc-mem", "hccs", "spod-info", "current-fault-event"})
PORT_QUERIES = ("-link", "-link_stat", "-stat", "-net_health", "-ip", "-gateway", "-optical", "-tls", "-lldp", "-pfc", "-speed", "-cdr", "-netdetect")
SYSTEM = (
    ("host/uname.txt", "kernel", [["uname", "-a"]]),
    ("host/clock.txt", "clocks", [["date", "+%Y-%m-%dT%H:%M:%S.%N%z"], ["timedatectl"], ["chronyc", "tracking"], ["ntpq", "-pn"], ["uptime"]]),
    ("host/cpu.txt", "processors", [["lscpu"], ["numactl", "-H"]]),
    ("host/memory.txt", "memory", [["free", "-m"], ["cat", "/proc/meminfo"]]),
    ("host/disk.txt", "disks", [["df", "-h"], ["mount"]]),
    ("host/pci.txt", "PCI devices", [["lspci", "-nn"], ["lspci", "-vv", "-d", "19e5:"]]),
    ("host/modules.txt", "kernel modules", [["lsmod"]]),
    ("host/network.txt", "network", [["ip", "-br", "addr"], ["ip", "-s", "link"], ["ip", "route"], ["ss", "-tanp"]]),
    ("host/limits.txt", "limits", [["cat", "/proc/self/limits"], ["cat", "/proc/sys/fs/file-nr"], ["cat", "/proc/cmdline"]]),
    ("host/services.txt", "services", [["systemctl", "--failed", "--no-pager"]]),
    ("host/process-table.txt", "process table", [["ps", "-eo", "pid,ppid,user,stat,lstart,etime,pcpu,rss,wchan:30,args", "ww"]]),
    ("host/sensors.txt", "BMC event log", [["ipmitool", "sel", "elist"]]),
)  # fmt: skip
VERSIONS = (
    "/etc/os-release", "/etc/ascend_install.info", "/etc/ascend_filelist.info", "/etc/hccn.conf", "/etc/docker/daemon.json",
    "{ascend}/driver/version.info", "{ascend}/firmware/version.info", "{ascend}/*/version.cfg", "{ascend}/*/*/version.cfg",
    "{ascend}/*/*/*/ascend_*_install.info", "{ascend}/*/*/ascend_*_install.info", "{ascend}/*/*/version.info", "{ascend}/*/*/*/version.info",
    "{ascend}/*/*/*/*/version.info", "{ascend}/nnal/atb/*/version.info", "{ascend}/mindie/*/version.info", "{ascend}/mindie/*/*/version.info",
    "/usr/local/Ascend/mindie/latest/mindie-service/conf/config.json",
)  # fmt: skip
LOGS = (
    ("device_log", "persistent device logs", ("/var/log/npu", "/var/log/ascend_seclog")),
    ("dl_log", "cluster components", ("/var/log/mindx-dl", "/var/log/mindcluster")),
    ("crash", "kernel crashes", ("/var/crash/*/vmcore-dmesg.txt", "/var/log/crash/*/vmcore-dmesg.txt")),
    ("messages", "system log", ("/var/log/messages*", "/var/log/syslog*", "/var/log/kern.log*", "/var/log/sysmonitor.log*")),
)  # fmt: skip
NO_LOG = re.compile(r"\.(?:so(?:\.\d+)*|o|om|bin|pyc|a|db|json_bak|core|pt|pth|safetensors|npy)$|/(?:core\.\d+|kernel_meta)(?:/|$)")


class Done(Exception):
    """The time or the room for the whole is used up."""


class Answer:
    """What came of one command."""

    def __init__(self, status: str, output: bytes, reason: str, seconds: float):
        self.status, self.output, self.reason, self.seconds = status, output, reason, seconds
        """status: collected, missing (no such tool), failed, timeout, cut."""


def tool(name: str) -> str | None:
    """Where a tool lies, or None."""
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(FOLDERS))


def run(command: list[str], seconds: float, most: int = COMMAND_BYTES, folder: str | None = None) -> Answer:
    """Run a command for at most so long; one that does not end even when killed is left alone, which tells of a hung driver."""
    begin = time.monotonic()
    path = tool(command[0])
    if path is None:
        return Answer("missing", b"", f"{command[0]} is not installed here", 0.0)
    environment = dict(os.environ, LC_ALL="C", PATH=os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS]))
    with tempfile.TemporaryFile() as out:
        try:
            process = subprocess.Popen(
                [path, *command[1:]], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=folder, env=environment,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return Answer("failed", b"", f"{command[0]} could not be started: {error.strerror or error}", 0.0)
        status, reason, pause = "collected", "", 0.005
        try:
            while process.poll() is None:
                spent = time.monotonic() - begin
                if spent > seconds or os.fstat(out.fileno()).st_size > most:
                    status = "timeout" if spent > seconds else "cut"
                    reason = "no end within %d s" % seconds if status == "timeout" else "more than %d MB" % (most // MIB)
                    if not end(process):
                        reason += "; it does not even end when killed (uninterruptible): the driver hangs"
                    break
                time.sleep(pause)
                pause = min(pause * 1.5, 0.2)
        except BaseException:
            end(process)
            raise
        out.seek(0)
        output = out.read(most)
    if status == "collected" and process.returncode:
        status, reason = "failed", "exit status %d" % process.returncode
    return Answer(status, output, reason, time.monotonic() - begin)


def end(process: subprocess.Popen[bytes]) -> bool:
    """End a command with all its children; False where it does not end."""
    for sign, seconds in ((signal.SIGTERM, 1), (signal.SIGKILL, 2)):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, sign)
        try:
            process.wait(seconds)
            if sign == signal.SIGTERM:
                continue  # its children may have stayed
            return True
        except subprocess.TimeoutExpired:
            pass
    return process.poll() is not None


def masked(text: str) -> str:
    """A command line, or a dump of one, without passwords and tokens."""
    return SECRET_OPTION.sub(lambda match: match[0] if COUNTS.search(match[1]) else match[1] + "***", text)


# ---------------------------------------------------------------- the archive


class Archive:
    """A tar, compressed as its name says, that never grows past its limit, with a list of all that went in or did not."""

    def __init__(self, path: str, name: str, top: str, most: int, file_most: int, deadline: float):
        """`path`: where it is written; `name`: what it will be called."""
        self.path, self.top, self.most, self.file_most, self.deadline = path, top, most, file_most, deadline
        self.items: list[dict[str, Any]] = []
        self.bytes = 0
        self.names: dict[str, int] = {}
        self._raw = open(path, "wb")
        self._packer: subprocess.Popen[bytes] | None = None
        stream: Any = self._raw
        if name.endswith((".gz", ".tgz")):
            stream = gzip.GzipFile("", "wb", 6, self._raw)
        elif name.endswith(".zst"):
            self._packer = subprocess.Popen([str(tool("zstd")), "-q", "-T2", "-3", "-c"], stdin=subprocess.PIPE, stdout=self._raw)
            stream = self._packer.stdin
        self._stream = stream
        self._tar = tarfile.open(mode="w|", fileobj=stream, format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape")

    def close(self) -> None:
        self._tar.close()
        if self._stream is not self._raw:
            self._stream.close()
        packed = self._packer.wait() if self._packer is not None else 0
        self._raw.close()
        if packed:
            raise OSError("zstd ended with status %d" % packed)

    def check(self) -> None:
        if time.monotonic() > self.deadline:
            raise Done("the time for the whole was used up")
        if self.bytes >= self.most:
            raise Done("the room for the whole was used up")

    def note(self, path: str, what: str, source: str, status: str, reason: str = "", size: int = 0, seconds: float = 0.0) -> None:
        """One line of the manifest."""
        item: dict[str, Any] = {"path": path, "what": what, "source": source, "status": status}
        if reason:
            item["reason"] = reason
        item.update(bytes=size, seconds=round(seconds, 2))
        self.items.append(item)

    def free(self, path: str) -> str:
        """The path, with a number where it is taken."""
        count = self.names[path] = self.names.get(path, 0) + 1
        return path if count == 1 else "%s.%d" % (path, count)

    def text(self, path: str, data: bytes, mtime: float | None = None) -> None:
        self._add(path, io.BytesIO(data), len(data), time.time() if mtime is None else mtime)

    def _add(self, path: str, stream: IO[bytes] | Exactly, size: int, mtime: float) -> None:
        info = tarfile.TarInfo(self.top + "/" + path)
        info.size, info.mtime, info.mode = size, int(mtime), 0o644
        self._tar.addfile(info, stream)
        self.bytes += size

    def file(self, source: str, path: str, what: str) -> None:
        """A file as it is now; of a large one its begin and its end."""
        self.check()
        path = self.free(path)
        begin = time.monotonic()
        try:
            descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW if not os.path.islink(source) else os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            self.note(path, what, source, "failed", error.strerror or str(error))
            return
        with open(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if (status.st_mode & 0o170000) != 0o100000:
                self.note(path, what, source, "skipped", "no regular file")
                return
            room = min(self.file_most, self.most - self.bytes)
            size = status.st_size
            try:
                if size == 0:  # of /proc, or empty
                    data = stream.read(min(room, COMMAND_BYTES))
                    self._add(path, io.BytesIO(data), len(data), status.st_mtime)
                    self.note(path, what, source, "collected", "", len(data), time.monotonic() - begin)
                elif size <= room:
                    self._add(path, Exactly(stream, size), size, status.st_mtime)
                    self.note(path, what, source, "collected", "", size, time.monotonic() - begin)
                else:
                    self._ends(stream, size, room, path, status.st_mtime)
                    reason = "%d of %d bytes: the begin and the end" % (room, size)
                    self.note(path, what, source, "cut", reason, room, time.monotonic() - begin)
            except OSError as error:
                self.note(path, what, source, "failed", error.strerror or str(error))

    def _ends(self, stream: IO[bytes], size: int, room: int, path: str, mtime: float) -> None:
        """The begin of a file, where an incident starts, and its end; cut at line ends. A compressed one cannot be cut so: its begin."""
        head = stream.read(room // 3)
        if head.startswith((b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")):
            head += stream.read(room - len(head))
            self._add(path, io.BytesIO(head), len(head), mtime)
            return
        head = head[: head.rfind(b"\n") + 1] or head
        rest = max(0, room - room // 3 - 100)  # a line between them says what is missing
        stream.seek(size - rest)
        tail = stream.read(rest)
        tail = tail[tail.find(b"\n") + 1 :]
        between = b"... %d bytes were left out here by collect ...\n" % (size - len(head) - len(tail))
        data = head + between + tail
        self._add(path, io.BytesIO(data), len(data), mtime)


class Exactly(io.RawIOBase):
    """So many bytes of a file, whether it grows or shrinks meanwhile."""

    def __init__(self, stream: IO[bytes], size: int):
        self._stream, self._left = stream, size

    def read(self, size: int = -1) -> bytes:
        size = self._left if size < 0 else min(size, self._left)
        try:
            data = self._stream.read(size)
        except OSError:
            data = b""
        if len(data) < size:
            data += b"\n" * (size - len(data))
        self._left -= size
        return data


# ---------------------------------------------------------------- what is gathered


class Collector:
    """One run. Each `_...` method gathers one kind of source and notes what was missing."""

    def __init__(self, archive: Archive, given: argparse.Namespace, say: Callable[[str], None]):
        self.archive, self.given, self.say = archive, given, say
        self.since = time.time() - given.since
        self.stuck: dict[str, int] = {}
        self.root = ROOT
        self.processes = list(npu_processes(self.root))
        self.npu = False
        self.chips: dict[int, list[int]] = {}

    def run(self) -> bool:
        """All of it, cheap and telling things first; False where time or room did not suffice."""
        steps: list[tuple[str, Callable[[], None]]] = [
            ("npu-smi", self._npu_smi), ("versions and host", self._host), ("environment", self._environment), ("kernel log", self._kernel),
            ("hccn_tool", self._hccn_tool), ("console logs", self._console), ("application logs", self._application), ("device logs", self._device),
            ("containers", self._containers), ("system logs", self._system_logs),
        ]  # fmt: skip
        for number, (name, step) in enumerate(steps):
            self.say(name)
            try:
                self.archive.check()
                step()
            except Done as full:
                for rest, _ in steps[number:]:
                    self.archive.note("", rest, "", "skipped", str(full))
                return False
            except (OSError, ValueError, RuntimeError) as error:
                self.archive.note("", name, "", "failed", f"{type(error).__name__}: {error}")
        return True

    def path(self, path: str) -> str:
        """A path of this machine below --root."""
        return path if self.root == "/" else self.root.rstrip("/") + path

    def ask(self, command: list[str], seconds: float | None = None) -> Answer:
        """Run a command, unless its tool has hung too often."""
        self.archive.check()
        if self.stuck.get(command[0], 0) >= STUCK:
            return Answer("skipped", b"", "%s hung %d times before" % (command[0], STUCK), 0.0)
        left = self.archive.deadline - time.monotonic()
        answer = run(command, max(1.0, min(seconds or self.given.timeout, left)))
        if answer.status == "timeout":
            self.stuck[command[0]] = self.stuck.get(command[0], 0) + 1
        return answer

    def answers(self, path: str, what: str, commands: list[list[str]], hide: bool = False, failures: bool = False) -> list[Answer]:
        """The answers of several commands in one file, each under its command; a line of the manifest for each.

        `failures`: keep what a command says that fails, which of npu-smi is evidence; of others, such as a docker without a daemon, it
        tells of this machine and nothing of the incident: its first line goes into the manifest. `hide`: leave out passwords."""
        parts, all_answers = [], []
        for command in commands:
            answer = self.ask(command)
            all_answers.append(answer)
            shown = " ".join(command)
            if answer.status == "failed" and not failures:
                first = masked(answer.output.decode("utf-8", "replace").strip().split("\n")[0][:200])
                self.archive.note("", what, shown, "failed", answer.reason + (": " + first if first else ""), 0, answer.seconds)
                continue
            self.archive.note(path if answer.output else "", what, shown, answer.status, answer.reason, len(answer.output), answer.seconds)
            if answer.output or answer.status in ("timeout", "failed"):
                output = masked(answer.output.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") if hide else answer.output
                remark = f"({answer.reason})\n" if answer.status in ("timeout", "cut") else ""
                end_of_line = b"" if output.endswith(b"\n") or not output else b"\n"
                parts.append(b"====> %s\n%s%s%s\n" % (shown.encode(), output, end_of_line, remark.encode()))
        if parts:
            self.archive.text(self.archive.free(path), b"".join(parts))
        return all_answers

    # ------------------------------------------------------------ the cards

    def _npu_smi(self) -> None:
        first = self.answers("npu-smi.txt", "card state", [["npu-smi", "info"], ["npu-smi", "info", "-l"], ["npu-smi", "info", "-m"]], failures=True)
        if first[0].status == "missing":
            return
        self.npu = self.npu or first[0].status == "collected"
        self.answers("npu-smi-topo.txt", "card topology", [["npu-smi", "info", "-t", "topo"]])
        self.chips = cards(b"\n".join(answer.output for answer in first[1:]).decode("utf-8", "replace"), first[0].output.decode("utf-8", "replace"))
        commands = []
        for query in CARD_QUERIES:
            for card, chip_numbers in self.chips.items():
                if query in CHIP_QUERIES:
                    commands += [["npu-smi", "info", "-t", query, "-i", str(card), "-c", str(chip)] for chip in chip_numbers]
                else:
                    commands.append(["npu-smi", "info", "-t", query, "-i", str(card)])
        self.answers("npu-smi-queries.txt", "card queries", commands, failures=True)

    def _hccn_tool(self) -> None:
        if tool("hccn_tool") is None:
            self.archive.note("", "device network ports", "hccn_tool", "missing", "hccn_tool is not installed here")
            return
        devices = device_numbers(self.root) or list(range(sum(map(len, self.chips.values())) or 8))
        self.answers("hccn_tool.txt", "device network ports", [["hccn_tool", "-i", str(n), query, "-g"] for query in PORT_QUERIES for n in devices],
                     failures=True)  # fmt: skip

    def _device(self) -> None:
        """What msnpureport exports: slog, host_kernel.log, the black boxes."""
        for folder, what, patterns in LOGS[:1]:
            self.tree(folder, what, patterns)
        if self.given.no_export or tool("msnpureport") is None:
            self.archive.note("", "device logs", "msnpureport -f", "missing" if tool("msnpureport") is None else "skipped",
                              "not wanted" if self.given.no_export else "msnpureport is not installed here")  # fmt: skip
            return
        if os.geteuid() != 0:
            self.archive.note("", "device logs", "msnpureport -f", "skipped", "msnpureport needs root")
            return
        with tempfile.TemporaryDirectory(prefix="collect-", dir=os.path.dirname(os.path.abspath(self.archive.path))) as folder:
            left = max(1.0, self.archive.deadline - time.monotonic() - 30)
            command = ["msnpureport", "-f"] + (["--docker"] if in_container(self.root) else [])
            answer = run(command, min(EXPORT_SECONDS, left), folder=folder)
            if answer.status == "failed" and not any(os.scandir(folder)):
                command = ["msnpureport"]
                answer = run(command, min(EXPORT_SECONDS, left), folder=folder)
            reason = answer.reason or answer.output[-200:].decode("utf-8", "replace").strip() if answer.status != "collected" else ""
            self.archive.note("device_log", "device logs", " ".join(command), answer.status, reason, 0, answer.seconds)
            self.add_tree(folder, "device_log", "device logs", 0.0)

    # ------------------------------------------------------------ host

    def _host(self) -> None:
        ascend = [path for path in {self.path("/usr/local/Ascend"), *ascend_homes(self.processes)} if os.path.isdir(path)]
        found: list[str] = []
        for pattern in VERSIONS:
            for base in ascend if "{ascend}" in pattern else [""]:
                full = pattern.replace("{ascend}", base) if base else self.path(pattern)
                known = {os.path.realpath(path) for path in found}
                found += sorted(path for path in glob.glob(full) if os.path.isfile(path) and os.path.realpath(path) not in known)
        parts = []
        for path in found[:200]:
            with contextlib.suppress(OSError), open(path, "rb") as stream:
                parts.append(b"cat %s\n%s\n\n" % (os.fsencode(path), stream.read(64 * KIB).rstrip()))
        for interpreter, packages in python_packages(self.processes, self.root):
            parts.append(("pip list of {}\nPackage Version\n------- -------\n{}\n\n".format(interpreter, "\n".join(packages))).encode())
        if not any(b"Ascend" in part for part in parts):
            self.archive.note("", "CANN and driver versions", "/usr/local/Ascend", "missing", "no version file of CANN or of the driver was found")
        if parts:
            self.archive.text("versions.txt", b"".join(parts))
            self.archive.note("versions.txt", "versions", "%d files" % len(parts), "collected", "", sum(map(len, parts)))
        for path, what, commands in SYSTEM:
            self.answers(path, what, [list(command) for command in commands], hide=True)

    def _environment(self) -> None:
        lines = ["HOSTNAME=" + socket.gethostname(), *variables(os.environ.items())]
        self.archive.text("env.txt", ("\n".join(dict.fromkeys(lines)) + "\n").encode("utf-8", "surrogateescape"))
        self.archive.note("env.txt", "environment", "of this shell", "collected", "", sum(map(len, lines)))
        if not self.processes:
            self.archive.note("", "environment of the job", "/proc", "missing", "no process has a card open")
        for process in self.processes[:64]:
            self.archive.check()
            lines = ["# pid %d" % process.pid, "# command: " + masked(process.command), *variables(process.environment)]
            path = "env/env-%d.txt" % process.pid
            self.archive.text(path, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
            self.archive.note(path, "environment of the job", process.folder, "collected", "", sum(map(len, lines)))
            parts = []
            for name in ("status", "limits", "wchan", "stack"):
                with contextlib.suppress(OSError), open(os.path.join(process.folder, name), "rb") as stream:
                    parts.append(b"cat /proc/%d/%s\n%s\n\n" % (process.pid, name.encode(), stream.read(64 * KIB)))
            if parts:
                self.archive.text("host/process-%d.txt" % process.pid, b"".join(parts))
        for path in dict.fromkeys(self._rank_tables()):
            self.archive.file(path, "env/" + os.path.basename(path), "rank table")

    def _rank_tables(self) -> Iterator[str]:
        """Files that jobs read the addresses of their ranks from; of a container, inside it."""
        for process in self.processes:
            for name, value in process.environment:
                if name in ("RANK_TABLE_FILE", "RANKTABLEFILE", "MIES_CONFIG_JSON_PATH") and value.startswith("/"):
                    inside = os.path.join(process.folder, "root") + value
                    if os.path.isfile(inside) or os.path.isfile(value):
                        yield inside if os.path.isfile(inside) else value

    def _kernel(self) -> None:
        """The kernel's messages by both clocks: seconds since boot, and wall time."""
        for path, command in (("dmesg.txt", ["dmesg"]), ("dmesg-T.txt", ["dmesg", "-T"])):
            answer = self.ask(command)
            where = path if answer.output else ""
            self.archive.note(where, "kernel log", " ".join(command), answer.status, answer.reason, len(answer.output), answer.seconds)
            if answer.output and answer.status != "failed":
                self.archive.text(path, answer.output)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        answer = self.ask(["journalctl", "--no-pager", "-q", "-o", "short-iso", "--since", since], 60)
        status = answer.status if answer.output or answer.status != "collected" else "missing"
        self.archive.note("journal.log" if answer.output else "", "journal", "journalctl", status, answer.reason, len(answer.output), answer.seconds)
        if answer.output:
            self.archive.text("journal.log", answer.output)

    def _system_logs(self) -> None:
        for folder, what, patterns in LOGS[1:]:
            self.tree(folder, what, patterns)

    # ------------------------------------------------------------ the job

    def _application(self) -> None:
        """plog, atrace and MindIE's logs of all users, of running jobs wherever they write them."""
        homes = [self.path("/root"), *sorted(glob.glob(self.path("/home/*")))]
        own = os.environ.get("HOME")
        homes += [own] if own and self.root == "/" else []
        places = [(os.path.join(home, "ascend", "log"), "process_log") for home in homes] + [
            (os.path.join(home, "ascend", "atrace"), "atrace") for home in homes
        ]
        places += [(os.path.join(home, "mindie", "log"), "mindie") for home in homes]
        environments = [dict(os.environ)] if self.root == "/" else []
        for source in [*environments, *(dict(process.environment) for process in self.processes)]:
            if source.get("ASCEND_PROCESS_LOG_PATH"):
                places.append((source["ASCEND_PROCESS_LOG_PATH"], "process_log"))
            if source.get("ASCEND_WORK_PATH"):
                places.append((os.path.join(source["ASCEND_WORK_PATH"], "log"), "process_log"))
                places.append((os.path.join(source["ASCEND_WORK_PATH"], "atrace"), "atrace"))
            if source.get("MINDIE_LOG_PATH", "").startswith("/"):
                places.append((source["MINDIE_LOG_PATH"], "mindie"))
        found = False
        for process in self.processes:  # of a container: its own root
            inner = os.path.join(process.folder, "root")
            with contextlib.suppress(OSError):
                if os.path.realpath(inner) != "/" and os.path.isdir(os.path.join(inner, "root/ascend/log")):
                    places.append((os.path.join(inner, "root/ascend/log"), "process_log"))
        for place, folder in dict.fromkeys(places):
            found = bool(self.add_tree(place, folder, "application logs", self.since) and folder == "process_log") or found
        if not found:
            self.archive.note("", "application logs (plog)", "ascend/log below the homes", "missing",
                              "none newer than --since was found; where jobs write them elsewhere, give the folder with --log")  # fmt: skip

    def _console(self) -> None:
        if not self.given.log:
            self.archive.note("", "console logs", "--log", "missing", "none was named with --log")
        for given in self.given.log:
            matches = sorted(glob.glob(given)) or ([given] if os.path.exists(given) else [])
            if not matches:
                self.archive.note("", "console logs", given, "missing", "nothing is there")
            for match in matches:
                if os.path.isdir(match):
                    self.add_tree(match, "console/" + os.path.basename(match.rstrip("/")), "console logs", 0.0)
                else:
                    self.archive.file(match, "console/" + os.path.basename(match), "console logs")

    def _containers(self) -> None:
        for engine in ("docker", "nerdctl", "podman"):
            if tool(engine) is None:
                continue
            listed = self.answers(f"containers/{engine}-ps.txt", "containers", [[engine, "ps", "-a", "--no-trunc"], [engine, "version"]], hide=True)
            if listed[0].status != "collected":
                continue
            names = [line.split()[0] for line in listed[0].output.decode("utf-8", "replace").splitlines()[1:] if line.split()]
            for name in names[:40]:
                answer = self.ask([engine, "inspect", name])
                if answer.status != "collected" or b"davinci" not in answer.output and b"ASCEND" not in answer.output:
                    continue
                path = f"containers/inspect-{name[:12]}.json"
                self.archive.text(path, hidden(answer.output))
                self.archive.note(path, "containers", f"{engine} inspect {name[:12]}", "collected", "", len(answer.output), answer.seconds)
                since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self.since))
                log = self.ask([engine, "logs", "--timestamps", "--since", since, name], 60)
                path = f"containers/container-{name[:12]}.log"
                self.archive.note(path if log.output else "", "container logs", f"{engine} logs {name[:12]}", log.status, log.reason,
                                  len(log.output), log.seconds)  # fmt: skip
                if log.output:
                    self.archive.text(path, log.output)
            return
        if tool("crictl") is None:
            self.archive.note("", "containers", "docker, nerdctl, podman, crictl", "missing", "none is installed here")
        else:
            self.answers("containers/crictl-ps.txt", "containers", [["crictl", "ps", "-a"], ["crictl", "pods"]])

    # ------------------------------------------------------------ folders

    def tree(self, folder: str, what: str, patterns: tuple[str, ...]) -> None:
        count = 0
        for pattern in patterns:
            for path in sorted(glob.glob(self.path(pattern))):
                if os.path.isdir(path):
                    count += self.add_tree(path, folder + "/" + os.path.basename(path), what, self.since)
                elif os.path.getmtime(path) >= self.since:
                    self.archive.file(path, folder + "/" + os.path.basename(path), what)
                    count += 1
        if not count:
            self.archive.note("", what, ", ".join(patterns), "missing", "nothing newer than --since is there")

    def add_tree(self, source: str, folder: str, what: str, since: float) -> int:
        """All log files below a folder, newest first, so that the newest are in when the room is used up; how many."""
        files = []
        for base, folders, names in os.walk(source):
            folders.sort()
            for name in names:
                path = os.path.join(base, name)
                if NO_LOG.search(path) or os.path.islink(path):
                    continue
                with contextlib.suppress(OSError):
                    mtime = os.path.getmtime(path)
                    if mtime >= since:
                        files.append((-mtime, path))
            if len(files) > 200000:
                self.archive.note("", what, source, "cut", "more than 200000 files: the rest was left out")
                break
        for _, path in sorted(files):
            inside = os.path.relpath(path, source)
            self.archive.file(path, folder + "/" + inside, what)
        return len(files)


# ---------------------------------------------------------------- processes, cards, packages


class Process:
    """A process that has a card open."""

    def __init__(self, pid: int, folder: str, command: str, environment: list[tuple[str, str]], executable: str):
        self.pid, self.folder, self.command, self.environment, self.executable = pid, folder, command, environment, executable


def npu_processes(root: str) -> Iterator[Process]:
    """Processes with /dev/davinci* open, as far as they may be seen."""
    for folder in sorted(glob.glob(os.path.join(root, "proc", "[0-9]*")), key=lambda path: int(os.path.basename(path))):
        try:
            links = (os.readlink(entry.path) for entry in os.scandir(os.path.join(folder, "fd")))
            if not any(link.startswith("/dev/davinci") for link in links):
                continue
            with open(os.path.join(folder, "cmdline"), "rb") as stream:
                command = stream.read(16 * KIB).replace(b"\0", b" ").decode("utf-8", "surrogateescape").strip()
            with open(os.path.join(folder, "environ"), "rb") as stream:
                pairs = [part.decode("utf-8", "surrogateescape").partition("=") for part in stream.read(MIB).split(b"\0") if b"=" in part]
        except OSError:
            continue
        executable = ""
        with contextlib.suppress(OSError):
            executable = os.readlink(os.path.join(folder, "exe"))
        yield Process(int(os.path.basename(folder)), folder, command, [(name, value) for name, _, value in pairs], executable)


def variables(pairs: Any) -> list[str]:
    """NAME=value of what matters, secrets hidden."""
    out = []
    for name, value in sorted(pairs):
        if NAMES.fullmatch(name):
            out.append("{}={}".format(name, "***" if SECRET.search(name) else masked(value.replace("\n", "\\n"))))
    return out


def hidden(data: bytes) -> bytes:
    """`docker inspect` without the values of secret variables, and without those that do not matter."""
    try:
        parsed = json.loads(data)
    except ValueError:
        return masked(data.decode("utf-8", "replace")).encode()

    def walk(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: "***" if SECRET.search(key) and isinstance(item, str) else walk(item, key) for key, item in value.items()}
        if isinstance(value, list) and name == "Env":
            return variables([item.partition("=")[::2] for item in value if isinstance(item, str)])
        if isinstance(value, list):
            joined = masked("\0".join(item for item in value if isinstance(item, str)))
            return joined.split("\0") if all(isinstance(item, str) for item in value) and value else [walk(item) for item in value]
        return masked(value) if isinstance(value, str) else value

    return json.dumps(walk(parsed), indent=1).encode()


def cards(listing: str, table: str) -> dict[int, list[int]]:
    """NPU id -> chip ids, from `npu-smi info -l` and `-m`, else from the table."""
    found: dict[int, list[int]] = {}
    for line in listing.splitlines():
        match = re.match(r"\s*NPU ID\s*:\s*(\d+)", line)
        if match:
            found.setdefault(int(match[1]), [])
        match = re.match(r"\s*(\d+)\s+(\d+)\s+(?:\d+|-)\s+(?:\d+\s+|-\s+)?(?!Mcu)\S*(?:Ascend|\d{3})", line)
        if match:
            chips = found.setdefault(int(match[1]), [])
            if int(match[2]) not in chips:
                chips.append(int(match[2]))
    if not found:
        for match in re.finditer(r"^\|\s*(\d+)\s+(?:Ascend)?\d{3}\w*\s*\|", table, re.MULTILINE):
            found.setdefault(int(match[1]), [])
    return {card: chips or [0] for card, chips in sorted(found.items())}


def device_numbers(root: str) -> list[int]:
    """Numbers of /dev/davinci*."""
    found = (re.fullmatch(r"davinci(\d+)", os.path.basename(path)) for path in glob.glob(os.path.join(root, "dev", "davinci*")))
    return sorted(int(match[1]) for match in found if match)


def ascend_homes(processes: list[Process]) -> list[str]:
    """Folders that CANN is installed in, by the environment."""
    homes = []
    for pairs in [list(os.environ.items()), *(process.environment for process in processes)]:
        for name, value in pairs:
            if name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME") and value.startswith("/"):
                homes.append(os.path.dirname(os.path.dirname(value)) if "ascend-toolkit" in value else os.path.dirname(value))
    return homes


def python_packages(processes: list[Process], root: str) -> list[tuple[str, list[str]]]:
    """Packages of the job's interpreters, and of those installed, told by their folders: nothing is run for it."""
    places: dict[str, str] = {}
    for process in processes:
        if "python" in os.path.basename(process.executable):
            prefix = os.path.dirname(os.path.dirname(process.executable))
            virtual = dict(process.environment).get("VIRTUAL_ENV") or dict(process.environment).get("CONDA_PREFIX") or prefix
            for base in dict.fromkeys([virtual, prefix]):
                places.setdefault(os.path.join(process.folder, "root") + base, process.executable)
    for base in ("/usr", "/usr/local", "/usr/local/python3*", "/opt/conda", "/root/miniconda3", "/root/anaconda3"):
        for path in glob.glob(os.path.join(root, base.lstrip("/"))):
            places.setdefault(path, path)
    out, seen = [], set()
    for place, name in places.items():
        packages = []
        for folder in glob.glob(os.path.join(place, "lib*", "python3*", "*-packages")):
            if os.path.realpath(folder) in seen:
                continue
            seen.add(os.path.realpath(folder))
            for entry in glob.glob(os.path.join(glob.escape(folder), "*.dist-info")) + glob.glob(os.path.join(glob.escape(folder), "*.egg-info")):
                match = re.fullmatch(r"(.+?)-(\d[^-]*)(?:-py3.*)?\.(?:dist|egg)-info", os.path.basename(entry))
                if match:
                    packages.append(f"{match[1]} {match[2]}")
        if packages:
            out.append((name, sorted(set(packages), key=str.lower)))
    return out


def in_container(root: str) -> bool:
    return os.path.exists(os.path.join(root, ".dockerenv")) or os.path.exists(os.path.join(root, "run/.containerenv"))


# ---------------------------------------------------------------- the command


def amount(text: str) -> int:
    """`500M`, `2G`: bytes."""
    match = re.fullmatch(r"(\d+)([kmgKMG]?)[bB]?", text.strip())
    if not match or not int(match[1]):
        raise argparse.ArgumentTypeError(f"a size such as 500M or 2G is wanted, found {text!r}")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2].lower()]


def span(text: str) -> float:
    """`90m`, `12h`, `3d`: seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
    if not match or not float(match[1]):
        raise argparse.ArgumentTypeError(f"a time such as 90m, 12h or 3d is wanted, found {text!r}")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def parser(prog: str) -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog=prog, description="Gather on this node what a triage of an Ascend NPU incident wants.",
        epilog="Exit status: 0 done (the manifest says what was missing); 2 wrong usage; 3 the archive could not be written; "
        "4 time or room did not suffice for all; 130 interrupted. "
        "`dsforensics collect --emit-script` prints this program alone, for servers that have nothing but Python 3.7 or later.",
    )  # fmt: skip
    out.add_argument("-o", "--out", metavar="FILE", help="the archive: .tar.gz, .tar.zst or .tar (default: ./<host>-<time>.tar.gz)")
    out.add_argument("--log", action="append", default=[], metavar="PATH", help="a console log, or a folder of logs; can be repeated")
    out.add_argument("--since", type=span, default=span("3d"), metavar="TIME", help="leave out older files: 12h, 3d (default: 3d)")
    out.add_argument("--max-time", type=span, default=span("20m"), metavar="TIME", help="for the whole run (default: 20m)")
    out.add_argument("--timeout", type=span, default=span("20s"), metavar="TIME", help="for one command (default: 20s)")
    out.add_argument("--max-size", type=amount, default=amount("4G"), metavar="SIZE", help="of all files together, unpacked (default: 4G)")
    out.add_argument("--max-file", type=amount, default=amount("256M"), metavar="SIZE", help="of one file; of a larger one both ends (default: 256M)")
    out.add_argument("--name", metavar="NODE", help="name of this node in the archive (default: its host name)")
    out.add_argument("--no-export", action="store_true", help="do not run msnpureport, which takes minutes")
    out.add_argument("--force", action="store_true", help="replace the archive if it is there already")
    out.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    return out


NODE = re.compile(r"(?:node|worker|server|master|slave|host|pod|npu|machine|ecs|bms)[-_.]?[a-z0-9][\w.-]*", re.IGNORECASE)


def top_folder(name: str) -> str:
    """The folder all lies in: the node's name, in a form that tells it is one."""
    safe = re.sub(r"[^\w.-]+|\.\.+", "-", name).strip("-.") or "unknown"
    safe = safe if NODE.fullmatch(safe) else "node-" + safe
    return safe if re.search(r"\d", safe) else safe + "-0"


def main(words: list[str] | None = None, prog: str = "collect") -> int:
    """The command; returns its exit status."""
    given = parser(prog).parse_args(words)
    host = given.name or socket.gethostname()
    out = given.out or "{}-{}.tar.gz".format(re.sub(r"[^\w.-]+", "-", host), time.strftime("%Y%m%d-%H%M%S"))
    if not out.endswith((".tar.gz", ".tgz", ".tar.zst", ".tar")):
        complain(f"-o wants a name that ends in .tar.gz, .tar.zst or .tar; found {out!a}")
        return 2
    if out.endswith(".zst") and tool("zstd") is None:
        out = out[:-4] + ".gz"
        complain(f"zstd is not installed here: the archive is {out} instead")
    if os.path.exists(out) and not given.force:
        complain(f"{out!a} is there already: choose another name with -o, or replace it with --force")
        return 2
    half = "%s.part-%d" % (out, os.getpid())
    begin = time.time()
    try:
        archive = Archive(half, out, top_folder(host), given.max_size, given.max_file, time.monotonic() + given.max_time)
        collector = Collector(archive, given, (lambda text: None) if given.quiet else lambda text: complain("... " + text))
        whole = collector.run()
        archive.text("manifest.json", manifest(collector, host, begin))
        archive.close()
        os.chmod(half, 0o600)
        os.replace(half, out)
    except OSError as error:
        complain(f"the archive {out!a} could not be written: {error.strerror or error}; choose another place with -o, or make room")
        return 3
    finally:
        with contextlib.suppress(OSError):
            os.unlink(half)
    if not given.quiet:
        report(archive, collector, out)
    return 0 if whole else 4


def manifest(collector: Collector, host: str, begin: float) -> bytes:
    clock = "%Y-%m-%dT%H:%M:%S%z"
    value = {
        "schema": SCHEMA, "tool": VERSION, "host": host, "npu": collector.npu, "root": os.geteuid() == 0,
        "begin": time.strftime(clock, time.localtime(begin)), "end": time.strftime(clock), "items": collector.archive.items,
    }  # fmt: skip
    return (json.dumps(value, indent=2, ensure_ascii=True) + "\n").encode()


def report(archive: Archive, collector: Collector, out: str) -> None:
    """What came of it, in a few lines."""
    if not collector.npu:
        complain("no NPU answered on this machine: npu-smi is missing, or failed")
    for status, word in (("timeout", "no answer"), ("missing", "not found"), ("cut", "cut"), ("skipped", "left out")):
        items = [item for item in archive.items if item["status"] == status]
        for item in items[:12]:
            complain("{}: {} ({}): {}".format(word, item["what"], item["source"], item.get("reason", "")))
        if len(items) > 12:
            complain("%s: %d more in manifest.json" % (word, len(items) - 12))
    sys.stdout.write("%s   %d files, %.1f MB\n" % (out, len([i for i in archive.items if i["bytes"]]), archive.bytes / 1e6))


def complain(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write("collect: {}\n".format(text.encode("ascii", "backslashreplace").decode()))
        sys.stderr.flush()


def stop(number: int, frame: object) -> None:
    """The session ends: as if by hand, so that nothing is left behind."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is signal.SIG_DFL:  # under nohup the run goes on
            signal.signal(ending, stop)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        complain("interrupted; nothing is left behind")
        sys.exit(130)
