"""Names in addresses: sessions, requests, questions.

`{id}` is the path of an `ahp-session:/` URI, or a whole URI, percent-encoded. ASGI servers decode a
path before it is routed, and a slash inside a name would part it; so the path is taken as it was
sent, decoded but for slashes and percent signs, and those are decoded in each name.
"""

import re
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Depends, Path
from starlette.types import ASGIApp, Receive, Scope, Send

from session_server.reducers.session_names import session_uri
from session_server.schemas.wire import Uri

_KEPT = re.compile(rb"(%2[Ff5])")


class SentPaths:
    """Middleware: slashes that were percent-encoded do not part a path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path")
        if scope["type"] == "http" and raw is not None and _KEPT.search(raw):
            scope = {**scope, "path": partly_decoded(raw)}
        await self._app(scope, receive, send)


def partly_decoded(raw: bytes) -> str:
    parts = _KEPT.split(raw)
    return "".join(
        part.decode() if index % 2 else unquote(part.decode("latin-1"))
        for index, part in enumerate(parts)
    )


def _named(name: str, words: str, example: str) -> Any:
    """A name in an address; the examples are of the demo session."""
    return Path(alias=name, description=words, openapi_examples={example: {"value": example}})


SESSION_WORDS = "The path of an `ahp-session:/` URI, or a whole URI, percent-encoded."


async def _session(name: Annotated[str, _named("id", SESSION_WORDS, "demo")]) -> Uri:
    return session_uri(unquote(name))


async def _request(
    name: Annotated[str, _named("rid", "The id of an input request.", "first:trip")],
) -> str:
    return unquote(name)


async def _question(
    name: Annotated[str, _named("qid", "The id of a question in it.", "name")],
) -> str:
    return unquote(name)


SessionUri = Annotated[Uri, Depends(_session)]
RequestId = Annotated[str, Depends(_request)]
QuestionId = Annotated[str, Depends(_question)]
