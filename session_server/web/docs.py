"""The page at `/docs`: Swagger UI over the OpenAPI document, with nothing from other servers.

Its policy allows its own files and the one script that starts it, known by its hash.
"""

import base64
import hashlib
import re
from functools import lru_cache
from pathlib import Path

import fastapi_offline
from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_server.web.page import ASKED_AGAIN, HEADERS, PageFile

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
    """In memory, once for all: what many slow readers are sent is then not copied for each."""
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
