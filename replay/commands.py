"""`dsforensics replay ...`: run a suspected kernel again, or judge what was captured of it. Also `python -m replay`."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from replay.errors import ReplayError, SpecError

if TYPE_CHECKING:
    from replay.result import Verdict
    from replay.spec import Number, Spec

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False,
    help="Run a suspected kernel again, or judge its captured output. / 重跑可疑算子，或判定已捕获的输出。",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip

Backend = Annotated[str, typer.Option("--backend", help="auto, npu, cuda, cpu, triton-interpreter, or capture (judge the given outputs).")]
Operator = Annotated[str, typer.Option("--operator", metavar="NAME", help="Operator of torch_npu; its documented constraints are checked.")]
Device = Annotated[Optional[int], typer.Option("--device", min=0, help="NPU or GPU to run on; an NPU must be named.")]  # noqa: UP045
Runs = Annotated[int, typer.Option("--runs", min=0, max=20, help="Runs on the same inputs. Default: 3 on a device, 1 elsewhere.")]
Python = Annotated[str, typer.Option("--python", metavar="PATH", help="Interpreter of the worker; needs torch alone.")]
Limit = Annotated[float, typer.Option("--time-limit", min=1, max=86400, metavar="SECONDS", help="Time for one run of the worker.")]
Code = Annotated[str, typer.Option("--code", metavar="FILE.py:FUNCTION", help="A kernel of your own: called with the inputs by name.")]
Form = Annotated[str, typer.Option("--format", "-f", help="text or json.")]
Lang = Annotated[str, typer.Option("--lang", help="en or zh. Default: that of the locale.")]
Save = Annotated[str, typer.Option("--save", metavar="FILE", help="Write the spec, for `dsforensics replay run` elsewhere.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours.")]


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Errors of a replay become one sentence and an exit status."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        from replay.show import safe

        try:
            command(*args, **options)
        except ReplayError as error:
            typer.echo(f"dsforensics: {safe(str(error))}", err=True)
            raise typer.Exit(error.status) from error

    return run


@app.command("kernel")
@reporting
def run_kernel(
    name: Annotated[str, typer.Argument(metavar="KERNEL", help="See `replay list`.")],
    seq_len: Annotated[Optional[int], typer.Option(min=1)] = None,  # noqa: UP045
    tokens: Annotated[Optional[int], typer.Option(min=1)] = None,  # noqa: UP045
    requests: Annotated[Optional[int], typer.Option(min=1)] = None,  # noqa: UP045
    heads: Annotated[Optional[int], typer.Option(min=1)] = None,  # noqa: UP045
    kv_heads: Annotated[Optional[int], typer.Option(min=1)] = None,  # noqa: UP045
    head_dim: Annotated[Optional[int], typer.Option(min=1)] = None,  # noqa: UP045
    block_size: Annotated[Optional[int], typer.Option(min=1)] = None,  # noqa: UP045
    dtype: Annotated[str, typer.Option(help="float16, bfloat16 or float32.")] = "bfloat16",
    set_: Annotated[Optional[list[str]], typer.Option("--set", metavar="NAME=VALUE", help="A further size or parameter. Can be repeated.")] = None,  # noqa: UP045
    tensor: Annotated[
        Optional[list[str]], typer.Option("--input", metavar="NAME=FILE", help="A captured input. Can be repeated.")  # noqa: UP045
    ] = None,
    output: Annotated[Optional[list[str]], typer.Option("--output", metavar="NAME=FILE", help="A captured output, to be judged.")] = None,  # noqa: UP045
    suspect: Annotated[str, typer.Option("--suspect", metavar="FAULT[:NAME=VALUE,...]", help="The fault that is suspected.")] = "",
    soc: Annotated[str, typer.Option("--soc", metavar="CHIP", help="Such as Ascend910B3; which constraints hold depends on it.")] = "",
    seed: int = 1,
    backend: Backend = "auto",
    operator: Operator = "",
    device: Device = None,
    runs: Runs = 0,
    python: Python = "",
    time_limit: Limit = 120.0,
    code: Code = "",
    save: Save = "",
    form: Form = "text",
    lang: Lang = "",
    no_color: NoColor = False,
) -> None:
    """Run one kernel, without a case: `replay kernel rope --seq-len 131072`."""
    sizes: dict[str, Number] = {"dtype": dtype}
    given = {
        "seq_len": seq_len,
        "tokens": tokens,
        "requests": requests,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "block_size": block_size,
    }
    sizes |= {key: value for key, value in given.items() if value is not None}
    spec = made(
        name, sizes, dict(pair(one, "--set") for one in set_ or ()), backend=backend, operator=operator, soc=soc, seed=seed, device=device, runs=runs,
        python=python, time_limit=time_limit, code=absolute(code), suspect=suspect, inputs=tensor or [], outputs=output or [],
    )  # fmt: skip
    finish(spec, save, form, lang, no_color)


@app.command("run")
@reporting
def run_spec(
    path: Annotated[str, typer.Argument(metavar="SPEC", help="A file that --save, or a report, has written.")],
    backend: Annotated[str, typer.Option("--backend", help="Instead of the one in the spec.")] = "",
    device: Device = None,
    python: Python = "",
    form: Form = "text",
    lang: Lang = "",
    no_color: NoColor = False,
) -> None:
    """Run a spec."""
    from replay.execute import with_backend
    from replay.spec import read

    finish(with_backend(read(path), backend=backend, device=device, python=python), "", form, lang, no_color)


@app.command()
@reporting
def sweep(
    name: Annotated[str, typer.Argument(metavar="KERNEL")],
    around: Annotated[int, typer.Option("--around", min=2, help="Length at which the kernel may break.")] = 65536,
    over: Annotated[str, typer.Option("--over", help="The size that is swept.")] = "seq_len",
    dtype: Annotated[str, typer.Option(help="float16, bfloat16 or float32.")] = "bfloat16",
    set_: Annotated[Optional[list[str]], typer.Option("--set", metavar="NAME=VALUE", help="A further size or parameter. Can be repeated.")] = None,  # noqa: UP045
    backend: Backend = "auto",
    operator: Operator = "",
    device: Device = None,
    python: Python = "",
    time_limit: Limit = 120.0,
    code: Code = "",
    form: Form = "text",
    lang: Lang = "",
) -> None:
    """Find the length from which on a kernel is wrong: `replay sweep rope --around 65536`."""
    from replay.sweeping import as_json, rendered, swept

    extra = dict(pair(one, "--set") for one in set_ or ())
    base = made(
        name, {"dtype": dtype}, extra, backend=backend, operator=operator, device=device, python=python, time_limit=time_limit, code=absolute(code)
    )
    found = swept(base, over, around, lambda text: typer.echo(text, err=True) if sys.stderr.isatty() else None)
    typer.echo(as_json(found) if form == "json" else rendered(found, language(lang)), nl=False)


@app.command("list")
@reporting
def list_all(lang: Lang = "", python: Python = "") -> None:
    """Kernels with their inputs and parameters, fault models, and backends with what each needs."""
    from replay.listing import listed

    typer.echo(listed(language(lang), python), nl=False)


# ---------------------------------------------------------------- shared with the command for cases


def finish(spec: Spec, save: str, form: str, lang: str, no_color: bool) -> None:
    """Runs a spec and shows the verdict. Exit status 3 where there was nothing to judge."""
    from replay.execute import Session, saved

    if form not in ("text", "json"):
        raise SpecError(f"--format must be text or json; found {form!a}")
    if save:
        saved(spec, Path(save))
    verdict = Session().replay(spec)
    show(verdict, form, lang, no_color)
    if verdict.status == "unavailable":
        raise typer.Exit(3)


def show(verdict: Verdict, form: str, lang: str, no_color: bool) -> None:
    from replay.show import as_json, rendered

    if form == "json":
        typer.echo(as_json(verdict), nl=False)
        return
    tty = sys.stdout.isatty()
    colour = not no_color and not os.environ.get("NO_COLOR") and (tty or os.environ.get("FORCE_COLOR", "0") not in ("", "0", "false"))
    width = max(60, min(140, shutil.get_terminal_size((100, 24)).columns))
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    narrow = encoding.lower() not in ("utf-8", "utf8")
    text = rendered(verdict, language(lang), width, colour, narrow)
    typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)


def language(lang: str) -> str:
    if lang not in ("", "en", "zh"):
        raise SpecError(f"--lang must be en or zh; found {lang!a}")
    if lang:
        return lang
    locale = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
    return "zh" if locale.lower().startswith("zh") else "en"


def made(
    kernel: str, sizes: dict[str, Number], more: dict[str, Number], *, suspect: str = "", inputs: list[str] | None = None,
    outputs: list[str] | None = None, **given: Any,
) -> Spec:  # fmt: skip
    """A spec from what a command line gives. Raises SpecError."""
    from replay.spec import Spec, SuspectedFault, TensorFile

    def files(words: list[str]) -> dict[str, TensorFile]:
        out = {}
        for one in words:
            name, _, path = one.partition("=")
            if not name or not path:
                raise SpecError(f"--input and --output take NAME=FILE or NAME=FILE#TENSOR; found {one!a}")
            path, _, part = path.partition("#")
            out[name] = TensorFile(os.path.abspath(path), part)
        return out

    fault = None
    if suspect:
        name, _, rest = suspect.partition(":")
        fault = SuspectedFault(name, {k: v for k, v in (pair(one, "--suspect") for one in rest.split(",") if one) if not isinstance(v, bool)})
    try:
        spec = Spec(kernel=kernel, inputs=files(inputs or []), outputs=files(outputs or []), suspect=fault, **given)
    except ValueError as error:
        raise SpecError(str(error)) from error
    known = _parameters(kernel)
    spec.params = {key: value for key, value in {**sizes, **more}.items() if key in known}
    if not spec.inputs:
        spec.sizes = {**sizes, **more}
    unknown = [key for key in more if key not in known and spec.inputs]
    if unknown:
        raise SpecError(f"{kernel} has no parameter {unknown[0]!a}; it has {', '.join(sorted(known))}")
    return spec


def _parameters(kernel: str) -> set[str]:
    """Names of a kernel's parameters."""
    from replay.execute import need_torch
    from replay.kernels import kernel_named

    need_torch()
    return {argument.name for argument in kernel_named(kernel).params}


def pair(text: str, option: str) -> tuple[str, Number]:
    """NAME=VALUE; whole numbers, numbers and true or false are read as such. Raises SpecError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise SpecError(f"{option} takes NAME=VALUE; found {text!a}")
    name = name.strip().replace("-", "_")
    if value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def absolute(code: str) -> str:
    if not code:
        return ""
    path, colon, function = code.rpartition(":")
    if not colon:
        raise SpecError(f"--code takes FILE.py:FUNCTION; found {code!a}")
    return f"{os.path.abspath(path)}:{function}"
