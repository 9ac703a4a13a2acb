"""Coming to a real server with or without a credential, over HTTP and as a WebSocket."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from tests.ahp.client import SocketClient
from tests.effort import PATIENCE
from tests.http.sessions import Api
from tests.servers import ServerProcess

TOKEN = "canary-connection-token-0123456789"
WITH_TOKEN = ("--connection-token", TOKEN)

UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
"""The headers of a request for a WebSocket."""


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def api(server: ServerProcess, token: str | None = TOKEN) -> Api:
    return Api(server.url, headers=bearer(token))


def issued(owner: httpx2.Client, role: str, **wanted: Any) -> dict[str, Any]:
    """A new token, with its text under `token`."""
    made = owner.post("/v1/tokens", json={"name": role.title(), "role": role, **wanted})
    assert made.status_code == 201, made.text
    given: dict[str, Any] = made.json()
    return given


def new_session(owner: httpx2.Client, provider: str = "people") -> str:
    made = owner.post("/v1/sessions", json={"provider": provider})
    assert made.status_code == 201, made.text
    uri: str = made.json()["resource"]
    return uri


def name_of(uri: str) -> str:
    return uri.removeprefix("ahp-session:/")


def shared(owner: httpx2.Client, uri: str, **wanted: Any) -> dict[str, Any]:
    made = owner.post(f"/v1/sessions/{name_of(uri)}/shares", json=wanted)
    assert made.status_code == 201, made.text
    given: dict[str, Any] = made.json()
    return given


def everything_in(folder: Path) -> str:
    """All that is stored there, as one text to look for secrets in."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return "".join(file.read_bytes().decode("latin-1") for file in files)


async def dialled(
    server: ServerProcess,
    token: str | None = None,
    *,
    query: str = "",
    subprotocols: tuple[str, ...] = (),
    **headers: str,
) -> SocketClient | int:
    """A client on an open socket, or the HTTP status that the upgrade was answered with."""
    named = {name.replace("_", "-"): value for name, value in headers.items()} | bearer(token)
    try:
        socket = await connect(
            f"{server.ahp}{query}",
            additional_headers=named,
            subprotocols=[Subprotocol(each) for each in subprotocols] or None,
            compression=None,
            max_queue=None,
        )
    except InvalidStatus as refused:
        return refused.response.status_code
    return SocketClient(socket)


async def connected(server: ServerProcess, token: str | None = None, **how: Any) -> SocketClient:
    client = await dialled(server, token, **how)
    assert isinstance(client, SocketClient), client
    return client


async def arrived(
    server: ServerProcess, token: str | None, client_id: str, *uris: str
) -> SocketClient:
    client = await connected(server, token)
    await client.initialize(client_id, *uris)
    return client


async def end_of(client: SocketClient) -> tuple[int, str]:
    """How the other side closed it."""
    async with asyncio.timeout(PATIENCE):
        await client.socket.wait_closed()
    assert client.socket.close_code is not None
    return client.socket.close_code, client.socket.close_reason or ""
