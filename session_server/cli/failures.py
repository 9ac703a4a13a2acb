"""Errors as the command line shows them: a message, advice on what to do next, an exit code."""

from enum import IntEnum

import httpx2
import msgspec

from session_server.client import (
    CommandFailed,
    Disconnected,
    GaveUp,
    InvalidAnswer,
    SessionGone,
    SessionNotFound,
)
from session_server.schemas.errors import CloseCode, ConfigError, ErrorCode, SessionServerError

START_ONE = "Start one with `session-server serve`, or name another with --url."
GIVE_TOKEN = "Give a token with --token or SESSION_SERVER_TOKEN."  # noqa: S105
OTHER_ROLE = "Ask the owner of the host for a token with a wider role."
LIST_THEM = "`session-server sessions` lists all sessions."

PLAIN_CHARS = 500


class ExitCode(IntEnum):
    """Scripts rely on them: a number never changes its meaning."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DECLINED = 3
    CANCELLED = 4
    TIMED_OUT = 5
    UNREACHABLE = 6
    NOT_ALLOWED = 7
    NOT_FOUND = 8
    UNANSWERED = 9
    NO = 10
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "Done; for `ask`, and for the form of `answer`: accepted.",
    ExitCode.FAILED: "Failed; the reason is on standard error.",
    ExitCode.USAGE: "The command line, a question or a file is not valid.",
    ExitCode.DECLINED: "A person declined; for a message without questions, that is the no.",
    ExitCode.CANCELLED: "The question was closed without an answer: cancelled, withdrawn, or gone "
    "with its turn.",
    ExitCode.TIMED_OUT: "Timed out: the question's deadline, or `--wait`.",
    ExitCode.UNREACHABLE: "Can't reach a server at the address.",
    ExitCode.NOT_ALLOWED: "A token is required, or the given one is not valid or not sufficient.",
    ExitCode.NOT_FOUND: "There is no such session, question or token.",
    ExitCode.UNANSWERED: "A question was left open: a fixture has no answer for it, or more than "
    "one, or the person who was answering left.",
    ExitCode.NO: "The only question of an `ask` was a yes/no question, and the answer is not yes.",
    ExitCode.INTERRUPTED: "Stopped with Ctrl-C.",
}


class CliError(SessionServerError):
    """A command failed; `advice` is the next thing to try."""

    code = "failed"

    def __init__(
        self, message: str, exit_code: ExitCode = ExitCode.FAILED, advice: str = ""
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.advice = advice


class UsageError(CliError):
    """The command line, a question or a file is not valid."""

    code = "usage"

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message, ExitCode.USAGE, advice)


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
    """The one mapping of errors to the command line; `url` is where the command went."""
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
