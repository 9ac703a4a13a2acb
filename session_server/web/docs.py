"""The page at `/docs`: Swagger UI over the OpenAPI document, with nothing from other servers."""

from pathlib import Path

import fastapi_offline
from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

ASSETS = Path(fastapi_offline.__file__).parent / "static"


def include_docs(app: FastAPI) -> None:
    """Its own addresses are relative, so that it works wherever the application is mounted."""

    async def docs(_: Request) -> Response:
        return get_swagger_ui_html(
            openapi_url="openapi.json",
            title=app.title,
            swagger_js_url="docs/assets/swagger-ui-bundle.js",
            swagger_css_url="docs/assets/swagger-ui.css",
            swagger_favicon_url="docs/assets/favicon.png",
            swagger_ui_parameters={"tryItOutEnabled": True, "persistAuthorization": False},
        )

    app.router.routes += [
        Mount("/docs/assets", StaticFiles(directory=ASSETS)),
        Route("/docs", docs, include_in_schema=False),
    ]
