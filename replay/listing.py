"""What `replay list` shows: kernels, fault models, backends and what each needs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from replay import runner
from replay.errors import NO_TORCH
from replay.kernels import NAMES


def backends(python: str = "") -> list[tuple[str, bool, str]]:
    """Each backend, whether it works here, and why not or with what."""
    torch_there = find_spec("torch") is not None
    torch = f"torch {_version('torch')}" if torch_there else NO_TORCH
    out = [("cpu", torch_there, torch)]
    state = runner.probe(python)
    ok = state["state"] == "ok"
    out.append(("npu", ok, str(state["message"]) if ok else f"{state['state']}: {state['message']}"))
    cuda, why = _cuda(torch_there)
    out.append(("cuda", cuda, why))
    triton = next((name for name in ("triton-ascend", "triton") if _version(name)), "")
    need = "`pip install triton-ascend 'numpy<2' pybind11` in an environment of its own, named with --python"
    out.append(("triton-interpreter", bool(triton), f"{triton} {_version(triton)}" if triton else need))
    return out


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _cuda(torch_there: bool) -> tuple[bool, str]:
    if not torch_there:
        return False, NO_TORCH
    if "+cpu" in _version("torch"):
        return False, "this torch is built without CUDA"
    import torch

    if torch.version.cuda is None:
        return False, "this torch is built without CUDA"
    return torch.cuda.is_available(), torch.version.cuda if torch.cuda.is_available() else "PyTorch finds no CUDA device"


def listed(lang: str, python: str = "") -> str:
    from replay.execute import need_torch
    from replay.faults.words import TITLES
    from replay.kernels import kernel_named
    from replay.show import safe

    zh = lang == "zh"
    lines = ["算子" if zh else "Kernels"]
    try:
        need_torch()
    except Exception as error:
        lines += [f"  {name}" for name in NAMES] + [f"  {error}"]
    else:
        for name in NAMES:
            kernel = kernel_named(name)
            lines.append(f"  {name:<18} {kernel.title.of(lang)}")
            for argument in kernel.inputs:
                star = "*" if argument.needed else " "
                lines.append(f"    {star} {argument.name:<22} {argument.meaning}")
            for argument in kernel.params:
                lines.append(f"      {argument.name + ' = ' + str(argument.default):<22} {argument.meaning}")
    lines += ["", "故障模型" if zh else "Fault models"]
    lines += [f"  {name:<22} {title.of(lang)}" for name, title in TITLES.items()]
    lines += ["", "后端" if zh else "Backends"]
    for name, works, why in backends(python):
        word = ("可用" if works else "不可用") if zh else ("works" if works else "does not work here")
        lines.append(f"  {name:<20} {word}: {safe(why)}")
    return "\n".join(lines) + "\n"
