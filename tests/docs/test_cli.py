"""The commands of the page on the command line are run, in their order, and print what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from docs.cli_reference import commands
from session_server.cli import app
from session_server.cli.exits import ExitCode
from session_server.cli.fixtures import MATCHERS
from session_server.cli.questions import KINDS
from session_server.cli.states import State
from tests.servers import serving

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
BIN = Path(sys.executable).parent
MARK = "=== next ==="


def examples() -> list[tuple[str, str]]:
    """Commands and what they print."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith("> "):
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
            else:
                found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def as_promised(command: str, promised: str, printed: str) -> bool:
    """`…` stands for anything; what comes from the background may come at any time."""
    kept = [line for line in printed.splitlines() if line and not line.startswith("Asked in ")]
    if command.endswith("; wait"):
        return sorted(kept) == sorted(promised.splitlines())
    pattern = ".*".join(map(re.escape, promised.strip().split("…")))
    return re.fullmatch(pattern, "\n".join(kept).strip(), re.DOTALL) is not None


@pytest.mark.slow
def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    with serving("memory:", "--demo") as server:
        script = "\n".join(f"{command}\necho '{MARK}'" for command, _ in examples())
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
            env={
                **os.environ,
                "PATH": f"{BIN}:{os.environ['PATH']}",
                "SESSION_SERVER_URL": server.url,
            },
        )
    printed = done.stdout.split(MARK)
    assert len(printed) == len(examples()) + 1
    for (command, promised), actual in zip(examples(), printed, strict=False):
        assert as_promised(command, promised, actual), f"{command}\n{actual}"


def test_the_page_names_every_command_kind_and_state() -> None:
    page = PAGE.read_text()
    names = {name.split()[1] for name, _ in commands(typer.main.get_command(app))}
    assert {name for name in names if f"`{name}" not in page and f" {name}" not in page} == set()
    for word in (*KINDS, *State, *MATCHERS):
        assert f"`{word}`" in page


def test_the_page_is_right_about_exit_codes() -> None:
    page = " ".join(PAGE.read_text().split())
    assert "0 for a yes, 3 for a no, 4 if it was closed without an answer and 5" in page
    assert (ExitCode.DECLINED, ExitCode.CANCELLED, ExitCode.TIMED_OUT) == (3, 4, 5)
    assert "the exit code is 9" in page
    assert ExitCode.UNANSWERED == 9
