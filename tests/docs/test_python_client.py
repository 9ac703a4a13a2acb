"""The programs of the page on the Python client are run, while somebody answers what they ask."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from session_server.schemas.mcp import AskedQuestion, AskOutcome
from tests.cli.shells import Shell
from tests.client.foreign_host import CHAT, ForeignHost, hosted
from tests.servers import serving
from tests.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "python-client.md"
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
    *_, asking, answering = programs()
    with serving("memory:", "--demo") as server:
        shell = Shell(server.url)
        with shell.running("answer", "--all", "--fixture", str(fixture), "--follow"):
            said = printed_by(asking, server.url)
            assert said == "accepted {'env': 'staging', 'replicas': 2, 'tag': True} by local\n"
        assert "city Where to?" in printed_by(answering, server.url)


@pytest.mark.slow
async def test_the_programs_for_any_host_run_with_one_that_is_not_ours() -> None:
    talking, following, *_ = programs()
    async with hosted(ForeignHost()) as host:
        follower = await started(following, host)
        await until(lambda: any(CHAT in peer.watched for peer in host.peers))
        talker = await started(talking, host)
        await until(lambda: "activeTurn" in host.states[CHAT])
        host.ask()
        await until(lambda: host.open_request() is None)
        host.say({"kind": "markdown", "id": "p", "content": "Shipped."})
        host.finish()
        said, _ = await talker.communicate()
        followed, _ = await follower.communicate()
    assert said.decode().splitlines()[:3] == [
        "acme:/jobs/1 Work",
        "acme:/jobs/2 More work",
        "Ship it? ['where', 'count']",
    ]
    assert said.decode().endswith("Shipped.\n")
    assert set(followed.decode().splitlines()[:-1]) == {"action at work"}
    assert followed.decode().endswith("action idle\n")
    assert host.violations == []


async def started(program: str, host: ForeignHost) -> asyncio.subprocess.Process:
    text = program.replace("ws://127.0.0.1:8081", host.url)
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, "-c", text, stdout=pipe)


def test_the_page_names_every_outcome_and_field() -> None:
    page = PAGE.read_text()
    for word in (*AskOutcome, *AskedQuestion.__struct_encode_fields__):
        assert f"`{word}`" in page
