"""In which session a call happens, and who may make one."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import Route

from session_server.gateway.endpoints import Gateway, McpEndpoints
from session_server.gateway.long_polling import HoldLimits
from session_server.host.async_api import perform
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.principals import Principal
from tests.calls.running_host import OWNER, SESSION, running_host, stdio
from tests.calls.test_starting import WatchedLog
from tests.effort import PATIENCE
from tests.gateway.requests_2026 import (
    TOKEN,
    People,
    bearer,
    call,
    envelope,
    headers_for,
    host,
    issued,
    rpc,
    text,
    wait_for,
)
from tests.mcp import zoo
from tests.servers import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    entries = {
        "plain": zoo.stdio_entry("modern"),
        "placed": zoo.stdio_entry("modern", session="war-room"),
    }
    token = ("--connection-token", TOKEN, "--mcp-hold-seconds", "0.4")
    with host(tmp_path_factory.mktemp("host"), entries, *token) as running:
        yield running


@pytest.fixture
def people(server: ServerProcess) -> Iterator[People]:
    with People(server.url, TOKEN) as everyone:
        yield everyone


@pytest.mark.proves("design.names.mcp")
def test_the_session_is_named_in_a_header_or_configured_or_always_the_same(
    server: ServerProcess, people: People
) -> None:
    def made(path: str, client: str = "ada", **headers: str) -> set[str]:
        before = set(people.sessions())
        answer = call(
            f"{server.url}/mcp/{path}",
            "echo",
            {"text": "hi"},
            client=client,
            headers=bearer(**headers),
        )
        assert text(answer) == "hi"
        return set(people.sessions()) - before

    assert made("plain", **{"Session-Server-Session": "mine"}) == {"ahp-session:/mine"}
    assert made("plain", **{"Session-Server-Session": "custom:/x"}) == {"custom:/x"}
    assert made("placed") == {"ahp-session:/war-room"}
    assert made("placed", **{"Session-Server-Session": "header"}) == {"ahp-session:/header"}
    (own,) = made("plain")
    assert own.startswith("ahp-session:/mcp-plain-")
    assert made("plain") == set()
    assert len(made("plain", client="bob")) == 1
    tools = rpc(f"{server.url}/mcp", "tools/list", {}, headers=bearer())["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["ask_questions", "notify_status"]


def test_a_state_is_worth_nothing_to_another_principal_or_server(
    server: ServerProcess, people: People
) -> None:
    url = f"{server.url}/mcp/placed"
    state = call(url, "weather", headers=bearer())["result"]["requestState"]
    other = issued(people, name="mallory", role="agent")
    stolen = call(url, "weather", headers=bearer(other), retry={"requestState": state})
    moved = call(
        f"{server.url}/mcp/plain", "weather", headers=bearer(), retry={"requestState": state}
    )
    for answer in (stolen, moved):
        assert answer["error"]["data"] == {"reason": "invalid_request_state"}
    people.answer("ahp-session:/war-room", {"city": "Oslo"})
    assert text(call(url, "weather", headers=bearer(), retry={"requestState": state}))


def test_a_server_that_cannot_be_started_is_reported_and_tried_again(
    tmp_path: Path,
) -> None:
    marker = tmp_path / "there"
    entry = zoo.stdio_entry("modern")
    script = f'[ -e "{marker}" ] && exec "$0" "$@"'
    late = {"command": "/bin/sh", "args": ["-c", script, entry["command"], *entry["args"]]}
    with host(tmp_path, {"late": late}) as running:
        url = f"{running.url}/mcp/late"
        response = httpx2.post(url, json={}, timeout=PATIENCE)
        assert response.status_code == 503
        assert "cannot be used" in response.json()["error"]["message"]
        marker.touch()
        answer = wait_for(
            lambda: found if "result" in (found := call(url, "echo", {"text": "now"})) else None
        )
        assert text(answer) == "now"


def test_the_title_of_a_clients_session_names_its_latest_call(
    server: ServerProcess, people: People
) -> None:
    def title_after(tool: str, **headers: str) -> str:
        url, before = f"{server.url}/mcp/plain", set(people.sessions())
        call(url, tool, {"text": "hi"}, client="tess", headers=bearer(**headers))
        made.extend(set(people.sessions()) - before)
        sessions = people.http.get("/v1/sessions").json()["items"]
        return str(next(s["title"] for s in sessions if s["resource"] == made[0]))

    made: list[str] = []
    assert title_after("echo") == "plain: echo"
    assert title_after("no-such-tool") == "plain: no-such-tool"
    made[:] = ["ahp-session:/launch"]
    named = {"resource": made[0], "title": "plain: launch"}
    people.http.post("/v1/sessions", json=named).raise_for_status()
    assert title_after("echo", **{"Session-Server-Session": "launch"}) == "plain: launch"


async def owner(_: HTTPConnection) -> Principal:
    return OWNER


async def test_a_new_title_is_written_in_one_batch_with_the_call_or_question_that_it_names() -> (
    None
):
    """So it cannot fail a call that has started."""
    asked = {"questions": [{"question": "Which city?", "id": "city"}]}
    log = WatchedLog()
    async with running_host(stdio("modern"), log=log) as at:
        limits = HoldLimits(0, 30, at.waiting.over)
        gateway = Gateway(at.host, at.waiting, at.calls, lambda: b"key", limits)
        endpoints = McpEndpoints(owner, gateway)
        routes = [Route("/mcp", endpoints), Route("/mcp/{server}", endpoints)]
        transport = httpx2.ASGITransport(Starlette(routes=routes))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:

            async def call_tool(path: str, tool: str, **arguments: object) -> dict[str, object]:
                params = {"name": tool, "arguments": arguments}
                body = envelope("tools/call", params, client="tess")
                place = {"Session-Server-Session": SESSION}
                headers = headers_for("tools/call", params) | place
                response = await http.post(path, json=body, headers=headers, timeout=PATIENCE)
                found: dict[str, object] = response.json()
                return found

            title = b"session/titleChanged"
            await perform(at.host, OWNER, SESSION, TitleChanged(title="tess · zoo"))
            assert "result" in await call_tool("/mcp/zoo", "echo", text="x")
            assert at.record.public.summary.title == "zoo: echo"
            assert log.together(title) == 2
            assert log.together(b"private/callStarted", title) == 1
            await perform(at.host, OWNER, SESSION, TitleChanged(title="tess"))
            assert "result" in await call_tool("/mcp", "ask_questions", **asked)
            assert at.record.public.summary.title == "tess: Which city?"
            assert log.together(title) == 4
            assert log.together(b"session/inputRequested", title) == 1
