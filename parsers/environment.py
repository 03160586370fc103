"""The environment: version files, pip listings, env dumps, start scripts, container and system descriptions, in any mixture.

>>> found = EnvironmentParser().extract('''ASCEND_HOME_PATH=/usr/local/Ascend/ascend-toolkit/latest
... cann=8.2.RC1
... torch_npu            2.1.0.post8
... (APIServer pid=101) INFO 12-05 07:50:12 [api_server.py:1839] vLLM API server version 0.11.0
... python -m vllm.entrypoints.openai.api_server --max-model-len 32768''')
>>> [(f.name, f.value) for f in found.facts]
[('env.ASCEND_HOME_PATH', '/usr/local/Ascend/ascend-toolkit/latest'), ('arg.max_model_len', '32768'), ('cann.version', '8.2.RC1'), \
('pip.torch_npu', '2.1.0.post8'), ('torch_npu.version', '2.1.0.post8'), ('vllm.version', '0.11.0')]
>>> EnvironmentParser().record("torch_npu            2.1.0.post8").grammar
'environment'
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import ClassVar

from parsers import host, installed, settings
from parsers.base import Parser
from parsers.gather import Gather, soc_name
from parsers.rows import Document, Record

_V = r"(?P<value>\d+\.\d+[\w.+-]*)"
_SPOKEN: tuple[tuple[str, str, str], ...] = (
    ("vllm.version", "vLLM API server version ", rf"vLLM API server version {_V}"),
    ("vllm.version", "LLM engine (v", rf"LLM engine \(v{_V}"),
    ("vllm.version", "vLLM Version: ", rf"vLLM Version: {_V}"),
    ("vllm_ascend.version", "vLLM Ascend Version: ", rf"vLLM Ascend Version: {_V}"),
    ("torch.version", "PyTorch version: ", rf"PyTorch version: {_V}"),
    ("torch_npu.version", "Torch-npu version: ", rf"Torch-npu version: {_V}"),
    ("mindspore.version", "MindSpore version", rf"MindSpore version:? +{_V}"),
    ("cann.version", "CANN_VERSION : ", rf"CANN_VERSION : {_V}"),
    ("cann.version", "CANN package version ", rf"CANN package version {_V}"),
    ("cann.version", "Ascend-cann-toolkit_", r"Ascend-cann-toolkit_(?P<value>\d+\.\w+(?:\.\w+)*?)_linux"),
    ("cann.version", "Ascend-cann-nnrt_", r"Ascend-cann-nnrt_(?P<value>\d+\.\w+(?:\.\w+)*?)_linux"),
    ("driver.version", "-npu-driver", r"-npu-driver(?:-\w+)?_(?P<value>\d+\.[\w.]+?)_linux"),
    ("firmware.version", "-npu-firmware_", r"-npu-firmware_(?P<value>\d+(?:\.\d+)+)"),
    ("atb.version", "] ATB version ", rf"\] ATB version {_V}"),
    ("atb.version", "Ascend-cann-atb", rf"Ascend-cann-atb(?: Version)? ?: ?{_V}"),
    ("mindie.version", "Ascend-mindie", rf"Ascend-mindie ?: ?(?:MindIE )?{_V}"),
    ("mindie.version", "Ascend-mindie_", r"Ascend-mindie(?:-\w+)?_(?P<value>\d+\.[\w.]+?)_linux"),
    ("soc", "soc_version", r"soc_version(?: is ?| ?[:\[] ?)[\[\"' ]{0,2}(?P<value>Ascend\d{3}\w*(?:-1)?)"),
    ("soc", "soc version is ", r"soc version is (?P<value>Ascend\d{3}\w*(?:-1)?)"),
    ("soc", "SOC version: ", r"SOC version: (?P<value>Ascend\d{3}\w*(?:-1)?)"),
    ("soc", "--target=Ascend", r"--target=(?P<value>Ascend\d{3}\w*)"),
    ("os.kernel", "Linux version ", r"Linux version (?P<value>\d+\.\d+\.\d+[\w.+-]*)"),
    ("container.image", "/vllm-ascend:", r"(?P<value>[\w./-]*/vllm-ascend:[\w.-]+)"),
    ("container.image", "/cann:", r"(?P<value>[\w./-]*/cann:[\w.-]+)"),
    ("container.image", "/mindie:", r"(?P<value>[\w./-]*/mindie:[\w.-]+)"),
    ("container.image", "gpustack/gpustack:", r"(?P<value>[\w./-]*gpustack/gpustack:[\w.-]+)"),
    ("container.image", "lmsysorg/sglang:", r"(?P<value>[\w./-]*lmsysorg/sglang:[\w.-]+)"),
    ("arg.torch_compile_mode", "torch.compile(", r"torch\.compile\([^\n]{0,200}?mode ?= ?[\"'](?P<value>[\w-]+)"),
    *(
        (f"arg.{name}", name, rf"\b{name}[\"']?\s?[=:]\s?(?P<value>\d[\d.]*)")
        for name in ("block_size", "max_model_len", "max_num_seqs", "tensor_parallel_size", "gpu_memory_utilization", "max_num_batched_tokens")
    ),
    *(
        (f"env.{name}", f"{name} set by ", rf"{name} set by environment(?: variable)? to \[(?P<value>[^\]\n]{{0,100}})\]")
        for name in ("HCCL_EXEC_TIMEOUT", "HCCL_CONNECT_TIMEOUT", "HCCL_BUFFSIZE")
    ),
    ("pip.torch_npu", "torch-npu-", r"Successfully installed [^\n]{0,2000}?torch[-_]npu-(?P<value>\d+\.[\w.+]+)"),
)
FACT_PATTERNS: list[tuple[str, str]] = [(name, pattern) for name, _, pattern in _SPOKEN]
"""Facts worth looking for in logs of any size: name, regex with the group `value`. Each holds a literal of five or more characters."""

_PATHS = (
    ("cann.version", re.compile(r"/Ascend/(?:ascend-toolkit|nnrt|nnae)/(\d+\.\d+(?:\.\w+){0,4})(?=[/\s:\"']|$)", re.ASCII)),
    ("cann.version", re.compile(r"/Ascend/cann-(\d+\.\d+(?:\.\w+){0,4}(?:-beta\.\d+)?)(?=[/\s:\"']|$)", re.ASCII)),
    ("python.version", re.compile(r"/lib/python(3\.\d{1,2})/(?:site|dist)-packages/", re.ASCII)),
)
"""Versions a path gives away: used only where nothing else names them."""
_IMAGES = (
    ("vllm_ascend.version", re.compile(r"/vllm-ascend:v?(\d+\.\d+[\w.]*)", re.ASCII)),
    ("cann.version", re.compile(r"/cann:(\d+\.\d+(?:\.\w+){0,3})", re.ASCII)),
    ("mindie.version", re.compile(r"/mindie:(\d+\.\d+(?:\.\w+){0,3})", re.ASCII)),
)
_COMPILED = [(name, literal, re.compile(pattern, re.ASCII)) for name, literal, pattern in _SPOKEN]
_EACH = 64
"""Lines that are looked at for one pattern."""
_ENTRY = re.compile(r"\s{0,40}[\"']?[A-Za-z_][\w .()/-]{0,60}[\"']?\s{0,40}(?:=|:|：|==)\s{0,20}\S?", re.ASCII)
_ROW = re.compile(r"[0-9a-f]{2}:[0-9a-f]{2}\.\d |(?:\[\w{1,8}\] )?[A-Za-z][\w.-]{0,60}[ \t]{1,80}\d", re.ASCII)


class EnvironmentParser(Parser):
    kind: ClassVar[str] = "environment"

    def claims(self, path: str, head: str) -> int:
        name = path.rsplit("/", 1)[-1].lower()
        lines = [text for text in head.split("\n", 80)[:80] if text.strip()]
        if not lines:
            return 0
        share = sum(self._entry(text) for text in lines) / len(lines)
        marks = sum(mark in head for mark in _MARKS)
        named = (
            name in _NAMES
            or name.startswith(("env", "version", "pip", "collect_env", "requirements"))
            or name.endswith((".info", ".sh", ".yaml", ".yml"))
        )
        if share < 0.5 and not named:
            return 0
        return min(86, int(50 * share) + 8 * min(marks, 4) + (16 if named else 0)) if marks or named else 0

    @staticmethod
    def _entry(text: str) -> bool:
        text = text.lstrip()
        if text[:1] in "#{}]-" or (text[:1] == "[" and not (text[1:2].isupper() or text[1:2].isdigit())):
            return True
        return _ROW.match(text) is not None or (_ENTRY.match(text) is not None and " - " not in text[:60])

    def record(self, line: str) -> Record | None:
        """Entries are records of grammar "environment"; lines inside an entry continue it."""
        if not line or line.isspace():
            return None
        if line[0] == "[" and line[1:2].isupper():
            from parsers.console import read

            return read(line)
        if self._entry(line[:400]):
            return Record(line, grammar="environment")
        return None if line[0] in " \t" else Record(line, grammar="text")

    def extract(self, text: str) -> Document:
        gather = Gather()
        lines = text.split("\n")
        settings.read(text, gather)
        installed.read(lines, gather)
        host.read(lines, gather)
        if '"rank_id"' in text:
            host.ranktable(text, gather)
        _spoken(text, gather)
        return gather.document


_MARKS = (
    "ASCEND_", "LD_LIBRARY_PATH", "version.info", "package_name=", "ascendhal_version", "torch_npu", "pip list", "PyTorch version", "vllm serve",
    "Processing accelerators", "MemTotal", "export ", "PRETTY_NAME", '"rank_id"', "apiVersion:", "LnkSta", "limits",
)  # fmt: skip
_NAMES = frozenset(
    {"ascend_install.info", "os-release", "meminfo", "lspci.txt", "lscpu.txt", "inspect.json", "hccl.json", "rank_table.json", "start.sh"}
)


def _spoken(text: str, gather: Gather) -> None:
    """Facts that stand inside sentences, commands and paths."""
    starts: list[int] = []
    found: set[str] = {fact.name for fact in gather.document.facts}
    for name, literal, pattern in _COMPILED:
        place = text.find(literal)
        count = 0
        while place >= 0 and count < _EACH:
            begin, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
            end = len(text) if end < 0 else end
            # far in a long line: only the part around the literal
            piece = text[max(begin, place - 2000) : min(end, place + 2000)]
            seen = pattern.search(piece)
            if seen is not None:
                starts = starts or [0, *(one.end() for one in re.finditer("\n", text))]
                _add(gather, name, seen["value"], bisect_right(starts, place), found)
            place = text.find(literal, end)
            count += 1
    for name, path in _PATHS:
        if name in found or "/Ascend/" not in text and "/python3" not in text:
            continue
        if seen := path.search(text):
            gather.fact(name, seen[1], text.count("\n", 0, seen.start()) + 1)


def _add(gather: Gather, name: str, value: str, at: int, found: set[str]) -> None:
    value = value.rstrip(".,;-")
    if name == "soc":
        value = soc_name(value)
    gather.fact(name, value, at)
    found.add(name)
    if name == "container.image":
        for other, pattern in _IMAGES:
            if other not in found and (seen := pattern.search(value)):
                gather.fact(other, seen[1], at)
                found.add(other)
    elif name.startswith("pip."):
        gather.fact(f"{name[4:]}.version", value, at)
