"""What goes wrong, in words that say what to do next, and with an exit code."""

import httpx
import msgspec

from session_server.cli.exit_codes import ExitCode
from session_server.client import (
    ClientError,
    CommandFailed,
    Disconnected,
    GaveUp,
    InvalidAnswer,
    NotConnected,
    Rejected,
    SessionGone,
    SessionNotFound,
)
from session_server.host.errors import CloseCode
from session_server.schemas.errors import ErrorCode

START_ONE = "Start one with `session-server serve`, or name another with --url."
GIVE_TOKEN = "Give a token with --token or SESSION_SERVER_TOKEN."  # noqa: S105
OTHER_ROLE = "Ask the owner of the host for a token with a wider role."
LIST_THEM = "`session-server sessions` lists all sessions."


class Trouble(Exception):  # noqa: N818 - what a person reads is no error of the program's
    """`advice` is the next thing to try."""

    def __init__(self, words: str, code: ExitCode = ExitCode.FAILED, advice: str = "") -> None:
        super().__init__(words)
        self.code = code
        self.advice = advice


class UsageTrouble(Trouble):
    def __init__(self, words: str, advice: str = "") -> None:
        super().__init__(words, ExitCode.USAGE, advice)


def of_client(error: ClientError) -> Trouble:
    match error:
        case GaveUp(status=401 | 403) | GaveUp(close_code=CloseCode.NOT_ALLOWED):
            return Trouble(str(error), ExitCode.NOT_ALLOWED, GIVE_TOKEN)
        case GaveUp(close_code=int()):
            return Trouble(str(error))
        case NotConnected() | GaveUp() | Disconnected():
            return Trouble(str(error), ExitCode.UNREACHABLE, START_ONE)
        case SessionNotFound() | SessionGone():
            return Trouble(str(error), ExitCode.NOT_FOUND, LIST_THEM)
        case CommandFailed(code=ErrorCode.PERMISSION_DENIED):
            return Trouble(str(error), ExitCode.NOT_ALLOWED, OTHER_ROLE)
        case InvalidAnswer():
            return UsageTrouble(str(error))
        case Rejected():
            return Trouble(error.reason)
        case _:
            return Trouble(str(error))


class Problem(msgspec.Struct):
    """RFC 9457, as far as a person reads it."""

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


def of_response(response: httpx.Response) -> Trouble:
    """From a response that says no; its body must have been read."""
    status = response.status_code
    code = _OF_STATUS.get(status, ExitCode.FAILED)
    return Trouble(words_of(response), code, _ADVICE.get(status, ""))


PLAIN_CHARS = 500


def words_of(response: httpx.Response) -> str:
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except (msgspec.DecodeError, msgspec.ValidationError, httpx.ResponseNotRead):
        problem = Problem()
    words = problem.detail or problem.title
    if not words and response.headers.get("content-type", "").startswith("text/plain"):
        words = response.text[:PLAIN_CHARS]
    return words or f"The host answered {response.status_code} {response.reason_phrase}."


def of_transport(error: httpx.TransportError, url: str) -> Trouble:
    if isinstance(error, httpx.TimeoutException):
        return Trouble(f"{url} did not answer in time.", ExitCode.UNREACHABLE, START_ONE)
    return Trouble(f"Can't reach a server at {url}: {error}.", ExitCode.UNREACHABLE, START_ONE)
