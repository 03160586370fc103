"""`dsforensics rules ...`: the commands of `rules.commands`, and those that need a case or a bundle: `new` writes a rule from a line,
`bench` says what rules cost on a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from rules.commands import Packs, app, shown

__all__ = ["app"]

Out = Annotated[Optional[str], typer.Option("--out", "-o", metavar="FILE", help="Add the rule to this .yaml file, or to draft.yaml of this pack.")]


@app.command()
def new(
    line: Annotated[Optional[str], typer.Argument(metavar="LINE|FILE:N", help="The line itself, or where it stands: console.log:512.")] = None,
    case: Annotated[Optional[str], typer.Option("--from", metavar="CASE", help="Take the line from a case.")] = None,
    event: Annotated[Optional[int], typer.Option(help="event_id of the line in the case: dsforensics sql CASE ...")] = None,
    ident: Annotated[str, typer.Option("--id", help="Id of the rule. Default: made of the line's words.")] = "",
    cause: Annotated[str, typer.Option("--cause", help="Root cause; `rules causes` lists them.")] = "",
    layer: Annotated[str, typer.Option(help="hardware, driver, runtime, operator, collective, framework, application, environment ...")] = "",
    title: Annotated[str, typer.Option(help="Title in English. Default: the line's message.")] = "",
    title_zh: Annotated[str, typer.Option("--title-zh", help="Title in Chinese.")] = "",
    out: Out = None,
    pack: Packs = None,
) -> None:
    """Write a rule from a log line: pids, times, numbers, addresses and paths generalised, the line kept as its first example."""
    from forensics.errors import UsageError
    from rules import draft as drafts
    from rules import model
    from rules import pack as packs
    from rules.reader import ID
    from rules.taxonomy import ROOT_CAUSES

    if cause and cause not in ROOT_CAUSES:
        raise UsageError(f"--cause wants a root cause of the list; {cause!a} is none. `dsforensics rules causes WORD` finds one.")
    if layer and layer not in model.LAYERS:
        raise UsageError(f"--layer wants one of {', '.join(model.LAYERS)}; found {layer!a}.")
    text, head = _line(line, case, event)
    loaded = packs.load(pack or [])
    _tell_known(text, loaded)
    place = _place(out) if out else None
    prefix = place.parent.name if place is not None and ID.match(place.parent.name) else "field"
    try:
        made = drafts.draft(text, ident, cause or "unknown", layer, title, title_zh, prefix, head)
    except ValueError as error:
        raise UsageError(f"no rule can be written from this line: {error}.") from None
    if not ID.match(made.ident):
        raise UsageError(f"--id wants lower-case words joined by dots or dashes, such as hccl.link.timeout; found {made.ident!a}.")
    if any(rule.id == made.ident for rule in loaded.rules):
        raise UsageError(f"there is a rule {made.ident} already; give another one with --id.")
    if place is None:
        typer.echo(made.text, nl=False)
        return
    _append(place, made.text, made.ident)


def _line(line: str | None, case: str | None, event: int | None) -> tuple[str, str]:
    """The log line that was named, and what is known of it besides. Raises UsageError."""
    from forensics.errors import UsageError

    if case is not None:
        if event is None or line is not None:
            raise UsageError('--from CASE takes --event N and no line; `dsforensics sql CASE "select event_id, message from events ..."` finds N.')
        return _line_of_case(case, event)
    if not line or not line.strip():
        raise UsageError("give the log line in quotes, or FILE:N, or --from CASE --event N.")
    file, _, number = line.rpartition(":")
    if number.isdecimal() and len(number) < 10 and Path(file).is_file():
        return _line_of_file(Path(file), int(number)), ""
    return line.splitlines()[0], ""


def _line_of_file(path: Path, number: int) -> str:
    from forensics.errors import UsageError

    count = 0
    with path.open("rb") as stream:
        while raw := stream.readline(1 << 20):
            count += 1
            if count == number:
                return raw.decode("utf-8", "replace").rstrip("\r\n")
    raise UsageError(f"{str(path)!a} has {count} lines; there is no line {number}.")


_HEADS = {"kernel": "[ascend]", "firmware": "TSCH(", "console": "torch", "device-os": "[ascend]"}
"""Source of a line, and the head by which such lines are known."""


def _line_of_case(case: str, event: int) -> tuple[str, str]:
    from forensics.case import open_case
    from forensics.errors import UsageError

    opened = open_case(case)
    opened.ensure_index()
    rows = opened.sql(f"select message, source, severity, module from events where event_id = {event:d}").rows()
    if not rows or not rows[0][0]:
        raise UsageError(f'there is no event {event} in this case; `dsforensics sql {case} "select min(event_id), max(event_id) from events"`.')
    message, source, severity, module = (str(value or "") for value in rows[0])
    return message.splitlines()[0], f"[{severity}] {module}( {_HEADS.get(source, '')}"


def _tell_known(text: str, rules: object) -> None:
    """On standard error: the rules that know this line already."""
    from rules import author, scan
    from rules.model import RuleSet

    assert isinstance(rules, RuleSet)
    found = author.fires(scan.Scanner.load(rules), rules, text)
    for finding in found.findings[:5]:
        typer.echo(shown(f"# known already: {finding.rule.id} ({finding.rule.role}, {finding.rule.root_cause})"), err=True)
    if found.noise:
        typer.echo("# a rule takes this line as harmless", err=True)


def _place(out: str) -> Path:
    """The file a rule is to be added to. Raises UsageError."""
    from forensics.errors import UsageError

    path = Path(out)
    if path.suffix not in (".yaml", ".yml"):
        path = path / "draft.yaml"
    if path.exists() and not path.is_file():
        raise UsageError(f"{str(path)!a} is no file; give a .yaml file or the folder of a pack.")
    return path


def _append(path: Path, text: str, ident: str) -> None:
    """Add a rule to a file; a folder that is no pack yet becomes one."""
    from forensics.errors import UsageError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        header = path.parent / "pack.yaml"
        if not header.exists():
            name = path.parent.resolve().name.lower()
            header.write_text(f"name: {name if name.replace('-', '').isalnum() and name.isascii() else 'field'}\nversion: 0.1.0\n", encoding="utf-8")
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(old + ("\n" if old and not old.endswith("\n\n") else "") + text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the rule cannot be added to {str(path)!a}: {error}.") from None
    typer.echo(shown(f"{path}: {ident}"))
    typer.echo(shown(f"Next: fill in what `dsforensics rules lint {path.parent}` names, then `dsforensics rules test {path.parent}`."), err=True)


@app.command()
def bench(
    path: Annotated[Optional[str], typer.Argument(metavar="PACK", help="Only the rules of this pack; without, all packs.")] = None,
    bundle: Annotated[str, typer.Option("--on", metavar="BUNDLE", help="What to measure on: archive, folder or file.")] = "",
    top: Annotated[int, typer.Option(min=1, max=1000, help="So many of the dearest rules.")] = 20,
) -> None:
    """What rules cost on a bundle: lines each is asked about, lines it finds, and the time that takes."""
    from forensics.errors import UsageError
    from rules import measure
    from rules import pack as packs

    if not bundle:
        raise UsageError("give a bundle to measure on with --on, such as --on logs.tar.gz.")
    loaded = packs.load([path] if path else [], shipped=not path)
    if not loaded.rules:
        raise UsageError(f"there are no rules at {path!a}; `dsforensics rules lint` says why.")
    text = _sample(bundle)
    table, total = measure.measure(loaded, text)
    lines = text.count(b"\n")
    typer.echo(f"{'rule':<52} {'asked':>8} {'found':>8} {'ms':>8} {'us/line':>8}")
    for cost in table[:top]:
        each = cost.seconds * 1e6 / cost.asked if cost.asked else 0.0
        typer.echo(shown(f"{cost.rule:<52} {cost.asked:>8} {cost.found:>8} {cost.seconds * 1e3:>8.1f} {each:>8.2f}"))
    rest = sum(cost.seconds for cost in table[top:])
    if len(table) > top:
        typer.echo(f"{f'{len(table) - top} others':<52} {'':>8} {'':>8} {rest * 1e3:>8.1f}")
    megabytes = len(text) / 1e6
    typer.echo(
        f"{len(loaded.rules)} rules on {lines} lines, {megabytes:.1f} MB: {total:.2f} s, of which {sum(cost.seconds for cost in table):.2f} s "
        f"for lines that hold the texts of a rule; {megabytes / total if total else 0:.0f} MB/s"
    )


SAMPLE = 32 << 20
"""Bytes of a bundle that rules are measured on."""


def _sample(bundle: str) -> bytes:
    """The first bytes of a bundle: its members one after the other, each ended by a line feed. Raises UnreadableBundle, UsageError."""
    from forensics.bundle import Bundle

    opened, out = Bundle(bundle), bytearray()
    block = memoryview(bytearray(1 << 20))
    try:
        for member in opened.members():
            while len(out) < SAMPLE and (count := member.readinto(block)):
                out += block[:count]
            if len(out) >= SAMPLE:
                break
            out += b"\n" if out and out[-1] != 10 else b""
    finally:
        opened.close()
    return bytes(out)
