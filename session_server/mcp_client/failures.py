"""Why a server cannot be used, and what to do about it; never with a value of its own.

The SDK tells apart few of the things that can go wrong over HTTP, so the transport notes how the
server answered (`HttpResponseInfo`), and here both are read together.
"""

import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR

from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.connections.response_limits import reason_in
from session_server.mcp_client.sdk import NO_MESSAGE
from session_server.reducers.calls.redaction import hidden
from session_server.schemas.errors import UnauthorizedError, UnreachableError

DID_NOT_RUN = (401, 403, 429)
"""Not 503: proxies say it too of a server that broke off in the middle of its work."""

SCOPE = re.compile(r'\bscope="([^"]*)"')

NO_CREDENTIALS = (
    "it wants authorization (HTTP 401): set `headers` for it in mcp.json, such as"
    ' {"Authorization": "Bearer ${TOKEN}"}, and start the host again'
)
BAD_CREDENTIALS = (
    "it does not accept the credentials in its `headers` in mcp.json (HTTP 401):"
    " correct them, and start the host again"
)
TOO_FEW_RIGHTS = (
    "it forbids this (HTTP 403): the credentials in its `headers` in mcp.json need more rights"
)
NOT_MCP = "what answers there does not speak MCP; check its `url` in mcp.json"


class HttpResponseInfo(NamedTuple):
    """How the server answered the latest request over HTTP."""

    status: int
    content_type: str = ""
    challenge: str = ""

    @classmethod
    def of(
        cls, status: int, headers: Mapping[str, str], credentials: frozenset[str]
    ) -> "HttpResponseInfo":
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        return cls(status, kind, hidden(headers.get("www-authenticate", ""), credentials))

    @property
    def scopes(self) -> tuple[str, ...]:
        found = SCOPE.search(self.challenge)
        return tuple(found[1].split()) if found is not None else ()


def first_of(error: BaseException) -> BaseException:
    """The error itself, or the first of a group."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def unreachable_error(
    error: BaseException, config: ServerConfig, response: HttpResponseInfo | None = None
) -> UnreachableError:
    """Why a connection could not be opened, or a listing not be had."""
    error = first_of(error)
    if isinstance(error, UnreachableError):
        return error
    if isinstance(error, MCPError):
        refused = refusal_of(error, config, response)
        return UnreachableError(_reason_of_message(error)) if refused is None else refused
    return UnreachableError(_reason_of_failure(error, config))


def refusal_of(
    error: MCPError, config: ServerConfig, response: HttpResponseInfo | None
) -> UnreachableError | None:
    """What an answer means that was HTTP, but no message; `None` if it was one."""
    if response is None or not error.message.startswith(NO_MESSAGE):
        return None
    if response.status in (401, 403):
        return UnauthorizedError(
            _reason_of_status(response, config), response.status, response.scopes
        )
    return UnreachableError(_reason_of_status(response, config))


def did_not_run(response: HttpResponseInfo | None) -> bool:
    """Whether the request was turned away before anything was done with it."""
    return response is not None and response.status in DID_NOT_RUN


def _reason_of_status(response: HttpResponseInfo, config: ServerConfig) -> str:
    status = response.status
    if status == 401:
        has_some = any(name.lower() == "authorization" for name in config.headers)
        return BAD_CREDENTIALS if has_some else NO_CREDENTIALS
    if status == 403:
        return TOO_FEW_RIGHTS
    if status == 404:
        return "there is nothing at its `url` (HTTP 404); check it in mcp.json"
    if status >= 400:
        return f"it answered with an error (HTTP {status})"
    return NOT_MCP


def _reason_of_message(error: MCPError) -> str:
    reason = reason_in(error.message)
    if reason is not None:
        return reason
    if error.code == CONNECTION_CLOSED:
        return "it ended at once; if it wrote why, that is in the host's log"
    if error.code == INVALID_REQUEST and error.message.startswith("Redirect"):
        return "it has moved to another address; put that into its `url` in mcp.json"
    if error.code == PARSE_ERROR:
        return NOT_MCP
    return f"it refused the connection (MCP error {error.code})"


def _reason_of_failure(error: BaseException, config: ServerConfig) -> str:
    match error:
        case TimeoutError():
            return f"it did not answer within {config.start_timeout:g} seconds"
        case httpx2.ConnectTimeout():
            return "its address does not answer; check its `url` in mcp.json, and the network"
        case httpx2.ConnectError():
            return _reason_of_connecting(error)
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return "its `url` in mcp.json is not a valid address"
        case OSError() if config.command is not None:
            return _reason_of_starting(error, config)
        case _:
            return f"the connection failed ({type(error).__name__})"


def _reason_of_connecting(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return "no secure connection could be made; check whether its `url` begins with http://"
        if isinstance(cause, socket.gaierror):
            return "the name in its `url` is unknown; check it in mcp.json"
        cause = cause.__cause__ or cause.__context__
    return "nothing answers at its address; check its `url` in mcp.json, and whether it runs"


def _reason_of_starting(error: OSError, config: ServerConfig) -> str:
    if config.cwd is not None and not Path(config.cwd).is_dir():
        return "its `cwd` in mcp.json is not a folder that can be used"
    match error:
        case FileNotFoundError():
            return "its `command` in mcp.json was not found: install it, or give its whole path"
        case PermissionError():
            return "its `command` in mcp.json may not be run"
        case _:
            return f"its `command` in mcp.json cannot be run ({error.strerror})"
