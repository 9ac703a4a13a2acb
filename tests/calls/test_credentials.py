"""Servers that repeat the credentials they were given: nobody gets to see them."""

import json
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.server_credentials import credentials_of
from session_server.reducers.calls.redaction import HIDDEN
from session_server.schemas.codec import encode
from tests.calls.running_host import RunningHost, http, running_host
from tests.mcp.servers import odd
from tests.servers import web_server

TOKEN = 'canary "4711"/ü'


class Repeating(BaseHTTPRequestHandler):
    """A 2026-era server whose tools repeat the header that they were called with."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        params = message.get("params") or {}
        if message["method"] == "tools/call":
            reply = odd.repeating(params, self.headers["x-api-key"])
        else:
            reply = odd.answer(message["method"], params, message.get("id"))
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **reply}).encode()
        self.send_response(403 if self.path == "/forbidden" else 200)
        if self.path == "/forbidden":
            challenge = f'Bearer scope="read {quote(self.headers["x-api-key"])}"'
            self.send_header("WWW-Authenticate", challenge)
            body = b"no"
        self.send_header("Content-Type", "application/json" if self.path == "/mcp" else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)


async def looked_through(at: RunningHost) -> None:
    """A question, a result and an error, each with the credential in several encodings."""
    asked = await at.call("repeat", how="ask")
    (request,) = await at.asked("Use ")
    assert request.message == f"Use {HIDDEN}?"
    await at.answer("Use ")
    # The server's own state came back to it unchanged, or it would have refused.
    assert await at.text(asked) == f"{HIDDEN} {HIDDEN} {HIDDEN}"
    failed = await at.result(await at.call("repeat", how="fail"))
    assert failed.error.message == f"no {HIDDEN} (-32602)"
    assert "canary" not in encode(at.record).decode().replace(r"\"canary-state", "")
    assert "canary" not in encode(failed).decode()


async def test_a_header_that_a_server_repeats_is_hidden() -> None:
    headers = {"X-API-Key": quote(TOKEN)}
    with web_server(Repeating) as port:
        async with running_host(http(f"http://127.0.0.1:{port}/mcp", headers=headers)) as at:
            await looked_through(at)


async def test_a_variable_that_a_server_repeats_is_hidden() -> None:
    config = ServerConfig(
        command=sys.executable, args=(str(Path(odd.__file__)),), env={"API_TOKEN": TOKEN}
    )
    async with running_host(config) as at:
        await looked_through(at)


async def test_scopes_that_hold_a_credential_are_hidden() -> None:
    headers = {"X-API-Key": quote(TOKEN)}
    with web_server(Repeating) as port:
        async with running_host(http(f"http://127.0.0.1:{port}/forbidden", headers=headers)) as at:
            await at.error(await at.call("repeat"))
            shown = encode(at.record.public).decode()
            assert "canary" not in shown
            assert f'"read","{HIDDEN}"' in shown


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"headers": {"Authorization": "Bearer abcdefgh"}}, {"Bearer abcdefgh", "abcdefgh"}),
        (
            {"headers": {"Cookie": "sid=abcdefgh; a=b"}},
            {"sid=abcdefgh; a=b", "sid=abcdefgh", "abcdefgh"},
        ),
        ({"headers": {"Accept": "application/json", "X-Team": "platform"}}, set()),
        ({"headers": {"X-Api-Key": "short"}}, set()),
        ({"env": {"GITHUB_TOKEN": "ghp abcdef", "NODE_ENV": "production"}}, {"ghp abcdef"}),
        (
            {"url": "https://u:pass%20word@h/mcp?api_key=abcdefgh&team=platform"},
            {"pass word", "abcdefgh"},
        ),
    ],
)
def test_credentials_are_what_is_named_like_one(config: dict[str, Any], found: set[str]) -> None:
    given: dict[str, Any] = {"command": "x", **config}
    assert credentials_of(ServerConfig(**given)) == found
