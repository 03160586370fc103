"""The case: bundle -> ingest -> DuckDB case file -> triage -> report; and the command line.

    import forensics

    case = forensics.triage("logs.tar.gz")
    case.diagnoses[0].title.en
    case.sql("select ts, message from events where severity = 'ERROR' limit 5")   # a polars frame
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forensics.case import Case


def triage(
    *bundles: str | os.PathLike[str], out: str | None = None, packs: tuple[str, ...] = (), index: bool = True, baseline: str | None = None
) -> Case:
    """Triage one incident and open its case: several bundles are several nodes. Raises forensics.errors.ForensicsError.

    `out`: the case folder (default: <bundle name>.case in the working folder); `packs`: folders of further rule packs;
    `index`: whether all lines are stored for search (otherwise that happens at the first query); `baseline`: bundle of a good run."""
    from forensics.case import open_case
    from forensics.options import Options
    from forensics.pipeline import run

    work = run([os.fspath(bundle) for bundle in bundles], Options(out=out, packs=packs, index=index, baseline=baseline), None)
    try:
        work.finish()
        return open_case(work.triage.case)
    finally:
        work.close()
