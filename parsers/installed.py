"""Versions of what is installed: CANN's and the driver's own files, pip in its forms, collect_env, notes such as `cann=8.2.RC1`.

>>> gather = Gather()
>>> read(\"\"\"# cat /usr/local/Ascend/driver/version.info
... Version=24.1.rc3
... ascendhal_version=7.35.19
...
... package_name=Ascend-cann-toolkit
... version=8.0.RC3
...
... [pip3] torch_npu==2.8.0
... vllm-ascend: v0.9.1
... HDK firmware = 7.5.0.1.129
... npu: 8 x Ascend 910B3 64GB\"\"\".split(chr(10)), gather)
>>> [(f.name, f.value, f.line_no) for f in gather.document.facts]
[('driver.version', '24.1.rc3', 2), ('driver.hal_version', '7.35.19', 3), ('cann.version', '8.0.RC3', 6), \
('pip.torch_npu', '2.8.0', 8), ('torch_npu.version', '2.8.0', 8), ('pip.vllm_ascend', '0.9.1', 9), ('vllm_ascend.version', '0.9.1', 9), \
('firmware.version', '7.5.0.1.129', 10), ('soc', 'Ascend910B3', 11)]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from parsers.gather import Gather, soc_name

_PACKAGES = """
torch torch_npu torchvision torchaudio torchair vllm vllm_ascend triton_ascend triton transformers mindspore mindspore_lite mindspeed
mindspeed_llm megatron_core deepspeed accelerate sglang sgl_kernel_npu deep_ep lmdeploy dlinfer dlinfer_ascend numpy ray verl llamafactory
ms_swift peft trl ascendspeed mindformers mooncake mooncake_transfer_engine modelscope decorator compressed_tensors xgrammar hccl te
op_compile_tool auto_tune schedule_search opc_tool llm_datadist msprof msit torchtitan_npu apex memfabric_hybrid memcache_hybrid
onnxruntime_cann onnxruntime onnx scipy attrs psutil protobuf pyyaml sympy cloudpickle safetensors tokenizers mindiebenchmark mindieclient
mindietorch mindiesd mindie_llm atb_llm datasets sentencepiece flash_attn optimum openmind diffusers llama_cpp_python msgspec zmq pyzmq
"""
PACKAGES = frozenset(_PACKAGES.split())
"""Packages believed in a bare `name version` line; in a pip listing every name counts."""
MAIN = frozenset(
    {"torch", "torch_npu", "vllm", "vllm_ascend", "mindspore", "sglang", "transformers", "triton_ascend", "deepspeed", "mindspeed", "mindie_llm",
     "lmdeploy", "verl", "ray"}
)  # fmt: skip
"""Packages that also give the fact <package>.version."""

_ALIASES = {
    "cann.version": "cann, cann version, cann toolkit, cann toolkit version, ascend cann, ascend toolkit, toolkit, toolkit version, "
    "ascend cann toolkit, cann toolkits, cann release",
    "driver.version": "driver, driver version, hdk, hdk driver, hdk version, npu driver, npu driver version, ascend driver, ascend hdk, "
    "hdk driver version, ascend driver version, npu hdk",
    "firmware.version": "firmware, firmware version, npu firmware, npu firmware version, hdk firmware, ascend firmware, ascend firmware version, fw, "
    "fw version",
    "python.version": "python, python version, python3",
    "mindie.version": "mindie, mindie version, ascend mindie",
    "atb.version": "ascend cann atb, ascend cann atb version, atb, atb version, nnal, nnal version",
    "glibc.version": "libc version, glibc, glibc version",
    "gcc.version": "gcc, gcc version",
    "pip.torch": "pytorch, pytorch version, torch version",
    "pip.torch_npu": "torch npu version, pta, pta version",
    "pip.vllm": "vllm version",
    "pip.vllm_ascend": "vllm ascend version",
    "pip.mindspore": "mindspore version",
    "pip.sglang": "sglang version",
    "pip.transformers": "transformers version",
    "pip.megatron_core": "megatron, megatron lm, megatron core",
    "pip.llamafactory": "llama factory",
    "llama.cpp.version": "llama.cpp, llama cpp, llama.cpp version, llama.cpp build",
    "os.kernel": "kernel, kernel version, linux kernel, os kernel, uname r",
}  # fmt: skip
VERSIONS = {alias.strip(): name for name, aliases in _ALIASES.items() for alias in aliases.split(",")}
"""A key (lower case, blanks for _ and -) that is followed by a version -> the fact."""
TEXTS = {
    "os": "os.name", "operating system": "os.name", "os version": "os.name", "os name": "os.name", "pretty name": "os.name",
    "hostname": "os.hostname", "host name": "os.hostname", "image": "container.image", "docker image": "container.image",
    "container image": "container.image", "product name": "board.server", "server model": "board.server",
}  # fmt: skip
_CHIPS = frozenset(
    {"soc", "soc version", "soc name", "chip", "chip name", "chip type", "chip model", "npu", "npus", "npu name", "npu type", "npu model", "device",
     "device type", "device name", "hardware", "npu chip", "ascend chip", "accelerator", "card", "npu card"}
)  # fmt: skip

_PAIR = re.compile(r"[#\s*>\"'-]{0,8}([A-Za-z][\w .()/-]{0,48}?)[\"']?\s{0,16}(==|=|:|：)\s{0,16}(\S.{0,300})", re.ASCII)
_VERSION = re.compile(r"[\"'\[(]{0,2}(?:[A-Za-z][A-Za-z-]{0,24}[ _=-]{1,3})?[vV]?(\d{1,4}(?:\.\w{1,24}){1,7}(?:[+-][\w.]{1,60})?)", re.ASCII)
_CHIP = re.compile(
    r"(?:Ascend ?)?(910[ _]?93\d\d|910B\d?C?(?:-1)?|910PremiumA|910Pro[AB]|910[AC]|310P\d?|310B\d?|950(?:PR|DT)(?:_\w{4,5})?)(?![\w])", re.IGNORECASE
)
_LISTED = re.compile(r"(?:\[(?:pip3?|conda)\] )?([A-Za-z][\w.-]{0,60})[ \t]{1,80}(\d[\w.+!-]{0,60})(?:[ \t]|$)", re.ASCII)
_FROZEN = re.compile(r"(?:\[(?:pip3?|conda)\] |[\"'\s,-]{0,8})([A-Za-z][\w.-]{0,60})(?:\[[\w,-]{1,60}\])?\s?={1,3}\s?(\d[\w.+!-]{0,60})", re.ASCII)
_EDITABLE = re.compile(
    r"-e .{0,200}#egg=([\w.-]{1,60})|([A-Za-z][\w.-]{0,60}) @ .{0,300}?[/-](\d{1,3}\.\d{1,3}[\w.+]{0,30}?)(?:-cp|-py|\.whl|\.tar|$)", re.ASCII
)
_HEADER = re.compile(r"(?:version\.info|install\.info|version\.cfg|ascend_toolkit|ascend_nn\w{2})", re.ASCII)
_CFG = re.compile(r"(\w{1,40}?)_(?:installed|running)_version=.{0,400}\[([\w.-]{1,40})(?::(?:CANN-)?([\w.-]{1,40}))?\]$", re.ASCII)
_PLATFORM = re.compile(r"Linux-(\S{1,120}?)-with-glibc(\d{1,2}\.\d{1,3})", re.ASCII)


def read(lines: Sequence[str], gather: Gather) -> None:
    """Facts of a text's lines."""
    _Installed(gather).read(lines)


def normal(name: str) -> str:
    """A package name with one spelling: torch-npu and Torch_NPU are torch_npu."""
    return name.lower().replace("-", "_").replace(".", "_")


class _Installed:
    def __init__(self, gather: Gather) -> None:
        self.gather = gather
        self.section = ""
        self.block: dict[str, tuple[str, int]] = {}
        self.listing = False
        self.shown = ""

    def read(self, lines: Sequence[str]) -> None:
        for at, line in enumerate(lines, 1):
            if len(line) > 600:
                continue
            text = line.strip()
            if text:
                self._line(text, at)
            else:
                self._settle()
                self.listing = False
        self._settle()

    def _line(self, text: str, at: int) -> None:
        if self._title(text):
            return
        if "=" in text[:64] or ":" in text[:64] or "：" in text[:64]:
            if text[0] in "[\"'-" or "==" in text:
                if seen := _FROZEN.match(text):
                    self._package(seen[1], seen[2], at, sure="==" in text or "[pip" in text or "[conda" in text)
                    if "==" in text:
                        return
            if seen := _PAIR.match(text):
                self._pair(seen[1], seen[2], seen[3].strip(), at, quoted=text[0] in "\"'")
                return
        if seen := _LISTED.match(text):
            self._package(seen[1], seen[2], at, sure=self.listing)
        elif " @ " in text and (seen := _EDITABLE.match(text)) and seen[2]:
            self._package(seen[2], seen[3], at, sure=True)

    def _title(self, text: str) -> bool:
        """Lines that say what the next ones are."""
        lowered = text[:200].lower()
        if _HEADER.search(lowered) and "=" not in text.lstrip("#=> "):
            self._settle()
            self.section = next((word for word in ("driver", "firmware") if f"/{word}" in lowered or word in lowered.split()), "cann")
            if "mindie" in lowered or "/atb" in lowered or "opp" in lowered:
                self.section = "other"
            return True
        if "pip list" in lowered or "pip3 list" in lowered or "pip freeze" in lowered or "pip3 freeze" in lowered or "conda list" in lowered:
            self.listing = True
            return True
        if text.startswith("Package") and "Version" in text:
            self.listing = True
            return True
        if text.startswith("-----"):
            return self.listing
        if lowered == "cann:":
            self._settle()
            self.section = "cann"
            return True
        return False

    def _pair(self, key: str, sign: str, value: str, at: int, *, quoted: bool) -> None:
        if sign == "=" and " " not in key:
            if key in self.block:
                self._settle()
            self.block[key] = (value, at)
            if key.endswith(("_installed_version", "_running_version")) and (seen := _CFG.match(f"{key}={value}")):
                if seen[3] and seen[1] in ("runtime", "compiler", "toolkit"):
                    self.gather.fact("cann.version", seen[3], at)
                elif seen[1] == "driver":
                    self.gather.fact("driver.version", seen[2], at)
            if key in ("Version", "version", "os", "arch") and (self.section or key == "Version"):
                return
        plain = " ".join(key.lower().replace("_", " ").replace("-", " ").split())
        if key == "Name" and sign == ":" and not quoted:
            self.shown = value
            return
        if key == "Version" and sign == ":" and self.shown:
            self._package(self.shown, value.split()[0], at, sure=True)
            self.shown = ""
            return
        if plain == "python platform":
            if found := _PLATFORM.match(value):
                self.gather.fact("os.kernel", found[1], at)
                self.gather.fact("glibc.version", found[2], at)
            return
        if key == "firmware_version" and value.count(".") < 2:
            return  # of the file's own format
        if plain in VERSIONS:
            self._version(VERSIONS[plain], value, at)
        elif plain in TEXTS:
            self._text(plain, value.strip("\"',"), at)
        elif plain in _CHIPS and (chip := _CHIP.search(value[:160])):
            self.gather.fact("soc", soc_name(chip[1].replace(" ", "_")), at)
        elif (package := normal(key)) in PACKAGES and (seen := _VERSION.match(value)):
            self._package(package, seen[1], at, sure=True)

    def _text(self, key: str, value: str, at: int) -> None:
        if key == "image" and "/" not in value:
            return  # more likely a picture
        if key == "os" and value in ("linux", "posix", "nt"):
            return  # of an install file
        self.gather.fact(TEXTS[key], value, at)

    def _version(self, name: str, value: str, at: int) -> None:
        seen = _VERSION.match(value)
        if seen is None:
            return
        version = seen[1].rstrip(".")
        if name == "gcc.version" and (tail := value.rsplit(" ", 1)[-1])[:1].isdigit():
            version = tail
        if name.startswith("pip."):
            self._package(name[4:], version, at, sure=True)
        elif name == "os.kernel":
            self.gather.fact(name, value.split()[0].strip("\"',"), at)
        else:
            self.gather.fact(name, version, at)

    def _package(self, name: str, version: str, at: int, *, sure: bool) -> None:
        package = normal(name)
        if not sure and package not in PACKAGES:
            return
        self.gather.fact(f"pip.{package}", version, at)
        if package in MAIN:
            self.gather.fact(f"{package}.version", version, at)

    def _settle(self) -> None:
        """The end of a block of key=value lines: whose version file was it?"""
        block, self.block = self.block, {}
        section = self.section
        if block:
            self.section = ""
        package = block.get("package_name", ("", 0))[0]
        if "firmware_version" in block and "ascendhal_version" not in block:
            section = "firmware"
        elif "ascendhal_version" in block:
            section = "driver"
        elif package.startswith("Ascend-cann") or "innerversion" in block:
            section = "cann"
        elif any(key.startswith("required_package_") for key in block):
            section = "other"
        fact = self.gather.fact
        version = block.get("Version") or block.get("package_version")
        if section in ("driver", "firmware") and version:
            fact(f"{section}.version", *version)
        elif section == "cann":
            if found := block.get("version") or block.get("Version"):
                fact("cann.version", *found)
            if package and package != "Ascend-cann-toolkit":
                fact("cann.package", *block["package_name"])
        for key, name in (
            ("Innerversion", "driver.inner_version"), ("innerversion", "cann.inner_version"), ("ascendhal_version", "driver.hal_version"),
            ("compatible_version_fw", "driver.compatible_firmware"), ("compatible_version_drv", "firmware.compatible_driver"),
        ):  # fmt: skip
            if key in block:
                fact(name, *block[key])
        if section == "other" and (found := block.get("version_dir")) and found[0][:1].isdigit():
            fact("cann.version", *found)
        if "PRETTY_NAME" in block:
            fact("os.name", block["PRETTY_NAME"][0].strip("\"'"), block["PRETTY_NAME"][1])
        elif "VERSION_ID" in block and "NAME" in block:
            fact("os.name", f"{block['NAME'][0]} {block['VERSION_ID'][0]}".replace('"', ""), block["VERSION_ID"][1])
        if section in ("driver", "firmware", "cann") and "arch" in block:
            fact("os.arch", *block["arch"])
