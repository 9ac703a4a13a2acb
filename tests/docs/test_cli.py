"""The commands of the page on the command line are run, in their order, and print what it says."""

from pathlib import Path

import pytest
import typer

from docs.cli_reference import commands
from session_server.cli.commands.sessions import State
from session_server.cli.failures import ExitCode
from session_server.cli.fixtures import MATCHERS
from session_server.cli.program import app
from session_server.cli.questions import KINDS
from tests.docs.consoles import Example, examples, printed_by
from tests.servers import serving

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def as_promised(example: Example, printed: str) -> bool:
    """What comes from the background may come at any time."""
    kept = [line for line in printed.splitlines() if line and not line.startswith("Asked in ")]
    if example.command.endswith("; wait"):
        return sorted(kept) == sorted(example.promised.splitlines())
    return example.is_kept_by("\n".join(kept))


@pytest.mark.slow
def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    shown = examples(PAGE)
    with serving("memory:", "--demo") as server:
        commands = [example.command for example in shown]
        printed = printed_by(commands, tmp_path, SESSION_SERVER_URL=server.url)
    for example, actual in zip(shown, printed, strict=True):
        assert as_promised(example, actual), f"{example.command}\n{actual}"


def test_the_page_names_every_command_kind_and_state() -> None:
    page = PAGE.read_text()
    names = {name.split()[1] for name, _ in commands(typer.main.get_command(app))}
    assert {name for name in names if f"`{name}" not in page and f" {name}" not in page} == set()
    for word in (*KINDS, *State, *MATCHERS):
        assert f"`{word}`" in page


def test_the_page_is_right_about_exit_codes() -> None:
    page = " ".join(PAGE.read_text().split())
    assert "0 for a yes, 3 for a no, 4 if it was closed without an answer, and 5 if" in page
    assert (ExitCode.DECLINED, ExitCode.CANCELLED, ExitCode.TIMED_OUT) == (3, 4, 5)
    assert "the exit code is 9" in page
    assert ExitCode.UNANSWERED == 9
