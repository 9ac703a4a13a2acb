"""Errors as MCP clients get them: JSON-RPC errors, for their users see no others."""

from collections.abc import Generator
from contextlib import contextmanager

import msgspec
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST
from pydantic import ValidationError
from starlette.responses import Response
from starlette.types import Message, Send

from session_server.host.acting import InDoubtError, NotSavedError, RefusedError
from session_server.host.errors import CommandError
from session_server.mcp_client.errors import CallsError, UnreachableError
from session_server.schemas.limits import MCP_BODY_BYTES


@contextmanager
def told_in_mcp() -> Generator[None]:
    """Errors of the host's become errors of MCP, with the same words."""
    try:
        yield
    except RefusedError as error:
        reason = {"reason": error.refusal.code.value}
        raise MCPError(INVALID_REQUEST, error.refusal.message, reason) from None
    except CommandError as error:
        raise MCPError(INVALID_REQUEST, error.error.message) from None
    except CallsError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from None
    except UnreachableError as error:
        words = f"The MCP server behind this gateway cannot be used: {error}."
        raise MCPError(INTERNAL_ERROR, words) from None
    except ValidationError:
        words = "The MCP server behind this gateway answered with what is not MCP."
        raise MCPError(INTERNAL_ERROR, words) from None
    except InDoubtError as error:
        raise MCPError(INTERNAL_ERROR, f"{error} Look before you do it again.") from None
    except NotSavedError as error:
        words = f"This could not be saved, and nothing has changed; try again. {error}"
        raise MCPError(INTERNAL_ERROR, words) from None


def lost_state(words: str = "Invalid or expired requestState") -> MCPError:
    """As every server of the 2026 era says that a state is worth nothing any more."""
    reason = {"reason": "invalid_request_state"}
    return MCPError(INVALID_PARAMS, words, reason)


def invalid(words: str) -> MCPError:
    return MCPError(INVALID_PARAMS, words)


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
