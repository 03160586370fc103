"""The row types every parser yields: one place, known to all parsers and to nobody's rules.

Times are kept as printed (`ts`, microseconds since 1970 as if the printed clock were UTC) together with the clock they were
printed by; the ingest turns them into UTC once the zone of the file is known.
"""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, gc=False):
    """The head of one log record: what its first line says about itself."""

    message: str
    """The text behind the head: what the program said."""
    message_at: int = 0
    """Index in the line at which `message` begins."""
    ts: int | None = None
    """Microseconds since 1970-01-01 as printed, without zone correction unless `clock` is "zoned"."""
    clock: str = "none"
    """local: wall clock without zone; utc: known to be UTC; zoned: `ts` is already UTC; device: wall clock of the device;
    noyear: local with the year missing (`ts` counts from 1970); boot: microseconds since boot; none."""
    severity: str = ""
    """DEBUG, INFO, EVENT, WARNING, ERROR or FATAL; empty where the line does not say."""
    grammar: str = ""
    """The grammar that read the line, such as "plog", "vllm", "dmesg": the source kind of the line, whatever its file is."""
    module: str = ""
    process: str = ""
    node: str = ""
    pid: int | None = None
    tid: int | None = None
    device: int | None = None
    rank: int | None = None
    stream_id: int | None = None
    task_id: int | None = None
    function: str = ""
    src_file: str = ""
    src_line: int | None = None
    code: str = ""
    """Error code the record carries in a structural place: EZ9999, 507015, ERR00100, 0x80E01801, MIE04E020000."""


class Fact(msgspec.Struct, gc=False, frozen=True):
    """One statement about the environment, such as cann.version = 8.1.RC1."""

    name: str
    """Dotted: cann.version, driver.version, firmware.version, torch.version, torch_npu.version, vllm.version, soc,
    env.HCCL_BUFFSIZE, arg.block_size, pip.transformers, device.count, os.kernel, ..."""
    value: str
    line_no: int = 0
    """1-based line of the member it was read from."""
    node: str = ""
    device: int | None = None


class Metric(msgspec.Struct, gc=False, frozen=True):
    """One number read from npu-smi, hccn_tool or a metrics text."""

    name: str
    """Dotted: npu.hbm.used, npu.hbm.total, npu.hbm.bank.usage, npu.temperature, npu.power, npu.aicore.usage, npu.aicore.freq,
    npu.ecc.double_bit, link.speed, optical.rx_power, ..."""
    value: float
    unit: str = ""
    line_no: int = 0
    node: str = ""
    device: int | None = None
    ts: int | None = None
    label: str = ""
    """What tells series of one name apart: the bank, the port, the process."""


class Document(msgspec.Struct, gc=False):
    """What a whole text says beyond its lines: environment facts and numbers."""

    facts: list[Fact] = msgspec.field(default_factory=list)
    metrics: list[Metric] = msgspec.field(default_factory=list)
