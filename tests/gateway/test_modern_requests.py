"""Requests of 2026-era clients get what the SDK's own transport would have answered."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    INVALID_PARAMS,
    LOG_LEVEL_META_KEY,
    CallToolRequestParams,
    CallToolResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    TextContent,
)
from starlette.types import Message, Scope

from session_server.calls.requesters import Requester
from session_server.gateway import modern_requests
from session_server.watched_response import WatchedResponse
from tests.gateway.requests_2026 import META, SECONDS, envelope, headers_for

Context = ServerRequestContext[Any, Any]

SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}


class Tool:
    """Does what its name says."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.was_cancelled = False

    async def __call__(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        self.began.set()
        match params.name:
            case "refuse":
                raise MCPError(INVALID_PARAMS, "It is refused.", {"reason": None})
            case "crash":
                raise RuntimeError("what nobody is told")
            case "report":
                await ctx.session.report_progress(1, 2, "half done")
                await ctx.session.report_progress(2)
            case "log":
                params_ = LoggingMessageNotificationParams(level="error", data={"nothing": None})
                notice = LoggingMessageNotification(params=params_)
                await ctx.session.send_notification(notice, related_request_id=ctx.request_id)
            case "wait":
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.was_cancelled = True
                    raise
            case "take long":
                await asyncio.sleep(0.05)
            case _:
                pass
        text = TextContent(text="Zoë \ud800", annotations=None)
        return CallToolResult(content=[text], structured_content={"nothing": None})


class Answer(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Exchanged:
    """A request as ASGI has it, and what is sent in response."""

    def __init__(self, method: str, headers: list[tuple[str, str]], body: bytes) -> None:
        raw = [(name.lower().encode(), value.encode()) for name, value in headers]
        raw.append((b"content-length", str(len(body)).encode()))
        self.scope: Scope = {
            "type": "http",
            "method": method,
            "path": "/",
            "query_string": b"",
            "headers": raw,
        }
        half = len(body) // 2
        self._unread: list[Message] = [
            {"type": "http.request", "body": body[:half], "more_body": True},
            {"type": "http.request", "body": body[half:], "more_body": False},
        ]
        self.leave = asyncio.Event()
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if self._unread:
            return self._unread.pop(0)
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def answer(self) -> Answer:
        start, *pieces = self.sent
        assert [piece.get("more_body", False) for piece in pieces][-1] is False
        body = b"".join(piece["body"] for piece in pieces)
        return Answer(start["status"], dict(start["headers"]), body)


def new_server(tool: Tool) -> Server[Any]:
    return Server("test", version="1", on_call_tool=tool, get_tool_input_schema=lambda _: SCHEMA)


async def by_the_sdk(request: Exchanged) -> Answer:
    manager = StreamableHTTPSessionManager(app=new_server(Tool()), max_request_body_size=10_000_000)
    async with manager.run():
        await manager.handle_request(request.scope, request.receive, request.send)
    return request.answer


async def by_the_gateway(request: Exchanged, tool: Tool | None = None) -> Answer | None:
    """`None` if the request is left to the SDK, which can still read all of it."""
    async with WatchedResponse(Requester(), request.receive, request.send) as response:
        server = new_server(tool or Tool())
        unread = await modern_requests.respond_to_plain(server, request.scope, response)
    if unread is None:
        return request.answer
    assert request.sent == []
    return None


def call(
    name: str = "succeed",
    headers: Mapping[str, str | None] | None = None,
    meta: Mapping[str, Any] | None = None,
    twice: str | None = None,
    **more: Any,
) -> Exchanged:
    params: dict[str, Any] = {"name": name, "_meta": meta or {}, **more.pop("params", {})}
    body = envelope("tools/call", params) | more
    known = headers_for("tools/call", params) | {"content-type": "application/json"}
    kept = {k: v for k, v in {**known, **(headers or {})}.items() if v is not None}
    again = [] if twice is None else [(twice, kept[twice])]
    return Exchanged("POST", [*kept.items(), *again], json.dumps(body).encode())


def other(method: str, body: bytes) -> Exchanged:
    headers = headers_for("tools/call", {"name": "succeed"}) | {"content-type": "application/json"}
    return Exchanged(method, list(headers.items()), body)


ANSWERED = {
    "a result": call,
    "a textual id": lambda: call(id="one"),
    "an error of the tool": lambda: call("refuse"),
    "a crash of the tool": lambda: call("crash"),
    "progress": lambda: call("report", meta={"progressToken": "t"}),
    "progress that nobody asked for": lambda: call("report"),
    "log messages": lambda: call("log", meta={LOG_LEVEL_META_KEY: "info"}),
    "log messages that nobody asked for": lambda: call("log"),
    "parameters that are not valid": lambda: call(params={"inputResponses": 3}),
    "an argument in a header": lambda: call(
        headers={"mcp-param-city": "Oslo"}, params={"arguments": {"city": "Oslo"}}
    ),
    "capabilities that are not valid": lambda: call(meta={f"{META}clientCapabilities": 3}),
    "a client without a name": lambda: call(meta={f"{META}clientInfo": None}),
    "any media type": lambda: call(headers={"Accept": "*/*"}),
}

LEFT_TO_THE_SDK = {
    "another argument in a header": lambda: call(
        headers={"mcp-param-city": "Rome"}, params={"arguments": {"city": "Oslo"}}
    ),
    "no argument in a header": lambda: call(params={"arguments": {"city": "Oslo"}}),
    "arguments that are not an object": lambda: call(params={"arguments": [1]}),
    "no name": lambda: call(params={"name": None}),
    "an id that is not one": lambda: call(id=True),
    "no id": lambda: call(id=None),
    "another version of JSON-RPC": lambda: call(jsonrpc="1.0"),
    "another method in the header": lambda: call(headers={"Mcp-Method": "tools/list"}),
    "another name in the header": lambda: call(headers={"Mcp-Name": "other"}),
    "a version that is not known": lambda: call(
        headers={"MCP-Protocol-Version": "2099-01-01"},
        meta={f"{META}protocolVersion": "2099-01-01"},
    ),
    "two names": lambda: call(twice="Mcp-Name"),
    "a client that takes no streams": lambda: call(headers={"Accept": "application/json"}),
    "another media type": lambda: call(headers={"content-type": "text/plain"}),
    "GET": lambda: other("GET", b""),
    "what is not JSON": lambda: other("POST", b"{"),
    "what is nested too deep": lambda: other("POST", b"[" * 200_000),
    "a batch": lambda: other("POST", b"[]"),
    "a notification": lambda: other("POST", b'{"jsonrpc": "2.0", "method": "notifications/x"}'),
}


@pytest.mark.parametrize("name", ANSWERED)
async def test_a_request_is_answered_as_by_the_sdk(name: str) -> None:
    expected = await by_the_sdk(ANSWERED[name]())
    assert await by_the_gateway(ANSWERED[name]()) == expected


@pytest.mark.parametrize("name", LEFT_TO_THE_SDK)
async def test_a_request_that_fails_a_check_is_left_to_the_sdk(name: str) -> None:
    assert await by_the_gateway(LEFT_TO_THE_SDK[name]()) is None
    refused = LEFT_TO_THE_SDK[name]()
    async with WatchedResponse(Requester(), refused.receive, refused.send) as response:
        unread = await modern_requests.respond_to_plain(new_server(Tool()), refused.scope, response)
        assert unread is not None
        manager = StreamableHTTPSessionManager(app=new_server(Tool()))
        async with asyncio.timeout(SECONDS), manager.run():
            await manager.handle_request(refused.scope, unread, response.send)
    assert refused.answer == await by_the_sdk(LEFT_TO_THE_SDK[name]())


async def until_cancelled(request: Exchanged, tool: Tool) -> None:
    async with WatchedResponse(Requester(), request.receive, request.send) as response:
        assert (
            await modern_requests.respond_to_plain(new_server(tool), request.scope, response)
            is None
        )


async def test_a_client_that_disconnects_cancels_its_request() -> None:
    tool, request = Tool(), call("wait")
    working = asyncio.ensure_future(until_cancelled(request, tool))
    await tool.began.wait()
    request.leave.set()
    await asyncio.wait_for(working, SECONDS)
    assert tool.was_cancelled
    assert request.sent == []


async def test_a_request_that_is_cancelled_from_outside_is_cancelled() -> None:
    tool, request = Tool(), call("wait")
    working = asyncio.ensure_future(until_cancelled(request, tool))
    await tool.began.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert tool.was_cancelled


async def test_a_response_that_takes_long_is_a_stream_with_pings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(modern_requests, "PING_SECONDS", 0.01)
    answer = await by_the_gateway(call("take long"))
    assert answer.headers[b"content-type"] == b"text/event-stream"
    first, *_, last = answer.body.split(b"\r\n\r\n")[:-1]
    assert first == b": ping"
    assert last.startswith(b'event: message\r\ndata: {"jsonrpc":"2.0","id":1,"result":')


async def test_what_a_tool_sends_after_its_answer_is_dropped() -> None:
    late: list[asyncio.Task[None]] = []

    async def tool(ctx: Context, _: CallToolRequestParams) -> CallToolResult:
        async def report() -> None:
            await asyncio.sleep(0.01)
            await ctx.session.report_progress(1)

        late.append(asyncio.ensure_future(report()))
        return CallToolResult(content=[])

    request = call(meta={"progressToken": 1})
    server: Server[Any] = Server("test", on_call_tool=tool, get_tool_input_schema=lambda _: None)
    async with WatchedResponse(Requester(), request.receive, request.send) as response:
        await modern_requests.respond_to_plain(server, request.scope, response)
    before = list(request.sent)
    await late[0]
    assert request.sent == before
