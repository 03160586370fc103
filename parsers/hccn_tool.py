"""hccn_tool: state of the NPUs' network ports, by option or as a collection of many, and its CSV recordings.

>>> found = HccnToolParser().extract('''hccn_tool -i 3 -link -g
... link status: DOWN
... hccn_tool -i 3 -optical -g
... Rx Power1            : 0.0054 mW
... RxPower Low Thres    : 0.1445 mW
... hccn_tool -i 3 -stat -g
... roce_new_pkt_rty_num:206519
... hccn_tool -i 3 -net_health -g
... net health status: Socket failed''')
>>> [(m.name, m.value, m.device, m.label) for m in found.metrics]
[('link.status', 0.0, 3, ''), ('optical.rx_power', 0.0054, 3, '1'), ('optical.rx_power.low_threshold', 0.1445, 3, ''), \
('hccn.roce_new_pkt_rty_num', 206519.0, 3, '')]
>>> [(f.name, f.value) for f in found.facts]
[('device.3.link', 'DOWN'), ('device.3.net_health', 'Socket failed')]

Powers are in mW, temperatures in C, speeds in Mb/s. Counters keep their name behind "hccn."; in recordings large ones are rounded.
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers.base import Parser
from parsers.gather import Gather, number
from parsers.rows import Document, Record

MARKERS = ("hccn_tool", "link status", "net health status", "mac_tx_", "roce_", "optical info", "link up count", "LINK UP", "LINK_UP")
"""A text without any of these holds nothing for `extract`."""

_COMMAND = re.compile(r"(?:^|[\s/#$>])hccn_tool((?: -?[\w.]{1,60}){1,12})", re.ASCII)
_PAIR = re.compile(r"(?:\[devid (\d{1,5})\])?\s{0,16}([A-Za-z][\w ./()-]{0,60}?)\s{0,40}: {0,4}(.*)", re.ASCII)
_CHANGE = re.compile(r"(?:\[devid (\d{1,5})\])?\s{1,16}[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d \d{4}\s{1,16}LINK (UP|DOWN)", re.ASCII)
_LANE = re.compile(r"(tx power|rx power|tx bias|host snr lane|media snr lane) ?(\d{1,2})$", re.ASCII)
_LOSS = re.compile(r"(\d{1,9}) packets transmitted, (\d{1,9}) received, (\d{1,3}(?:\.\d{1,4})?)% packet loss", re.ASCII)
_TLS = re.compile(r"dev_id:(\d{1,5}), tls switch\[(\d)\]", re.ASCII)
_PORT_ROW = re.compile(r"\|\s*(\d{1,5})\s*\|\s*(\d{1,3})\s*\|\s*(\d{1,3})\s*\|\s*LINK_(UP|DOWN)\s*\|", re.ASCII)

_LANES = {
    "tx power": ("optical.tx_power", "mW"), "rx power": ("optical.rx_power", "mW"), "tx bias": ("optical.tx_bias", "mA"),
    "host snr lane": ("optical.host_snr", "dB"), "media snr lane": ("optical.media_snr", "dB"),
}  # fmt: skip
_OPTICAL = {
    "temperature": ("optical.temperature", "C"), "vcc": ("optical.vcc", "mV"), "rxpower low thres": ("optical.rx_power.low_threshold", "mW"),
    "rxpower high thres": ("optical.rx_power.high_threshold", "mW"), "txpower low thres": ("optical.tx_power.low_threshold", "mW"),
    "txpower high thres": ("optical.tx_power.high_threshold", "mW"), "temp high thres": ("optical.temperature.high_threshold", "C"),
    "vcc high thres": ("optical.vcc.high_threshold", "mV"), "vcc low thres": ("optical.vcc.low_threshold", "mV"),
    "link up count": ("link.up_count", ""), "link down count": ("link.down_count", ""), "speed": ("link.speed", "Mb/s"),
}  # fmt: skip
_FLAGS = {"tx los flag": "optical.tx_los", "rx los flag": "optical.rx_los", "tx lol flag": "optical.tx_lol", "rx lol flag": "optical.rx_lol"}
_FACTS = {
    "net health status": "net_health", "fec mode": "fec", "ipaddr": "ip", "netmask": "netmask", "present": "optical_present",
    "vendor name": "optical_vendor", "gateway": "gateway", "ifname": "lldp_port",
}  # fmt: skip
_STATE = {"UP": 1.0, "DOWN": 0.0, "PARTIAL LINK": 0.5, "PARTIAL UP": 0.5}


class HccnToolParser(Parser):
    kind: ClassVar[str] = "hccn-tool"

    def claims(self, path: str, head: str) -> int:
        if head.startswith("timestamp,npu_index,"):
            return 90
        sure = 0
        if "hccn_tool " in head:
            sure = 84
        elif "optical info:" in head or "packet statistics:" in head or "link change records" in head:
            sure = 84
        elif "hccn" in path.rsplit("/", 1)[-1] and ": " in head:
            sure = 55
        if sure and ("npu-smi info" in head or "version.info" in head):
            sure -= 12
        return sure if head.count("[ERROR] ") + head.count(" ERROR ") < 4 else sure // 3

    def record(self, line: str) -> Record | None:
        """Commands, keys with values and rows of tables are records of grammar "hccn-tool"."""
        if not line or line.isspace():
            return None
        first = line[0]
        if first in "+|" or first.isdigit() or line.startswith(("[devid", "timestamp,", "---")) or _COMMAND.search(line[:300]):
            return Record(line, grammar="hccn-tool")
        if ":" in line[:160] and _PAIR.match(line):
            return Record(line, grammar="hccn-tool")
        return None if first in " \t" else Record(line, grammar="text")

    def extract(self, text: str) -> Document:
        if not any(mark in text for mark in MARKERS) and not text.startswith("timestamp,npu_index,"):
            return Document()
        gather = Gather()
        answers = _Answers(gather)
        for at, line in enumerate(text.split("\n"), 1):
            if line and len(line) < 4000:
                answers.line(line, at)
        return gather.document


class _Answers:
    def __init__(self, gather: Gather) -> None:
        self.gather = gather
        self.device: int | None = None
        self.port = ""
        self.live = False
        self.columns: list[str] = []

    def line(self, line: str, at: int) -> None:
        gather = self.gather
        if "hccn_tool" in line and (command := _COMMAND.search(line)):
            words = command[1].split()
            options = {word: words[k + 1] for k, word in enumerate(words[:-1])}
            self.device, self.port, self.live, self.columns = _id(options.get("-i")), options.get("-p", ""), True, []
        elif line.startswith("timestamp,npu_index,"):
            self.columns = line.split(",")
        elif self.columns and line[0].isdigit():
            self._recording(line, at)
        elif line[0] == "|":
            if row := _PORT_ROW.match(line):
                self._change(int(row[1]), row[4], f"{row[2]}.{row[3]}", at)
        elif change := _CHANGE.match(line):
            self._change(_id(change[1]), change[2], "", at)
        elif loss := _LOSS.search(line[:400]):
            gather.metric("link.ping.loss", float(loss[3]), "%", at, self.device)
        elif tls := _TLS.match(line):
            gather.fact(f"device.{tls[1]}.tls", tls[2], at, int(tls[1]))
        elif ":" in line[:160] and (pair := _PAIR.match(line)):
            self._pair(pair, at)
        elif "npu-smi" in line or line.startswith(("cat ", "pip ")):
            self.live = False

    def _change(self, device: int | None, state: str, port: str, at: int) -> None:
        """A record of the past: newest first, so the first is the state now."""
        device = self.device if device is None else device
        self.gather.metric("link.change", _STATE[state], "", at, device, port)

    def _pair(self, pair: re.Match[str], at: int) -> None:
        device = self.device if pair[1] is None else int(pair[1])
        key, value, gather = " ".join(pair[2].split()).lower(), pair[3].strip(), self.gather
        if key == "link status" or (self.live and key.startswith("port ") and value.upper() in _STATE):
            state = value.upper()
            gather.metric("link.status", _STATE.get(state), "", at, device, key[5:] if key.startswith("port ") else "")
            if key == "link status" and device is not None:
                gather.fact(f"device.{device}.link", state, at, device)
        elif "_num" in key and " " not in key:
            gather.metric(f"hccn.{key}", _hex(value), "", at, device, self.port)
        elif not (self.live or pair[1] is not None):
            return
        elif lane := _LANE.match(key):
            name, unit = _LANES[lane[1]]
            gather.metric(name, number(value), unit, at, device, lane[2])
        elif key in _OPTICAL:
            name, unit = _OPTICAL[key]
            gather.metric(name, number(value), unit, at, device)
        elif key in _FLAGS:
            gather.metric(_FLAGS[key], _hex(value), "", at, device)
        elif key in _FACTS and device is not None:
            gather.fact(f"device.{device}.{_FACTS[key]}", value, at, device)

    def _recording(self, line: str, at: int) -> None:
        row = dict(zip(self.columns, line.split(","), strict=False))
        device, seconds = _id(row.get("npu_index")), number(row.get("timestamp", ""))
        ts = int(seconds * 1_000_000) if seconds is not None and 0 <= seconds < 1e11 else None
        for name, value in list(row.items())[:200]:
            if "_num" in name:
                self.gather.metric(f"hccn.{name}", number(value), "", at, device, "", ts)


def _hex(text: str) -> float | None:
    if text[:2].lower() == "0x" and len(text) < 20:
        try:
            return float(int(text, 16))
        except ValueError:
            return None
    return number(text)


def _id(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isdigit() and text.isascii() and len(text) < 6 else None
