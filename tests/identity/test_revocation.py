"""What waits on a token ends with it: streams, long polls, and calls that are held for people."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx2
import pytest

from tests.gateway.requests_2026 import HELLO_2025, envelope, headers_for
from tests.http.sessions import Api
from tests.identity.credentialed_clients import (
    UPGRADE,
    WITH_TOKEN,
    api,
    bearer,
    issued,
    name_of,
    new_session,
)
from tests.servers import ServerProcess, serving
from tests.waiting import wait_until

SOON = 60.0
"""Much less than what is waited for, and enough for a busy machine."""


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def ask(guest: Api) -> httpx2.Response:
    """A question for people, through MCP."""
    params = {
        "name": "ask_questions",
        "arguments": {"message": "Well?", "questions": [{"id": "q", "question": "Really?"}]},
    }
    return guest.post(
        "/mcp", json=envelope("tools/call", params), headers=headers_for("tools/call", params)
    )


def stream(guest: Api, path: str, began: threading.Event) -> str:
    with guest.stream("GET", path) as response:
        said = ""
        for piece in response.iter_text():
            said += piece
            began.set()
        return said


def wait_for_a_question(owner: Api, known: set[str]) -> None:
    """In a session that was not there before."""
    (new,) = wait_until(lambda: sessions(owner) - known)
    path = f"/v1/sessions/{name_of(new)}/requests?wait={SOON:g}"
    assert owner.get(path, timeout=2 * SOON).json()["items"]


def sessions(owner: Api) -> set[str]:
    return {item["resource"] for item in owner.get("/v1/sessions").json()["items"]}


def test_a_long_poll_is_over_when_its_token_is_revoked(
    server: ServerProcess, owner: Api, threads: ThreadPoolExecutor
) -> None:
    place = f"/v1/sessions/{name_of(new_session(owner))}"
    token = issued(owner, "answerer")
    began = threading.Event()
    with api(server, token["token"]) as guest:
        polled = threads.submit(guest.get, f"{place}/requests?wait=60", timeout=2 * SOON)
        streamed = threads.submit(stream, guest, f"{place}/events", began)
        assert began.wait(SOON)
        assert guest.get("/v1/me").status_code == 200
        owner.delete(f"/v1/tokens/{token['issued']['id']}")
        answer = polled.result(SOON)
        assert (answer.status_code, answer.json()["code"]) == (401, "badCredential")
        assert "revoked" in answer.json()["detail"]
        assert "your token was revoked" in streamed.result(SOON)


@pytest.mark.slow
def test_a_long_poll_is_over_when_its_token_expires(server: ServerProcess, owner: Api) -> None:
    place = f"/v1/sessions/{name_of(new_session(owner))}"
    token = issued(owner, "answerer", expiresIn=1)["token"]
    answer = httpx2.get(
        f"{server.url}{place}/requests?wait=60", headers=bearer(token), timeout=2 * SOON
    )
    assert answer.status_code == 401
    assert "expired" in answer.json()["detail"]


def test_held_mcp_requests_get_no_result_after_their_token_is_revoked(
    server: ServerProcess, owner: Api, threads: ThreadPoolExecutor
) -> None:
    token = issued(owner, "agent")
    with api(server, token["token"]) as guest:
        known = sessions(owner)
        asked = threads.submit(ask, guest)
        wait_for_a_question(owner, known)
        owner.delete(f"/v1/tokens/{token['issued']['id']}")
        answer = asked.result(SOON)
        assert answer.status_code == 401 or '"result"' not in answer.text
    assert "Traceback" not in "".join(server.output)


def test_event_streams_of_mcp_clients_end_without_an_error_when_their_token_is_revoked() -> None:
    with serving("memory:", *WITH_TOKEN) as server, api(server) as owner, ExitStack() as held:
        token = issued(owner, "agent")
        headers = bearer(token["token"]) | {"Accept": "application/json, text/event-stream"}
        client = held.enter_context(
            httpx2.Client(base_url=server.url, headers=headers, timeout=SOON)
        )
        streams: list[httpx2.Response] = []
        for _ in range(3):
            greeted = client.post("/mcp", json=HELLO_2025)
            session = {"Mcp-Session-Id": greeted.headers["mcp-session-id"]}
            stream = held.enter_context(client.stream("GET", "/mcp", headers=session))
            assert stream.status_code == 200
            streams.append(stream)
        owner.delete(f"/v1/tokens/{token['issued']['id']}")
        for stream in streams:
            assert b"data:" not in stream.read()
    assert "Traceback" not in "".join(server.output)


def test_an_upgrade_that_is_refused_leaves_no_error_in_the_log(server: ServerProcess) -> None:
    for more in ({}, {"Origin": "http://evil.example"}):
        refused = httpx2.get(f"{server.url}/ahp", headers={**UPGRADE, **more})
        assert refused.status_code == 403
        assert refused.headers["content-type"] == "application/problem+json"
    assert "ERROR" not in "".join(server.output)
    plain = httpx2.get(f"{server.url}/ahp")
    assert (plain.status_code, plain.json()["code"]) == (426, "upgradeRequired")
    assert plain.headers["upgrade"] == "websocket"
    assert "ws://" in plain.json()["detail"]
