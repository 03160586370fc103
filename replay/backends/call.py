"""In the worker: one prepared call of a kernel on a backend. Needs torch alone, on whatever Python the worker was started with."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import torch

Outputs = dict[str, torch.Tensor]


class Unavailable(Exception):
    """This backend does not work here; says what is missing."""


def prepared(job: dict[str, Any], inputs: dict[str, torch.Tensor]) -> Callable[[], Outputs]:
    """A function that runs the kernel once on fresh copies of the inputs and gives its outputs on the CPU."""
    backend = job["backend"]
    if backend == "npu":
        from replay.backends import npu

        place, finish = npu.opened(job)
    elif backend == "cuda":
        if not torch.cuda.is_available():
            raise Unavailable("PyTorch finds no CUDA device")
        place, finish = f"cuda:{job.get('device') or 0}", torch.cuda.synchronize
    else:
        place, finish = "cpu", _nothing
    if job.get("code"):
        function = _own(job["code"], backend)

        def run(tensors: Outputs) -> Any:
            return _given(function, tensors, job["params"])
    elif backend == "npu":
        from replay.backends import npu

        def run(tensors: Outputs) -> Any:
            return npu.run(job["kernel"], job.get("operator", ""), tensors, job["params"])
    elif backend == "triton-interpreter":
        raise Unavailable("the triton-interpreter runs a Triton kernel of your own: name it with --code FILE.py:FUNCTION")
    else:
        from replay.backends import native

        def run(tensors: Outputs) -> Any:
            return native.run(job["kernel"], tensors, job["params"])

    def once() -> Outputs:
        outputs = run({name: tensor.to(place) if place != "cpu" else tensor.clone() for name, tensor in inputs.items()})
        finish()  # errors of a device come late: at the next call, unless it is waited for
        return _named(outputs)

    return once


def _nothing() -> None:
    return


def _own(code: str, backend: str) -> Callable[..., Any]:
    """A kernel of the user's own, from file.py:function."""
    if backend == "triton-interpreter":
        os.environ["TRITON_INTERPRET"] = "1"
        if importlib.util.find_spec("triton") is None:
            raise Unavailable("there is no triton: `pip install triton-ascend 'numpy<2' pybind11`, in an environment of its own, and --python")
    path, _, name = code.rpartition(":")
    spec = importlib.util.spec_from_file_location("replayed_kernel", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise Unavailable(f"there is no Python file {path!a}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["replayed_kernel"] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise Unavailable(f"{path!a} has no function {name!a}")
    return function  # type: ignore[no-any-return]


def _given(function: Callable[..., Any], tensors: Outputs, params: dict[str, Any]) -> Any:
    """Calls with those tensors and parameters, by name, that the function takes."""
    known = {**params, **tensors}
    wanted = inspect.signature(function).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in wanted.values()):
        return function(**known)
    return function(**{name: value for name, value in known.items() if name in wanted})


def _named(outputs: Any) -> Outputs:
    if isinstance(outputs, torch.Tensor):
        outputs = {"out": outputs}
    elif isinstance(outputs, (tuple, list)):
        outputs = {"out" if not n else f"out{n}": one for n, one in enumerate(outputs)}
    if not isinstance(outputs, dict) or not all(isinstance(one, torch.Tensor) for one in outputs.values()):
        raise TypeError("the kernel must give a tensor, several, or a mapping of names to tensors")
    return {str(name): one.detach().to("cpu") for name, one in outputs.items()}


def versions(job: dict[str, Any]) -> dict[str, str]:
    """Versions of what ran."""
    found = {"torch": torch.__version__, "python": sys.version.split()[0]}
    for name in ("torch_npu", "triton", "numpy"):
        module = sys.modules.get(name)
        if module is not None:
            found[name] = str(getattr(module, "__version__", "?"))
    if job["backend"] == "npu":
        from replay.backends import npu

        found |= npu.versions()
    return found
