"""Commands of other packages: found by entry point, loaded only when run, and never in the way when they are broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = """
import typer

print("loaded")
app = typer.Typer()


@app.command()
def inner(word: str) -> None:
    print(f"inner {word}")


@app.command()
def other() -> None:
    raise typer.Exit(7)


def single(number: int) -> None:
    print(f"single {number + 1}")
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder that looks like an installed distribution with commands."""
    info = tmp_path / "elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[dsforensics.commands]\nmany = elsewhere_commands:app\none = elsewhere_commands:single\n"
        "absent = no_such_module_at_all:app\nbroken = elsewhere_broken:app\ntriage = elsewhere_commands:single\n"
    )
    (tmp_path / "elsewhere_commands.py").write_text(MODULE)
    (tmp_path / "elsewhere_broken.py").write_text("raise ImportError('no wheel for this machine')\n")
    return tmp_path


def dsforensics(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{site}", "LC_ALL": "C.UTF-8"}
    return subprocess.run([sys.executable, "-m", "forensics", *words], capture_output=True, text=True, env=env, timeout=60)


def test_help_names_the_commands_of_others_without_loading_them(site: Path) -> None:
    shown = dsforensics(site, "--help").stdout
    assert "loaded" not in shown
    assert "many" in shown and "Added by another package (elsewhere)." in shown
    assert "absent" not in shown


def test_an_application_becomes_a_group_and_a_function_one_command(site: Path) -> None:
    assert dsforensics(site, "many", "inner", "x").stdout == "loaded\ninner x\n"
    assert dsforensics(site, "many", "other").returncode == 7
    assert dsforensics(site, "one", "41").stdout == "loaded\nsingle 42\n"
    assert "inner" in dsforensics(site, "many", "--help").stdout


def test_a_command_that_does_not_load_is_one_sentence(site: Path) -> None:
    done = dsforensics(site, "broken")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "no wheel for this machine" in done.stderr


def test_our_own_commands_cannot_be_replaced(site: Path) -> None:
    assert "BUNDLE" in dsforensics(site, "triage", "--help").stdout
    assert dsforensics(site, "absent").returncode == 2


def test_nothing_heavy_is_imported_before_an_interrupt_is_met() -> None:
    code = "import sys, forensics.__main__; print([name for name in ('typer', 'msgspec', 'traceback', 'duckdb') if name in sys.modules])"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60, env=env)
    assert done.stdout == "[]\n", done
