"""Screen 3: what follows from what, as a tree from each root to its symptoms; the ranks that fail alike are one branch, folded."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual import on
from textual.widget import Widget
from textual.widgets import Static, Tree
from textual.widgets.tree import TreeNode

from forensics.report.strings import say as report_say
from forensics.safe_text import safe
from tui import graph
from tui.colours import ink
from tui.graph import Found, Place
from tui.items import Target
from tui.keys import Key, bindings
from tui.screens.page import Page

MANY = 200
"""Places below one finding that are listed."""


class GraphPage(Page):
    """Enter opens the first line of a finding, or of one of its places."""

    NAME = "graph"
    KEYS = (
        Key("enter", "", "open", "⏎"),
        Key("space", "", "fold", "space"),
        Key("plus,minus", "", "fold-all", "+ -"),
        Key("w", "why", "why", "w"),
        Key("y", "copy", "copy", "y", bar=False),
    )
    BINDINGS = [
        *bindings(KEYS),
        *bindings((Key("plus", "all(True)", ""), Key("minus", "all(False)", ""), Key("j", "down", ""), Key("k", "up", ""))),
    ]
    DEFAULT_CSS = """
    GraphPage Tree { height: 1fr; background: $background; padding: 0 1; scrollbar-size: 1 1; }
    GraphPage Tree > .tree--cursor, GraphPage Tree:focus > .tree--cursor { background: $primary-muted; color: $foreground; text-style: none; }
    """

    def body(self) -> Iterable[Widget]:
        tree: Tree[Found | Place] = Tree("")
        tree.show_root = False
        tree.auto_expand = False
        tree.guide_depth = 3
        yield Static("", classes="head", markup=False)
        yield tree

    def fill(self) -> None:
        self.behind("read", self._read)

    async def _read(self) -> None:
        assert self.session.store is not None
        findings, edges = await self.session.store.ask("facts", graph.read)
        roots = graph.forest(findings, edges)
        head = self.query_one(".head", Static)
        if not roots:
            head.update(self.say("graph.none"))
            return
        head.update(self.say("graph.head", roots=len(roots), findings=len(findings), edges=len(edges)))
        tree = self.branches
        tree.clear()
        for number, root in enumerate(roots):
            self._add(tree.root, root, expand=number == 0 or root.rank is not None)
        tree.root.expand()
        tree.focus()
        tree.move_cursor_to_line(0)

    @property
    def branches(self) -> Tree[Found | Place]:
        return self.query_one(Tree)

    def _add(self, parent: TreeNode[Found | Place], found: Found, expand: bool) -> None:
        node = parent.add(self._label(found), found, expand=expand, allow_expand=bool(found.effects or len(found.places) > 1))
        if len(found.places) > 1:
            places = node.add(Text(self._together(found.places), ink(self.app, "link"), end=""), found.places[0], expand=False)
            for place in found.places[:MANY]:
                places.add_leaf(self._place_label(place), place)
            if len(found.places) > MANY:
                places.add_leaf(Text(self.say("more", n=len(found.places) - MANY), ink(self.app, "dim")), found.places[0])
        for effect in found.effects:
            self._add(node, effect, expand)

    def _label(self, found: Found) -> Text:
        app, lang = self.app, self.session.lang
        triage = self.session.triage
        title = triage.titles.get(found.rule, found.title) if triage is not None and found.rank is None else found.title
        text = Text(no_wrap=True, end="")
        if found.rank is not None:
            text.append(f"{found.rank} ", ink(app, "bad bold"))
        if found.first is not None:
            text.append(f"{self.session.clock.time(found.first)} ", "dim")
        text.append(f"{self.say(f'layer.{found.layer}')} ", ink(app, "accent"))
        text.append(safe(title.of(lang)), "bold" if found.role == "cause" else "")
        if found.occurrences > 1:
            text.append(f" ×{found.occurrences}", "dim")
        if len(found.places) == 1:
            text.append(f"  {self._where(found.places[0])}", ink(app, "link"))
        if found.also:
            text.append(f"  ({report_say(lang, 'follows-from')} {', '.join(safe(rule) for rule in found.also[:2])})", "dim")
        return text

    def _where(self, place: Place) -> str:
        known = (("node", place.node), ("device", place.device), ("rank", place.rank), ("pid", place.pid))
        return " · ".join(report_say(self.session.lang, key, v=safe(str(value))) for key, value in known if value not in (None, ""))

    def _together(self, places: list[Place]) -> str:
        """`7 ranks: 0-5, 7`, or as many devices, or processes."""
        for word, values in (("ranks", [one.rank for one in places]), ("devices", [one.device for one in places])):
            known = sorted({value for value in values if value is not None})
            if len(known) > 1:
                return self.say(f"graph.{word}", n=len(known), which=graph.spans(known))
        nodes = sorted({safe(one.node) for one in places if one.node})
        return self.say("graph.places", n=len(places), which=", ".join(nodes))

    def _place_label(self, place: Place) -> Text:
        text = Text(no_wrap=True, end="")
        text.append(f"{self.session.clock.time(place.first)} " if place.first is not None else "", "dim")
        text.append(self._where(place) or "—", ink(self.app, "link"))
        text.append(f"  {safe(self.session.path(place.file_id))}:{place.line_no}", "dim")
        if place.lines > 1:
            text.append(f" ×{place.lines}", "dim")
        return text

    def _place(self, data: Found | Place | None) -> Place | None:
        if isinstance(data, Found):
            return data.places[0] if data.places else None
        return data

    @on(Tree.NodeSelected)
    def _opened(self, event: Tree.NodeSelected[Found | Place]) -> None:
        place = self._place(event.node.data)
        if place is not None:
            self.follow(Target("line", self.session.path(place.file_id), place.line_no))

    def action_all(self, expand: bool) -> None:
        for node in self.branches.root.children:
            if expand:
                node.expand_all()
            else:
                node.collapse_all()

    def action_down(self) -> None:
        self.branches.action_cursor_down()

    def action_up(self) -> None:
        self.branches.action_cursor_up()

    def action_why(self) -> None:
        node = self.branches.cursor_node
        while node is not None and not isinstance(node.data, Found):
            node = node.parent
        if node is not None and isinstance(node.data, Found):
            self.follow(Target("rule", node.data.rule))

    def action_copy(self) -> None:
        if self.branches.cursor_node is not None:
            self.browser.copy(str(self.branches.cursor_node.label))
