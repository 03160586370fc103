"""Screen 4: one row for each NPU, with the course of a number over time, and that course as a plot below."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual import events, on
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import DataTable, Static
from textual_plotext import PlotextPlot

from forensics.report.figures import number
from tui.colours import cell
from tui.devices import Device, Series, ecc, names, read, spark
from tui.filters import Chip
from tui.keys import Key, bindings
from tui.screens.page import Page
from tui.session import Session
from tui.widgets.grid import Grid

SPARK = 16
PLOT_FROM = 34
"""Rows of the terminal from which there is room for a plot."""
HEALTHY = ("OK", "NORMAL", "HEALTHY")


class DevicesPage(Page):
    """Enter shows the lines of a card in the log."""

    NAME = "devices"
    KEYS = (
        Key("enter", "", "device-log", "⏎"),
        Key("v", "series(1)", "series", "v"),
        Key("V", "series(-1)", "series-back", "V", bar=False),
        Key("p", "plot", "plot", "p"),
        Key("y", "copy", "copy", "y", bar=False),
    )
    BINDINGS = bindings(KEYS)
    DEFAULT_CSS = """
    DevicesPage #plot-box { height: 40%; border-top: solid $panel; display: none; }
    DevicesPage #plot-title { height: 1; color: $text-muted; padding: 0 1; }
    DevicesPage.-plot #plot-box { display: block; }
    """

    def __init__(self, session: Session):
        super().__init__(session)
        self._devices: list[Device] = []
        self._plotted: bool | None = None

    def body(self) -> Iterable[Widget]:
        yield Static("", classes="head", markup=False)
        yield Grid(cursor_type="row", zebra_stripes=False, id="cards")
        yield Vertical(Static("", id="plot-title", markup=False), PlotextPlot(id="plot"), id="plot-box")

    def fill(self) -> None:
        self.behind("read", self._read)

    async def _read(self) -> None:
        assert self.session.store is not None
        self._devices = await self.session.store.ask("facts", read)
        if not self._devices:
            self.query_one(".head", Static).update(self.say("devices.none"))
            return
        known = names(self._devices)
        if self.session.state.series not in known:
            self.session.state.series = known[0] if known else ""
        if self._plotted is None:
            several = any(len(one.values) > 1 for device in self._devices for one in device.series.values())
            self._plotted = self.app.size.height >= PLOT_FROM and several
        self.set_class(self._plotted, "-plot")
        self._table()
        self.query_one(Grid).focus()

    def _table(self) -> None:
        table = self.query_one(Grid)
        series = self.session.state.series
        several = len({device.node for device in self._devices}) > 1
        titles = [*(["node"] if several else []), "device", "health", "hbm", "power", "temperature", "usage", "ecc", "link", "errors"]
        heads = [cell(self.app, self.say(f"device.{title}")) for title in titles]
        short = series.removeprefix("npu.")
        if series:
            heads.append(cell(self.app, short, "accent"))
        rows = []
        ends = [value for device in self._devices for value in (device.series[series].values if series in device.series else ())]
        for device in self._devices:
            row = [cell(self.app, device.node, "link", 14)] if several else []
            rows.append([*row, *self._cells(device), *([self._spark(device, series, ends)] if series else [])])
        told = [at for at in range(len(heads)) if any(row[at].plain for row in rows)]  # what no card tells takes no room
        table.put([heads[at] for at in told], [[row[at] for at in told] for row in rows], self.session.state.device)
        self.query_one(".head", Static).update(self.say("devices.head", n=len(self._devices), series=short or "—"))

    def _cells(self, device: Device) -> list[Text]:
        app, lang = self.app, self.session.lang
        health = device.facts.get("health", "")
        link = device.facts.get("link") or device.facts.get("net_health", "")
        used, total = device.number("npu.hbm.used", "npu.memory.used"), device.number("npu.hbm.total", "npu.memory.total")
        share = 100 * used.last / total.last if used and total and total.last else None
        hbm = f"{share:.0f} % / {total.last / 1024:.0f} GB" if share is not None and total else ""
        double = ecc(device)
        temperature = device.number("npu.temperature", "npu.hbm.temperature")
        return [
            cell(app, device.device, "bold"),
            cell(app, health, "good" if health.upper() in HEALTHY else "bad bold" if health else ""),
            cell(app, hbm, "warning" if share is not None and share >= 95 else ""),
            cell(app, _value(device.number("npu.power"))),
            cell(app, _value(temperature), "warning" if temperature and temperature.last >= 85 else ""),
            cell(app, _value(device.number("npu.aicore.usage", "npu.usage"))),
            cell(app, "" if double is None else f"{double:.0f}", "bad bold" if double else ""),
            cell(app, link, "bad bold" if link.upper() not in ("", "UP", "SUCCESS", "INIT") else "good"),
            cell(app, number(device.errors, lang) if device.errors else "0" if device.lines else "", "bad" if device.errors else "dim"),
        ]

    def _spark(self, device: Device, series: str, ends: list[float]) -> Text:
        one = device.series.get(series)
        if one is None:
            return cell(self.app, "")
        if len(one.values) < 2:
            return cell(self.app, _value(one), "dim")
        low, high = min(ends), max(ends)
        return cell(self.app, f"{spark(one.values, SPARK, low, high)} {_value(one)}", "accent")

    @property
    def device(self) -> Device | None:
        at = self.query_one(Grid).cursor_row
        return self._devices[at] if 0 <= at < len(self._devices) else None

    @on(DataTable.RowHighlighted)
    def _stood(self, event: DataTable.RowHighlighted) -> None:
        self.session.state.device = event.cursor_row
        self._plot()

    def _plot(self) -> None:
        if not self._plotted or self.device is None:
            return
        device, name = self.device, self.session.state.series
        title = self.query_one("#plot-title", Static)
        box = self.query_one("#plot", PlotextPlot)
        one = device.series.get(name)
        plot = box.plt
        plot.clear_figure()
        if one is None or len(one.values) < 2:
            title.update(self.say("devices.single" if one else "devices.no-series", series=name, node=device.node, device=device.device))
            box.refresh()
            return
        first = one.times[0] if len(one.times) == len(one.values) else None
        places = [(ts - first) / 1e6 for ts in one.times] if first is not None else [float(k) for k in range(len(one.values))]
        plot.plot(places, one.values, marker="braille")
        if first is not None:
            ticks = [places[0] + (places[-1] - places[0]) * k / 4 for k in range(5)]
            plot.xticks(ticks, [self.session.clock.time(round(first + tick * 1e6))[-12:-4] for tick in ticks])
        low, high = min(one.values), max(one.values)
        title.update(
            f"{name}{f' ({one.unit})' if one.unit else ''} · {device.node} {self.say('device.device')} {device.device} · "
            f"{low:g} – {high:g} · {self.say('devices.readings', n=len(one.values))}"
        )
        box.refresh()

    @on(DataTable.RowSelected)
    def _chosen(self) -> None:
        device = self.device
        if device is None:
            return
        chips = [Chip("device", "=", str(device.device))]
        if device.node:
            chips.insert(0, Chip("node", "=", device.node))
        self.browser.filter_log(chips, device.first_error)

    def action_series(self, step: int) -> None:
        known = names(self._devices)
        if known:
            at = known.index(self.session.state.series) if self.session.state.series in known else 0
            self.session.state.series = known[(at + step) % len(known)]
            self._table()
            self._plot()

    def action_plot(self) -> None:
        self._plotted = not self._plotted
        self.set_class(self._plotted, "-plot")
        self._plot()

    def action_copy(self) -> None:
        table = self.query_one(Grid)
        if self._devices:
            self.browser.copy(table.row_text)


    def on_resize(self, event: events.Resize) -> None:
        if self._devices and self.query("#plot"):
            self._plot()


def _value(series: Series | None) -> str:
    return "" if series is None else f"{series.last:g}{f' {series.unit}' if series.unit else ''}"
