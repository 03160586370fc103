"""The real command line over a pipeline that does what the bundle's name says; run as a program by test_cli.py."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable

from forensics.errors import UnreadableBundle, UsageError
from forensics.options import Options, Progress
from forensics.result import Triage
from rules.explain import Explanation, Part
from rules.model import Evidence, Text
from tests.unit import sample_triage as sample


class Run:
    def __init__(self, triage: Triage):
        self.triage = triage

    def finish(self) -> list[object]:
        print("finished", file=sys.stderr)
        return []

    def close(self) -> None:
        print("closed", file=sys.stderr)


def run(sources: list[str], options: Options, on_progress: Callable[[Progress], None] | None = None) -> Run:
    what = sources[0]
    if what == "unreadable":
        raise UnreadableBundle("The bundle \x1b[31mx could not be read: it is no archive.")
    if what == "missing":
        raise UsageError("There is no file or folder of the name missing.")
    if what == "crash":
        raise ValueError("\x1b]0;owned\x07 second half\nmore")
    if what == "panic":
        raise type("PanicException", (BaseException,), {})("index out of bounds")
    if what == "full":
        raise OSError(28, "No space left on device", "events.parquet")
    if what == "hold":
        try:
            print("holding", file=sys.stderr, flush=True)
            time.sleep(30)
        finally:
            print("cleaned", file=sys.stderr, flush=True)
    if what == "long":
        return Run(sample.triage(case="", diagnoses=[sample.diagnosis(rank + 1) for rank in range(3000)]))
    if what == "damaged":
        return Run(sample.damaged(case=options.out or ""))
    return Run(sample.triage(case=options.out or ""))


class Case:
    def ensure_index(self) -> None:
        pass

    def load_triage(self) -> Triage:
        return sample.triage()

    def sql(self, query: str) -> object:
        import duckdb

        return duckdb.connect().sql(query).pl()


def explain(case: Case, what: str) -> Explanation:
    if what != "1":
        raise UsageError(f"There is no rule and no diagnosis {what}.")
    lines = (Evidence("console.log", 512, "error code:507035 \x1b[2J", "context", sample.T0, "a"),)
    parts = [Part("a", "contains 'x'", 31, 2, lines, True), Part("b", "code 507035", 0, 0, (), False)]
    verdict = Text("It holds, and is diagnosis 1.", "规则成立，为第 1 项诊断。")
    return Explanation(sample.rule(where="a.m % 16 != 0"), True, 1, ["other.rule"], parts, True, verdict, ["soc unknown"])


def modules() -> dict[str, types.ModuleType]:
    """The pipeline's modules, by name."""
    triage, case = types.ModuleType("forensics.pipeline"), types.ModuleType("forensics.case")
    triage.run, triage.explain = run, explain  # type: ignore[attr-defined]
    case.open_case = lambda path: Case()  # type: ignore[attr-defined]
    return {"forensics.pipeline": triage, "forensics.case": case}


if __name__ == "__main__":
    sys.modules |= modules()
    from forensics.cli import main

    main()
