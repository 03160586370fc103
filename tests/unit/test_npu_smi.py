"""npu-smi's tables and answers, of every generation, whole and cut."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.gather import number, soc_name
from parsers.npu_smi import NpuSmiParser
from parsers.rows import Document

SAMPLES = Path(__file__).parent.parent / "data" / "formats"
smi = NpuSmiParser()


def sample(name: str) -> Document:
    return smi.extract((SAMPLES / f"{name}.txt").read_text())


def fact(found: Document, name: str) -> list[str]:
    return [one.value for one in found.facts if one.name == name]


def metric(found: Document, name: str, device: int | None = None) -> list[float]:
    return [one.value for one in found.metrics if one.name == name and device in (None, one.device)]


@pytest.mark.parametrize(
    "name, driver, soc, devices, health, hbm",
    [
        ("01", "24.1.rc3", "Ascend910B3", 8, {3: "Warning"}, (4, 61204, 65536)),
        ("02", "24.1.1", "Ascend910B4", 3, {4: "Alarm"}, (0, 26838, 32768)),
        ("03", "24.1.rc3.7", "Ascend910_93", 8, {}, (1, 2874, 65536)),
        ("04", "26.0.rc2", "Ascend910_93", 6, {}, (5, 2874, 65536)),
        ("05", "25.3.rc1", "Ascend910_93", 4, {3: "UNKNOWN"}, (2, 3419, 65536)),
        ("06", "25.2.0", "Ascend310P3", 2, {}, None),
        ("07", "25.3.rc1", "Ascend310P3", 3, {1: "Critical", 2: "UNKNOWN"}, None),
        ("08", "21.0.2", "Ascend910A", 3, {}, (2, 0, 32768)),
        ("09", "26.0.0", "Ascend950PR", 2, {1: "Alarm"}, (1, 120110, 131072)),
    ],
)
def test_the_info_table_of_every_generation(
    name: str, driver: str, soc: str, devices: int, health: dict[int, str], hbm: tuple[int, int, int] | None
) -> None:
    found = sample(f"npu_smi_info/{name}")
    assert fact(found, "driver.version") == [driver] and fact(found, "soc") == [soc] and fact(found, "device.count") == [str(devices)]
    seen = {one.device: one.value for one in found.facts if one.name.endswith(".health")}
    assert len(seen) == devices and {device: word for device, word in seen.items() if word != "OK"} == health
    if hbm:
        device, used, total = hbm
        assert metric(found, "npu.hbm.used", device) == [used] and metric(found, "npu.hbm.total", device) == [total]
        assert metric(found, "npu.hbm.usage", device) == [round(used / total * 100, 2)]
    else:
        assert metric(found, "npu.hbm.used") == [] and metric(found, "npu.memory.total", 0) == [44280]


def test_missing_numbers_give_no_metric() -> None:
    dead = sample("npu_smi_info/05")
    assert [one.name for one in dead.metrics if one.device == 3] == []
    a3 = sample("npu_smi_info/03")
    assert metric(a3, "npu.power", 0) == [162.6] and metric(a3, "npu.power", 1) == []


def test_processes_belong_to_the_device_of_their_chip() -> None:
    found = sample("npu_smi_info/03")
    assert [(m.device, m.label, m.value) for m in found.metrics if m.name == "npu.process.memory"] == [
        (0, "118 VLLMWorker_TP", 58213), (1, "119 VLLMWorker_TP", 58190)]  # fmt: skip


def test_failure_texts_are_ordinary_lines_and_give_nothing() -> None:
    record = smi.record("dcmi module initialize failed. ret is -8005")
    assert record is not None and (record.grammar, record.message) == ("text", "dcmi module initialize failed. ret is -8005")
    found = sample("npu_smi_info/10")
    assert found.facts == [] and found.metrics == []


def test_queries_take_their_device_from_the_command_or_the_block() -> None:
    ecc = sample("npu_smi_query/03")
    assert [(m.name, m.value, m.device) for m in ecc.metrics if m.label == "HBM"][:3] == [
        ("npu.ecc.single_bit", 3, 1), ("npu.ecc.double_bit", 1, 1), ("npu.ecc.single_bit.total", 118, 1)]  # fmt: skip
    health = sample("npu_smi_query/05")
    assert fact(health, "device.3.health") == ["Alarm"] and fact(health, "device.3.error_code") == ["0x80E01801", "0x81078603"]
    usages = sample("npu_smi_query/06")
    assert metric(usages, "npu.hbm.usage", 0) == [93] and metric(usages, "npu.ctrlcpu.usage", 0) == [40]
    faults = sample("npu_smi_query/10")
    assert fact(faults, "device.0.error_code") == ["0x81AF8000", "0x80E01801"] and metric(faults, "npu.hccs.errors") == [12]


def test_the_board_names_the_chip_and_the_firmware() -> None:
    found = smi.extract(
        "npu-smi info -t board -i 0\n\tSoftware Version  : 25.5.1\n\tFirmware Version : 7.8.0.6.201\n\tCompatibility : NOK\n"
        "\tChip Name : Ascend910\n\tNPU Name  : 9382\n\tPCI Device ID : 0xD803\n"
    )
    assert [(one.name, one.value) for one in found.facts] == [
        ("driver.version", "25.5.1"), ("firmware.version", "7.8.0.6.201"), ("driver.compatibility", "NOK"), ("pci.device", "d803"),
        ("soc", "Ascend910_9382")]  # fmt: skip


def test_the_map_tells_npu_and_chip_from_device() -> None:
    found = smi.extract(
        "npu-smi info -m\n\tNPU ID    Chip ID    Chip Logic ID    Chip Phy-ID    Chip Name\n\t1     1     3     3     Ascend910\n"
        "\t1     2     -     -     Mcu\nnpu-smi info -t temp -i 1 -c 1\n\tTemperature (C) : 53\n"
    )
    assert metric(found, "npu.temperature", 3) == [53] and fact(found, "soc") == ["Ascend910_93"]


@pytest.mark.parametrize(
    "text",
    [
        "$ npu-smi info -t hbm -i 2\n\tNPU ID   : 2\n\tHBM Bank Count  : 8\n\n\tBank      Status    Total(MB)   Used(MB)    Usage(%)    Temp(C)\n"
        "\t0         UP        4096        3600        87.9        46\n\t1         DOWN      4096        0           NA          51\n",
        "# npu-smi info -t hbm\nNPU 2 HBM\n  bank0: UP     3600/4096 MB  87.9%\n  bank1: DOWN   0/4096 MB\n",
    ],
)
def test_hbm_bank_tables_in_both_spellings(text: str) -> None:
    found = smi.extract(text)
    assert [(m.label, m.value, m.device) for m in found.metrics if m.name == "npu.hbm.bank.usage"] == [("0", 87.9, 2)]
    assert [(m.label, m.value) for m in found.metrics if m.name == "npu.hbm.bank.up"] == [("0", 1), ("1", 0)]


def test_columns_of_watch_top_and_dmon() -> None:
    watch = sample("npu_smi_query/07")
    assert metric(watch, "npu.aicore.usage", 3) == [97] and metric(watch, "npu.usage", 6) == [0] and metric(watch, "npu.power", 3) == []
    assert {m.device for m in watch.metrics if m.name == "npu.hbm.usage"} == set(range(8))
    top = smi.extract("$ npu-smi top\nNPU   HBM-Usage(%)   HBM-Used(MB)   AICore(%)   Temp(C)\n0     55             18022          37          48\n")
    assert [(m.name, m.value, m.label) for m in top.metrics][:2] == [("npu.hbm.usage", 55, "top"), ("npu.hbm.used", 18022, "top")]
    dmon = smi.extract("$ npu-smi dmon -s 1\n# npu   Util(%)   Mem(%)   Temp(C)   Pwr(W)\n  0     69        97       52        172.6\n")
    assert [(m.name, m.value, m.label) for m in dmon.metrics][:2] == [("npu.usage", 69, "dmon"), ("npu.hbm.usage", 97, "dmon")]


def test_recordings_have_the_time_of_each_row() -> None:
    found = sample("npu_smi_query/12")
    assert metric(found, "npu.aicore.freq", 3)[:7] == [1000, 1000, 1000, 1000, 1000, 800, 800]
    assert found.metrics[0].ts == 1670052428_000_000


def test_a_table_between_log_lines_is_found_with_its_line_numbers() -> None:
    table = (SAMPLES / "npu_smi_info/02.txt").read_text()
    found = smi.extract("2025-01-01 10:00:00,000 - INFO - before\n" * 5 + table + "2025-01-01 10:00:00,000 - INFO - after\n")
    assert fact(found, "device.count") == ["3"] and next(one.line_no for one in found.facts if one.name == "device.4.health") == 18


@pytest.mark.parametrize("name", [f"npu_smi_info/{k:02}" for k in range(1, 11)] + [f"npu_smi_query/{k:02}" for k in range(1, 13)])
def test_cut_and_garbled_tables_never_raise(name: str) -> None:
    text = (SAMPLES / f"{name}.txt").read_text()
    for end in range(0, len(text), max(1, len(text) // 60)):
        smi.extract(text[:end])
        smi.extract(text[end:])
        smi.extract(text[:end] + "\0| ｜９９ |" + "9" * 400 + "|-|" + text[end:])


@given(st.lists(st.sampled_from(["| ", "0 ", "910B3 ", "OK ", "NA ", "/ ", "-", "\n", "| npu-smi ", "Version: ", "Health ", "Temp ",
    "Bus-Id ", "Memory-Usage ", "Phy-ID ", "Device ", "HBM-Usage ", "npu-smi info -i ", "-t hbm ", "NPU ID : ", "Chip ID : ",
    "Bank Status Total(MB) ", "1e999 ", "９ ",
    "Process id ", "+====+"]
), max_size=60).map("".join))  # fmt: skip
def test_pieces_of_tables_in_any_order_never_raise(text: str) -> None:
    smi.extract(text)
    for line in text.split("\n"):
        smi.record(line)


def test_a_megabyte_of_tables_is_read_in_time() -> None:
    text = (SAMPLES / "npu_smi_info/01.txt").read_text()
    text *= 1_000_000 // len(text)
    start = time.perf_counter()
    smi.extract(text)
    assert time.perf_counter() - start < 2


def test_numbers_that_are_none_or_endless_are_refused() -> None:
    assert [number(text) for text in ("NA", "-", "", "x1", "1e999", "12:30")] == [None] * 6
    assert [number(text) for text in ("93%", " -3.5 C", "8.07E+13")] == [93, -3.5, 8.07e13]


@pytest.mark.parametrize(
    "name, soc",
    [("910B3", "Ascend910B3"), ("910B4-1", "Ascend910B4-1"), ("Ascend 910A", "Ascend910A"), ("ascend310p3", "Ascend310P3"),
     ("910ProB", "Ascend910ProB"), ("Ascend950PR", "Ascend950PR"), ("Ascend950DT_95A1", "Ascend950DT_95a1"), ("Mcu", ""), ("", ""), ("9" * 50, "")],
)  # fmt: skip
def test_chip_names_are_brought_to_one_spelling(name: str, soc: str) -> None:
    assert soc_name(name) == soc
