"""Screen 8: the kernel a diagnosis suspects, running it again, and where its output is wrong."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from textual import on
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import DataTable, Static
from textual_plotext import PlotextPlot

from forensics.safe_text import safe
from tui import rerun
from tui.colours import cell
from tui.keys import Key, bindings
from tui.rerun import Spec, Verdict
from tui.screens.page import Page
from tui.session import Session
from tui.widgets.grid import Grid

SAID = 200
"""Lines of a run that are kept."""
_STYLES = {"confirmed": "$text-error bold", "refuted": "$text-success bold", "precision": "$text-warning bold"}


class ReplayPage(Page):
    """Enter, or R, runs the kernel; Escape ends it."""

    NAME = "replay"
    KEYS = (
        Key("R,enter", "run", "replay-run", "R"),
        Key("escape", "stop", "replay-stop", "esc"),
        Key("y", "copy", "copy", "y"),
    )
    BINDINGS = bindings(KEYS)
    DEFAULT_CSS = """
    ReplayPage #specs { height: auto; max-height: 30%; }
    ReplayPage #said { height: auto; max-height: 45%; padding: 0 1; border-top: solid $panel; }
    ReplayPage #plot-box { height: 1fr; border-top: solid $panel; display: none; }
    ReplayPage.-plot #plot-box { display: block; }
    ReplayPage #plot-title { height: 1; padding: 0 1; color: $text-muted; }
    """

    def __init__(self, session: Session):
        super().__init__(session)
        self._specs: list[Spec] = []
        self._busy_rank: int | None = None
        self._said: deque[str] = deque(maxlen=SAID)

    def body(self) -> Iterable[Widget]:
        yield Static("", classes="head", markup=False)
        yield Grid(cursor_type="row", id="specs")
        yield Static("", id="said", markup=False)
        yield Vertical(Static("", id="plot-title", markup=False), PlotextPlot(id="plot"), id="plot-box")

    def fill(self) -> None:
        triage = self.session.triage
        assert triage is not None
        self._specs = rerun.specs(triage, self.session.lang)
        head = self.query_one(".head", Static)
        table = self.query_one(Grid)
        if not self._specs:
            head.update(self.say("replay.none"))
            table.display = False
            return
        head.update(self.say("replay.head" if rerun.possible() else "replay.impossible"))
        heads = [cell(self.app, self.say(f"replay.{name}") if name else "") for name in ("", "kernel", "params", "verdict", "diagnosis")]
        rows = []
        for spec in self._specs:
            found = rerun.verdict(triage, spec.rank, self.session.lang)
            params = " ".join(f"{name}={value}" for name, value in spec.params.items())
            rows.append([
                cell(self.app, spec.rank, "bold"), cell(self.app, spec.kernel, "accent"), cell(self.app, params, "", 40),
                cell(self.app, found.words if found is not None else self.say("replay.not-run"), "" if found is not None else "dim"),
                cell(self.app, spec.title, "", 60),
            ])  # fmt: skip
        table.put(heads, rows, table.cursor_row)
        table.focus()
        self._draw()

    @property
    def spec(self) -> Spec | None:
        at = self.query_one(Grid).cursor_row
        return self._specs[at] if 0 <= at < len(self._specs) else None

    @on(DataTable.RowHighlighted)
    def _stood(self) -> None:
        self._draw()

    def _draw(self) -> None:
        spec, triage = self.spec, self.session.triage
        said = self.query_one("#said", Static)
        if spec is None or triage is None:
            said.update("")
            return
        found = rerun.verdict(triage, spec.rank, self.session.lang)
        out: list[str | tuple[str, str]] = [(f"{safe(spec.kernel)}  ", "bold")]
        out.append("  ".join(f"{safe(name)}={safe(value)}" for name, value in spec.params.items()) + "\n")
        if self._busy_rank == spec.rank:
            out += [(self.say("replay.running") + "\n", "$text-warning"), *(f"{safe(line)}\n" for line in list(self._said)[-8:])]
        elif found is not None:
            out += [(found.words, _STYLES.get(found.status, "bold")), f"  {safe(found.reason)}\n", *(f"{safe(line)}\n" for line in found.lines)]
        else:
            out += [(self.session.command("replay", str(spec.rank)) + "\n", "dim"), *(f"{safe(line)}\n" for line in list(self._said)[-8:])]
        said.update(Content.assemble(*out)[:-1])
        self._plot(found)

    def _plot(self, found: Verdict | None) -> None:
        self.set_class(found is not None and bool(found.bars), "-plot")
        if found is None or not found.bars:
            return
        box = self.query_one("#plot", PlotextPlot)
        plot = box.plt
        plot.clear_figure()
        places = [float((bar.first + bar.last) / 2) for bar in found.bars]
        errors = [math.log10(max(1e-3, bar.error)) for bar in found.bars]
        plot.plot(places, errors, marker="braille", color="red")
        low, high = math.floor(min([*errors, 0.0])), math.ceil(max([*errors, math.log10(found.limit)]))
        plot.ylim(low, max(high, low + 1))
        plot.yticks(list(range(low, max(high, low + 1) + 1)), [f"{10.0**k:g}" for k in range(low, max(high, low + 1) + 1)])
        plot.hline(math.log10(found.limit), "green")
        if found.boundary is not None:
            plot.vline(float(found.boundary), "orange")
        where = self.say("replay.boundary", at=f"{found.boundary:,}") if found.boundary is not None else ""
        self.query_one("#plot-title", Static).update(self.say("replay.plot", axis=self.say(f"axis.{found.axis}"), limit=f"{found.limit:g}") + where)
        box.refresh()

    def action_run(self) -> None:
        spec = self.spec
        if spec is None or self._busy_rank is not None:
            return
        if not rerun.possible():
            self.notify(self.say("replay.impossible"), severity="warning", markup=False)
            return
        self._busy_rank = spec.rank
        self._said.clear()
        self.behind("replay", self._run, spec)
        self._draw()

    async def _run(self, spec: Spec) -> None:
        assert self.session.case is not None
        lines = rerun.run(self.session.case.folder, spec.rank)
        try:
            async for line in lines:
                self._said.append(line)
                self._draw()
        finally:
            await lines.aclose()
            self._busy_rank = None
        marks = self.session.triage.marks if self.session.triage is not None else []
        self.session.triage = self.session.case.load_triage()
        self.session.triage.marks = marks
        self.fill()

    def action_stop(self) -> None:
        self.workers.cancel_group(self, "replay")
        self._busy_rank = None
        self._draw()

    def action_copy(self) -> None:
        if self.spec is not None:
            self.browser.copy(self.session.command("replay", str(self.spec.rank)))
