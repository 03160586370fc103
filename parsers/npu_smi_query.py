"""npu-smi's answers other than the `info` table: `-t` queries, `-m` maps, HBM banks, watch, top, dmon and recordings.

>>> gather = Gather()
>>> extract('''npu-smi info -t ecc -i 1
...     HBM Double Bit Error Count               : 1
...     HBM Double Bit Aggregate Total Err Cnt   : 2
... npu-smi info -t health -i 3
...     Health Status                  : Alarm
...     Error Code                     : 80E01801 81078603
... npu-smi info -t hbm -i 0
...     Bank      Status    Total(MB)   Used(MB)    Usage(%)    Temp(C)
...     5         DOWN      4096        0           NA          51'''.split(chr(10)), gather, {})
>>> [(f.name, f.value, f.device) for f in gather.document.facts]
[('device.3.health', 'Alarm', 3), ('device.3.error_code', '0x80E01801', 3), ('device.3.error_code', '0x81078603', 3)]
>>> [(m.name, m.value, m.device, m.label) for m in gather.document.metrics][:3]
[('npu.ecc.double_bit', 1.0, 1, 'HBM'), ('npu.ecc.double_bit.total', 2.0, 1, 'HBM'), ('npu.hbm.bank.up', 0.0, 0, '5')]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from parsers.gather import Gather, number, soc_name

_COMMAND = re.compile(r"(?:^|[\s/#$>])npu-smi\s+(info|top|dmon|set)\b", re.ASCII)
_OPTION = re.compile(r"\s-(i|c|t)[ =](\w{1,40})", re.ASCII)
_PAIR = re.compile(r"\s{0,16}([A-Za-z][\w /()%.,-]{0,60}?)\s{0,48}:[ \t]?(.*)", re.ASCII)
_EVENT = re.compile(r"event id ?= ?(0x[0-9A-Fa-f]{1,8})", re.ASCII)
_CODE = re.compile(r"(?<![0-9A-Za-z])(?:0x)?([0-9A-Fa-f]{8})(?![0-9A-Za-z])", re.ASCII)
_COLUMN = re.compile(r"(?:# ?)?npu(?=\s{2}|$)|[A-Za-z][\w-]{0,20}(?: [A-Za-z]{1,20}){0,3}\([^)]{1,8}\)|\b(?:Bank|Status)\b", re.ASCII | re.IGNORECASE)
_BANK = re.compile(
    r"\s{0,16}bank ?(\d{1,3})\s?: {0,4}([A-Za-z]{2,12})\s{1,12}(\d{1,9})\s?/\s?(\d{1,9})(?: ?MB)?\s{0,12}(\d{1,3}(?:\.\d{1,4})?)?",
    re.ASCII | re.IGNORECASE,
)
_BANK_OF = re.compile(r"\s{0,8}NPU (\d{1,5}) HBM", re.ASCII | re.IGNORECASE)
_PROCESS = re.compile(
    r"Process id\s{0,20}:\s{0,20}(\d{1,10})\s{1,20}Process name\s{0,20}:\s{0,20}(\S{0,80})\s{1,40}Process memory\(MB\)\s{0,20}:\s{0,20}(\d{1,12})",
    re.ASCII,
)
_PCIE = re.compile(r"(\d{1,3}(?:\.\d)?) ?GT/s", re.ASCII | re.IGNORECASE)

NUMBERS = {
    "temperature(c)": ("npu.temperature", "C"), "chip temperature(c)": ("npu.temperature", "C"), "hbm temperature(c)": ("npu.hbm.temperature", "C"),
    "npu real-time power(w)": ("npu.power", "W"), "power dissipation(w)": ("npu.power", "W"), "real-time power(w)": ("npu.power", "W"),
    "hbm capacity(mb)": ("npu.hbm.total", "MB"), "hbm used(mb)": ("npu.hbm.used", "MB"), "hbm usage rate(%)": ("npu.hbm.usage", "%"),
    "hbm usage(mb)": ("npu.hbm.used", "MB"), "hbm bandwidth usage rate(%)": ("npu.hbm.bandwidth.usage", "%"),
    "hbm clock speed(mhz)": ("npu.hbm.freq", "MHz"), "hbm bank count": ("npu.hbm.bank.count", ""),
    "ddr capacity(mb)": ("npu.memory.total", "MB"), "ddr usage rate(%)": ("npu.memory.usage", "%"),
    "ddr bandwidth usage rate(%)": ("npu.memory.bandwidth.usage", "%"),
    "aicore usage rate(%)": ("npu.aicore.usage", "%"), "aivector usage rate(%)": ("npu.aivector.usage", "%"),
    "aicube usage rate(%)": ("npu.aicube.usage", "%"), "aicpu usage rate(%)": ("npu.aicpu.usage", "%"),
    "ctrlcpu usage rate(%)": ("npu.ctrlcpu.usage", "%"), "npu utilization(%)": ("npu.usage", "%"),
    "aicore count": ("npu.aicore.count", ""), "aicore freq(mhz)": ("npu.aicore.freq", "MHz"), "aicore curfreq(mhz)": ("npu.aicore.freq", "MHz"),
    "aicore current freq(mhz)": ("npu.aicore.freq", "MHz"), "aicore current frequency(mhz)": ("npu.aicore.freq", "MHz"),
    "current aicore frequency(mhz)": ("npu.aicore.freq", "MHz"), "aicore rated freq(mhz)": ("npu.aicore.freq.rated", "MHz"),
    "aicore rated frequency(mhz)": ("npu.aicore.freq.rated", "MHz"), "rated aicore frequency(mhz)": ("npu.aicore.freq.rated", "MHz"),
    "stream total num": ("npu.stream.total", ""), "active stream num": ("npu.stream.active", ""), "idle stream num": ("npu.stream.idle", ""),
    "voltage(mv)": ("npu.voltage", "mV"), "hccs error count": ("npu.hccs.errors", ""), "hccs retry count": ("npu.hccs.retries", ""),
    "super pod size": ("npu.superpod.size", ""), "fault event count": ("npu.fault_events", ""), "card count": ("npu.card.count", ""),
    "tx error count": ("npu.pcie.errors", ""), "rx error count": ("npu.pcie.errors", ""), "lcrc error count": ("npu.pcie.errors", ""),
    "ecrc error count": ("npu.pcie.errors", ""), "pcs rx error count": ("npu.pcie.errors", ""), "phy lane error count": ("npu.pcie.errors", ""),
    "dl lcrc error count": ("npu.pcie.errors", ""), "dl dcrc error count": ("npu.pcie.errors", ""), "retry count": ("npu.pcie.retries", ""),
    "vpc usage rate(%)": ("npu.dvpp.usage", "%"), "jpegd usage rate(%)": ("npu.dvpp.usage", "%"), "vdec usage rate(%)": ("npu.dvpp.usage", "%"),
}  # fmt: skip
"""Keys (lower case, no blank before the unit) that name a number: metric and unit."""

COLUMNS = {
    "pwr": ("npu.power", "W"), "power": ("npu.power", "W"), "temp": ("npu.temperature", "C"), "ai core": ("npu.aicore.usage", "%"),
    "aicore": ("npu.aicore.usage", "%"), "ai cpu": ("npu.aicpu.usage", "%"), "ctrl cpu": ("npu.ctrlcpu.usage", "%"),
    "memory": ("npu.hbm.usage", "%"), "mem": ("npu.hbm.usage", "%"), "memory bw": ("npu.hbm.bandwidth.usage", "%"),
    "npu util": ("npu.usage", "%"), "util": ("npu.usage", "%"), "ai cube": ("npu.aicube.usage", "%"), "ai vector": ("npu.aivector.usage", "%"),
    "hbm-usage": ("npu.hbm.usage", "%"), "hbm-used": ("npu.hbm.used", "MB"), "freq": ("npu.aicore.freq", "MHz"),
}  # fmt: skip
_CSV = {"power": ("npu.power", "W"), "freq": ("npu.aicore.freq", "MHz"), "temp": ("npu.temperature", "C")}
_FACTS = {
    "health": "health", "health status": "health", "health state": "health", "dvpp status": "dvpp", "hccs health status": "hccs_health",
    "system time(local)": "system_time",
}  # fmt: skip


def extract(lines: Sequence[str], gather: Gather, devices: dict[tuple[int, int], int]) -> None:
    """Read all answers; `devices`: (NPU id, chip id) -> device, as far as a table showed it."""
    _Answers(gather, devices).read(lines)


class _Answers:
    def __init__(self, gather: Gather, devices: dict[tuple[int, int], int]) -> None:
        self.gather, self.devices = gather, devices
        self._fresh(None, None, "")

    def _fresh(self, npu: int | None, chip: int | None, query: str) -> None:
        self.npu, self.chip, self.query = npu, chip, query
        self.pairs: list[tuple[str, str, int]] = []
        self.columns: list[str] = []
        self.rows: list[tuple[list[str], int]] = []
        self.bank_npu: int | None = npu

    def read(self, lines: Sequence[str]) -> None:
        for at, line in enumerate(lines, 1):
            if len(line) > 2000 or not line or line[0] in "|+":
                continue
            self._line(line, at)
        self._flush()

    def _line(self, line: str, at: int) -> None:
        if "npu-smi" in line and (command := _COMMAND.search(line)):
            self._flush()
            options = dict(_OPTION.findall(line))
            self._fresh(_id(options.get("i")), _id(options.get("c")), options.get("t") or str(command[1]))
            return
        if line.startswith("time,dev_id,"):
            self._flush()
            self._fresh(None, None, "csv")
            self.columns = line.split(",")
            return
        if self.query == "csv" and line[0].isdigit():
            self._recording(line, at)
            return
        if "event id" in line:
            for code in _EVENT.findall(line):
                self.pairs.append(("fault event", code, at))
        if ":" in line:
            if bank := _BANK.match(line):
                self._bank(bank[1], bank[2], float(bank[3]), float(bank[4]), number(bank[5] or ""), None, at)
                return
            if pair := _PAIR.match(line):
                self._pair(" ".join(pair[1].split()).lower().replace(" (", "("), pair[2], at)
                return
        head = line[:24].lstrip().lower()
        if head.startswith(("npu", "# npu", "bank")):
            self._header(line)
        elif self.columns and head[:1].isdigit():
            self._row(line, at)

    # ------------------------------------------------------------ keys and values

    def _pair(self, key: str, value: str, at: int) -> None:
        if key == "npu id" and self.pairs and any(k != "chip count" for k, _, _ in self.pairs):
            self._flush()
            self._fresh(None, None, self.query)
        if key == "npu id":
            self.npu = self.bank_npu = _id(value.strip())
        elif key == "chip id":
            self.chip = _id(value.strip())
            if any(k not in ("chip count", "chip id") for k, _, _ in self.pairs):  # some blocks name their chip last
                self._flush()
        elif key in NUMBERS or key in _FACTS or key in _BOARD or key.startswith(("hbm ", "ddr ", "error code", "pcie ", "process id")):
            self.pairs.append((key, value.strip(), at))

    def _device(self) -> int | None:
        if self.npu is None:
            return None
        return self.devices.get((self.npu, self.chip or 0), self.npu)

    def _flush(self) -> None:
        self._flush_rows()
        device, gather = self._device(), self.gather
        pairs, self.pairs = self.pairs, []
        board: dict[str, tuple[str, int]] = {}
        for key, value, at in pairs:
            if key in NUMBERS:
                name, unit = NUMBERS[key]
                if value.startswith("["):
                    values = [number(part) for part in value.strip("[] ").split(",")]
                    gather.metric(name, sum(v for v in values if v is not None), unit, at, device)
                else:
                    label = key.removesuffix(" error count") if name == "npu.pcie.errors" else key.split(" ")[0] if "dvpp" in name else ""
                    gather.metric(name, number(value), unit, at, device, label)
            elif key in _FACTS:
                if device is not None:
                    gather.fact(f"device.{device}.{_FACTS[key]}", value, at, device)
            elif key in _BOARD:
                board.setdefault(key, (value, at))
            elif key == "fault event" or key.startswith("error code"):
                codes = _CODE.findall(value) if key != "fault event" else [value[2:].zfill(8)]
                for code in codes[:64]:
                    gather.fact(f"device.{device if device is not None else '-'}.error_code", f"0x{code.upper()}", at, device)
            elif key.startswith("process id") and (seen := _PROCESS.search(f"Process id:{value}")):
                gather.metric("npu.process.memory", float(seen[3]), "MB", at, device, f"{seen[1]} {seen[2]}".strip())
            elif key.startswith(("hbm ", "ddr ")):
                self._ecc(key, value, at, device)
            elif key.startswith("pcie "):
                self._pcie(key, value, at, device)
        self._board(board, device)

    def _ecc(self, key: str, value: str, at: int, device: int | None) -> None:
        for word, name in (("single bit", "npu.ecc.single_bit"), ("double bit", "npu.ecc.double_bit")):
            if word in key:
                rest = key.split(word, 1)[1].strip()
                suffix = {
                    "error count": "", "aggregate total err cnt": ".total", "isolated pages count": ".isolated_pages",
                    "next-isolated pages count": ".next_isolated_pages",
                }.get(rest)  # fmt: skip
                if suffix is not None:
                    self.gather.metric(name + suffix, number(value), "", at, device, key[:3].upper())

    def _pcie(self, key: str, value: str, at: int, device: int | None) -> None:
        if "speed" in key:
            seen = _PCIE.search(value)
            self.gather.metric("npu.pcie.speed", float(seen[1]) if seen else number(value), "GT/s", at, device, "max" if "max" in key else "")
        elif "width" in key:
            self.gather.metric("npu.pcie.width", number(value.lower().lstrip("x")), "", at, device, "max" if "max" in key else "")

    def _board(self, board: dict[str, tuple[str, int]], device: int | None) -> None:
        for key, name in (("software version", "driver.version"), ("firmware version", "firmware.version")):
            if key in board and board[key][0][:1].isdigit():
                self.gather.fact(name, *board[key])
        if "compatibility" in board:
            self.gather.fact("driver.compatibility", *board["compatibility"])
        if "product name" in board:
            self.gather.fact("board.product", *board["product name"])
        if "pci device id" in board:
            self.gather.fact("pci.device", board["pci device id"][0].lower().removeprefix("0x"), board["pci device id"][1])
        chip, variant = board.get("chip name", ("", 0)), board.get("npu name", ("", 0))
        name = chip[0].replace(" ", "")
        if variant[0].isalnum() and name.lower().removeprefix("ascend") in ("910", "950pr", "950dt"):
            name = f"Ascend{name.lower().removeprefix('ascend').upper()}_{variant[0]}"
        if soc := soc_name(name):
            self.gather.fact("soc", soc, chip[1])

    # ------------------------------------------------------------ columns

    def _header(self, line: str) -> None:
        self._flush_rows()
        if seen := _BANK_OF.match(line):
            self.bank_npu, self.columns = int(seen[1]), []
            return
        lowered = line.lower()
        if "chip id" in lowered and "chip name" in lowered:
            self.columns = ["map", *re.split(r"\s{2,}", lowered.strip())]
            return
        names = [found.lower() for found in _COLUMN.findall(line)]
        if len(names) >= 3 or (len(names) >= 2 and names[0].startswith("npuid")):
            self.columns = names
            if names[0] == "npu":
                self.query = "top"
            elif names[0].startswith("#"):
                self.query = "dmon"
            elif names[0].startswith("npuid"):
                self.query = "watch"

    def _row(self, line: str, at: int) -> None:
        if self.columns[0] == "map":
            self._map(line, at)
            return
        cells = line.split()
        if len(cells) != len(self.columns):
            return
        if self.columns[0] == "bank":
            row = dict(zip((name.split("(")[0] for name in self.columns), cells, strict=True))
            total, used = number(row.get("total", "")), number(row.get("used", ""))
            self._bank(cells[0], row.get("status", ""), used, total, number(row.get("usage", "")), number(row.get("temp", "")), at)
            return
        self.rows.append((cells, at))

    def _flush_rows(self) -> None:
        """The rows of one table of columns. Where an NPU has two chips (A3), its devices are counted through."""
        rows, self.rows = self.rows, []
        chips = len(self.columns) > 1 and self.columns[1].startswith("chipid")
        pairs = chips and any(cells[1] not in ("0", "-", "NA") for cells, _ in rows)
        label = self.query if self.query in ("top", "dmon", "watch") else ""
        for cells, at in rows:
            npu, chip = _id(cells[0]), _id(cells[1]) if chips else 0
            if npu is None:
                continue
            device = self.devices.get((npu, chip or 0), npu * 2 + (chip or 0) if pairs else npu)
            for name, cell in zip(self.columns, cells, strict=True):
                known = COLUMNS.get(name.split("(")[0].strip())
                if known:
                    self.gather.metric(known[0], number(cell), known[1], at, device, label)

    def _map(self, line: str, at: int) -> None:
        cells = re.split(r"\s{2,}|\t", line.strip())
        names = self.columns[1:]
        if len(cells) != len(names):
            return
        row = dict(zip(names, cells, strict=True))
        npu, chip, logic = _id(row.get("npu id")), _id(row.get("chip id")), _id(row.get("chip logic id"))
        physical = _id(row.get("chip phy-id"))
        if npu is None or chip is None or row.get("chip name", "").lower() == "mcu":
            return
        device = physical if physical is not None else logic if logic is not None else npu
        self.devices.setdefault((npu, chip), device)
        self.gather.fact(f"device.{device}.npu", f"{npu}.{chip}", at, device)
        if soc := soc_name(row.get("chip name", ""), a3=physical is not None):
            self.gather.fact("soc", soc, at)

    def _bank(self, bank: str, status: str, used: float | None, total: float | None, usage: float | None, temp: float | None, at: int) -> None:
        npu = self.bank_npu
        device = None if npu is None else self.devices.get((npu, self.chip or 0), npu)
        gather = self.gather
        up = {"UP": 1.0, "OK": 1.0, "NORMAL": 1.0, "ONLINE": 1.0, "DOWN": 0.0, "OFFLINE": 0.0, "FAULT": 0.0, "ABNORMAL": 0.0}.get(status.upper())
        gather.metric("npu.hbm.bank.up", up, "", at, device, bank)
        gather.metric("npu.hbm.bank.used", used, "MB", at, device, bank)
        gather.metric("npu.hbm.bank.total", total, "MB", at, device, bank)
        if usage is None and used is not None and total and up != 0.0:
            usage = round(used / total * 100, 2)
        gather.metric("npu.hbm.bank.usage", usage, "%", at, device, bank)
        gather.metric("npu.hbm.bank.temperature", temp, "C", at, device, bank)

    def _recording(self, line: str, at: int) -> None:
        cells = line.split(",")
        row = dict(zip(self.columns, cells, strict=False))
        device, seconds = _id(row.get("dev_id")), number(row.get("time", ""))
        ts = int(seconds * 1_000_000) if seconds is not None and 0 <= seconds < 1e11 else None
        for name, (metric, unit) in _CSV.items():
            self.gather.metric(metric, number(row.get(name, "")), unit, at, device, "", ts)


_BOARD = frozenset({"software version", "firmware version", "compatibility", "chip name", "npu name", "product name", "pci device id"})


def _id(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isdigit() and text.isascii() and len(text) < 6 else None
