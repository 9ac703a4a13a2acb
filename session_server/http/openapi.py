"""The OpenAPI document, with the Structs as schemas, and the page at `/docs` that shows it."""

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import fastapi_offline
import msgspec
from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_server.http.bodies import JSON
from session_server.http.page import ASKED_AGAIN, HEADERS, PageFile
from session_server.http.problems import MEDIA_TYPE
from session_server.schemas.documents import (
    HTTP_UNIONS,
    UNIONS,
    Schema,
    http_definitions,
    relocated,
)
from session_server.schemas.http import Problem
from session_server.schemas.wire import Wire

SCHEMAS = "#/components/schemas/"

DESCRIPTION = (
    "Ask people, watch what they write, and wait for their answers. Every client of a session,"
    " over HTTP or AHP, sees the same. Examples are of the session that `serve --demo` has."
)

ALWAYS = (401, 403, 422, 429, 503)
"""Problems that any route of `/v1` may answer with."""

OF_BODIES = (400, 413, 415)

_REASONS = {
    400: "The body is not JSON.",
    401: "A credential is needed, or this one is not valid.",
    403: "The caller's role, session or origin does not allow this.",
    404: "There is no such session, request, question or turn.",
    409: "The session or the request is not in a state that allows this.",
    413: "The body is too big.",
    415: "The body is not declared as JSON.",
    422: "A value does not fit, or an Idempotency-Key was used for something else.",
    429: "Too much at once; see Retry-After.",
    503: "It could not be saved, or the host is about to stop; see Retry-After.",
}

_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "query": {"type": "apiKey", "in": "query", "name": "tkn"},
}


def described(
    status: int,
    shape: Any,
    *problems: int,
    body: Any = None,
    example: Any = None,
    media_type: str = JSON,
    links: Schema | None = None,
) -> dict[str, Any]:
    """What a route declares to FastAPI: its response, its problems, and its body if any.

    `example` is a body; `links` say which operations can be called with what the answer holds.
    """
    known = {*problems, *ALWAYS, *(() if body is None else OF_BODIES)}
    answer: Schema = {"description": HTTPStatus(status).phrase}
    if shape is not None:
        answer["content"] = {media_type: {"schema": _reference(shape)}}
    if links is not None:
        answer["links"] = links
    route: dict[str, Any] = {
        "status_code": status,
        "response_class": Response,
        "responses": {status: answer, **{code: _problem(code) for code in sorted(known)}},
    }
    if body is not None:
        content: Schema = {"schema": _reference(body)}
        if example is not None:
            content["example"] = msgspec.to_builtins(example)
        route["openapi_extra"] = {
            "requestBody": {"content": {JSON: content}, "required": not _may_be_empty(body)}
        }
    return route


def link(operation: str, **parameters: str) -> Schema:
    return {"operationId": operation, "parameters": parameters}


def _may_be_empty(body: Any) -> bool:
    try:
        msgspec.convert({}, body)
    except msgspec.ValidationError:
        return False
    return True


def _problem(status: int) -> Schema:
    schema = _reference(Problem)
    return {"description": _REASONS[status], "content": {MEDIA_TYPE: {"schema": schema}}}


def _reference(shape: Any) -> Schema:
    """A Struct or a named union by its name; anything else is a schema already."""
    if isinstance(shape, dict):
        return shape
    for name, (union, _) in (UNIONS | HTTP_UNIONS).items():
        if union == shape:
            return {"$ref": f"{SCHEMAS}{name}"}
    return {"$ref": f"{SCHEMAS}{shape.__name__}"}


def include_openapi(app: FastAPI) -> None:
    """Made and encoded at the first request for it, when all routes are there."""
    app.openapi = lru_cache(maxsize=1)(partial(document, app))  # type: ignore[method-assign]

    @lru_cache(maxsize=1)
    def encoded(root_path: str) -> PageFile:
        """Where the application is mounted, its routes begin with that path."""
        servers: Schema = {"servers": [{"url": root_path}]} if root_path else {}
        return PageFile.of(JSON, msgspec.json.encode(app.openapi() | servers))

    async def served(request: Request) -> Response:
        root_path = request.scope.get("root_path", "").rstrip("/")
        return encoded(root_path).response(request, ASKED_AGAIN)

    app.router.routes.append(Route("/openapi.json", served, include_in_schema=False))


def document(app: FastAPI) -> Schema:
    made = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes
    )
    of_parameters: Schema = made.get("components", {}).get("schemas", {})
    named = _names(made["paths"]) - {*UNIONS, *HTTP_UNIONS, *of_parameters}
    # HTTP shows states as AHP 0.3.0 does; later versions have shapes of the same names.
    shown = (struct for struct in _structs(Wire) if ".ahp1." not in struct.__module__)
    ours = relocated(http_definitions([struct for struct in shown if struct.__name__ in named]))
    missing = named - set(ours)
    assert not missing, f"routes name shapes that are ambiguous or not there: {missing}"
    schemas = _reachable(made["paths"], of_parameters | ours)
    made["components"] = {"schemas": schemas, "securitySchemes": _SECURITY}
    # A host on loopback may ask for no credential.
    made["security"] = [{}, {"bearer": []}, {"query": []}]
    return made


def _structs(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for struct in base.__subclasses__():
        yield struct
        yield from _structs(struct)


def _reachable(start: Any, schemas: dict[str, Schema]) -> dict[str, Schema]:
    reached: dict[str, Schema] = {}
    waiting = _names(start)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached[name] = schemas[name]
            waiting |= _names(schemas[name])
    return dict(sorted(reached.items()))


def _names(value: Any) -> set[str]:
    """The schemas that it refers to."""
    names: set[str] = set()
    if isinstance(value, dict):
        if isinstance(target := value.get("$ref"), str):
            names.add(target.removeprefix(SCHEMAS))
        value = list(value.values())
    return names.union(*map(_names, value)) if isinstance(value, list) else names


ASSETS = Path(fastapi_offline.__file__).parent / "static"
TYPES = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "favicon.png": "image/png",
}
PARAMETERS = {"tryItOutEnabled": True, "persistAuthorization": False, "validatorUrl": None}

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def include_docs(app: FastAPI) -> None:
    """Its own addresses are relative, so that it works wherever the application is mounted."""
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title=app.title,
        swagger_js_url="docs/assets/swagger-ui-bundle.js",
        swagger_css_url="docs/assets/swagger-ui.css",
        swagger_favicon_url="docs/assets/favicon.png",
        swagger_ui_parameters=PARAMETERS,
    )
    html = bytes(page.body)
    headers = {**HEADERS, "Content-Security-Policy": policy_of(html), "Cache-Control": ASKED_AGAIN}

    async def docs(_: Request) -> Response:
        return Response(html, headers=headers, media_type="text/html")

    app.router.routes += [
        Route("/docs/assets/{name}", asset, include_in_schema=False),
        Route("/docs", docs, include_in_schema=False),
    ]


async def asset(request: Request) -> Response:
    name: str = request.path_params["name"]
    if name not in TYPES:
        raise HTTPException(404)
    return _kept(name).response(request, ASKED_AGAIN)


@lru_cache
def _kept(name: str) -> PageFile:
    """Kept in memory once, so that slow readers do not need a copy each."""
    return PageFile.of(TYPES[name], (ASSETS / name).read_bytes())


def policy_of(html: bytes) -> str:
    hashes = [base64.b64encode(hashlib.sha256(text).digest()) for text in _INLINE.findall(html)]
    scripts = " ".join(f"'sha256-{each.decode()}'" for each in hashes)
    directives = (
        "default-src 'none'",
        f"script-src 'self' {scripts}",
        "style-src 'self' 'unsafe-inline'",  # Swagger UI sets styles of its own
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
    return "; ".join(directives)
