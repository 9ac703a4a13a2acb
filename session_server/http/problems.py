"""Errors on their way out: each becomes one problem (RFC 9457) with a stable code.

ProblemError            raised where HTTP itself says no: headers, keys, media types
Everything else is raised by the host, the rules or the decoders, which know nothing of HTTP.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from session_server.host.acting import InDoubtError, NotSavedError, RefusedError
from session_server.host.connection.rate_limit import TooFastError
from session_server.host.errors import CommandError, UnreadableSessionError
from session_server.identity.errors import TurnedAwayError
from session_server.log.errors import LogError
from session_server.mcp_client.errors import CallsError, UnknownCallError
from session_server.schemas.codec import encode
from session_server.schemas.errors import (
    DecodingError,
    ErrorCode,
    MalformedError,
    RefusalCode,
    UnknownKindError,
)
from session_server.schemas.http import Problem

TYPE_PREFIX = "urn:session-server:problem:"
MEDIA_TYPE = "application/problem+json"
CLIENT_LEFT = 499
RETRY_AFTER = {"Retry-After": "1"}

COMMAND_STATUS: dict[ErrorCode, int] = {
    ErrorCode.SESSION_NOT_FOUND: 404,
    ErrorCode.CONTENT_NOT_FOUND: 404,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.SESSION_EXISTS: 409,
    ErrorCode.ALREADY_EXISTS: 409,
    ErrorCode.CONFLICT: 409,
    ErrorCode.TURN_IN_PROGRESS: 409,
    ErrorCode.AUTH_REQUIRED: 401,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.INTERNAL_ERROR: 503,
}
"""What is not listed is the caller's mistake: 422."""

REFUSAL_STATUS: dict[RefusalCode, int] = {
    RefusalCode.ROLE: 403,
    RefusalCode.OTHER_SESSION: 403,
    RefusalCode.NOT_YOURS: 403,
    RefusalCode.NO_REQUEST: 404,
    RefusalCode.NO_QUESTION: 404,
    RefusalCode.NO_TURN: 404,
    RefusalCode.NO_MESSAGE: 404,
    RefusalCode.NO_CUSTOMIZATION: 404,
    RefusalCode.ALREADY_COMPLETED: 409,
    RefusalCode.REVIEW_CHANGED: 409,
    RefusalCode.TURN_ACTIVE: 409,
    RefusalCode.PASSIVE_SESSION: 409,
    RefusalCode.WRONG_STATE: 409,
    RefusalCode.SUPERSEDED: 409,
}
"""What is not listed is a value that the question or a limit does not take: 422."""

_SPOKEN = {
    404: ("noRoute", "There is nothing at this address; /docs lists what there is."),
    405: ("methodNotAllowed", "This address does not take that method; see the Allow header."),
}


class ProblemError(Exception):
    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = problem(status, code, detail, path=path)
        self.headers = dict(headers or {})


def problem(status: int, code: str, detail: str, **about: Any) -> Problem:
    title = HTTPStatus(status).phrase
    return Problem(
        type=f"{TYPE_PREFIX}{code}", title=title, status=status, code=code, detail=detail, **about
    )


def camel(name: str) -> str:
    first, *rest = name.lower().split("_")
    return first + "".join(word.capitalize() for word in rest)


# One function per kind of error


def of_problem(error: ProblemError) -> Response:
    return _response(error.problem, error.headers)


def of_command(error: CommandError) -> Response:
    code = ErrorCode(error.error.code)
    status = COMMAND_STATUS.get(code, 422)
    headers = RETRY_AFTER if status == 503 else {}
    return _response(problem(status, camel(code.name), error.error.message), headers)


def of_unreadable(error: UnreadableSessionError) -> Response:
    return _response(problem(500, "sessionUnreadable", error.error.message))


def of_refusal(error: RefusedError) -> Response:
    refusal = error.refusal
    return _response(
        problem(
            REFUSAL_STATUS.get(refusal.code, 422),
            refusal.code.value,
            refusal.message,
            request_id=refusal.request_id,
            question_id=refusal.question_id,
        )
    )


def of_turned_away(error: TurnedAwayError) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    return _response(problem(error.status, error.code, str(error)), headers)


def of_haste(error: TooFastError) -> Response:
    headers = {"Retry-After": str(error.retry_after)}
    return _response(problem(429, error.code, str(error)), headers)


def of_calls(error: CallsError) -> Response:
    status = 404 if isinstance(error, UnknownCallError) else 422
    return _response(problem(status, error.code, str(error)))


def of_unsaved(error: NotSavedError) -> Response:
    words = f"This could not be saved, and nothing has changed; try again. {error}"
    return _response(problem(503, "notSaved", words), RETRY_AFTER)


def of_doubt(error: InDoubtError) -> Response:
    return _response(problem(503, "inDoubt", f"{error} Look before you do it again."), RETRY_AFTER)


def of_log(error: LogError) -> Response:
    words = f"The log cannot be read now; try again later. {error}"
    return _response(problem(503, "logUnavailable", words), RETRY_AFTER)


def of_decoding(error: DecodingError) -> Response:
    if isinstance(error, MalformedError):
        return _response(problem(400, "malformed", f"The body is not JSON: {error.reason}."))
    code = "unknownKind" if isinstance(error, UnknownKindError) else "mismatch"
    words = f"The body does not fit: {error.reason}, at {error.path}."
    return _response(problem(422, code, words, path=error.path))


def of_validation(error: RequestValidationError) -> Response:
    """A header, a query or a path; bodies have decoders of their own."""
    first = error.errors()[0]
    where = " ".join(str(part) for part in first["loc"])
    words = f"{where}: {first['msg']}."
    return _response(problem(422, "invalidParameter", words))


def of_http(error: HTTPException) -> Response:
    code, words = _SPOKEN.get(error.status_code, (_code_of(error.status_code), str(error.detail)))
    return _response(problem(error.status_code, code, words), error.headers)


def _code_of(status: int) -> str:
    return camel(HTTPStatus(status).name)


def of_disconnect(_: ClientDisconnect) -> Response:
    """Nobody reads it, and nothing went wrong here."""
    return Response(status_code=CLIENT_LEFT)


def of_anything(_: Exception) -> Response:
    """Bare: what went wrong is in the server's log, where the server writes it whole."""
    return _response(problem(500, "internal", "The host failed; its log says how."))


def _response(body: Problem, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(body), body.status, headers, media_type=MEDIA_TYPE)


HANDLERS: dict[type[Exception], Any] = {
    ProblemError: of_problem,
    UnreadableSessionError: of_unreadable,
    CommandError: of_command,
    RefusedError: of_refusal,
    TurnedAwayError: of_turned_away,
    TooFastError: of_haste,
    NotSavedError: of_unsaved,
    InDoubtError: of_doubt,
    LogError: of_log,
    CallsError: of_calls,
    DecodingError: of_decoding,
    RequestValidationError: of_validation,
    HTTPException: of_http,
    ClientDisconnect: of_disconnect,
    Exception: of_anything,
}


def answer_to(error: Exception) -> Response:
    """For where no handler is at work: in front of the application, and at a WebSocket upgrade."""
    kind = next(kind for kind in type(error).__mro__ if kind in HANDLERS)
    response: Response = HANDLERS[kind](error)
    return response


def include_problems(app: FastAPI) -> None:
    for kind, answer in HANDLERS.items():
        app.add_exception_handler(kind, _handler(answer))


def _handler(answer: Any) -> Any:
    # Not async functions would each be given a thread.
    async def respond(_: Request, error: Exception) -> Response:
        response: Response = answer(error)
        return response

    return respond
