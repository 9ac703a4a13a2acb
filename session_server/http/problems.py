"""Errors as HTTP: each becomes one problem (RFC 9457) with a stable code.

`ProblemError` is raised for errors of HTTP itself: headers, keys, media types. Everything else is
raised by the host, the rules or the decoders, which know nothing of HTTP.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from session_server.http.dependencies import OUTDATED
from session_server.log.protocol import LogError
from session_server.schemas.codec import encode
from session_server.schemas.errors import (
    AccessError,
    AmbiguousRequestError,
    BadCredentialError,
    CommandError,
    DecodingError,
    ErrorCode,
    InvalidCallError,
    MalformedError,
    NoCredentialError,
    NotSavedError,
    RateLimitError,
    RefusalCode,
    RefusedError,
    SessionServerError,
    UnknownCallError,
    UnreadableSessionError,
    camel,
)
from session_server.schemas.http import Problem

TYPE_PREFIX = "urn:session-server:problem:"
MEDIA_TYPE = "application/problem+json"
CLIENT_LEFT = 499
RETRY_AFTER = {"Retry-After": "1"}

MAY_BE_ELSEWHERE = (
    "This node cannot currently read what other nodes have written, so it cannot tell whether this"
    " exists. Try again."
)

STATUS: dict[type[SessionServerError], int] = {
    DecodingError: 422,
    MalformedError: 400,
    CommandError: 422,
    UnreadableSessionError: 500,
    RefusedError: 422,
    NotSavedError: 503,
    LogError: 503,
    AccessError: 403,
    NoCredentialError: 401,
    BadCredentialError: 401,
    AmbiguousRequestError: 400,
    RateLimitError: 429,
    InvalidCallError: 422,
    UnknownCallError: 404,
}
"""By the nearest class. Commands and refusals also by their code, below. Not here: a bare 500."""

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
"""All others are mistakes of the caller: 422."""

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
"""All others are values that the question or a limit does not allow: 422."""

HTTP_PROBLEMS = {
    404: ("noRoute", "There is nothing at this address; /docs lists what there is."),
    405: ("methodNotAllowed", "This address does not take that method; see the Allow header."),
}


class ProblemError(SessionServerError):
    """A request that HTTP itself does not allow: its headers, key or media type."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.problem = problem(status, code, detail, path=path)
        self.headers = dict(headers or {})


def problem(status: int, code: str, detail: str, **about: Any) -> Problem:
    title = HTTPStatus(status).phrase
    return Problem(
        type=f"{TYPE_PREFIX}{code}", title=title, status=status, code=code, detail=detail, **about
    )


def status_of(error: SessionServerError) -> int:
    if isinstance(error, RefusedError):
        return REFUSAL_STATUS.get(error.refusal.code, STATUS[RefusedError])
    if type(error) is CommandError:
        return COMMAND_STATUS.get(error.rpc_code, STATUS[CommandError])
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def respond_to(error: Exception) -> Response:
    """The one mapping of errors to HTTP."""
    match error:
        case ProblemError():
            return _response(error.problem, error.headers)
        case SessionServerError() if isinstance(error, tuple(STATUS)):
            return _of_tree(error)
        case RequestValidationError():
            # A header, a query or a path; bodies have decoders of their own.
            first = error.errors()[0]
            where = " ".join(str(part) for part in first["loc"])
            return _response(problem(422, "invalidParameter", f"{where}: {first['msg']}."))
        case HTTPException(status_code=status):
            otherwise = camel(HTTPStatus(status).name), str(error.detail)
            return _response(problem(status, *HTTP_PROBLEMS.get(status, otherwise)), error.headers)
        case ClientDisconnect():
            return Response(status_code=CLIENT_LEFT)
        case _:
            return _response(problem(500, "internal", "The host failed; the reason is in its log."))


def _of_tree(error: SessionServerError) -> Response:
    status = status_of(error)
    headers = RETRY_AFTER if status == 503 else {}
    code, detail = error.code, str(error)
    about: dict[str, str | None] = {}
    match error:
        case MalformedError():
            detail = f"The body is not JSON: {error.reason}."
        case DecodingError():
            detail = f"The body does not fit: {error.reason}, at {error.path}."
            about = {"path": error.path}
        case RefusedError(refusal=refusal):
            about = {"request_id": refusal.request_id, "question_id": refusal.question_id}
        case LogError():
            code = "logUnavailable"
            detail = f"The log cannot be read now; try again later. {error}"
        case AccessError() if status == 401:
            headers = {"WWW-Authenticate": "Bearer"}
        case RateLimitError():
            headers = {"Retry-After": str(error.retry_after)}
        case _:
            pass
    return _response(problem(status, code, detail, **about), headers)


def _response(body: Problem, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(body), body.status, headers, media_type=MEDIA_TYPE)


def include_problems(app: FastAPI) -> None:
    # An error of the tree without a status is left to the last handler, so that it is logged.
    of_http = (ProblemError, RequestValidationError, HTTPException, ClientDisconnect, Exception)
    for kind in (*STATUS, *of_http):
        app.add_exception_handler(kind, _respond)


async def _respond(request: Request, error: Exception) -> Response:
    """Async, because FastAPI runs other handlers in threads."""
    response = respond_to(error)
    if response.status_code == 404 and request.scope.get(OUTDATED):
        return _response(problem(503, "logUnavailable", MAY_BE_ELSEWHERE), RETRY_AFTER)
    return response
