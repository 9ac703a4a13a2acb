"""The program of the page on embedding is run: mounted below a path, with an agent of its own."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

import session_server
from session_server.client import connect
from tests.page.browser import chromium

PAGE = Path(__file__).parents[2] / "docs" / "embedding.md"
PATIENCE = 120


@contextmanager
def embedded(folder: Path) -> Iterator[str]:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "embedding.py").write_text(program.replace("8737", str(port)))
    process = subprocess.Popen(
        [sys.executable, "embedding.py"], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    url = f"http://127.0.0.1:{port}/sessions"
    try:
        until_ready(process, f"{url}/readyz")
        yield url
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def until_ready(process: subprocess.Popen[str], url: str) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urlopen(url, timeout=PATIENCE):
                return
        except OSError:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < end, "it did not start"
            time.sleep(0.05)


async def released(url: str) -> str:
    async with asyncio.timeout(PATIENCE), connect(url) as client:
        uri = await client.create_session(provider="release")
        async with client.session(uri) as session:
            await session.start_turn("1.4")
            request = await session.wait_for_request()
            await session.complete(request.id, answers={"env": "prod"})
            ended = await session.wait_until(lambda state: bool(state.turns))
            return str(ended.turns[0].response_parts[-1].content)


def share_link(url: str) -> str:
    body = json.dumps({"name": "Ana", "role": "owner"}).encode()
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{url}/v1/tokens", body, headers), timeout=PATIENCE) as response:
        return str(json.load(response)["url"])


@pytest.mark.slow
def test_the_host_runs_mounted_with_an_agent_of_its_own(tmp_path: Path) -> None:
    with embedded(tmp_path) as url:
        assert asyncio.run(released(url)) == "Released to prod."
        assert share_link(url).startswith(f"{url}/?tkn=")
        with chromium() as browser:
            page = browser.new_page()
            page.goto(f"{url}/")
            page.get_by_role("link", name="New session").first.wait_for()


def test_the_page_names_what_is_public() -> None:
    page = PAGE.read_text()
    assert [name for name in session_server.__all__ if name not in page] == []
