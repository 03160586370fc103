"""The length from which on a kernel is wrong: a few lengths around a suspected one, then halving between the last right and the first wrong."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from replay.result import STATUS_WORDS, Verdict
from replay.spec import Spec

STEPS = 24


class Swept(msgspec.Struct):
    kernel: str
    over: str
    rows: list[tuple[int, Verdict]]
    """Length, and the verdict on it; by length."""
    first_wrong: int | None = None
    """Shortest length found wrong, the one before it being right."""
    boundary: int | None = None
    """First place (a position of RoPE, a token) that is wrong within the output, where there is such a place."""


def swept(base: Spec, over: str, around: int, tell: Callable[[str], None]) -> Swept:
    """Raises SpecError, BackendError."""
    from replay.execute import Session

    session = Session()
    found: dict[int, Verdict] = {}

    def wrong(length: int) -> bool:
        if length not in found:
            tell(f"{over} = {length} ...")
            spec = msgspec.structs.replace(base, sizes={**base.sizes, over: length})
            found[length] = session.replay(spec)
        return found[length].status in ("confirmed", "unknown", "precision")

    lengths = [around - 1, around, around + 1, 2 * around]
    flags = [wrong(length) for length in lengths]
    out = Swept(base.kernel, over, [])
    if any(flags):
        high = lengths[flags.index(True)]
        low = max((length for length in lengths if length < high), default=0)
        if flags[0]:  # wrong below the suspected length already: look further down
            low = high
            while low > 1 and wrong(low):
                high, low = low, low // 2
        for _ in range(STEPS):
            if high - low <= 1 or wrong(low):
                break
            middle = (low + high) // 2
            low, high = (low, middle) if wrong(middle) else (middle, high)
        out.first_wrong = high
        out.boundary = next(
            (one.plot.boundary for length, one in sorted(found.items()) if length >= high and one.plot and one.plot.boundary is not None), None
        )
    out.rows = sorted(found.items())
    return out


def rendered(found: Swept, lang: str) -> str:
    zh = lang == "zh"
    lines = [f"{found.over:>10}  {'结论' if zh else 'verdict'}"]
    for length, verdict in found.rows:
        faults = ", ".join(fit.title.of(lang) for fit in verdict.faults)
        score = "" if verdict.score is None else f"  {verdict.score:.3g}"
        lines.append(f"{length:>10}  {STATUS_WORDS[verdict.status].of(lang)}{score}{'  ' + faults if faults else ''}")
    if found.first_wrong is None:
        lines.append("未发现出错的长度。" if zh else "No length was found wrong.")
    else:
        at = "" if found.boundary is None else (f"，首个出错位置为 {found.boundary}" if zh else f"; the first wrong place is {found.boundary}")
        lines.append(f"从 {found.over} = {found.first_wrong} 起出错{at}。" if zh else f"Wrong from {found.over} = {found.first_wrong} on{at}.")
    return "\n".join(lines) + "\n"


def as_json(found: Swept) -> str:
    from replay.show import as_json as one

    rows = [{found.over: length, "verdict": json.loads(one(verdict))} for length, verdict in found.rows]
    return (
        json.dumps({"kernel": found.kernel, "over": found.over, "first_wrong": found.first_wrong, "boundary": found.boundary, "rows": rows}, indent=2)
        + "\n"
    )
