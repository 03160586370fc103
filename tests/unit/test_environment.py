"""Facts about versions, settings and hosts, from every place that people collect them in."""

from __future__ import annotations

import doctest
import importlib
import re
import time
from pathlib import Path

import hyperscan
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.environment import FACT_PATTERNS, EnvironmentParser
from parsers.rows import Document

SAMPLES = Path(__file__).parent.parent / "data" / "formats"
environment = EnvironmentParser()


def facts(text: str) -> dict[str, str]:
    """The first value of each fact."""
    out: dict[str, str] = {}
    for one in environment.extract(text).facts:
        out.setdefault(one.name, one.value)
    return out


def test_a_collection_names_driver_firmware_and_cann_apart() -> None:
    found = facts((SAMPLES / "env/01.txt").read_text())
    assert found["driver.version"] == "23.0.7" and found["firmware.version"] == "7.1.0.11.220" and found["cann.version"] == "7.0.0"
    assert found["pip.torch_npu"] == found["torch_npu.version"] == "2.1.0.post8"


def test_version_files_without_a_title_are_told_apart_by_their_keys() -> None:
    assert facts("Version=25.3.rc1\nascendhal_version=7.35.19\n")["driver.version"] == "25.3.rc1"
    assert facts("Version=7.5.0.1.129\nfirmware_version=1.0\n") == {"firmware.version": "7.5.0.1.129"}
    assert facts("package_name=Ascend-cann-toolkit\nversion=8.5.0\n")["cann.version"] == "8.5.0"
    assert "driver.version" not in facts('Version=7.7.0.1.231\nversion_dir=8.2.RC1\nrequired_package_runtime_version="8.2"\n')
    assert facts('version_dir=8.2.RC1\nrequired_package_runtime_version="8.2"\n')["cann.version"] == "8.2.RC1"


def test_commented_version_files_count() -> None:
    found = facts("# cat /usr/local/Ascend/driver/version.info\n# Version=6.3.9.3\n# ascendhal_version=7.35.19\n")
    assert found["driver.version"] == "6.3.9.3"


def test_collect_env_of_vllm_ascend() -> None:
    found = facts((SAMPLES / "env/05.txt").read_text())
    assert found["torch.version"] == "2.8.0+cpu" and found["vllm.version"] == "0.11.0" and found["vllm_ascend.version"] == "0.11.0rc3"
    assert found["python.version"] == "3.11.13" and found["os.name"] == "Ubuntu 22.04.5 LTS (aarch64)" and found["cann.version"] == "8.3.RC1"
    assert found["env.ASCEND_RT_VISIBLE_DEVICES"] == "4,5,6,7"


@pytest.mark.parametrize(
    "line, name, value",
    [
        ("cann=8.2.RC1", "cann.version", "8.2.RC1"),
        ("CANN: 8.1.RC1", "cann.version", "8.1.RC1"),
        ("CANN toolkit: 6.3.0", "cann.version", "6.3.0"),
        ("CANN_toolkit=8.0.RC1.alpha003", "cann.version", "8.0.RC1.alpha003"),
        ("- CANN version: v8.3.RC1 (from the image)", "cann.version", "8.3.RC1"),
        ("HDK driver : 6.3.9.1", "driver.version", "6.3.9.1"),
        ("driver=24.1.rc3", "driver.version", "24.1.rc3"),
        ("NPU firmware: 7.5.0.3.220", "firmware.version", "7.5.0.3.220"),
        ("torch-npu==2.2.0a0+gitb5f1e3c", "torch_npu.version", "2.2.0a0+gitb5f1e3c"),
        ("torch_npu: 2.5.1.post1", "torch_npu.version", "2.5.1.post1"),
        ("onnxruntime_cann=1.22.0", "pip.onnxruntime_cann", "1.22.0"),
        ("[pip3] torch_npu==2.8.0", "torch_npu.version", "2.8.0"),
        ("[conda] torch                     2.1.0                    pypi_0    pypi", "torch.version", "2.1.0"),
        ("vllm_ascend        0.11.0rc3", "vllm_ascend.version", "0.11.0rc3"),
        ("vllm-ascend: v0.9.1", "vllm_ascend.version", "0.9.1"),
        ("python: 3.10.14", "python.version", "3.10.14"),
        ("npu: Atlas 800I A2 (910B4, 32GB)", "soc", "Ascend910B4"),
        ("SOC version = Ascend910B3", "soc", "Ascend910B3"),
        ("kernel: 5.10.0-182.0.0.95.oe2203sp3.aarch64", "os.kernel", "5.10.0-182.0.0.95.oe2203sp3.aarch64"),
        ("os: openEuler 22.03 (LTS-SP3)", "os.name", "openEuler 22.03 (LTS-SP3)"),
        ("image=gpustack/gpustack:v0.5.1-npu", "container.image", "gpustack/gpustack:v0.5.1-npu"),
        ('            "Image": "registry.local/team/serve:7",', "container.image", "registry.local/team/serve:7"),
        ('  "torch_npu": "2.5.1",', "torch_npu.version", "2.5.1"),
        ("Ascend-cann-atb : 8.2.RC1", "atb.version", "8.2.RC1"),
        ("Ascend-mindie : MindIE 2.1.RC1.B152", "mindie.version", "2.1.RC1.B152"),
        ("MindSpore version:  2.2.14", "mindspore.version", "2.2.14"),
        ("./Ascend-cann-toolkit_8.2.RC1_linux-aarch64.run --install", "cann.version", "8.2.RC1"),
        ("./Ascend-hdk-910b-npu-driver_25.2.0_linux-aarch64.run --full", "driver.version", "25.2.0"),
        ("RuntimeError: Unsupported SOC version: Ascend310B4", "soc", "Ascend310B4"),
        ("docker run quay.io/ascend/vllm-ascend:v0.10.0rc1 bash", "vllm_ascend.version", "0.10.0rc1"),
        ("x ImportError in /usr/local/Ascend/cann-8.5.0/tools", "cann.version", "8.5.0"),
        ("(E pid=8) INFO 11-14 21:01:43 [core.py:93] Initializing a V1 LLM engine (v0.11.1rc6.dev115+gbc926c122) with config: model='m'",
         "vllm.version", "0.11.1rc6.dev115+gbc926c122"),
    ],
)  # fmt: skip
def test_versions_in_the_spellings_of_notes_logs_and_paths(line: str, name: str, value: str) -> None:
    assert facts(line).get(name) == value


def test_pip_listings_count_every_package_and_prose_counts_none() -> None:
    found = facts("Package      Version\n------------ -------\nabsl-py      2.1.0\ntorch        2.1.0\n\nsome-text    3.0 of it\n")
    assert found["pip.absl_py"] == "2.1.0" and found["torch.version"] == "2.1.0" and "pip.some_text" not in found
    assert facts("Name: torch-npu\nVersion: 2.1.0.post8\nSummary: x\n")["torch_npu.version"] == "2.1.0.post8"
    assert facts("step 3 took 4.5 s\nloss 0.1 today\npython: can't open file '/x/1.2.py'\n") == {}


@pytest.mark.parametrize(
    "text, name, value",
    [
        ("export HCCL_BUFFSIZE=512", "HCCL_BUFFSIZE", "512"),
        ("export HCCL_ALGO=\"level0:NA;level1:ring\"", "HCCL_ALGO", "level0:NA;level1:ring"),
        ("export A_A=1; export HCCL_BUFFSIZE=200", "HCCL_BUFFSIZE", "200"),
        ("  - HCCL_BUFFSIZE=512", "HCCL_BUFFSIZE", "512"),
        ("declare -x ASCEND_LAUNCH_BLOCKING=\"1\"", "ASCEND_LAUNCH_BLOCKING", "1"),
        ("TASK_QUEUE_ENABLE=2 HCCL_BUFFSIZE=1024 python3 train.py", "HCCL_BUFFSIZE", "1024"),
        ("docker run -d -e ASCEND_VISIBLE_DEVICES=0-7 --env \"HCCL_BUFFSIZE=300\" img", "HCCL_BUFFSIZE", "300"),
        ("ENV PYTORCH_NPU_ALLOC_CONF=expandable_segments:True", "PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True"),
        ("        - name: HCCL_CONNECT_TIMEOUT\n          value: \"1800\"", "HCCL_CONNECT_TIMEOUT", "1800"),
        ("            \"Env\": [\n                \"HCCL_BUFFSIZE=120\",", "HCCL_BUFFSIZE", "120"),
        ("os.environ[\"ASCEND_RT_VISIBLE_DEVICES\"] = \"2,3\"", "ASCEND_RT_VISIBLE_DEVICES", "2,3"),
        ("runtime_env={'env_vars': {'HCCL_EXEC_TIMEOUT': '3600'}}", "HCCL_EXEC_TIMEOUT", "3600"),
        ("  VLLM_USE_V1: \"1\"", "VLLM_USE_V1", "1"),
        ("[INFO] HCCL(7,python):2025-01-01-10:00:00.000.000 [externalinput.cc:1] [7]HCCL_EXEC_TIMEOUT set by environment to [600]s",
         "HCCL_EXEC_TIMEOUT", "600"),
        ("TZ=Asia/Shanghai", "TZ", "Asia/Shanghai"),
    ],
)  # fmt: skip
def test_environment_variables_wherever_they_are_set(text: str, name: str, value: str) -> None:
    assert facts(text).get(f"env.{name}") == value


@pytest.mark.parametrize(
    "line",
    ["# export HCCL_BUFFSIZE=512", "# docker run -e HCCL_BUFFSIZE=512 img",
     "If you want the stack, please set the environment variable ASCEND_LAUNCH_BLOCKING=1.", "export HF_TOKEN=abc",
     "OPENAI_API_KEY=abc", "(Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable)", "ret=ACL_ERROR_RT_FAILED", "export DB_PASSWORD=x",
     "set ASCEND_RT_VISIBLE_DEVICES:[4] error, input data rang[0-2)"],
)  # fmt: skip
def test_comments_advice_and_secrets_are_no_settings(line: str) -> None:
    assert [name for name in facts(line) if name.startswith("env.")] == []


@pytest.mark.parametrize(
    "text, expected",
    [
        ("vllm serve /m --block-size 16 --max-model-len=32768 --enforce-eager -tp 8",
         {"block_size": "16", "max_model_len": "32768", "enforce_eager": "True", "tensor_parallel_size": "8"}),
        ("python3 -m sglang.launch_server \\\n  --tp-size 16 \\\n  --mem-fraction-static 0.8", {"tp_size": "16", "mem_fraction_static": "0.8"}),
        ("ASCEND_RT_VISIBLE_DEVICES=0 nohup torchrun --nproc_per_node 8 train.py --bf16", {"nproc_per_node": "8", "bf16": "True"}),
        ("root@node:/w# atc --model=m.onnx --soc_version=Ascend910B3", {"model": "m.onnx", "soc_version": "Ascend910B3"}),
        ("INFO 09-01 10:00:00 [utils.py:326] non-default args: {'model': '/m', 'block_size': 16, 'quantization': None}",
         {"model": "/m", "block_size": "16"}),
        ("[2025-09-02 15:18:23] server_args=ServerArgs(model_path='/m', tp_size=8, dtype='auto')", {"tp_size": "8", "dtype": "auto"}),
        ("INFO 11-14 21:01:43 [core.py:93] Initializing a V1 LLM engine (v0.11.1) with config: model='m', dtype=torch.bfloat16, max_seq_len=32768,",
         {"dtype": "bfloat16", "max_seq_len": "32768"}),
        ("        args:\n        - --max-num-seqs=256\n        - \"--block-size\"\n        - \"64\"", {"max_num_seqs": "256", "block_size": "64"}),
        ("2026-06-11 13:37:05,884 - INFO - block_size=32 max_model_len=131072 rope chunks=4", {"block_size": "32", "max_model_len": "131072"}),
        (" \"block_size\": 128,\n \"dtype\": \"float16\",", {"block_size": "128", "dtype": "float16"}),
        ("LlamaConfig(\n  hidden_size=2056,\n  rms_norm_eps=1e-06,\n)", {"hidden_size": "2056", "rms_norm_eps": "1e-06"}),
        ("torch.compile(model, backend=\"npu\", mode=\"reduce-overhead\")", {"torch_compile_mode": "reduce-overhead"}),
    ],
)  # fmt: skip
def test_arguments_of_commands_servers_and_dumps(text: str, expected: dict[str, str]) -> None:
    found = facts(text)
    assert {name: found.get(f"arg.{name}") for name in expected} == expected


@pytest.mark.parametrize(
    "line", ["use --max-model-len 100 to reduce it", "block_size=self.block_size", "my_block_size=4", "ERROR try --enforce-eager", "-------"]
)
def test_advice_and_code_are_no_arguments(line: str) -> None:
    assert [name for name in facts(line) if name.startswith("arg.")] == []


def test_the_rank_table_maps_ranks_to_devices_and_addresses() -> None:
    found = facts((SAMPLES / "env/06.txt").read_text())
    assert found["ranktable.rank.50.device"] == "2" and found["ranktable.rank.50.ip"] == "192.0.2.13" and found["ranktable.ranks"] == "8"
    assert found["ranktable.server_id"] == "198.51.100.40"
    assert (
        facts('{"server_list":[{"server_id":"a","device":[{"device_id":"3","device_ip":"192.0.2.1","rank_id":"9"}]}]}')["ranktable.rank.9.device"]
        == "3"
    )


def numbers(text: str) -> dict[tuple[str, str], float]:
    return {(one.name, one.label): one.value for one in environment.extract(text).metrics}


def test_memory_disks_files_and_numa_of_the_host() -> None:
    found = numbers(
        "MemTotal:       263857528 kB\nMemAvailable:    2914720 kB\nfs.file-nr = 12345\t0\t9223372036854775807\n"
        "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   60M  4.0M  94% /dev/shm\n/dev/sda2  196G 190G 6G 97% /\n"
        "node 0 size: 128000 MB free: 91 MB\nCPU(s):              128\n$ ls /proc/77/fd | wc -l\n1021\n"
        "               total        used        free      shared  buff/cache   available\n"
        "Mem:           251Gi        10Gi       200Gi       1.0Gi        40Gi       240Gi\n"
    )
    assert found["host.memory.available", ""] == 240 * 1024 and found["host.memory.total", ""] == 251 * 1024
    assert found["host.shm.usage", ""] == 94 and found["disk.usage", "/"] == 97 and found["host.numa.free", "0"] == 91
    assert found["host.fd.count", "77"] == 1021 and found["host.fd.count", ""] == 12345 and found["host.cpu.count", ""] == 128


def test_limits_in_every_spelling() -> None:
    for text in ("Max open files            1024                 524288               files", "open files                      (-n) 1024",
                 "*  soft  nofile  1024", "$ ulimit -n\n1024", "ulimit -n 1024"):  # fmt: skip
        assert facts(text)["limit.nofile"] == "1024", text


def test_pci_links_keep_width_and_speed_apart_from_what_the_card_can() -> None:
    found = numbers(
        "41:00.0 Processing accelerators: Huawei Technologies Co., Ltd. Device d802 (rev 20)\n"
        "\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported\n"
        "\tLnkSta:\tSpeed 8GT/s (downgraded), Width x8 (downgraded)\n"
    )
    assert found["npu.pcie.width", "41:00.0"] == 8 and found["npu.pcie.width", "41:00.0 max"] == 16 and found["npu.pcie.speed", "41:00.0"] == 8


def test_kernel_and_system_names() -> None:
    assert facts("Linux node-a 5.10.0-182.0.0.95.oe2203sp3.aarch64 #1 SMP x aarch64")["os.kernel"] == "5.10.0-182.0.0.95.oe2203sp3.aarch64"
    assert facts("[    0.000000] Linux version 5.10.0-60.18.0.50.oe2203.aarch64 (abuild@obs)")["os.kernel"] == "5.10.0-60.18.0.50.oe2203.aarch64"
    assert facts('NAME="openEuler"\nVERSION_ID="22.03"\nPRETTY_NAME="openEuler 22.03 LTS"\n')["os.name"] == "openEuler 22.03 LTS"


def test_line_numbers_are_those_of_the_lines() -> None:
    text = "one\ntwo\nexport HCCL_BUFFSIZE=512\nvLLM API server version 0.11.0\nblock_size=16\n\nVersion=24.1.rc3\nascendhal_version=7\n"
    assert {one.name: one.line_no for one in environment.extract(text).facts if one.name != "driver.hal_version"} == {
        "env.HCCL_BUFFSIZE": 3, "vllm.version": 4, "arg.block_size": 5, "driver.version": 7}  # fmt: skip


@pytest.mark.parametrize("name, pattern", FACT_PATTERNS)
def test_fact_patterns_can_be_scanned_for_in_logs_of_any_size(name: str, pattern: str) -> None:
    compiled = re.compile(pattern)
    assert list(compiled.groupindex) == ["value"]
    literals = re.findall(r"[A-Za-z0-9_ :/-]+", re.sub(r"\[[^\]]*\]|\(\?P<value>|\\\\.", "\0", pattern))
    assert max(map(len, literals)) >= 5
    hyperscan.Database().compile(expressions=[pattern.encode()], ids=[0], elements=1, flags=[hyperscan.HS_FLAG_MULTILINE])


PIECES = st.sampled_from(
    ["export ", "HCCL_A=", "1", "\n", "--a ", "vllm ", "\"", "'", "=", ": ", "Version", "version.info", "torch", "2.1.0", " ", "\t",
     "-e ", "{", "}", "[", "]", "\\", "name: ", "value: ", "non-default args", "block_size", "soc_version", "Ascend910B3",
     "Linux ", "5.10.0", "41:00.0 ",
     "LnkSta: Speed 8GT/s Width x8",
     "9" * 30, "MemTotal: ", "kB", "%", "/dev/shm", "pip list",
     "Name: ", "１", "é",
     "\"rank_id\": \"", "nofile", "#", "/Ascend/cann-", "Ascend-mindie"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
def test_no_text_makes_the_extractor_raise(text: str) -> None:
    found = environment.extract(text)
    assert isinstance(found, Document)
    for one in found.facts:
        assert one.value and 0 < one.line_no <= text.count("\n") + 1
    for line in text.split("\n"):
        environment.record(line)


def test_a_megabyte_of_log_is_read_in_time() -> None:
    lines = (SAMPLES / "vllm/01.txt").read_text() + (SAMPLES / "torch_npu/05.txt").read_text() + (SAMPLES / "mindie/01.txt").read_text()
    text = lines * (1_000_000 // len(lines))
    start = time.perf_counter()
    environment.extract(text)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "trap", ["numactl --a ", "A=1 ", "export A_B=1 ", "--a ", '"A_B=1",', "a: # ", "{'A_B': '1', ", "block_size", "Ascend-mindie", "torch @ ", "x "]
)
def test_hostile_lines_do_not_hold_the_extractor(trap: str) -> None:
    line = (trap * 50_000)[:50_000]
    start = time.perf_counter()
    environment.extract("\n".join([line] * 4 + [line[k : k + 200] for k in range(0, 50_000, 200)]))
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("module", ["console_dates", "gather", "host", "installed", "mindspore", "npu_smi_query", "settings"])
def test_the_examples_of_the_helpers_hold(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(f"parsers.{module}"))
    assert outcome.attempted and not outcome.failed
