"""A replay as a document that runs again elsewhere: `dsforensics replay run spec.yaml`. Needs no torch.

replay: 1
kernel: paged_attention
backend: npu
sizes: {seq_len: 70001, heads: 8, kv_heads: 1, block_size: 16, dtype: bfloat16}
suspect: {name: tail-not-masked}
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from replay.errors import SpecError
from replay.kernels import NAMES

BACKENDS = ("auto", "capture", "cpu", "cuda", "npu", "triton-interpreter")
LARGEST = 1 << 20
"""Bytes of a spec."""
Number = int | float | str | bool


class TensorFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A tensor in a file: .safetensors, .pt, .npy, a CANN dump or an ATB dump."""

    file: str
    """Relative to the spec."""
    name: str = ""
    """Of a file that holds several: a name (safetensors), or input.0, output.1 (CANN dump)."""
    dtype: str = ""
    """Where the file does not say it."""
    shape: list[int] | None = None


class SuspectedFault(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    name: str
    params: dict[str, int | float | str] = {}


class Spec(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What to run, on what, and what is suspected."""

    replay: Literal[1] = 1
    kernel: str
    backend: str = "auto"
    operator: str = ""
    """Operator of torch_npu to call, or that was called."""
    soc: str = ""
    sizes: dict[str, Number] = {}
    """Of inputs that are made up; without meaning where `inputs` are given."""
    params: dict[str, Number] = {}
    inputs: dict[str, TensorFile] = {}
    outputs: dict[str, TensorFile] = {}
    """What the kernel gave when it was captured: judged instead of a run."""
    suspect: SuspectedFault | None = None
    code: str = ""
    """file.py:function of a kernel of one's own, called with the inputs and parameters by name."""
    python: str = ""
    """Interpreter for the worker; by default this one."""
    device: int | None = None
    runs: int = 0
    """How often to run on the same inputs; 0: three times on a device, once elsewhere."""
    seed: int = 1
    time_limit: float = 120.0
    """Seconds for one run of the worker."""

    def __post_init__(self) -> None:
        if self.kernel not in NAMES:
            raise ValueError(f"there is no kernel {self.kernel!a}; there are {', '.join(NAMES)}")
        if self.backend not in BACKENDS:
            raise ValueError(f"backend must be one of {', '.join(BACKENDS)}; found {self.backend!a}")
        if not 0 <= self.runs <= 20:
            raise ValueError(f"runs must be 0 to 20; found {self.runs}")
        if not 1 <= self.time_limit <= 86400:
            raise ValueError(f"time_limit must be 1 to 86400 seconds; found {self.time_limit:g}")
        if self.code and self.code.count(":") < 1:
            raise ValueError(f"code must be file.py:function; found {self.code!a}")


def read(path: str | Path) -> Spec:
    """A spec from a file; file names in it are made relative to nothing. Raises SpecError with what is wrong and where."""
    path = Path(path)
    try:
        with open(path, "rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise SpecError(f"the spec {str(path)!a} cannot be read: {error.strerror or error}") from error
    if len(data) > LARGEST:
        raise SpecError(f"the spec {str(path)!a} is larger than {LARGEST} bytes: that is no spec")
    spec = parse(data, str(path))
    folder = path.resolve().parent
    for group in (spec.inputs, spec.outputs):
        for name, one in group.items():
            group[name] = msgspec.structs.replace(one, file=str(folder / one.file))
    if spec.code:
        file, _, function = spec.code.rpartition(":")
        spec.code = f"{folder / file}:{function}"
    return spec


def parse(data: bytes, what: str = "spec") -> Spec:
    """A spec from YAML. Raises SpecError."""
    try:
        return msgspec.yaml.decode(data, type=Spec)
    except msgspec.ValidationError as error:
        raise SpecError(f"{what}: {error}") from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else "no YAML"
        raise SpecError(f"{what}: it is no YAML that can be read ({first[:200]})") from error


def text(spec: Spec) -> str:
    """The spec as YAML."""
    return msgspec.yaml.encode(spec).decode("utf-8")
