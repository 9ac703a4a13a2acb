"""The gate under servers of other kinds: what it says where it cannot say much."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from session_server.http.gate import Gate
from session_server.identity.origins import Access

EVIL = [(b"host", b"localhost"), (b"origin", b"http://evil.example")]
HERE = [(b"host", b"localhost")]


def sent(scope: dict[str, Any]) -> list[Message]:
    """What comes back through the gate; behind it stands an application that says its query."""
    messages: list[Message] = []

    async def application(scope: Scope, _: Receive, send: Send) -> None:
        await send({"type": "said", "query": scope.get("query_string")})

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        messages.append(message)

    asyncio.run(Gate(application, Access())(scope, receive, send))
    return messages


def test_an_upgrade_is_refused_even_where_a_server_takes_no_reasons() -> None:
    scope = {"type": "websocket", "path": "/ahp", "headers": EVIL, "query_string": b""}
    assert sent(scope) == [{"type": "websocket.close"}]
    with_reasons = {**scope, "extensions": {"websocket.http.response": {}}}
    assert sent(with_reasons)[0]["status"] == 403


def test_the_window_of_vs_code_may_upgrade_and_nothing_else() -> None:
    headers = [(b"host", b"localhost"), (b"origin", b"vscode-file://vscode-app")]
    scope = {"path": "/", "headers": headers, "query_string": b""}
    assert sent({"type": "websocket", **scope}) == [{"type": "said", "query": b""}]
    assert sent({"type": "http", **scope})[0]["status"] == 403
    other = [(b"host", b"localhost"), (b"origin", b"vscode-file://vscode-app.evil.example")]
    assert sent({"type": "websocket", **scope, "headers": other}) == [{"type": "websocket.close"}]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_the_application_never_sees_a_token_in_the_query(kind: str) -> None:
    scope = {"type": kind, "path": "/", "headers": HERE, "query_string": b"x=1&tkn=abc"}
    assert sent(scope) == [{"type": "said", "query": b"x=1"}]


def test_what_is_no_request_passes() -> None:
    assert sent({"type": "lifespan"}) == [{"type": "said", "query": None}]
