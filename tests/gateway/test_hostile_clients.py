"""What the gateway meets that nobody meant well: bodies, headers, tokens, sessions, and crowds."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_server.schemas.limits import (
    MCP_BODY_BYTES,
    MCP_SESSIONS,
    MCP_SESSIONS_PER_PRINCIPAL,
)
from tests.effort import PATIENCE
from tests.gateway.requests_2026 import (
    HELLO_2025,
    TOKEN,
    People,
    answer_of,
    bearer,
    call,
    envelope,
    finished,
    headers_for,
    host,
    issued,
    rpc,
    text,
    wait_for,
)
from tests.mcp import zoo
from tests.servers import ServerProcess

ECHO: dict[str, Any] = {"name": "echo", "arguments": {"text": "hello"}}
BOTH = {"Accept": "application/json, text/event-stream"}
JSON = {"Content-Type": "application/json"}
DOORS = ("/mcp", "/mcp/zoo")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    entries = {
        "zoo": zoo.stdio_entry("modern"),
        "twin": zoo.stdio_entry("modern"),
        "bridge": zoo.stdio_entry("modern", answers="client"),
        "frail": zoo.changing_entry("modern"),
        "off": {"command": "nothing", "disabled": True},
    }
    more = ("--connection-token", TOKEN, "--mcp-hold-seconds", "0.5")
    with host(tmp_path_factory.mktemp("host"), entries, *more) as running:
        yield running


@pytest.fixture
def people(server: ServerProcess) -> Iterator[People]:
    with People(server.url, TOKEN) as everyone:
        yield everyone


def in_session(name: str, token: str = TOKEN) -> dict[str, str]:
    return bearer(token, **{"Session-Server-Session": name})


def said(response: httpx2.Response) -> tuple[int, int, str]:
    """The status, and the JSON-RPC error that comes with it."""
    assert response.headers["content-type"].startswith("application/json"), response.text
    error = response.json()["error"]
    return response.status_code, error["code"], error["message"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("era", ["2026", "2025"])
def test_unreadable_requests_are_refused_with_a_message(
    era: str, door: str, server: ServerProcess
) -> None:
    headers = (headers_for("tools/call", ECHO) if era == "2026" else BOTH) | bearer() | JSON

    def told(content: Any, **more: str) -> tuple[int, int, str]:
        changed = headers | {name.replace("_", "-"): value for name, value in more.items()}
        return said(
            httpx2.post(f"{server.url}{door}", content=content, headers=changed, timeout=PATIENCE)
        )

    large = b'{"jsonrpc": "' + b"x" * MCP_BODY_BYTES + b'"}'
    too_large = (413, -32600, f"The body is larger than {MCP_BODY_BYTES} bytes.")
    assert told(large) == too_large
    assert told(iter([large[:100], large[100:]])) == too_large  # without saying so first
    status, code, reason = told(b"{}", Content_Type="text/plain")
    assert (status, code) == (400, -32600)
    assert "application/json" in reason
    assert told(b"{", Accept="text/html")[0] == 406
    deep = b'{"jsonrpc": "2.0", "id": 1, "method": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    for rubbish in (b"{", b"\xff\xfe", b"", deep):
        status, code, reason = told(rubbish)
        assert (status, code) == (400, -32700), rubbish[:20]
        assert reason.startswith("Parse error")
    assert told(b"[]")[0] == 400


def test_parameters_that_are_nested_too_deep_go_no_further(server: ServerProcess) -> None:
    body = json.dumps(envelope("tools/call", ECHO)).replace('"hello"', "[" * 300 + "]" * 300)
    for name in ("zoo", "bridge"):
        headers = headers_for("tools/call", ECHO) | bearer() | JSON
        response = httpx2.post(
            f"{server.url}/mcp/{name}", content=body, headers=headers, timeout=PATIENCE
        )
        assert said(response)[1:] == (-32602, "The parameters are nested deeper than 64 levels.")


@pytest.mark.parametrize("door", DOORS)
def test_pages_of_others_and_names_of_others_are_turned_away(
    door: str, server: ServerProcess
) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        response = httpx2.post(f"{server.url}{door}", json={}, headers=bearer() | headers)
        assert response.status_code == 403
        assert response.json()["code"] == "foreignOrigin"


def test_observers_and_answerers_do_not_learn_what_there_is_to_call(
    server: ServerProcess, people: People
) -> None:
    people.http.post("/v1/sessions", json={"resource": "ahp-session:/shared"}).raise_for_status()
    shares = [
        people.http.post("/v1/sessions/shared/shares", json={"role": role}).raise_for_status()
        for role in ("observer", "answerer")
    ]
    tokens = [share.json()["token"] for share in shares]
    tokens += [issued(people, name=f"a-{role}", role=role) for role in ("observer", "answerer")]
    for token in tokens:
        for door in (*DOORS, "/mcp/bridge", "/mcp/nowhere"):
            told = rpc(f"{server.url}{door}", "tools/list", {}, headers=bearer(token))
            assert told["error"]["message"].startswith("Only owners and agents can"), door
            called = call(f"{server.url}{door}", "echo", ECHO["arguments"], headers=bearer(token))
            assert "result" not in called


def test_an_agent_of_one_session_makes_its_calls_there_in_every_mode(
    server: ServerProcess, people: People
) -> None:
    people.http.post("/v1/sessions", json={"resource": "ahp-session:/one"}).raise_for_status()
    limited = issued(people, name="limited", role="agent", sessions=["ahp-session:/one"])
    for name in ("zoo", "bridge"):
        told = finished(f"{server.url}/mcp/{name}", "echo", {"text": "x"}, headers=bearer(limited))
        assert text(told) == "x"
    assert {call["server"] for call in people.calls("ahp-session:/one")} == {"zoo", "bridge"}


@pytest.mark.parametrize("door", DOORS)
def test_a_header_names_no_session_that_one_may_not_see_or_that_cannot_be(
    door: str, server: ServerProcess, people: People
) -> None:
    people.http.post("/v1/sessions", json={"resource": "ahp-session:/hidden"})
    own = "ahp-session:/visible"
    people.http.post("/v1/sessions", json={"resource": own})
    limited = issued(people, name=f"limited at {door}", role="agent", sessions=[own])
    params = ECHO if door == "/mcp/zoo" else {"name": "notify_status", "arguments": {"status": "x"}}
    for name in ("hidden", "never-made"):
        told = rpc(f"{server.url}{door}", "tools/call", params, headers=in_session(name, limited))
        assert "session" in told["error"]["message"], told
    for name in ("ahp-root://", "ahp-chat:/x", "x" * 5_000):
        told = rpc(f"{server.url}{door}", "tools/call", params, headers=in_session(name))
        assert told["error"]["code"] == -32600, told
    assert "ahp-session:/never-made" not in people.sessions()
    assert people.calls("ahp-session:/hidden") == []


def test_servers_that_cannot_be_called_say_why(server: ServerProcess) -> None:
    off = httpx2.post(f"{server.url}/mcp/off", json={}, headers=bearer())
    assert said(off) == (503, -32603, "The MCP server 'off' cannot be used: it is disabled.")
    for path in ("/mcp/..%2f..%2fetc", "/mcp/no such"):
        assert said(httpx2.post(f"{server.url}{path}", json={}, headers=bearer()))[0] == 404


def test_a_server_that_dies_in_the_middle_is_asked_about_and_serves_the_next(
    server: ServerProcess, people: People
) -> None:
    url, headers = f"{server.url}/mcp/frail", in_session("frail")
    state = call(url, "end", headers=headers)["result"]["requestState"]
    (question,) = people.asked("ahp-session:/frail")
    assert "Run it again?" in question["request"]["message"]
    people.complete("ahp-session:/frail", question, response="decline")
    ended = finished(url, "end", headers=headers, retry={"requestState": state})["result"]
    assert ended["isError"]
    assert text(finished(url, "touch", {"uri": "zoo://x"}, headers=headers)) == "touch"


def test_the_same_tool_of_two_servers_is_two_tools(server: ServerProcess, people: People) -> None:
    headers = in_session("twins")
    for name in ("zoo", "twin"):
        call(f"{server.url}/mcp/{name}", "weather", headers=headers)
    asked = people.asked("ahp-session:/twins", 2)
    assert {one["request"]["_meta"]["server"] for one in asked} == {"zoo", "twin"}


def test_a_state_that_many_bring_back_at_once_is_one_call_and_all_get_its_result(
    server: ServerProcess, people: People
) -> None:
    session = "ahp-session:/crowd"
    url, headers = f"{server.url}/mcp/zoo", in_session("crowd")
    state = call(url, "weather", headers=headers)["result"]["requestState"]

    def again(_: int) -> str:
        return text(finished(url, "weather", headers=headers, retry={"requestState": state}))

    with ThreadPoolExecutor(20) as pool:
        waiting = pool.map(again, range(20))
        people.answer(session, {"city": "Oslo"})
        assert set(waiting) == {"Sunny in Oslo"}
    assert len(people.calls(session)) == 1


def test_the_same_request_by_two_principals_is_two_calls(
    server: ServerProcess, people: People
) -> None:
    tokens = [issued(people, name=name, role="agent") for name in ("ada", "bob")]
    zoo = f"{server.url}/mcp/zoo"
    legs = [call(zoo, "weather", headers=in_session("pair", token)) for token in tokens]
    questions = people.asked("ahp-session:/pair", 2)
    people.complete("ahp-session:/pair", questions[0], {"city": "Oslo"})
    people.complete("ahp-session:/pair", questions[1], {"city": "Rome"})
    got = [
        text(finished(zoo, "weather", headers=in_session("pair", token), retry=retry))
        for token, leg in zip(tokens, legs, strict=True)
        for retry in [{"requestState": leg["result"]["requestState"]}]
    ]
    assert sorted(got) == ["Sunny in Oslo", "Sunny in Rome"]


# Sessions of the 2025 era


def opened(url: str, token: str = TOKEN) -> httpx2.Response:
    return httpx2.post(url, json=HELLO_2025, headers=BOTH | bearer(token), timeout=PATIENCE)


def test_a_session_of_2025_is_of_no_use_to_anyone_else(
    server: ServerProcess, people: People
) -> None:
    url = f"{server.url}/mcp/zoo"
    other = issued(people, name="a thief", role="agent")
    name = opened(url).headers["mcp-session-id"]
    stolen = BOTH | bearer(other) | {"Mcp-Session-Id": name}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    for response in (
        httpx2.delete(url, headers=stolen),
        httpx2.get(url, headers=stolen),
        httpx2.post(url, json=listing, headers=stolen),
    ):
        assert said(response) == (404, -32600, "Session not found")
    moved = BOTH | bearer() | {"Mcp-Session-Id": name}
    assert httpx2.delete(f"{server.url}/mcp/twin", headers=moved).status_code == 404
    own = httpx2.post(url, json=listing, headers=moved, timeout=PATIENCE)
    assert answer_of(own)["result"]["tools"]
    assert httpx2.delete(url, headers=moved).status_code == 200
    assert httpx2.post(url, json=listing, headers=moved).status_code == 404


def test_sessions_that_are_left_behind_end_when_their_token_is_revoked(tmp_path: Path) -> None:
    """So that not even many tokens keep the others out for good."""
    with (
        host(tmp_path, {}, "--connection-token", TOKEN) as running,
        People(running.url, TOKEN) as people,
        httpx2.Client(headers=BOTH, timeout=PATIENCE) as client,
    ):
        url = f"{running.url}/mcp"
        count = MCP_SESSIONS // MCP_SESSIONS_PER_PRINCIPAL
        made = [
            people.http.post("/v1/tokens", json={"name": f"bot {n}", "role": "agent"}).json()
            for n in range(count)
        ]
        for token in made:
            for _ in range(MCP_SESSIONS_PER_PRINCIPAL):
                answer = client.post(url, json=HELLO_2025, headers=bearer(token["token"]))
                assert answer.status_code == 200
        assert said(opened(url)) == (503, -32603, "Too many open sessions")
        assert rpc(url, "tools/list", {}, headers=bearer())["result"]  # which needs none
        people.http.delete(f"/v1/tokens/{made[0]['issued']['id']}").raise_for_status()
        wait_for(lambda: opened(url).status_code == 200)
