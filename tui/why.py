"""Why a rule holds on the case, or why not: the rules applied once more to what the case kept, in a thread, once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from forensics.case import Case
from rules.model import Rule, RuleSet

if TYPE_CHECKING:
    from forensics.pipeline import Kept
    from rules.diagnose import Conclusion
    from rules.evaluate import Evaluator
    from rules.explain import Explanation
    from rules.scan import LeafRef

# The engine is imported by the first question: the first screen does not wait for it.


class Reasons:
    """The rules of a case and what became of each. Everything here takes a second the first time, and may be called from any thread."""

    def __init__(self, case: Case):
        self._case = case
        self._lock = threading.Lock()
        self._kept: Kept | None = None
        self._rules: RuleSet | None = None
        self._made: tuple[list[LeafRef], Evaluator, Conclusion] | None = None

    def rules(self) -> tuple[Rule, ...]:
        """All rules, with those of the packs that the case was made with."""
        with self._lock:
            return self._loaded()[0].rules

    def conclusion(self) -> Conclusion:
        with self._lock:
            return self._concluded()[2]

    def of(self, ident: str) -> Explanation:
        """Raises KeyError where there is no such rule."""
        from rules.explain import explain

        with self._lock:
            leaves, evaluator, conclusion = self._concluded()
            return explain(ident, self._loaded()[0], leaves, evaluator, conclusion)

    def _loaded(self) -> tuple[RuleSet, Kept]:
        from forensics.pipeline import Kept
        from rules import pack

        if self._rules is None or self._kept is None:
            self._kept = msgspec.msgpack.decode(self._case.kept(), type=Kept)
            self._rules = pack.load(self._kept.packs)
        return self._rules, self._kept

    def _concluded(self) -> tuple[list[LeafRef], Evaluator, Conclusion]:
        if self._made is None:
            from forensics import ingest
            from rules import scan
            from rules.diagnose import diagnose
            from rules.evaluate import Evaluator, Evidences

            rules, kept = self._loaded()
            scanner = scan.Scanner.load(rules, ingest.EXTRA)
            conclusion = diagnose(rules, scanner.leaves, kept.hits, kept.counts, kept.facts, kept.metrics, kept.onset)
            evaluator = Evaluator(scanner.leaves, Evidences(kept.hits, kept.counts, kept.facts, kept.metrics))
            self._made = (scanner.leaves, evaluator, conclusion)
        return self._made
