"""The host: kernel, system, PCI devices, memory, disks, limits, NUMA, clock, and the rank table.

>>> gather = Gather()
>>> read('''Linux node-a 5.10.0-182.0.0.95.oe2203sp3.aarch64 #1 SMP Sat Dec 30 2023 aarch64 GNU/Linux
... MemAvailable:    2914720 kB
... 41:00.0 Processing accelerators: Huawei Technologies Co., Ltd. Device d806 (rev 20)
... \\tLnkCap: Port #0, Speed 16GT/s, Width x16, ASPM not supported
... \\tLnkSta: Speed 8GT/s (downgraded), Width x8 (downgraded)
... Max open files            1024                 524288               files
... shm                64M   64M     0 100% /dev/shm
... System clock synchronized: yes
... System time     : 0.000020390 seconds slow of NTP time'''.split(chr(10)), gather)
>>> [(f.name, f.value) for f in gather.document.facts]
[('os.kernel', '5.10.0-182.0.0.95.oe2203sp3.aarch64'), ('pci.device', 'd806'), ('limit.nofile', '1024'), ('limit.nofile.hard', '524288'), \
('host.clock.synchronized', 'yes'), ('pci.count', '1')]
>>> [(m.name, m.value, m.label) for m in gather.document.metrics]
[('host.memory.available', 2846.4, ''), ('npu.pcie.speed', 16.0, '41:00.0 max'), ('npu.pcie.width', 16.0, '41:00.0 max'), \
('npu.pcie.speed', 8.0, '41:00.0'), ('npu.pcie.width', 8.0, '41:00.0'), ('disk.total', 64.0, '/dev/shm'), ('disk.available', 0.0, '/dev/shm'), \
('disk.usage', 100.0, '/dev/shm'), ('host.shm.total', 64.0, ''), ('host.shm.usage', 100.0, ''), ('host.clock.offset', -2.039e-05, '')]

Memory and disks are in MB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from parsers.gather import Gather, number

_UNAME = re.compile(r"(?:.{0,80}?\] )?Linux (?:version )?(?:[\w.-]{1,80} )?(\d\.\d{1,3}\.\d{1,4}[\w.+-]{0,80})(?: |$)", re.ASCII)
_PCI = re.compile(r"((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]) .{0,120}?(?:Device |19e5:)(d[0-9a-f]{3})\b", re.ASCII | re.IGNORECASE)
_BDF = re.compile(r"((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]) ", re.ASCII | re.IGNORECASE)
_LINK = re.compile(r"Lnk(Cap|Sta):.{0,80}?Speed (\d{1,3}(?:\.\d)?)GT/s.{0,40}?Width x(\d{1,2})", re.ASCII)
_MEMINFO = re.compile(
    r"(MemTotal|MemFree|MemAvailable|SwapTotal|SwapFree|Shmem|HugePages_Total|HugePages_Free):\s{1,40}(\d{1,15})(?: kB)?\s*$", re.ASCII
)
_FREE = re.compile(
    r"(Mem|Swap):\s{1,20}(\S{1,12})\s{1,20}(\S{1,12})\s{1,20}(\S{1,12})(?:\s{1,20}\S{1,12}\s{1,20}\S{1,12}\s{1,20}(\S{1,12}))?", re.ASCII
)
_DISK = re.compile(r"(\S{1,200})\s{1,80}(\d\S{0,11})\s{1,20}(\d\S{0,11})\s{1,20}(-?\d\S{0,11})\s{1,20}(\d{1,3})%\s{1,20}(/\S{0,200})", re.ASCII)
_LIMIT = re.compile(r"Max (open files|processes|locked memory|stack size|core file size)\s{1,40}(\S{1,20})\s{1,40}(\S{1,20})", re.ASCII)
_ULIMIT = re.compile(
    r"(open files|max user processes|max locked memory|stack size|core file size)\s{1,60}\([\w, -]{1,40}\)\s{1,20}(\S{1,20})\s*$", re.ASCII
)
_NOFILE = re.compile(r"(?:.{0,40}?\s)?(soft|hard|-)\s{1,20}nofile\s{1,20}(\d{1,12}|unlimited)|ulimit -n\s{1,4}(\d{1,12}|unlimited)", re.ASCII)
_NUMA = re.compile(r"node (\d{1,3}) (?:size: (\d{1,10}) MB ?)?(?:free: (\d{1,10}) MB)?", re.ASCII)
_NUMA_CPUS = re.compile(r"NUMA node(\d{1,3}) CPU\(s\):\s{1,20}(\S{1,200})", re.ASCII)
_AFFINITY = re.compile(r"pid (\d{1,10})'s current affinity (?:list|mask): (\S{1,200})", re.ASCII)
_NUMA_OF = re.compile(r".{0,60}/sys/bus/pci/devices/([0-9a-fA-F:.]{7,14})/numa_node", re.ASCII)
_FILES = re.compile(r"(?:.{0,60}\bfile-nr\s{0,4}[=:]\s{0,4})(\d{1,12})\s{1,8}\d{1,12}\s{1,8}(\d{1,20})", re.ASCII)
_COUNT = re.compile(r".{0,120}/proc/(\w{1,12})/fd.{0,40}wc -l|.{0,80}\blsof\b.{0,80}wc -l", re.ASCII)
_RSS = re.compile(r"Vm(RSS|HWM|Size):\s{1,20}(\d{1,15}) kB", re.ASCII)
_RANK = re.compile(
    r"\"(server_id|host_ip|container_ip|server_count|device_id|device_ip|super_device_id|rank_id|status|version)\"\s{0,8}:\s{0,8}\"([^\"\n]{0,200})\"",
    re.ASCII,
)

_SYNCHRONIZED = re.compile(r"\s{0,40}(?:System clock|NTP) synchronized: (yes|no)\s*$", re.ASCII)
_NTP_OFFSET = re.compile(r"System time\s{1,10}: (\d{1,9}\.\d{1,9}) seconds (slow|fast) of NTP time", re.ASCII)
_LEAP = re.compile(r"Leap status\s{1,10}: (Normal|Insert second|Delete second|Not synchronised)\s*$", re.ASCII)

_MEMORY = {
    "MemTotal": "host.memory.total", "MemFree": "host.memory.free", "MemAvailable": "host.memory.available", "SwapTotal": "host.swap.total",
    "SwapFree": "host.swap.free", "Shmem": "host.shm.used", "HugePages_Total": "host.hugepages.total", "HugePages_Free": "host.hugepages.free",
}  # fmt: skip
_LIMITS = {
    "open files": "nofile", "processes": "nproc", "max user processes": "nproc", "locked memory": "memlock", "max locked memory": "memlock",
    "stack size": "stack", "core file size": "core",
}  # fmt: skip
_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024, "P": 1024.0**3, "B": 1 / 1024 / 1024}


def read(lines: Sequence[str], gather: Gather) -> None:
    """Facts and numbers of a text's lines."""
    _Host(gather).read(lines)


def megabytes(text: str) -> float | None:
    """`64G`, `251Gi`, `0B` or a plain number of kB to MB; None for anything else."""
    value = number(text.rstrip("iBKMGTP"))
    if value is None:
        return None
    unit = text.lstrip("0123456789.-")[:1]
    return round(value * _UNITS.get(unit, 1 / 1024), 1) if unit in _UNITS or not unit else None


class _Host:
    def __init__(self, gather: Gather) -> None:
        self.gather = gather
        self.bdf = ""
        self.pci: set[str] = set()
        self.pci_at = 0
        self.asked: tuple[str, str] | None = None
        self.free_unit = "K"

    def read(self, lines: Sequence[str]) -> None:
        for at, line in enumerate(lines, 1):
            if line and len(line) <= 1000:
                self._line(line, at)
        if self.pci:
            self.gather.fact("pci.count", str(len(self.pci)), self.pci_at)

    def _line(self, line: str, at: int) -> None:
        gather = self.gather
        if self.asked is not None:
            asked, self.asked = self.asked, None
            if (value := line.strip()).lstrip("-").isdigit() and value.isascii() and len(value) < 13:
                if asked[0] == "fd":
                    gather.metric("host.fd.count", float(value), "", at, None, asked[1])
                else:
                    gather.fact(asked[0], value, at)
                return
        if "Linux " in line and (seen := _UNAME.match(line)):
            gather.fact("os.kernel", seen[1], at)
        elif line[0] in "0123456789abcdefABCDEF" and (seen := _BDF.match(line)):
            self._pci(line, seen[1], at)
        elif "Lnk" in line and (seen := _LINK.search(line)):
            label = f"{self.bdf} max" if seen[1] == "Cap" else self.bdf
            gather.metric("npu.pcie.speed", float(seen[2]), "GT/s", at, None, label.strip())
            gather.metric("npu.pcie.width", float(seen[3]), "", at, None, label.strip())
        elif line[0] in "MSH" and ("Mem" in line[:4] or line[:4] in ("Swap", "Shme", "Huge")):
            self._memory(line, at)
        elif "%" in line and (seen := _DISK.match(line)):
            self._disk(seen, at)
        elif "Max " in line[:8] and (seen := _LIMIT.search(line)):
            gather.fact(f"limit.{_LIMITS[seen[1]]}", seen[2], at)
            gather.fact(f"limit.{_LIMITS[seen[1]]}.hard", seen[3], at)
        elif ("ulimit" in line or "nofile" in line) and line.lstrip()[:1] != "#":
            self._nofile(line, at)
        elif "(" in line[:60] and (seen := _ULIMIT.match(line)):
            gather.fact(f"limit.{_LIMITS[seen[1]]}", seen[2], at)
        elif " synchronized: " in line or " of NTP time" in line or line.startswith("Leap status"):
            self._clock(line, at)
        elif line.startswith(("node ", "NUMA node")):
            self._numa(line, at)
        elif "affinity" in line and (seen := _AFFINITY.match(line)):
            gather.fact("process.affinity", seen[2], at)
        elif "numa_node" in line and (seen := _NUMA_OF.match(line)):
            self.asked = (f"pci.{seen[1].lower()}.numa_node", "")
        elif "wc -l" in line and (seen := _COUNT.match(line)):
            self.asked = ("fd", seen[1] or "")
        elif "file-nr" in line and (seen := _FILES.match(line)):
            gather.metric("host.fd.count", float(seen[1]), "", at)
            gather.metric("host.fd.limit", float(seen[2]), "", at)
        elif line.startswith("Vm") and (seen := _RSS.match(line)):
            gather.metric(f"process.memory.{seen[1].lower()}", round(int(seen[2]) / 1024, 1), "MB", at)
        elif line.startswith("CPU(s):"):
            gather.metric("host.cpu.count", number(line[7:]), "", at)

    def _pci(self, line: str, bdf: str, at: int) -> None:
        self.bdf = bdf.lower()
        seen = _PCI.match(line)
        if seen is not None:
            self.gather.fact("pci.device", seen[2].lower(), at)
            self.pci.add(self.bdf)
            self.pci_at = self.pci_at or at

    def _memory(self, line: str, at: int) -> None:
        if seen := _MEMINFO.match(line):
            pages = seen[1].startswith("Huge")
            self.gather.metric(_MEMORY[seen[1]], float(seen[2]) if pages else round(int(seen[2]) / 1024, 1), "" if pages else "MB", at)
        elif seen := _FREE.match(line):
            name = "host.memory" if seen[1] == "Mem" else "host.swap"
            for word, value in (("total", seen[2]), ("used", seen[3]), ("free", seen[4]), ("available", seen[5] or "")):
                self.gather.metric(f"{name}.{word}", megabytes(value), "MB", at)

    def _disk(self, seen: re.Match[str], at: int) -> None:
        gather, mount = self.gather, seen[6]
        total, free = megabytes(seen[2]), megabytes(seen[4])
        gather.metric("disk.total", total, "MB", at, None, mount)
        gather.metric("disk.available", free, "MB", at, None, mount)
        gather.metric("disk.usage", float(seen[5]), "%", at, None, mount)
        if mount == "/dev/shm":
            gather.metric("host.shm.total", total, "MB", at)
            gather.metric("host.shm.usage", float(seen[5]), "%", at)

    def _nofile(self, line: str, at: int) -> None:
        seen = _NOFILE.match(line)
        if seen is not None:
            self.gather.fact("limit.nofile.hard" if seen[1] == "hard" else "limit.nofile", seen[2] or seen[3], at)
        elif "ulimit -n" in line:
            self.asked = ("limit.nofile", "")

    def _clock(self, line: str, at: int) -> None:
        """What timedatectl and chronyc say of the clock; seconds that it is ahead of its time server."""
        if seen := _SYNCHRONIZED.match(line):
            self.gather.fact("host.clock.synchronized", seen[1], at)
        elif seen := _LEAP.match(line):
            self.gather.fact("host.clock.synchronized", "no" if seen[1].startswith("Not") else "yes", at)
        elif seen := _NTP_OFFSET.match(line):
            self.gather.metric("host.clock.offset", float(seen[1]) * (1 if seen[2] == "fast" else -1), "s", at)

    def _numa(self, line: str, at: int) -> None:
        if seen := _NUMA_CPUS.match(line):
            self.gather.fact(f"host.numa.{seen[1]}.cpus", seen[2], at)
        elif seen := _NUMA.match(line):
            self.gather.metric("host.numa.total", number(seen[2] or ""), "MB", at, None, seen[1])
            self.gather.metric("host.numa.free", number(seen[3] or ""), "MB", at, None, seen[1])


def ranktable(text: str, gather: Gather) -> None:
    """Rank, device and address of each entry of a rank table (`hccl.json`, server info)."""
    entry: dict[str, str] = {}
    at, place, ranks = 1, 0, 0
    for seen in _RANK.finditer(text):
        at += text.count("\n", place, seen.start())
        place = seen.start()
        key, value = seen.groups()
        if key in ("server_id", "host_ip", "container_ip", "server_count", "status", "version"):
            gather.fact(f"ranktable.{key}", value, at)
            continue
        if key in entry:
            entry = {}
        entry[key] = value
        rank, device = entry.get("rank_id", ""), entry.get("device_id", "")
        if rank.isdigit() and device.isdigit() and len(rank) < 9 and len(device) < 6 and rank.isascii() and device.isascii():
            ranks += 1
            gather.fact(f"ranktable.rank.{rank}.device", device, at, int(device))
            for name, field in (("device_ip", "ip"), ("super_device_id", "super_device")):
                if name in entry:
                    gather.fact(f"ranktable.rank.{rank}.{field}", entry[name], at, int(device))
            entry = {}
    if ranks:
        gather.fact("ranktable.ranks", str(ranks), at)
