"""All of HTTP under `/v1`, put into an application: routes, problems, the OpenAPI document."""

from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from session_server.web import (
    answers,
    calls,
    cassettes,
    events,
    me,
    requests,
    sessions,
    shares,
    tokens,
    turns,
)
from session_server.web.docs import include_docs
from session_server.web.metrics import include_metrics
from session_server.web.openapi import include_openapi
from session_server.web.paths import SentPaths
from session_server.web.problems import answer_to, include_problems

ROUTERS = (
    sessions.router,
    requests.router,
    answers.router,
    turns.router,
    calls.router,
    events.router,
    shares.router,
    tokens.router,
    me.router,
    cassettes.router,
)


def include_api(app: FastAPI) -> None:
    for router in ROUTERS:
        app.include_router(router)
    app.router.redirect_slashes = False
    app.add_middleware(SentPaths)
    include_problems(app)
    app.add_exception_handler(405, _other_method)
    include_openapi(app)
    include_docs(app)
    include_metrics(app)


async def _other_method(request: Request, error: Exception) -> Response:
    """Each method has a route of its own, and the router tells only the first one's."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    methods = {method for router in ROUTERS for method in _methods(router.routes, request)}
    if methods:
        headers["Allow"] = ", ".join(sorted(methods))
    return answer_to(HTTPException(405, headers=headers))


def _methods(routes: list[Any], request: Request) -> set[str]:
    return {
        method
        for route in routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
