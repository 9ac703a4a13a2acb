"""The command line: what a user reads first."""

import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from session_server import __version__
from session_server.cli.program import app

runner = CliRunner()


def test_version_is_the_packages() -> None:
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"session-server {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_is_shown_when_asked_for_or_when_there_is_nothing_to_do(arguments: list[str]) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    assert "--version" in result.stdout


def test_an_unknown_option_is_a_usage_error() -> None:
    assert runner.invoke(app, ["--nonsense"]).exit_code == 2


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "session_server", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == f"session-server {__version__}\n"


def test_an_address_in_use_fails_the_start_with_advice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = runner.invoke(app, ["serve", "--store", "memory:", "--port", port])
    assert result.exit_code == 1
    assert "the address is already in use" in result.stderr
    assert "--port" in result.stderr
