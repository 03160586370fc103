"""Kernels of one's own, right and wrong, for --code; and programs that misbehave as workers do."""

from __future__ import annotations

import os
import time
from typing import Any


def _rotated(x: Any, positions: Any, base: float) -> Any:
    import torch

    dim = x.shape[-1]
    inv = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
    angle = positions.float()[:, None] * inv
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x.float()[..., : dim // 2], x.float()[..., dim // 2 :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def right(x: Any, positions: Any, base: float) -> Any:
    return _rotated(x, positions, base)


def wraps(x: Any, positions: Any, base: float) -> Any:
    return _rotated(x, positions & 0xFFFF, base)


def hangs(**_: Any) -> None:
    time.sleep(600)


def crashes(**_: Any) -> None:
    os.abort()


def leaves(**_: Any) -> None:
    os._exit(7)


def eats(x: Any, **_: Any) -> Any:
    raise MemoryError("can't allocate memory: you tried to allocate 99999999999999 bytes")


def raises(**_: Any) -> None:
    raise ValueError("\x1b[31mno such tiling")


def rubbish(x: Any, **_: Any) -> Any:
    return {"out": x[:1]}


def nothing(**_: Any) -> Any:
    return "a word"


def garbage_file(**_: Any) -> Any:
    """Writes what is no result and ends."""
    with open("result.json", "w") as stream:
        stream.write("\x00{not json")
    os._exit(0)


def unsteady(x: Any, positions: Any, base: float) -> Any:
    import torch

    out = _rotated(x, positions, base)
    out[0, 0, 0] += torch.tensor(float(time.perf_counter_ns() % 97))
    return out
