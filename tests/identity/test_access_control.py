"""The doors of a real server: who is let in, as whom, and who is shown out."""

import socket
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from typer.testing import CliRunner
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from session_server.cli.program import app
from session_server.identity.exposure import outside_address
from session_server.schemas.limits import FRAME_BYTES
from tests.identity.credentialed_clients import (
    PATIENCE,
    TOKEN,
    UPGRADE,
    api,
    arrived,
    bearer,
    connected,
    dialled,
    issued,
    name_of,
    new_session,
    shared,
)
from tests.servers import ServerProcess, serving

EVIL = "http://evil.example"


# Credentials


@pytest.mark.proves("ahp.connect.credential")
async def test_a_credential_is_checked_at_the_upgrade(server: ServerProcess) -> None:
    for good in (await connected(server, TOKEN), await connected(server, query=f"?tkn={TOKEN}")):
        assert await good.call("ping") is None
        await good.close()
    assert await dialled(server) == 403
    assert await dialled(server, "wrong") == 403
    assert await dialled(server, query="?tkn=wrong") == 403
    assert await dialled(server, "wrong", query=f"?tkn={TOKEN}") == 400


async def test_a_token_may_come_as_a_subprotocol_and_is_not_answered(server: ServerProcess) -> None:
    client = await connected(server, subprotocols=("ahp", f"bearer.{TOKEN}"))
    assert client.socket.subprotocol == "ahp"
    answered = client.socket.response
    assert TOKEN not in str(answered.headers)
    assert await client.call("ping") is None
    await client.close()
    assert await dialled(server, subprotocols=("ahp", "bearer.wrong")) == 403
    assert await dialled(server, subprotocols=("ahp",)) == 403
    both = ("ahp", f"bearer.{TOKEN}")
    assert await dialled(server, query="?tkn=wrong", subprotocols=both) == 400


async def test_a_refused_upgrade_says_why(server: ServerProcess) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{server.ahp}?tkn=wrong")
    problem = msgspec.json.decode(bytes(refused.value.response.body or b""))
    assert problem["code"] == "badCredential"
    assert "Ask the owner for a new link." in problem["detail"]


@pytest.mark.parametrize(
    ("headers", "query", "status", "code"),
    [
        (bearer(TOKEN), "", 200, None),
        ({}, f"?tkn={TOKEN}", 200, None),
        ({}, "", 401, "noCredential"),
        (bearer("wrong"), "", 401, "badCredential"),
        ({}, "?tkn=wrong", 401, "badCredential"),
        (bearer("wrong"), f"?tkn={TOKEN}", 400, "ambiguousRequest"),
        ({}, f"?tkn={TOKEN}&tkn=wrong", 400, "ambiguousRequest"),
    ],
)
def test_a_credential_is_checked_at_every_request(
    server: ServerProcess, headers: dict[str, str], query: str, status: int, code: str | None
) -> None:
    answer = httpx2.get(f"{server.url}/v1/sessions{query}", headers=headers)
    assert answer.status_code == status
    if code is not None:
        assert answer.json()["code"] == code
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)


@pytest.mark.proves("design.access.loopback")
async def test_on_loopback_no_token_is_needed_but_a_wrong_one_is_wrong(
    open_server: ServerProcess,
) -> None:
    client = await connected(open_server)
    await client.close()
    assert httpx2.get(f"{open_server.url}/v1/sessions").status_code == 200
    assert await dialled(open_server, "wrong") == 403
    assert httpx2.get(f"{open_server.url}/v1/sessions?tkn=wrong").status_code == 401


def test_nobody_sets_cookies(server: ServerProcess, owner: httpx2.Client) -> None:
    for path in ("/", "/v1/sessions", "/healthz", "/docs"):
        assert "set-cookie" not in owner.get(path, params={"tkn": TOKEN}).headers


# Whose clientId


@pytest.mark.proves("design.access.client-id")
async def test_nobody_comes_back_as_someone_else(
    server: ServerProcess, owner: httpx2.Client
) -> None:
    uri = new_session(owner)
    ana = await arrived(server, TOKEN, "ana-laptop", uri)
    tokens = [issued(owner, "owner")["token"], issued(owner, "agent")["token"]]
    for token in (*tokens, shared(owner, uri, role="owner")["token"]):
        thief = await connected(server, token)
        assert (await thief.reconnect("ana-laptop", 0, uri))["code"] == -32009
        assert (await thief.initialize("ana-laptop"))["code"] == -32009
        assert (await thief.call("subscribe", uri))["code"] == -32601
        await thief.close()
    assert await ana.call("ping") is None
    await ana.close()


# Names


@pytest.mark.proves("design.access.visible-names")
async def test_no_name_hides_who_somebody_is(server: ServerProcess, owner: httpx2.Client) -> None:
    """Neither a name that was given nor one that was chosen turns the direction of writing."""
    uri = new_session(owner)
    room = f"ahp-presence:/{name_of(uri)}"
    given = issued(owner, "answerer", name="\u202eoB \u200b")
    assert given["issued"]["name"] == "oB"
    unseen = {"name": "\u200b\u3164", "role": "answerer"}
    for path in ("/v1/tokens", f"/v1/sessions/{name_of(uri)}/shares"):
        refused = owner.post(path, json=unseen)
        assert (refused.status_code, refused.json()["code"]) == (422, "invisibleName")
    bo = await arrived(server, given["token"], "visible-bo", room)
    guest = await arrived(server, shared(owner, uri)["token"], "visible-guest", room)
    for name in ("Z\u202eo\u0000e", "\u2060"):
        guest.notify("presence/update", room, name=name)

    def names(frame: dict[str, Any]) -> set[str | None]:
        return {entry["by"].get("name") for entry in frame["params"]["present"]}

    await bo.until(lambda f: f.get("method") == "presence/changed" and names(f) == {"oB", "Zoe"})
    titled = owner.post("/v1/sessions", json={"title": "in\u202evoice"})
    assert titled.json()["title"] == "invoice"
    for client in (bo, guest):
        await client.close()


# Where pages come from


@pytest.mark.proves("design.access.origin")
async def test_a_foreign_page_cannot_open_a_socket(
    server: ServerProcess, open_server: ServerProcess
) -> None:
    assert await dialled(open_server, Origin=EVIL) == 403
    assert await dialled(open_server, Origin="null") == 403
    assert await dialled(server, TOKEN, Origin=EVIL) == 403
    for origin in (open_server.url, "https://my.app"):
        client = await connected(open_server, Origin=origin)
        await client.close()


async def test_a_name_that_was_made_to_point_here_opens_nothing(open_server: ServerProcess) -> None:
    evil = f"evil.example:{open_server.port}"
    assert await dialled(open_server, Host=evil, Origin=f"http://{evil}") in (403, 400)
    answer = httpx2.get(f"{open_server.url}/v1/sessions", headers={"Host": evil})
    assert (answer.status_code, answer.json()["code"]) == (403, "foreignOrigin")


@pytest.mark.parametrize("path", ["/v1/sessions", "/", "/docs", "/healthz", "/none"])
def test_a_foreign_page_cannot_use_http(open_server: ServerProcess, path: str) -> None:
    for headers in (
        {"Origin": EVIL},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ):
        answer = httpx2.get(f"{open_server.url}{path}", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "foreignOrigin")
        assert "access-control-allow-origin" not in answer.headers


def test_a_page_that_is_allowed_can_use_http(open_server: ServerProcess) -> None:
    preflight = httpx2.options(
        f"{open_server.url}/v1/sessions",
        headers={
            "Origin": "https://my.app",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
        },
    )
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == "https://my.app"
    assert "access-control-allow-credentials" not in preflight.headers
    answer = httpx2.get(f"{open_server.url}/v1/sessions", headers={"Origin": "https://my.app"})
    assert answer.headers["access-control-allow-origin"] == "https://my.app"
    evil = httpx2.options(
        f"{open_server.url}/v1/sessions",
        headers={"Origin": EVIL, "Access-Control-Request-Method": "POST"},
    )
    assert evil.status_code == 403


# Proxies, and requests that two readers could read in two ways


HOST = "Host: 127.0.0.1"
UPGRADE_LINES = tuple(f"{name}: {value}" for name, value in UPGRADE.items())


@pytest.mark.proves("design.access.exposed")
@pytest.mark.parametrize("mark", ["X-Forwarded-For", "X_Forwarded_For", "Via"])
async def test_nobody_is_an_owner_through_a_proxy_without_a_token(
    server: ServerProcess, open_server: ServerProcess, mark: str
) -> None:
    """The proxy calls the host by a loopback name, so that only its own header gives it away."""
    through = {mark: "198.51.100.7"}
    for path in ("/v1/sessions", "/", "/mcp", "/healthz"):
        answer = httpx2.get(f"{open_server.url}{path}", headers=through)
        assert (answer.status_code, answer.json()["code"]) == (403, "proxyWithoutToken")
    assert "--connection-token generate" in answer.json()["detail"]
    assert status_of(open_server, HOST, f"{mark}: x", *UPGRADE_LINES, path="/ahp") == 403
    with api(server) as owner:
        assert owner.get("/v1/sessions", headers=through).status_code == 200


def status_of(server: ServerProcess, *lines: str, version: str = "1.1", path: str = "") -> int:
    """The status that a request is answered with whose head is written by hand."""
    close = () if UPGRADE_LINES[0] in lines else ("Connection: close",)
    head = [f"GET {path or '/v1/sessions'} HTTP/{version}", *lines, *close, "", ""]
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as raw:
        raw.sendall("\r\n".join(head).encode())
        return int(raw.makefile("rb").readline().split()[1])


def test_http_1_0_is_what_a_proxy_speaks_that_adds_nothing(
    server: ServerProcess, open_server: ServerProcess
) -> None:
    """nginx, unless it is told otherwise."""
    assert status_of(open_server, HOST, version="1.0") == 403
    assert status_of(open_server, HOST, *UPGRADE_LINES, version="1.0", path="/ahp") == 403
    assert status_of(open_server, HOST, *UPGRADE_LINES, path="/ahp") == 101
    token = f"Authorization: Bearer {TOKEN}"
    assert status_of(server, HOST, token, version="1.0") == 200


@pytest.mark.proves("design.access.unambiguous")
@pytest.mark.parametrize(
    "lines",
    [
        ("Host: localhost", "Host: localhost"),
        ("Host: localhost", "Host: evil.example"),
        ("Host: evil.example@localhost",),
        ("Host: localhost/evil.example",),
        ("Host: localhost evil.example",),
        ("Host: localhost", "Origin: http://localhost", "Origin: http://evil.example"),
        ("Host: localhost", f"Authorization: Bearer {TOKEN}", "Authorization: Bearer wrong"),
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(
    server: ServerProcess, open_server: ServerProcess, lines: tuple[str, ...]
) -> None:
    for each in (server, open_server):
        assert status_of(each, *lines) == 400
        assert status_of(each, *lines, *UPGRADE_LINES, path="/ahp") == 400


# Starting


@pytest.mark.proves("design.access.bind")
@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        (("--host", "0.0.0.0"), "--connection-token-file"),
        (("--public-url", "https://ask.example.com"), "--connection-token-file"),
        (("--allowed-hosts", "ask.example.com"), "--connection-token-file"),
        (("--allowed-origins", "*"), "--connection-token-file"),
        (("--secret", "short"), "secret"),
    ],
)
def test_a_start_that_lets_others_in_is_refused_with_advice(
    setting: tuple[str, str], advice: str
) -> None:
    result = CliRunner().invoke(app, ["serve", "--store", "memory:", "--port", "0", *setting])
    assert (result.exit_code, result.stdout) == (2, "")
    assert advice in result.stderr
    assert "Traceback" not in result.stderr


def check_link(link: dict[str, Any], port: int) -> None:
    """An address of this machine that others can use, where it has one."""
    outside = outside_address()
    if outside is None:
        assert "No address" in link["warning"]
    else:
        assert link["url"].startswith(f"http://{outside}:{port}/?tkn=")
        assert "warning" not in link


@pytest.mark.slow
async def test_connections_beyond_the_limit_are_refused_with_429() -> None:
    with serving("memory:", "--connections-per-principal", "1") as server:
        first = await arrived(server, None, "first")
        assert await dialled(server) == 429
        with api(server, None) as local:
            assert local.get("/v1/events").status_code == 429
        await first.close()


@pytest.mark.slow
async def test_http_requests_and_connections_share_the_rate_limit_of_their_principal() -> None:
    with serving("memory:", "--actions-per-second", "1") as server, api(server, None) as local:
        first = await arrived(server, None, "first")
        for size in (FRAME_BYTES // 2, 0):  # until not even a small one has room
            refusal = None
            while refusal is None:
                refusal = await first.call("ping", padding=size * "x")
            assert "wait a moment" in refusal["message"]
        refused = local.get("/v1/sessions")
        assert (refused.status_code, refused.json()["code"]) == (429, "tooManyRequests")
        assert int(refused.headers["retry-after"]) >= 1
        assert await dialled(server) == 429
        assert local.get("/healthz").status_code == 200
        await first.close()


@pytest.mark.slow
def test_another_address_is_served_with_a_token_or_by_order(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with serving("memory:", "--host", "0.0.0.0", "--connection-token-file", str(path)) as server:
        where = f"http://127.0.0.1:{server.port}/v1/sessions"
        assert httpx2.get(where).status_code == 401
        with api(server, path.read_text().strip()) as owner:
            assert owner.get("/v1/sessions").status_code == 200
            check_link(shared(owner, new_session(owner)), server.port)
    assert path.read_text().strip() not in "".join(server.output)
    with serving("memory:", "--host", "0.0.0.0", "--without-connection-token") as server:
        for headers in ({}, {"X-Forwarded-For": "198.51.100.7"}):
            where = f"http://127.0.0.1:{server.port}/v1/sessions"
            assert httpx2.get(where, headers=headers).status_code == 200
