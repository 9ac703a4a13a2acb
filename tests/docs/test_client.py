"""The programs of the page on the Python client are run, while somebody answers what they ask."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from session_server.schemas.mcp import AskedQuestion, AskOutcome
from tests.cli.shells import Shell
from tests.servers import serving

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
DEADLINE = 60
ANSWERS = """
- message: Release 1.4 now?
  response: accept
- message: Release 1.4
  answers: {env: staging, replicas: 2, tag: true}
"""


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def printed_by(program: str, url: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program.replace("http://127.0.0.1:8737", url)],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_programs_of_the_page_run(tmp_path: Path) -> None:
    fixture = tmp_path / "answers.yaml"
    fixture.write_text(ANSWERS)
    asking, answering = programs()
    with serving("memory:", "--demo") as server:
        shell = Shell(server.url)
        with shell.running("answer", "--all", "--fixture", str(fixture), "--follow"):
            said = printed_by(asking, server.url)
            assert said == "accepted {'env': 'staging', 'replicas': 2, 'tag': True} by local\n"
        assert "city Where to?" in printed_by(answering, server.url)


def test_the_page_names_every_outcome_and_field() -> None:
    page = PAGE.read_text()
    for word in (*AskOutcome, *AskedQuestion.__struct_encode_fields__):
        assert f"`{word}`" in page
