"""A Triton RoPE kernel as serving stacks have it: a table row [cos | sin] by position, one program a token. Right, and with the fault that a
public kernel had: the sines are looked for at half of the padded width."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rope(x_ptr, out_ptr, table_ptr, positions_ptr, heads, dim: tl.constexpr, half: tl.constexpr, sin_at: tl.constexpr, padded: tl.constexpr):
    token = tl.program_id(0)
    position = tl.load(positions_ptr + token)
    column = tl.arange(0, padded)
    kept = column < half
    cos = tl.load(table_ptr + position * dim + column, mask=kept, other=0.0)
    sin = tl.load(table_ptr + position * dim + sin_at + column, mask=kept, other=0.0)
    for head in range(heads):
        start = (token * heads + head) * dim
        a = tl.load(x_ptr + start + column, mask=kept, other=0.0).to(tl.float32)
        b = tl.load(x_ptr + start + half + column, mask=kept, other=0.0).to(tl.float32)
        tl.store(out_ptr + start + column, a * cos - b * sin, mask=kept)
        tl.store(out_ptr + start + half + column, b * cos + a * sin, mask=kept)


def _table(positions, dim, base):
    inv = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    angle = torch.arange(int(positions.max()) + 2, dtype=torch.float32)[:, None] * inv
    return torch.cat([angle.cos(), angle.sin()], -1).contiguous()


def _run(x, positions, base, sin_at):
    dim = x.shape[-1]
    half = dim // 2
    out = torch.empty(x.shape, dtype=torch.float32)
    _rope[(x.shape[0],)](x.contiguous(), out, _table(positions, dim, base), positions, x.shape[1], dim, half, sin_at, triton.next_power_of_2(half))
    return out.to(x.dtype)


def right(x, positions, base):
    return _run(x, positions, base, x.shape[-1] // 2)


def wrong(x, positions, base):
    return _run(x, positions, base, triton.next_power_of_2(x.shape[-1]) // 2)
