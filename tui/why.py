"""Why a rule holds on the case, or why not: the rules applied once more to what the case kept, in a thread, once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from forensics.case import Case
from rules.model import Rule, RuleSet

if TYPE_CHECKING:
    from forensics.pipeline import Asked
    from rules.diagnose import Conclusion
    from rules.explain import Explanation

# The engine is imported by the first question: the first screen does not wait for it.


class Reasons:
    """The rules of a case and what became of each. Everything here takes a second the first time, and may be called from any thread."""

    def __init__(self, case: Case):
        self._case = case
        self._lock = threading.Lock()
        self._rules: RuleSet | None = None
        self._asked: Asked | None = None

    def rules(self) -> tuple[Rule, ...]:
        """All rules, with those of the packs that the case was made with."""
        from forensics.pipeline import kept_of

        with self._lock:
            if self._rules is None:
                self._rules = kept_of(self._case)[1]
            return self._rules.rules

    def conclusion(self) -> Conclusion:
        with self._lock:
            return self._made().conclusion

    def of(self, ident: str) -> Explanation:
        """Raises KeyError where there is no such rule."""
        with self._lock:
            return self._made().explain(ident)

    def _made(self) -> Asked:
        from forensics.pipeline import ask, stored

        if self._asked is None:
            self._asked = ask(self._case, stored(self._case.reader()))
        return self._asked
