"""Tokens never show where they should not: a server is given several and made to say all it can."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ahp.client import SocketClient
from tests.effort import IS_CI
from tests.http.sessions import Api
from tests.identity.credentialed_clients import (
    TOKEN,
    WITH_TOKEN,
    api,
    arrived,
    bearer,
    dialled,
    everything_in,
    issued,
    name_of,
    new_session,
    shared,
)
from tests.servers import ServerProcess, serving, sqlite_store

SECRET = "canary-secret-0123456789-0123456789"
WRONG = "canary-wrong-token"
MORE_PATHS = ("/v1/sessions/none", "/v1/tokens", "/", "/docs", "/openapi.json")
PATHS = ("/v1/sessions", "/none", *(MORE_PATHS if IS_CI else ()))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """It logs all that it can log."""
    arguments = (*WITH_TOKEN, "--secret", SECRET, "--data-dir", str(tmp_path))
    with serving(sqlite_store(tmp_path), *arguments, "--log-level", "debug") as running:
        yield running


def spell(token: str) -> list[dict[str, Any]]:
    """Every way to send it: right, nearly right, and where it does not belong."""
    return [
        {"headers": bearer(token)},
        {"params": {"tkn": token}},
        {"params": {"tkn": token, "wait": "nonsense"}},
        {"headers": {"Authorization": f"bearer  {token}"}},
        {"headers": {"Authorization": f"Bearer {token}x"}},
        {"headers": {**bearer(token), "Origin": "http://evil.example"}},
        {"headers": {**bearer(token), "Host": "evil.example"}},
    ]


def all_answers(server: ServerProcess, token: str) -> Iterator[str]:
    """What HTTP says back, headers and all."""
    with Api(server.url) as client:
        for path in PATHS:
            for request in spell(token):
                for method in ("GET", "POST", "DELETE"):
                    answer = client.request(method, path, **request)
                    yield f"{answer.headers} {answer.text}"
        metrics = client.get("/metrics", headers=bearer(TOKEN))
        yield metrics.text


async def all_frames(server: ServerProcess, token: str) -> str:
    """What a socket says back, to good frames and bad ones."""
    offered = await dialled(server, subprotocols=("ahp", f"bearer.{token}"))
    if isinstance(offered, SocketClient):
        assert offered.socket.subprotocol == "ahp"
        await offered.close()
    client = await dialled(server, query=f"?tkn={token}")
    if not isinstance(client, SocketClient):
        return f"{client} {offered}"
    await client.initialize(f"c-{token[-6:]}", "ahp-root://")
    await client.socket.send("random_frames")
    await client.socket.send('{"jsonrpc":"2.0","id":7,"method":"subscribe","params":{"channel":5}}')
    await client.call("authenticate", resource="x", token="y")
    await client.close()
    return str(client.received)


@pytest.mark.slow
@pytest.mark.proves("design.calls.secret-protocols")
async def test_tokens_are_in_no_log_no_error_and_no_metric(
    server: ServerProcess, tmp_path: Path
) -> None:
    with api(server) as owner:
        uri = new_session(owner)
        given = issued(owner, "answerer")
        link = shared(owner, uri)
        issued_again = issued(owner, "owner", expiresIn=1)
        revoked = issued(owner, "observer")
        here = await arrived(server, revoked["token"], "revoked", uri)
        owner.delete(f"/v1/tokens/{revoked['issued']['id']}")
        await here.socket.wait_closed()
    tokens = [TOKEN, WRONG, link["token"]]
    tokens += [each["token"] for each in (given, issued_again, revoked)]
    said: list[str] = []
    for token in tokens:
        said += all_answers(server, token)
        said.append(await all_frames(server, token))
    with api(server) as owner:
        owner.get(f"/v1/sessions/{name_of(uri)}", params={"tkn": link["token"]})
    server.wait_for("/v1/sessions")
    server.stop()
    everything = "".join([*said, *server.output, everything_in(tmp_path)])
    assert "GET /v1/sessions" in "".join(server.output)  # the log does say something
    for secret in (*tokens, SECRET):
        assert secret not in everything
        assert secret.rpartition(".")[2] not in everything


@pytest.mark.slow
def test_a_failure_of_the_host_itself_shows_no_token(tmp_path: Path) -> None:
    """The log on disk is pulled away, so that writing fails with a traceback or a message."""
    arguments = (*WITH_TOKEN, "--log-level", "debug")
    with serving(sqlite_store(tmp_path), *arguments) as server:
        with api(server) as owner:
            given = issued(owner, "answerer")
            for path in tmp_path.glob("sessions.db*"):
                path.write_bytes(b"\0" * 64)
            answers = [owner.post("/v1/sessions", json={}, params={"tkn": TOKEN}) for _ in range(3)]
            answers.append(owner.post("/v1/tokens", json={"name": "Bo"}))
        server.kill()
    everything = "".join([*server.output, *(answer.text for answer in answers)])
    for secret in (TOKEN, given["token"]):
        assert secret not in everything
