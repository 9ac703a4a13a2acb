"""The OpenAPI document: FastAPI's own, with the Structs as its schemas.

Routes name their shapes with `described`; the definitions come from the same place as those of the
AHP schema, so that no shape is described twice.
"""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from session_server.schemas.documents import definitions_of
from session_server.schemas.wire import Wire
from session_server.web.bodies import JSON
from session_server.web.problems import MEDIA_TYPE

SCHEMAS = "#/components/schemas/"

ALWAYS = (401, 403, 429, 503)
"""Problems that any route of `/v1` may answer with."""

OF_BODIES = (400, 413, 415, 422)

_REASONS = {
    400: "The body is not JSON.",
    401: "A credential is needed, or this one is not valid.",
    403: "The caller's role, session or origin does not allow this.",
    404: "There is no such session, request, question or turn.",
    409: "The session or the request is in another state than this needs.",
    413: "The body is too big.",
    415: "The body is not declared as JSON.",
    422: "A value does not fit, or an Idempotency-Key was used for something else.",
    429: "Too much at once; see Retry-After.",
    503: "It could not be saved, or the host is stopping; see Retry-After.",
}


def described(
    status: int,
    shape: Any,
    *problems: int,
    body: Any = None,
    media_type: str = JSON,
    words: str = "",
) -> dict[str, Any]:
    """What FastAPI needs to know of a route: its answer, its problems, and its body if any."""
    known = {*problems, *ALWAYS, 422, *(() if body is None else OF_BODIES)}
    answer: dict[str, Any] = {"description": words or HTTPStatus(status).phrase}
    if shape is not None:
        answer["content"] = {media_type: {"schema": reference(shape)}}
    described: dict[str, Any] = {
        "status_code": status,
        "response_model": None,
        "response_class": _Undescribed,
        "responses": {status: answer, **{code: _problem(code) for code in sorted(known)}},
    }
    if body is not None:
        schema = {"content": {JSON: {"schema": reference(body)}}, "required": _is_needed(body)}
        described["openapi_extra"] = {"requestBody": schema}
    return described
