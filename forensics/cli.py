"""The command line. Everything heavy is imported inside the commands, so that `dsforensics --help` starts at once.

Results go to standard output, messages to standard error. Exit status: 0 done; 1 a diagnosis at or above --fail-on; 2 wrong usage;
3 the bundle could not be read; 4 a part of it could not be read (the report is written); 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from forensics.extension import Commands, installed
from forensics.guard import guarded

if TYPE_CHECKING:
    from forensics.report.page import Look
    from forensics.result import Triage
    from forensics.terminal import Output

Format = Literal["text", "json", "markdown", "html", "junit", "sarif"]
Language = Literal["en", "zh"]
Level = Literal["low", "medium", "high"]
Profile = Literal["preflight"]
LEVELS = ("low", "medium", "high")

app = typer.Typer(
    name="dsforensics",
    cls=Commands,
    help="Find out from the logs of Ascend NPU servers what broke first, why, and what to do.",
    epilog="Exit status: 0 done; 1 a diagnosis at or above --fail-on; 2 wrong usage; 3 the bundle could not be read; "
    "4 a part of it could not be read; 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FormatOption = Annotated[Format, typer.Option("--format", "-f", help="Form of the report on standard output.")]
LangOption = Annotated[Optional[Language], typer.Option("--lang", help="Language of the report. Default: that of LC_ALL, LC_MESSAGES or LANG.")]
FailOnOption = Annotated[
    Optional[Level], typer.Option(help="Exit with status 1 if a diagnosis, or a failed check of --profile, is at this level or above.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show all evidence, all notes, rules and references.")]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="No colours, as with NO_COLOR=1; FORCE_COLOR=1 colours a pipe too.")]
CaseArgument = Annotated[str, typer.Argument(metavar="CASE", help="Case folder that triage has written.")]


def main() -> None:
    """Entry point of the command `dsforensics`."""
    sys.exit(guarded(lambda: app(prog_name="dsforensics")))


def _version(wanted: bool) -> None:
    if wanted:
        from forensics.doctor import own_version
        from forensics.terminal import Output

        Output().text(f"dsforensics {own_version()}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")] = False,
) -> None:
    pass


@app.command()
def triage(
    bundle: Annotated[list[str], typer.Argument(metavar="BUNDLE", help="Archive, folder, file, or - for standard input; several are one incident.")],
    out: Annotated[Optional[str], typer.Option("--out", "-o", metavar="DIR", help="Case folder. Default: ./<bundle name>.case")] = None,
    form: FormatOption = "text",
    lang: LangOption = None,
    pack: Annotated[Optional[list[str]], typer.Option("--pack", metavar="DIR", help="Folder of a further rule pack. Can be repeated.")] = None,
    setting: Annotated[
        Optional[list[str]], typer.Option("--set", metavar="PACK.NAME=VALUE", help="Set an option of a rule pack. Can be repeated.")
    ] = None,
    since: Annotated[Optional[str], typer.Option(metavar="TIME", help="Leave out what is earlier, such as 2025-09-04T09:12.")] = None,
    until: Annotated[Optional[str], typer.Option(metavar="TIME", help="Leave out what is later.")] = None,
    tz: Annotated[
        Optional[str], typer.Option(metavar="ZONE", help="Zone of clocks that do not say theirs, such as +08:00. Default: found out.")
    ] = None,
    workers: Annotated[Optional[int], typer.Option(min=1, max=256, metavar="N", help="Processes that scan. Default: as many as pay.")] = None,
    fail_on: FailOnOption = None,
    profile: Annotated[
        Optional[Profile], typer.Option(help="Ask further rules: preflight checks a healthy node before go-live, and lists what passed.")
    ] = None,
    replay: Annotated[
        Literal["auto", "never"], typer.Option(help="auto: judge what the bundle holds of a suspected kernel, as far as no NPU is needed.")
    ] = "never",
    no_index: Annotated[bool, typer.Option("--no-index", help="Do not store all lines for search and SQL.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a case folder of another bundle.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on standard error; errors still.")] = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
    progress: Annotated[Optional[bool], typer.Option("--progress/--no-progress", help="Show progress. Default: on a terminal.")] = None,
    baseline: Annotated[
        Optional[str], typer.Option("--baseline", metavar="GOOD", help="Bundle of a good run: show what differs, and weigh it.")
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace users, hosts, addresses and secrets in the report; the case keeps its lines.")
    ] = False,
    max_bytes: Annotated[Optional[str], typer.Option(metavar="SIZE", help="Stop reading at so many unpacked bytes, such as 64G.")] = None,
    max_members: Annotated[Optional[int], typer.Option(min=1, metavar="N", help="Read at most so many members.")] = None,
    max_depth: Annotated[Optional[int], typer.Option(min=1, metavar="N", help="Open archives in archives to this depth.")] = None,
    max_ratio: Annotated[Optional[int], typer.Option(min=1, metavar="N", help="Stop at so many unpacked bytes for each packed one.")] = None,
) -> None:
    """Find what broke first in a bundle, and why."""
    from forensics import options as ask
    from forensics.pipeline import run
    from forensics.progress import ProgressLine
    from forensics.report.data import write
    from forensics.terminal import Output, complain, default_language, is_terminal

    speech = lang or default_language()
    options = ask.Options(
        out=out,
        packs=tuple(_folders(pack or ())),
        settings=tuple(ask.setting(text) for text in setting or ()),
        since=ask.moment(since, "--since") if since else None,
        until=ask.moment(until, "--until") if until else None,
        tz=tz if tz and ask.zone(tz) else None,
        workers=workers,
        index=not no_index,
        force=force,
        profile=profile,
        baseline=baseline,
        max_bytes=ask.byte_count(max_bytes, "--max-bytes") if max_bytes else None,
        max_members=max_members,
        max_depth=max_depth,
        max_ratio=max_ratio,
    )
    shown = progress if progress is not None else is_terminal(sys.stderr) and not quiet
    line = ProgressLine(speech) if shown and is_terminal(sys.stderr) else None
    with ExitStack() as stack:
        if line:
            stack.enter_context(line)
        work = run(list(bundle), options, line)
        stack.callback(work.close)
        if line:
            line.clear()
        folder = work.triage.case
        if folder and replay == "auto":
            from forensics.replay_case import automatic

            for remark in automatic(work.case, work.triage):
                complain(f"dsforensics: {remark}") if not quiet else None
        found = work.redacted() if redact else work.triage
        if folder:
            write(found, Path(folder))
        how = look(speech, verbose, no_color)
        emit(found, form, how, Output(), fail_on)
        if folder:
            from forensics.report.web import page

            page.write(found, Path(folder), how)
        for note in work.finish():
            complain(f"dsforensics: {note.en}")
    lost = sum(member.lost for member in found.coverage.members)
    if lost and not quiet:
        complain(f"dsforensics: {lost} {'part' if lost == 1 else 'parts'} of the bundle could not be read to the end; the report says which.")
    raise typer.Exit(exit_status(found, fail_on))


def exit_status(triage: Triage, fail_on: str | None) -> int:
    """1 for a diagnosis or a failed check at or above `fail_on`, else 4 where a part could not be read, else 0."""
    reached = [d.level for d in triage.diagnoses] + [check.level for check in triage.checks if check.status == "fail"]
    if fail_on and any(LEVELS.index(level) >= LEVELS.index(fail_on) for level in reached):
        return 1
    return 4 if any(member.lost for member in triage.coverage.members) else 0


def look(lang: str | None, verbose: bool, no_color: bool) -> Look:
    """How a report is to look on this standard output."""
    from forensics import terminal
    from forensics.report.page import Look

    return Look(
        lang=lang or terminal.default_language(), width=terminal.width(), colour=terminal.colour(not no_color),
        ascii=terminal.ascii_only(), verbose=verbose, commands=installed(),
    )  # fmt: skip


def emit(triage: Triage, form: str, how: Look, output: Output, fail_on: str | None = None) -> None:
    """The report on standard output. All forms but text are UTF-8 whatever the locale."""
    if form == "json":
        from forensics.report import data

        output.data(data.encode(data.report(triage)))
    elif form == "markdown":
        from forensics.report import markdown

        output.data(markdown.render(triage, how).encode("utf-8"))
    elif form == "html":
        from forensics.report.web import page

        output.data(page.render(triage, how).encode("utf-8"))
    elif form == "junit":
        from forensics.report import junit

        output.data(junit.render(triage, how, fail_on or LEVELS[0]))
    elif form == "sarif":
        from forensics.report import data, sarif

        output.data(data.encode(sarif.report(triage, how)))
    else:
        from forensics.report import console

        output.text(console.render(triage, how))


def _folders(packs: list[str] | tuple[()]) -> list[str]:
    from forensics.errors import UsageError

    for folder in packs:
        if not Path(folder).is_dir() and not (folder.endswith(".json") and Path(folder).is_file()) and folder != "ascend-fd":
            raise UsageError(f"--pack wants the folder of a rule pack, a kg-config.json of ascend-fd, or `ascend-fd`; {folder} is none.")
    return list(packs)


@app.command()
def profile(
    bundle: Annotated[list[str], typer.Argument(metavar="BUNDLE", help="Archive, folder or file with profiles; or a case that triage has written.")],
    out: Annotated[Optional[str], typer.Option("--out", "-o", metavar="DIR", help="Case folder. Default: ./<bundle name>.case")] = None,
    form: Annotated[Literal["text", "json"], typer.Option("--format", "-f", help="Form of the report on standard output.")] = "text",
    lang: LangOption = None,
    pack: Annotated[Optional[list[str]], typer.Option("--pack", metavar="DIR", help="Folder of a further rule pack. Can be repeated.")] = None,
    setting: Annotated[
        Optional[list[str]], typer.Option("--set", metavar="PACK.NAME=VALUE", help="Set an option of a rule pack. Can be repeated.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a case folder of another bundle.")] = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Say where the time of a profiled job goes, and what makes it slow."""
    from forensics import options as ask
    from forensics.case import DATABASE, open_case
    from forensics.pipeline import run
    from forensics.profile_report import as_data, build
    from forensics.report import profile_page
    from forensics.report.data import encode, write
    from forensics.terminal import Output

    with ExitStack() as stack:
        if len(bundle) == 1 and (Path(bundle[0]) / DATABASE).is_file():
            case = open_case(bundle[0])
        else:
            settings = tuple(ask.setting(text) for text in setting or ())
            work = run(list(bundle), ask.Options(out=out, packs=tuple(_folders(pack or ())), settings=settings, index=False, force=force))
            stack.callback(work.close)
            case = work.case
            write(work.triage, case.folder)
        stack.callback(case.close)
        found = build(case)
    if form == "json":
        Output().data(encode(as_data(found)))
    else:
        Output().text(profile_page.render(found, look(lang, verbose, no_color)))
    raise typer.Exit(exit_status(found.triage, None))


@app.command()
def report(
    case: CaseArgument,
    form: FormatOption = "text",
    lang: LangOption = None,
    fail_on: FailOnOption = None,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Write the report of a case again."""
    from forensics.case import open_case
    from forensics.terminal import Output

    found = open_case(case).load_triage()
    emit(found, form, look(lang, verbose, no_color), Output(), fail_on)
    raise typer.Exit(1 if exit_status(found, fail_on) == 1 else 0)


@app.command()
def explain(
    case: CaseArgument,
    what: Annotated[str, typer.Argument(metavar="RULE|N", help="Id of a rule, or rank of a diagnosis.")],
    lang: LangOption = None,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Say why a rule holds on a case, or why not."""
    from forensics.case import open_case
    from forensics.pipeline import explain as asked
    from forensics.report import explanation
    from forensics.report.figures import Clock
    from forensics.terminal import Output

    opened = open_case(case)
    bundle = opened.load_triage().bundle
    clock = Clock(bundle.zone, bundle.first, bundle.last)
    Output().text(explanation.render(asked(opened, what), clock, look(lang, verbose, no_color)))


@app.command()
def sql(
    case: CaseArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="SQL, such as \"select * from events where severity = 'ERROR' limit 10\".")],
    form: Annotated[
        Literal["table", "csv", "json", "parquet"], typer.Option("--format", "-f", help="Form of the rows on standard output.")
    ] = "table",
) -> None:
    """Ask the stored lines of a case; read only."""
    from forensics import terminal
    from forensics.case import open_case
    from forensics.errors import UsageError
    from forensics.report import table

    if form == "parquet" and terminal.is_terminal(sys.stdout):
        raise UsageError("Parquet is no text for a terminal: send it to a file, as in `dsforensics sql ... --format parquet > rows.parquet`.")
    opened = open_case(case)
    opened.ensure_index()
    try:
        frame = opened.sql(query)
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb", "polars"):
            raise
        raise UsageError(f"The query failed: {str(error).strip()}") from error
    output = terminal.Output()
    if form == "table":
        output.text(table.table(frame, terminal.width() if terminal.is_terminal(sys.stdout) else None))
    else:
        output.data({"csv": table.csv, "json": table.as_json, "parquet": table.parquet}[form](frame))


@app.command()
def code(
    codes: Annotated[list[str], typer.Argument(metavar="CODE", help="Error codes in any spelling: 507001, 0x7BC79, EZ9999, ACL_ERROR_RT_TS_ERROR.")],
    lang: LangOption = None,
    no_color: NoColorOption = False,
) -> None:
    """Say what error codes mean, offline."""
    from forensics.report import codes as page
    from forensics.terminal import Output

    text, known = page.render(codes, look(lang, False, no_color))
    Output().text(text)
    raise typer.Exit(0 if known else 1)


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True}, add_help_option=False)
def collect(
    ctx: typer.Context,
    emit_script: Annotated[bool, typer.Option("--emit-script", help="Print the program alone, to be copied to a server.")] = False,
) -> None:
    """Gather on this node what a triage wants, with a manifest of what was missing."""
    from forensics import collect as script
    from forensics.terminal import Output

    if emit_script:
        Output().data(Path(script.__file__).read_bytes())
        return
    raise typer.Exit(script.main(ctx.args, "dsforensics collect"))


@app.command()
def redact(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="Archive, folder, file, or - for standard input.")],
    out: Annotated[
        Optional[str],
        typer.Option("--out", "-o", metavar="FILE", help="The copy: .tar.zst, .tar.gz or .tar. Default: ./<bundle name>.redacted.tar.zst"),
    ] = None,
    key_file: Annotated[
        Optional[str], typer.Option(metavar="FILE", help="Key of the pseudonyms, made where there is none: the same key, the same pseudonyms.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="List what would be replaced, with the originals, and write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the copy if it is there already.")] = False,
    lang: LangOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on standard error; errors still.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="With --check: list all, at full length.")] = False,
) -> None:
    """Write a copy of a bundle that is fit to be sent outside: who and where is replaced, what happened stays."""
    from forensics.redact.command import run
    from forensics.terminal import default_language

    raise typer.Exit(run(bundle, out, key_file, check, force, quiet, verbose, lang or default_language(), not quiet))


@app.command()
def doctor(no_color: NoColorOption = False) -> None:
    """Show what is installed and what each part is for."""
    from forensics.doctor import examine, render
    from forensics.terminal import Output

    checks = examine()
    Output().text(render(checks, look("en", False, no_color)))
    raise typer.Exit(3 if any(check.state == "missing" and check.needed for check in checks) else 0)


@app.command()
def parsers(
    kind: Annotated[Optional[str], typer.Argument(metavar="KIND", help="Show the sample of this kind; without it, all kinds.")] = None,
    no_color: NoColorOption = False,
) -> None:
    """List the kinds of logs that are understood."""
    from forensics.report import kinds
    from forensics.terminal import Output

    Output().text(kinds.render(kind, look("en", False, no_color)))


if __name__ == "__main__":
    main()
