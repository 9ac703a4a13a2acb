"""The page at `/`: the files of `web_demo`, under a policy that allows nothing but themselves.

Its folders and files stand beside the API's paths, one route each: a catch-all would take the
API's wrong methods and answer them wrongly.
"""

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parent.parent / "web_demo"
FRONT = "index.html"

# A machine's own table of types may be wrong about modules, and a browser refuses a wrong one.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/manifest+json",
}

DIRECTIVES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)

HEADERS = {
    "Content-Security-Policy": "; ".join(DIRECTIVES),
    "Cache-Control": "no-cache",
    # The address may carry a token.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class PageFiles(StaticFiles):
    """Static files with their policy. Asked for again by their `ETag`, so that no page is stale."""

    async def get_response(self, path: str, scope: Any) -> Response:
        kind = TYPES.get(Path(path).suffix)
        if kind is None:
            raise HTTPException(404)
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        if "content-type" in response.headers:
            response.headers["Content-Type"] = kind
        return response


def include_page(app: FastAPI, folder: Path = FOLDER) -> None:
    app.router.routes.extend(_routes(folder))


def _routes(folder: Path) -> list[BaseRoute]:
    files = PageFiles(directory=folder)
    routes: list[BaseRoute] = [_route("/", FRONT, files)]
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            routes.append(Mount(f"/{entry.name}", PageFiles(directory=entry)))
        elif entry.suffix in TYPES and entry.name != FRONT:
            routes.append(_route(f"/{entry.name}", entry.name, files))
    return routes


def _route(where: str, name: str, files: PageFiles) -> Route:
    async def page_file(request: Request) -> Response:
        return await files.get_response(name, request.scope)

    return Route(where, page_file, include_in_schema=False)
