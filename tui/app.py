"""The application: nine screens over one session, and what leads from one to another."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.screen import Screen

from forensics.case import open_case
from forensics.errors import ForensicsError
from forensics.safe_text import safe
from tui import live, queries
from tui.failures import Tells
from tui.filters import Chip
from tui.keys import EVERYWHERE, PAGES, bindings
from tui.queries import Key, Line
from tui.screens.dialogs import Help
from tui.screens.page import Page
from tui.session import Session
from tui.work import Diagnosed, Done, Early, Failed, Going

DARK, LIGHT = "textual-dark", "textual-light"
_CLASSES = {
    "diagnoses": "DiagnosesPage", "log": "LogPage", "graph": "GraphPage", "devices": "DevicesPage", "environment": "EnvironmentPage",
    "profile": "ProfilePage", "sql": "SqlPage", "replay": "ReplayPage", "rules": "RulesPage",
}  # fmt: skip
"""Screen -> class in the module of the same name, which is imported when the screen is opened: the first one is not to wait for the others."""


class Browser(Tells, App[None]):
    """`session`: what is looked at; `theme`: dark or light, empty for that of the last time."""

    TITLE = "dsforensics"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS = [
        *bindings(EVERYWHERE),
        *(Binding(str(digit), f"app.page('{name}')", show=False) for digit, name in enumerate(PAGES, 1)),
    ]
    CSS = """
    Screen { scrollbar-size: 1 1; }
    ToastRack { margin-bottom: 1; }
    """

    def __init__(self, session: Session, theme: str = ""):
        super().__init__()
        self.session = session
        self.animation_level = "none"  # over a slow line every frame costs
        kept = session.state
        self.theme = {"dark": DARK, "light": LIGHT}.get(theme or kept.theme, DARK)
        for name in PAGES:
            self.add_mode(name, self._maker(name))

    def _maker(self, name: str) -> Callable[[], Screen[None]]:
        def make() -> Page:
            page: type[Page] = getattr(importlib.import_module(f"tui.screens.{name}"), _CLASSES[name])
            return page(self.session)

        return make

    @property
    def page(self) -> Page | None:
        """The screen below whatever small window is open."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, Page)), None)

    async def on_mount(self) -> None:
        await self.switch_mode(self.session.state.page if self.session.state.page in PAGES else PAGES[0])
        if self.session.order is not None:
            self.behind("work", self._work, alone=False)

    # ------------------------------------------------------------ the bundle becomes a case

    async def _work(self) -> None:
        assert self.session.order is not None
        steps = live.steps(self.session.order)
        try:
            async for step in steps:
                if isinstance(step, Going):
                    self.session.going = step
                elif isinstance(step, Early):
                    self.session.early = safe(step.zh if self.session.lang == "zh" else step.en)
                    self.notify(self.session.early, title=self.session.say("work.early"), markup=False)
                elif isinstance(step, Failed):
                    self.session.failure = step.reason
                elif isinstance(step, (Diagnosed, Done)):
                    await self._opened(step.case)
                    if isinstance(step, Done):
                        self.session.order = None
                        for english, chinese in step.notes:
                            self.notify(safe(chinese if self.session.lang == "zh" else english), severity="warning", markup=False)
                if self.page is not None:
                    self.page.tell_work()
        except (ForensicsError, OSError, ValueError) as error:
            self.session.failure = str(error)
            if self.page is not None:
                self.page.tell_work()
        finally:
            await steps.aclose()

    async def _opened(self, folder: str) -> None:
        kept = self.session.state
        fresh = self.session.case is None
        self.session.open(open_case(folder))
        if not fresh:
            self.session.state = kept
        if self.page is not None:
            await self.page.renew()

    # ------------------------------------------------------------ from screen to screen

    async def action_page(self, name: str) -> None:
        """Open one of the nine screens."""
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.session.state.page = name
        await self.switch_mode(name)

    def go(self, name: str) -> None:
        """As `action_page`, for those who cannot wait."""
        self.behind("open", self.action_page, name)

    def _page(self, name: str) -> Page:
        return next(screen for screen in self._screen_stacks[name] if isinstance(screen, Page))

    def open_line(self, path: str, line_no: int) -> None:
        """Show a line of a file in the log."""
        self.behind("open", self._open_line, path, line_no)

    async def _open_line(self, path: str, line_no: int) -> None:
        file_id = self.session.file_id(path)
        if not self.session.indexed or self.session.store is None or file_id is None:
            self.notify(self.session.say("waiting.lines" if not self.session.indexed else "line.none"), markup=False)
            return
        key = await self.session.store.ask("record", lambda connection: queries.line_at(connection, file_id, line_no))
        if key is None:
            self.notify(self.session.say("line.none"), markup=False)
            return
        await self.open_key(key)

    async def open_key(self, key: Key) -> None:
        known = "log" in self._screen_stacks
        if not known:
            self.session.state.log.ts, self.session.state.log.event_id = key
        await self.action_page("log")
        page = self._page("log")
        if known:
            from tui.screens.log import LogPage

            assert isinstance(page, LogPage)
            page.open(key)

    def filter_log(self, chips: list[Chip], ts: int | None) -> None:
        """Show only these lines in the log, from a time on."""
        self.behind("open", self._filter_log, chips, ts)

    async def _filter_log(self, chips: list[Chip], ts: int | None) -> None:
        place = self.session.state.log
        place.chips, place.ts, place.event_id = chips, ts, -1 if ts is None else 0
        known = "log" in self._screen_stacks
        await self.action_page("log")
        page = self._page("log")
        if known and page.ready:
            await page.renew()

    def open_rule(self, ident: str) -> None:
        """Show a rule among the rules."""
        self.behind("open", self.action_open_rule, ident)

    async def action_open_rule(self, ident: str) -> None:
        self.session.state.rule = ident
        self.session.state.rules_filter = ""
        await self.action_page("rules")
        page = self._page("rules")
        from tui.screens.rules import RulesPage

        assert isinstance(page, RulesPage)
        page.select(ident)

    def write_rule(self, line: Line) -> None:
        """Begin a rule that finds lines like this one."""
        from tui.screens.new_rule import NewRule

        if self.session.store is not None:
            self.push_screen(NewRule(self.session, line))

    # ------------------------------------------------------------ everywhere

    def copy(self, text: str) -> None:
        """To the clipboard of the terminal (OSC 52), with control characters spelled out: it may be pasted into a shell."""
        self.copy_to_clipboard("\n".join(safe(line) for line in text.split("\n")))
        self.notify(self.session.say("copied"), timeout=2, markup=False)

    def action_help(self) -> None:
        page = self.page
        if page is not None and self.screen is page:
            extra = getattr(page, "EXTRA", ())
            self.push_screen(Help(self.session, page.NAME, [("help.here", [*page.KEYS, *extra]), ("help.everywhere", EVERYWHERE)]))

    async def action_language(self) -> None:
        """English and Chinese in turn."""
        self.session.lang = "en" if self.session.lang == "zh" else "zh"
        self.session.state.lang = self.session.lang
        if self.page is not None:
            await self.page.renew()

    def action_theme(self) -> None:
        """Dark and light in turn."""
        self.theme = LIGHT if self.theme == DARK else DARK
        self.session.state.theme = "light" if self.theme == LIGHT else "dark"
        if self.page is not None and self.page.ready:
            self.page.fill_again()

    def action_leave(self) -> None:
        self.exit()

    async def on_unmount(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.session.close)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        say = self.session.say
        for digit, name in enumerate(PAGES, 1):
            yield SystemCommand(f"{digit}  {say(f'page.{name}')}", say(f"help.{name}"), self._opener(name))
        page = self.page
        if page is not None:
            for key in page.KEYS:
                if key.action and not key.action.startswith("app."):
                    word = say(f"key.{key.word}.long", _or=f"key.{key.word}")
                    yield SystemCommand(word, f"{say(f'page.{page.NAME}')} · {key.label}", self._doer(page, key.action))
        for key in EVERYWHERE:
            if key.word in ("help", "language", "theme", "quit"):
                yield SystemCommand(say(f"key.{key.word}.long", _or=f"key.{key.word}"), key.label, self._doer(None, key.action.removeprefix("app.")))

    def _opener(self, name: str) -> Callable[[], None]:
        return lambda: self.go(name)

    def _doer(self, page: Page | None, action: str) -> Callable[[], None]:
        def go() -> None:
            self.call_later(self.run_action, action, page or self)

        return go
