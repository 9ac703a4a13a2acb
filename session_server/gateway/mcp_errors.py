"""Errors as MCP clients get them: JSON-RPC errors, for their users see no others."""

from collections.abc import Generator
from contextlib import contextmanager

import msgspec
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST
from pydantic import ValidationError
from starlette.responses import Response
from starlette.types import Message, Send

from session_server.schemas.errors import (
    CommandError,
    InvalidCallError,
    NotSavedError,
    RefusedError,
    SessionServerError,
    UnknownServerError,
    UnreachableError,
)
from session_server.schemas.limits import MCP_BODY_BYTES

MCP_CODES: dict[type[SessionServerError], int] = {
    RefusedError: INVALID_REQUEST,
    CommandError: INVALID_REQUEST,
    InvalidCallError: INVALID_PARAMS,
    UnknownServerError: INVALID_REQUEST,
    UnreachableError: INTERNAL_ERROR,
    NotSavedError: INTERNAL_ERROR,
}


@contextmanager
def as_mcp_errors(server: str | None = None) -> Generator[None]:
    """Errors of the host become JSON-RPC errors. `server`: the one that is called, if any."""
    try:
        yield
    except ValidationError:
        message = "The MCP server behind this gateway sent an invalid MCP response."
        raise MCPError(INTERNAL_ERROR, message) from None
    except tuple(MCP_CODES) as error:
        raise _mcp_error(error, server) from None


def _mcp_error(error: SessionServerError, server: str | None) -> MCPError:
    """The one mapping of errors to MCP."""
    code = next(MCP_CODES[kind] for kind in type(error).__mro__ if kind in MCP_CODES)
    message, data = str(error), None
    if isinstance(error, UnreachableError):
        message = f"The MCP server {server!r} cannot be used: {error}."
    elif isinstance(error, RefusedError):
        data = {"reason": error.code}
    return MCPError(code, message, data)


def lost_state_error() -> MCPError:
    """As every server of the 2026 era reports that it does not accept a state."""
    reason = {"reason": "invalid_request_state"}
    return MCPError(INVALID_PARAMS, "Invalid or expired requestState", reason)


REASONS = {
    400: "The body must be JSON, sent as Content-Type: application/json.",
    405: "Send messages with POST.",
    406: "The Accept header must allow application/json and text/event-stream.",
    413: f"The body is larger than {MCP_BODY_BYTES} bytes.",
}
JSON = b"application/json"


def refusal(status: int, code: int, message: str) -> Response:
    return Response(_body(code, message), status, media_type=JSON.decode())


def not_served(error: UnknownServerError | UnreachableError, server: str | None) -> Response:
    """For a request that reaches none of our servers."""
    reported = _mcp_error(error, server)
    status = 404 if isinstance(error, UnknownServerError) else 503
    return refusal(status, reported.code, reported.message)


def _body(code: int, message: str) -> bytes:
    error = {"code": code, "message": message}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})


class ErrorBodies:
    """Gives responses that the SDK refuses with a status or plain text a JSON-RPC error as body."""

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
        reason = REASONS.get(message["status"])
        if reason is None:
            return message
        headers = [(name.lower(), value) for name, value in message.get("headers", ())]
        if dict(headers).get(b"content-type", b"").startswith(JSON):
            return message
        self._body = _body(INVALID_REQUEST, reason)
        kept = [pair for pair in headers if pair[0] not in (b"content-type", b"content-length")]
        own = [(b"content-type", JSON), (b"content-length", str(len(self._body)).encode())]
        return {**message, "headers": [*kept, *own]}
