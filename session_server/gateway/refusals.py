"""Refusals in the words of MCP: a JSON-RPC error, for its clients show no others."""

import msgspec
from mcp_types import INVALID_REQUEST
from starlette.responses import Response
from starlette.types import Message, Send

from session_server.schemas.limits import MCP_BODY_BYTES

WORDS = {
    400: "The body must be JSON, sent as Content-Type: application/json.",
    405: "Send messages with POST.",
    406: "The Accept header must allow application/json and text/event-stream.",
    413: f"The body is larger than {MCP_BODY_BYTES} bytes.",
}
JSON = b"application/json"


def refusal(status: int, code: int, words: str) -> Response:
    return Response(_body(code, words), status, media_type=JSON.decode())


def _body(code: int, words: str) -> bytes:
    error = {"code": code, "message": words}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})


class InWords:
    """What the SDK refuses with a status alone, or with plain text, is said as an error."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._body: bytes | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = self._begun(message)
        elif message["type"] == "http.response.body" and self._body is not None:
            message = {**message, "body": self._body}
            self._body = b""
        await self._send(message)

    def _begun(self, message: Message) -> Message:
        headers = [(name.lower(), value) for name, value in message.get("headers", ())]
        words = WORDS.get(message["status"])
        kind = dict(headers).get(b"content-type", b"")
        if words is None or kind.startswith(JSON):
            return message
        self._body = _body(INVALID_REQUEST, words)
        kept = [pair for pair in headers if pair[0] not in (b"content-type", b"content-length")]
        own = [(b"content-type", JSON), (b"content-length", str(len(self._body)).encode())]
        return {**message, "headers": [*kept, *own]}
