"""All sample files of all formats: each is taken for what it is, whatever its name, and its lines are read.

`tests/data/formats/index.tsv` says of each sample what kind it is and where it stands in a bundle. Samples in which nothing but the path
tells the device from the host, or lists from other lists, name a second kind for a file that was renamed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from parsers import encoding, registry
from parsers.base import clean

ROOT = Path(__file__).parent.parent / "data" / "formats"
SAMPLES = [row.split("\t") for row in (ROOT / "index.tsv").read_text().splitlines()[1:]]

LEAST = {
    "plog": 0.94, "hccl": 1.0, "module_file": 0.98, "device_app": 1.0, "slog_device_os": 1.0, "slog_firmware": 0.89, "bbox": 0.6,
    "stackcore_atrace": 0.3, "dmesg": 1.0, "messages": 1.0, "host_kernel": 1.0, "npu_smi_info": 0.97, "npu_smi_query": 0.9, "hccn_tool": 0.94,
    "cann_block": 0.2, "torch_npu": 0.55, "vllm": 0.9, "mindie": 0.98, "mindspore": 0.4, "cluster": 1.0, "env": 0.85, "bmc_lcne": 0.95,
}  # fmt: skip
"""Share of the lines that are records of a known grammar; most of the rest continues a record: stack frames, register dumps, hints."""
MOST_TEXT = {"cann_block": 0.04, "torch_npu": 0.14, "vllm": 0.08, "mindspore": 0.1, "env": 0.13, "npu_smi_info": 0.03, "hccn_tool": 0.06}
"""Share of the lines of which no grammar knows anything."""


def test_every_sample_is_listed_once() -> None:
    assert sorted(f"{path.parent.name}/{path.stem}" for path in ROOT.glob("*/*.txt")) == sorted(row[0] for row in SAMPLES)
    assert len(SAMPLES) == 158


@pytest.mark.parametrize("sample, kind, path, renamed", SAMPLES, ids=[row[0] for row in SAMPLES])
def test_a_sample_is_taken_for_what_it_is_under_any_name(sample: str, kind: str, path: str, renamed: str) -> None:
    head = (ROOT / f"{sample}.txt").read_bytes()[: registry.HEAD]
    assert registry.classify(path, head).kind == kind
    assert registry.classify("x.txt", head).kind == renamed


def test_the_lines_of_every_format_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    lines = dict.fromkeys(LEAST, 0)
    records, text = lines.copy(), lines.copy()
    for sample, kind, _, _ in SAMPLES:
        group = sample.split("/")[0]
        parser = registry.parser(kind)
        data = (ROOT / f"{sample}.txt").read_bytes()
        coding = encoding.detect(data[: registry.HEAD])
        for raw in data.split(b"\n"):
            line = clean(encoding.decode(raw, coding))
            if line.strip():
                record = parser.record(line)
                lines[group] += 1
                records[group] += record is not None and record.grammar != "text"
                text[group] += record is not None and record.grammar == "text"
    print(f"\n{'format':18} lines records continued text")
    for group, count in lines.items():
        shares = (records[group] / count, 1 - (records[group] + text[group]) / count, text[group] / count)
        print(f"{group:18} {count:5} {shares[0]:7.3f} {shares[1]:9.3f} {shares[2]:4.3f}")
    for group, count in lines.items():
        assert records[group] / count >= LEAST[group], group
        assert text[group] / count <= MOST_TEXT.get(group, 0.02), group


def test_gb18030_and_utf8_samples_read_alike() -> None:
    head = (ROOT / "messages" / "06.txt").read_bytes()
    assert registry.classify("messages-gbk", head).encoding == "gb18030"
    assert "设备" in encoding.decode_all(head, "gb18030")
