"""The one mapping of errors to failures of the command line, and of error responses too."""

import httpx2
import msgspec

from session_server.cli.failures import (
    GIVE_TOKEN,
    LIST_THEM,
    OTHER_ROLE,
    START_ONE,
    CliError,
    ExitCode,
)
from session_server.client import (
    CommandFailed,
    Disconnected,
    GaveUp,
    InvalidAnswer,
    SessionGone,
    SessionNotFound,
)
from session_server.schemas.errors import CloseCode, ConfigError, ErrorCode, SessionServerError

PLAIN_CHARS = 500

EXIT_CODES: dict[type[SessionServerError], tuple[ExitCode, str]] = {
    Disconnected: (ExitCode.UNREACHABLE, START_ONE),
    SessionNotFound: (ExitCode.NOT_FOUND, LIST_THEM),
    SessionGone: (ExitCode.NOT_FOUND, LIST_THEM),
    InvalidAnswer: (ExitCode.USAGE, ""),
    ConfigError: (ExitCode.USAGE, ""),
    SessionServerError: (ExitCode.FAILED, ""),
}
"""By the nearest class."""


def cli_error(error: SessionServerError | httpx2.TransportError, url: str = "") -> CliError:
    """`url` is where the command went."""
    text = str(error)
    match error:
        case CliError():
            return error
        case httpx2.TimeoutException():
            return CliError(f"{url} did not answer in time.", ExitCode.UNREACHABLE, START_ONE)
        case httpx2.TransportError():
            text = f"Can't reach a server at {url}: {text}."
            return CliError(text, ExitCode.UNREACHABLE, START_ONE)
        case GaveUp(status=401 | 403) | GaveUp(close_code=CloseCode.NOT_ALLOWED):
            return CliError(text, ExitCode.NOT_ALLOWED, GIVE_TOKEN)
        case GaveUp(close_code=int()):
            return CliError(text)
        case CommandFailed(rpc_code=ErrorCode.PERMISSION_DENIED):
            return CliError(text, ExitCode.NOT_ALLOWED, OTHER_ROLE)
        case _:
            nearest = next(kind for kind in type(error).__mro__ if kind in EXIT_CODES)
            return CliError(text, *EXIT_CODES[nearest])


class Problem(msgspec.Struct):
    """The fields of an HTTP problem (RFC 9457) that are shown."""

    title: str = ""
    detail: str = ""


_OF_STATUS = {
    400: ExitCode.USAGE,
    401: ExitCode.NOT_ALLOWED,
    403: ExitCode.NOT_ALLOWED,
    404: ExitCode.NOT_FOUND,
    422: ExitCode.USAGE,
}
_ADVICE = {401: GIVE_TOKEN, 403: OTHER_ROLE}


def of_response(response: httpx2.Response) -> CliError:
    """From a response that is an error; its body must have been read."""
    status = response.status_code
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except (msgspec.DecodeError, msgspec.ValidationError, httpx2.ResponseNotRead):
        problem = Problem()
    message = problem.detail or problem.title
    if not message and response.headers.get("content-type", "").startswith("text/plain"):
        message = response.text[:PLAIN_CHARS]
    message = message or f"The host answered {status} {response.reason_phrase}."
    return CliError(message, _OF_STATUS.get(status, ExitCode.FAILED), _ADVICE.get(status, ""))
