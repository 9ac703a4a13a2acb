"""The client as others get it: alone, and with an example that runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from session_server import client
from session_server.client import errors
from tests.servers import serving

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 60
SERVER_SIDE = ("fastapi", "starlette", "uvicorn", "session_server.host", "session_server.log")


def run_python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_client_brings_nothing_of_the_server() -> None:
    loaded = run_python("-c", "import session_server.client, sys; print(*sys.modules)").split()
    assert "session_server.client" in loaded
    assert [name for name in loaded if name.startswith(SERVER_SIDE)] == []


@pytest.mark.slow
def test_the_example_answers_the_demos_question_each_time_it_runs() -> None:
    with serving("memory:", "--demo") as server:
        for _ in range(2):
            said = run_python("examples/client.py", server.url)
            assert "A trip" in said
            assert "Where to? *" in said
            assert "Someone answered “Planning your trip”" in said
            assert "**City**: Oslo" in said


def test_every_error_is_drawn_and_exported() -> None:
    raised = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.ClientError)
    }
    assert len(raised) > 10
    assert raised <= set(client.__all__)
    assert [name for name in raised if name not in (errors.__doc__ or "")] == []
