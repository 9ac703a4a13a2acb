"""`serve`: what it says when it listens, and what its demo shows, the second time too."""

from pathlib import Path

import httpx2
import pytest

from session_server.identity.exposure import binding_of, reachable
from session_server.server import banner
from session_server.settings import Settings
from tests.cli.shells import Shell
from tests.effort import PATIENCE
from tests.servers import ServerProcess, serving, sqlite_store

FOR_OTHERS = "session-server serve --host 0.0.0.0 --connection-token generate"


def said(settings: Settings, address: str = "127.0.0.1", *servers: str) -> list[str]:
    return banner(settings, binding_of(settings), [(address, 8737)], servers).splitlines()


def test_the_gateway_to_each_mcp_server_is_listed() -> None:
    lines = said(Settings(), "127.0.0.1", "ops", "docs")
    assert lines[6:8] == [
        "        http://127.0.0.1:8737/mcp/ops  gateway to ops",
        "        http://127.0.0.1:8737/mcp/docs  gateway to docs",
    ]


def test_a_host_says_where_its_doors_are() -> None:
    assert said(Settings(demo=True)) == [
        "session-server at http://127.0.0.1:8737",
        "  Page  http://127.0.0.1:8737/",
        "  AHP   ws://127.0.0.1:8737/ahp",
        "  HTTP  http://127.0.0.1:8737/docs",
        "        http://127.0.0.1:8737/v1/sessions",
        "  MCP   http://127.0.0.1:8737/mcp  tools to ask people",
        "  Data  session-server-data/",
        f"        Only this machine can reach it. For phones and others: {FOR_OTHERS}",
        "  Demo  http://127.0.0.1:8737/#/s/demo  an agent that asks",
        "        http://127.0.0.1:8737/#/s/deploy  an MCP call that waits for people",
    ]
    assert said(Settings(host="::1"), "::1")[1] == "  Page  http://[::1]:8737/"


def test_on_all_addresses_it_begins_with_a_link_that_others_can_open() -> None:
    settings = Settings(host="0.0.0.0", connection_token="generate")
    first, second, third, *rest = said(settings, "0.0.0.0")
    where = reachable(settings, "", 8737).url
    assert first == "session-server at http://0.0.0.0:8737"
    assert second.startswith(f"  Open  {where}/?tkn=")
    assert third == f"  CLI   export SESSION_SERVER_URL='{second.split()[1]}'"
    assert not any("0.0.0.0" in line for line in rest)


def test_behind_a_proxy_it_says_where_people_reach_it() -> None:
    settings = Settings(public_url="https://ask.example.com/", without_connection_token=True)
    lines = said(settings)
    assert lines[1:3] == ["  Page  https://ask.example.com/", "  AHP   wss://ask.example.com/ahp"]


def test_a_token_that_is_kept_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    lines = said(Settings(connection_token_file=file))
    assert lines[1:3] == [
        "  Page  http://127.0.0.1:8737/?tkn=… with its connection token",
        f"        which is new, in {file}",
    ]
    again = said(Settings(connection_token_file=file))
    assert not any(file.read_text().strip() in line for line in (*lines, *again))
    assert not any("new" in line for line in again)


def open_requests(server: ServerProcess, session: str) -> list[str]:
    answer = httpx2.get(f"{server.url}/v1/sessions/{session}/requests?wait=30", timeout=PATIENCE)
    return [item["id"] for item in answer.json()["items"]]


@pytest.mark.slow
def test_a_demo_asks_again_only_if_it_was_answered(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with serving(store, "--demo", "--data-dir", str(tmp_path)) as first:
        before = open_requests(first, "demo") + open_requests(first, "deploy")
    with serving(store, "--demo", "--data-dir", str(tmp_path)) as second:
        assert open_requests(second, "demo") + open_requests(second, "deploy") == before
        shell = Shell(second.url)
        assert shell("answer", "demo", "--set", "name=x", "--set", "city=oslo").code == 0
        assert shell("answer", "deploy", "--decline").code == 0
        for session in ("demo", "deploy"):
            assert shell("watch", session, "--until", "idle", "--wait", "30").code == 0
    with serving(store, "--demo", "--data-dir", str(tmp_path)) as third:
        after = open_requests(third, "demo") + open_requests(third, "deploy")
    assert len(after) == 2
    assert not set(after) & set(before)
