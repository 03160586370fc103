"""Small windows over a screen: a line to type, a list to choose from, the help."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from forensics.errors import ForensicsError
from forensics.safe_text import cells, safe
from tui.keys import Key
from tui.session import Session


class AskLine(ModalScreen[str | None]):
    """One line, asked for at the bottom of the screen, as a pager does. Escape gives None. `check` raises ForensicsError for what will not do."""

    BINDINGS = [Binding("escape", "dismiss(None)", show=False)]
    DEFAULT_CSS = """
    AskLine { align: center bottom; background: $background 30%; }
    AskLine > Vertical { height: auto; background: $surface; border-top: solid $primary; padding: 0 1; }
    AskLine Input, AskLine Input:focus { border: none; padding: 0; height: 1; background: $surface; }
    AskLine .hint { color: $text-muted; height: auto; }
    AskLine .wrong { color: $text-error; height: auto; display: none; }
    """

    def __init__(self, title: str, value: str = "", hint: str = "", check: Callable[[str], object] | None = None):
        super().__init__()
        self._title, self._value, self._hint, self._check = title, value, hint, check

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content.styled(self._title, "bold"), markup=False)
            line = Input(self._value, id="line", select_on_focus=True)
            line.cursor_blink = False
            yield line
            yield Static("", classes="wrong", markup=False)
            if self._hint:
                yield Static(self._hint, classes="hint", markup=False)

    @on(Input.Submitted)
    def _done(self, event: Input.Submitted) -> None:
        try:
            if self._check is not None and event.value:
                self._check(event.value)
        except ForensicsError as error:
            wrong = self.query_one(".wrong", Static)
            wrong.update(safe(str(error)))
            wrong.display = True
            return
        self.dismiss(event.value)


class Choose(ModalScreen[int | None]):
    """One of a list; typing narrows it down. Escape gives None."""

    BINDINGS = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
    ]
    DEFAULT_CSS = """
    Choose { align: center middle; background: $background 30%; }
    Choose > Vertical { width: 90%; max-width: 110; height: 80%; background: $surface; border: round $primary; padding: 0 1; }
    Choose Input, Choose Input:focus { border: none; padding: 0; height: 1; background: $panel; margin-bottom: 1; }
    Choose OptionList, Choose OptionList:focus { border: none; background: $surface; height: 1fr; padding: 0; }
    Choose .empty { color: $text-muted; }
    """

    def __init__(self, title: str, options: Sequence[Content], empty: str = ""):
        super().__init__()
        self._title, self._all, self._empty = title, list(options), empty
        self._shown: list[int] = []

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content.styled(self._title, "bold"), markup=False)
            yield Input(id="narrow")
            if not self._all:
                yield Static(self._empty, classes="empty", markup=False)
            yield OptionList(markup=False)

    def on_mount(self) -> None:
        self._narrow("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._narrow(event.value)

    def _narrow(self, text: str) -> None:
        words = text.lower().split()
        self._shown = [n for n, option in enumerate(self._all) if all(word in option.plain.lower() for word in words)]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(self._all[n]) for n in self._shown])
        options.highlighted = 0 if self._shown else None

    def action_move(self, delta: int) -> None:
        options = self.query_one(OptionList)
        if self._shown:
            options.highlighted = max(0, min((options.highlighted or 0) + delta, len(self._shown) - 1))

    @on(Input.Submitted)
    def _entered(self) -> None:
        at = self.query_one(OptionList).highlighted
        self.dismiss(self._shown[at] if at is not None and at < len(self._shown) else None)

    @on(OptionList.OptionSelected)
    def _picked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._shown[event.option_index])


class AskFilter(ModalScreen[str | None]):
    """Conditions to type, and the values there are, with how many lines have them. Gives what was typed or picked."""

    BINDINGS = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("tab", "take", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    AskFilter { align: center bottom; background: $background 30%; }
    AskFilter > Vertical { height: auto; max-height: 80%; background: $surface; border-top: solid $primary; padding: 0 1; }
    AskFilter Input, AskFilter Input:focus { border: none; padding: 0; height: 1; background: $panel; }
    AskFilter OptionList, AskFilter OptionList:focus { border: none; background: $surface; height: auto; max-height: 12; padding: 0; }
    AskFilter .hint { color: $text-muted; height: auto; }
    AskFilter .wrong { color: $text-error; height: auto; display: none; }
    """

    def __init__(self, session: Session, suggestions: Sequence[tuple[str, str]], check: Callable[[str], object]):
        super().__init__()
        self.session, self._check = session, check
        self._all = list(suggestions)
        self._shown: list[str] = []

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content.styled(self.session.say("filter.title"), "bold"), markup=False)
            yield Input(id="line")
            yield Static("", classes="wrong", markup=False)
            yield OptionList(markup=False)
            yield Static(self.session.say("filter.hint"), classes="hint", markup=False)

    def on_mount(self) -> None:
        self._narrow("")

    def suggest(self, more: Sequence[tuple[str, str]]) -> None:
        """Further values, which took longer to find."""
        self._all += [one for one in more if one[0] not in {known for known, _ in self._all}]
        self._narrow(self.query_one(Input).value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._narrow(event.value)

    def _narrow(self, text: str) -> None:
        word = text.split(" ")[-1].lstrip("-").lower()
        self._shown = [name for name, _ in self._all if word in name.lower()][:200]
        counts = dict(self._all)
        options = self.query_one(OptionList)
        options.clear_options()
        for name in self._shown:
            options.add_option(Option(Content.assemble(safe(name), (f"   {counts[name]}", "dim"))))
        options.highlighted = None

    def action_move(self, delta: int) -> None:
        options = self.query_one(OptionList)
        if self._shown:
            at = -1 if options.highlighted is None else options.highlighted
            options.highlighted = max(0, min(at + delta, len(self._shown) - 1))

    def action_take(self) -> None:
        """Put the chosen value in the place of what was typed of it."""
        options, line = self.query_one(OptionList), self.query_one(Input)
        at = options.highlighted if options.highlighted is not None else 0 if self._shown else None
        if at is not None:
            words = line.value.split(" ")
            line.value = " ".join([*words[:-1], ("-" if words[-1].startswith("-") else "") + self._shown[at]])
            line.cursor_position = len(line.value)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        if self.query_one(OptionList).highlighted is not None:
            self.action_take()
        self._give(self.query_one(Input).value)

    @on(OptionList.OptionSelected)
    def _picked(self, event: OptionList.OptionSelected) -> None:
        self._give(self._shown[event.option_index])

    def _give(self, text: str) -> None:
        try:
            self._check(text)
        except ForensicsError as error:
            wrong = self.query_one(".wrong", Static)
            wrong.update(safe(str(error)))
            wrong.display = True
            return
        self.dismiss(text)


class Help(ModalScreen[None]):
    """The keys of a screen, and those of all."""

    BINDINGS = [Binding("escape,q,question_mark,f1,enter", "dismiss(None)", show=False)]
    DEFAULT_CSS = """
    Help { align: center middle; background: $background 30%; }
    Help > VerticalScroll { width: 90%; max-width: 78; height: auto; max-height: 90%; background: $surface; border: round $primary; padding: 0 2; }
    Help Static { height: auto; }
    """

    def __init__(self, session: Session, page: str, groups: Sequence[tuple[str, Sequence[Key]]]):
        super().__init__()
        self.session, self.page, self.groups = session, page, groups

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text(), markup=False)

    def _text(self) -> Content:
        say = self.session.say
        out: list[Content | str | tuple[str, str]] = [(say(f"page.{self.page}"), "bold"), f"\n{say(f'help.{self.page}')}\n"]
        for title, keys in self.groups:
            if not keys:
                continue
            out += ["\n", (say(title), "bold"), "\n"]
            for key in keys:
                label = key.label
                out += ["  ", (label, "bold $text-accent"), " " * max(1, 20 - cells(label)), say(f"key.{key.word}.long", _or=f"key.{key.word}"), "\n"]
        return Content.assemble(*out)
