"""The page at `/`: the files of `web_demo`, under a policy that allows nothing but themselves.

There is no build step: files are served as they are, compressed once and kept in memory. All but
the front page and the icons are under `/page/VERSION/`, where VERSION names their content, so that
a browser keeps them for good and a new version is never mixed with an old one. The front page is
written with that version and with a preload for every module, so that a browser asks for all of
them at once.
"""

import gzip
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).parent.parent / "web_demo"
FRONT = "index.html"
START = "main.js"
VERSIONED = "page"
VERSIONED_TYPES = (".js", ".css")

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
    # The address may carry a token.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
ASKED_AGAIN = "no-cache"
LOOKED_EVERY_SECONDS = 1.0
KEPT = "public, max-age=31536000, immutable"

_LINK = re.compile(r'(href|src)="([\w/-]+\.(?:js|css))"')
_START = re.compile(r" *<script type=\"module\"")


class PageFile(NamedTuple):
    kind: str
    text: bytes
    packed: bytes
    tag: str

    @classmethod
    def of(cls, kind: str, text: bytes) -> "PageFile":
        packed = gzip.compress(text, mtime=0)
        tag = f'"{hashlib.sha256(text).hexdigest()[:32]}"'
        return cls(kind, text, packed, tag)

    def response(self, request: Request, cache: str) -> Response:
        headers = {**HEADERS, "Cache-Control": cache, "ETag": self.tag, "Vary": "Accept-Encoding"}
        if request.headers.get("If-None-Match") == self.tag:
            return Response(status_code=304, headers=headers)
        body = self.text
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            body = self.packed
            headers["Content-Encoding"] = "gzip"
        return Response(body, headers={**headers, "Content-Type": self.kind})


class Page:
    """The files of the page, read again when they change."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: tuple[tuple[str, int, int], ...] = ()
        self._files: dict[str, PageFile] = {}
        self._version = ""
        self._looked_at = monotonic()
        self._refresh()

    def front(self) -> PageFile:
        """Each visit starts here, so changes are looked for here, at most once a second."""
        now = monotonic()
        if now >= self._looked_at + LOOKED_EVERY_SECONDS:
            self._looked_at = now
            self._refresh()
        return self._files[FRONT]

    def file(self, name: str) -> PageFile:
        if name not in self._files:
            raise HTTPException(404)
        return self._files[name]

    def versioned(self, version: str, name: str) -> tuple[PageFile, str]:
        """For another version the current file is sent, and must not be cached as that."""
        if Path(name).suffix not in VERSIONED_TYPES:
            raise HTTPException(404)
        found = self.file(name)
        return found, KEPT if version == self._version else ASKED_AGAIN

    def _refresh(self) -> None:
        seen = tuple(self._stamps())
        if seen == self._seen:
            return
        texts = {name: (self._folder / name).read_bytes() for name, _, _ in seen}
        digest = hashlib.sha256()
        for name, text in texts.items():
            digest.update(f"{name}\0{len(text)}\0".encode() + text)
        self._version = digest.hexdigest()[:16]
        place = f"{VERSIONED}/{self._version}/"
        modules = (name for name in texts if name.endswith(".js") and name != START)
        preloads = "".join(f'    <link rel="modulepreload" href="{name}">\n' for name in modules)
        html = _START.sub(lambda found: preloads + found[0], texts[FRONT].decode(), count=1)
        texts[FRONT] = _LINK.sub(lambda found: f'{found[1]}="{place}{found[2]}"', html).encode()
        self._files = {
            name: PageFile.of(TYPES[Path(name).suffix], text) for name, text in texts.items()
        }
        self._seen = seen

    def _stamps(self) -> Iterator[tuple[str, int, int]]:
        for path in sorted(self._folder.rglob("*")):
            if path.suffix in TYPES:
                stat = path.stat()
                yield path.relative_to(self._folder).as_posix(), stat.st_mtime_ns, stat.st_size


def include_page(app: FastAPI, folder: Path = FOLDER) -> None:
    page = Page(folder)

    async def versioned(request: Request) -> Response:
        file, cache = page.versioned(request.path_params["version"], request.path_params["name"])
        return file.response(request, cache)

    async def front(request: Request) -> Response:
        return page.front().response(request, ASKED_AGAIN)

    async def other(request: Request) -> Response:
        return page.file(request.url.path.rpartition("/")[2]).response(request, ASKED_AGAIN)

    others = (p.name for p in folder.iterdir() if p.suffix in (".svg", ".json"))
    app.router.routes.extend(
        [
            Route("/", front, include_in_schema=False),
            *(Route(f"/{name}", other, include_in_schema=False) for name in sorted(others)),
            Route(f"/{VERSIONED}/{{version}}/{{name:path}}", versioned, include_in_schema=False),
        ]
    )
