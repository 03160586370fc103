"""What all screens share: the case, its diagnosis, the marks, the language, and where the reader was."""

from __future__ import annotations

import shlex
from pathlib import Path

from forensics import marks
from forensics.case import Case
from forensics.marks import Mark
from forensics.options import Options
from forensics.report.figures import Clock
from forensics.result import Member, Triage
from forensics.safe_text import safe
from tui import state
from tui.queries import Histogram, Line
from tui.state import State
from tui.store import Store
from tui.why import Reasons
from tui.words import say
from tui.work import Going, Order


class Session:
    """A case being looked at, or a bundle that is becoming one."""

    def __init__(self, case: Case | None, order: Order | None, lang: str, options: Options | None = None):
        self.lang = lang
        self.order = order
        """What is being done in the background, or None."""
        self.case: Case | None = None
        self.store: Store | None = None
        self.triage: Triage | None = None
        self.reasons: Reasons | None = None
        self.state = State()
        self.marks: dict[int, Mark] = {}
        self.clock = Clock("+00:00", None, None)
        self.histogram: Histogram | None = None
        """Of all lines, once it was counted."""
        self.going: Going | None = None
        self.early = ""
        """Title of the first sure diagnosis, while the bundle is being read."""
        self.failure = ""
        self.version = 0
        """Counts what makes a screen out of date."""
        self._paths: dict[int, str] = {}
        if case is not None:
            self.open(case)

    def open(self, case: Case) -> None:
        """Look at this case from now on. Raises CaseError."""
        first = self.case is None
        if self.store is not None:
            self.store.close()
        self.triage = case.load_triage()
        self.case = case
        self.store = Store(case)
        self.reasons = Reasons(case)
        self.histogram = None
        self.marks = {mark.event_id: mark for mark in self.triage.marks}
        self._paths = {member.file_id: member.path for member in self.files}
        bundle = self.triage.bundle
        self.clock = Clock(bundle.zone, bundle.first, bundle.last)
        if first:
            self.state = state.load(case.folder)
        self.version += 1

    @property
    def files(self) -> list[Member]:
        return self.triage.coverage.members if self.triage is not None else []

    @property
    def indexed(self) -> bool:
        """Whether the lines are there."""
        return self.case is not None and self.case.plan().indexed

    @property
    def name(self) -> str:
        if self.triage is not None:
            return safe(self.triage.bundle.name)
        return safe(", ".join(Path(source).name for source in self.order.sources)) if self.order is not None else ""

    def say(self, key: str, _or: str = "", **values: object) -> str:
        return say(self.lang, key, _or, **values)

    def path(self, file_id: int) -> str:
        return self._paths.get(file_id, "")

    def file_id(self, path: str) -> int | None:
        return next((number for number, one in self._paths.items() if one == path), None)

    def place(self, line: Line) -> str:
        """`plog-838.log:8121`"""
        return f"{safe(self.path(line.file_id))}:{line.line_no}"

    def command(self, *words: str) -> str:
        """A command on this case, to be typed."""
        case = str(self.case.folder) if self.case is not None else "CASE"
        return " ".join(["dsforensics", words[0], shlex.quote(case), *words[1:]])

    # ------------------------------------------------------------ marks

    def mark(self, line: Line, note: str | None = None) -> bool:
        """Mark a line, or, without a note, take its mark away again; whether it is marked now. Raises CaseError."""
        assert self.case is not None
        kept = dict(self.marks)
        if note is None and line.event_id in kept:
            del kept[line.event_id]
        else:
            text = line.message.split("\n", 1)[0][:1000]
            kept[line.event_id] = Mark(line.event_id, self.path(line.file_id), line.line_no, line.ts, text, note or "")
        marks.save(self.case.folder, list(kept.values()))
        self.marks = kept
        if self.triage is not None:
            self.triage.marks = marks.in_order(list(kept.values()))
        return line.event_id in kept

    # ------------------------------------------------------------ leaving

    def close(self) -> None:
        if self.case is not None:
            self.state.lang = self.lang
            state.save(self.case.folder, self.state)
        if self.store is not None:
            self.store.close()
