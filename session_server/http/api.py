"""The HTTP API under `/v1`: routes, problems and the OpenAPI document in one application."""

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from session_server.http import (
    call_routes,
    event_routes,
    request_routes,
    session_routes,
    token_routes,
)
from session_server.http.bodies import SentPaths, json_response
from session_server.http.dependencies import Caller
from session_server.http.openapi import described, include_docs, include_openapi
from session_server.http.problems import include_problems, respond_to
from session_server.http.prometheus import include_metrics
from session_server.schemas.principals import Principal

router = APIRouter(prefix="/v1/me", tags=["access"])


@router.get("", **described(200, Principal))
async def read_me(who: Caller) -> Response:
    """The principal of your credential: its role, its sessions, and its expiry."""
    return json_response(who)


ROUTERS = (
    session_routes.router,
    request_routes.router,
    request_routes.answer_router,
    session_routes.turn_router,
    call_routes.router,
    event_routes.router,
    token_routes.share_router,
    token_routes.router,
    router,
    session_routes.recording_router,
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
    """Each method has its own route; the router alone would list only the first one's."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    methods = {
        method
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    if methods:
        headers["Allow"] = ", ".join(sorted(methods))
    return respond_to(HTTPException(405, headers=headers))
