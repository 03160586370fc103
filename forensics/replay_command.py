"""`dsforensics replay`: the commands of the replay, and `replay CASE [N]` for the kernel of a diagnosis."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer
from typer.core import TyperGroup

from replay import commands
from replay.commands import Backend, Code, Device, Form, Lang, Limit, NoColor, Operator, Python, Runs


class CaseFirst(TyperGroup):
    """The first word is a command of the replay, or else a case."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["case", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=CaseFirst, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run the kernel of a diagnosis again: `dsforensics replay CASE [N]`. Or run one without a case. / 重跑诊断所指的算子，或单独运行某个算子。",
)  # fmt: skip
for _command in commands.app.registered_commands:
    app.registered_commands.append(_command)


@app.command("case")
@commands.reporting
def case_(
    case: Annotated[str, typer.Argument(metavar="CASE", help="Case folder that triage has written.")],
    number: Annotated[Optional[int], typer.Argument(metavar="[N]", help="Number of the diagnosis. Default: the first with a kernel.", min=1)] = None,  # noqa: UP045
    set_: Annotated[Optional[list[str]], typer.Option("--set", metavar="NAME=VALUE", help="A size or parameter. Can be repeated.")] = None,  # noqa: UP045
    backend: Backend = "auto",
    operator: Operator = "",
    device: Device = None,
    runs: Runs = 0,
    python: Python = "",
    time_limit: Limit = 120.0,
    code: Code = "",
    form: Form = "text",
    lang: Lang = "",
    no_color: NoColor = False,
) -> None:
    """Run the kernel of diagnosis N of a case again (the word `case` can be left out), and store the verdict in the case."""
    from pathlib import Path

    from forensics.case import open_case
    from forensics.errors import UsageError
    from forensics.replay_case import replay_diagnosis, spec_of
    from forensics.report.data import write

    opened = open_case(case)
    triage = opened.load_triage()
    offers = [diagnosis.rank for diagnosis in triage.diagnoses if spec_of(diagnosis) is not None]
    if not number and not offers:
        raise UsageError("no diagnosis of this case names a kernel; `dsforensics replay kernel NAME` runs one without a case.")
    changes: dict[str, object] = {
        "backend": "" if backend == "auto" else backend, "operator": operator, "device": device, "runs": runs or None, "python": python,
        "time_limit": time_limit, "code": commands.absolute(code), "sizes": dict(commands.pair(one, "--set") for one in set_ or ()),
    }  # fmt: skip
    verdict = replay_diagnosis(opened, number or offers[0], changes)
    after = opened.load_triage()
    after.case = str(opened.folder)
    write(after, Path(opened.folder))
    commands.show(verdict, form, lang, no_color)
    if verdict.status == "unavailable":
        raise typer.Exit(3)
