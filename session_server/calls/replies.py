"""One leg of a call: sends its request, and says what came back (`reply_kinds`)."""

from collections.abc import Mapping
from typing import Any

import httpx2
import msgspec
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    URL_ELICITATION_REQUIRED,
)
from pydantic import ValidationError

from session_server.calls.reply_kinds import (
    Asks,
    Completed,
    Expired,
    Lost,
    OtherRevision,
    Rejected,
    Reply,
    Unsent,
)
from session_server.mcp_client import failures, sdk
from session_server.mcp_client.config import LEGACY, MODERN, Era, ServerConfig
from session_server.mcp_client.connections.connection import Link
from session_server.mcp_client.connections.http_link import HttpLink
from session_server.mcp_client.connections.pool import BorrowedLink
from session_server.mcp_client.connections.response_limits import TOO_LARGE, reason_in
from session_server.reducers.calls.input_required import is_expired_state, recognize_input_required
from session_server.schemas.codec import encode, is_too_deep
from session_server.schemas.errors import UnauthorizedError, UnreachableError
from session_server.schemas.limits import JSON_DEPTH, RESULT_BYTES
from session_server.schemas.mcp import Elicitation, ElicitRequest, InputRequired, InvalidResult
from session_server.schemas.record import FailureKind
from session_server.schemas.wire import Wire

NEVER_LEFT = (UnreachableError, httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
NOT_MCP = "the server's answer is not MCP"


async def exchange(
    borrowed: BorrowedLink, method: str, params: Mapping[str, Any], progress: ProgressFnT | None
) -> Reply:
    """Sends one leg and waits for what comes back, however long that takes."""
    link = borrowed.link
    try:
        result = await borrowed.request(method, params, progress)
    except ValidationError:
        return Rejected(FailureKind.INVALID_RESULT, NOT_MCP)
    except MCPError as error:
        reply = _turned_away(link, error) or reply_of_error(error)
        return _in_other_revision(borrowed, reply, error.message)
    return _in_other_revision(borrowed, reply_of(result), text_of_error(result))


def text_of_error(result: Mapping[str, Any]) -> str:
    """What a tool's result says that is an error."""
    content = result.get("content")
    if result.get("isError") is not True or not isinstance(content, list):
        return ""
    return "\n".join(str(one.get("text")) for one in content if isinstance(one, dict))


def _in_other_revision(borrowed: BorrowedLink, reply: Reply, text: str) -> Reply:
    """If a tool that failed with this text can ask in the other revision alone."""
    era: Era
    if borrowed.link.is_modern:
        era, is_needed = LEGACY, sdk.needs_2025(text, can_sample=borrowed.can_sample)
    else:
        era, is_needed = MODERN, sdk.needs_2026(text)
    if not is_needed or not isinstance(reply, Completed | Rejected):
        return reply
    return OtherRevision(era, reply, sdk.returned_questions(text))


def _turned_away(link: Link | HttpLink, error: MCPError) -> Reply | None:
    """What an answer means that was HTTP, but no message."""
    error_of_http = failures.refusal_of(error, link.config, link.latest_response)
    if error_of_http is None:
        return None
    if failures.did_not_run(link.latest_response):
        return Unsent(str(error_of_http), is_general=isinstance(error_of_http, UnauthorizedError))
    return Rejected(FailureKind.UPSTREAM, str(error_of_http))


def reply_of(result: dict[str, Any]) -> Reply:
    reason = unstorable(result)
    if reason is not None:
        return Rejected(FailureKind.INVALID_RESULT, reason)
    match recognize_input_required(result):
        case None:
            return Completed(result)
        case InvalidResult(reason=reason):
            return Rejected(FailureKind.INVALID_RESULT, reason)
        case InputRequired() as required:
            return Asks(required, result.get("inputRequests"))


def reply_of_error(error: MCPError) -> Reply:
    code, data = error.code, error.data
    if is_expired_state(code, data):
        return Expired()
    reason = reason_in(error.message)
    if reason is not None:
        return Rejected(FailureKind.INVALID_RESULT, reason)
    if code == PARSE_ERROR and error.message.startswith(sdk.UNPARSED):
        return Rejected(FailureKind.INVALID_RESULT, NOT_MCP)
    if code == CONNECTION_CLOSED:
        return Lost()
    if code == INVALID_REQUEST and error.message == sdk.SESSION_GONE:
        return Unsent("it no longer knew the connection")
    if code == URL_ELICITATION_REQUIRED:
        visits = _visits(data)
        if visits is not None:
            return Asks(visits)
    return Rejected(FailureKind.UPSTREAM, _reason(error), {"code": code, **_with_data(error)})


def failure_of(error: BaseException, config: ServerConfig) -> Reply:
    """What the end of a connection means for the leg that was on it."""
    error = failures.first_of(error)
    if isinstance(error, NEVER_LEFT):
        is_news = not isinstance(error, UnreachableError)
        return Unsent(str(failures.unreachable_error(error, config)), is_general=is_news)
    return Lost()


def unstorable(result: Mapping[str, Any]) -> str | None:
    """Why an answer cannot be kept, if so."""
    try:
        text = encode(result)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return "the server's answer contains values that JSON cannot represent"
    if len(text) > RESULT_BYTES:
        return TOO_LARGE
    if is_too_deep(text, JSON_DEPTH):
        return f"the server's answer is nested deeper than {JSON_DEPTH} levels"
    return None


class _Visits(Wire, frozen=True, kw_only=True):
    elicitations: tuple[Elicitation, ...]


def _visits(data: Any) -> InputRequired | None:
    """2025-11-25: URLs to be opened before the request can be made again."""
    try:
        asked = msgspec.convert(data, _Visits).elicitations
    except msgspec.ValidationError:
        return None
    if not asked:
        return None
    requests = {
        visit.elicitation_id or str(number): ElicitRequest(params=visit)
        for number, visit in enumerate(asked)
    }
    return InputRequired(result_type="input_required", input_requests=dict(requests))


def _reason(error: MCPError) -> str:
    reason = error.message.rstrip(".") or "it gave no reason"
    if error.code == MISSING_REQUIRED_CLIENT_CAPABILITY:
        return f"it needs what this host does not offer: {_capabilities(error.data) or reason}"
    return f"{reason} ({error.code})"


def _capabilities(data: Any) -> str:
    needed = data.get("requiredCapabilities") if isinstance(data, dict) else None
    return ", ".join(needed) if isinstance(needed, dict | list) else ""


def _with_data(error: MCPError) -> dict[str, Any]:
    whole = {"message": error.message, "data": error.data}
    return whole if unstorable(whole) is None else {"message": error.message}
