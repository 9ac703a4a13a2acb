"""A host's HTTP, for what AHP has no command for: where it is, and requests that outlast breaks."""

import asyncio
from ssl import SSLContext
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import httpx
import msgspec

from session_server.client.errors import Refused
from session_server.schemas.limits import WAIT_SECONDS

ANSWER_SECONDS = 15.0
PAUSE_SECONDS = 1.0
TOO_BUSY = (429, 503)
JSON = {"Content-Type": "application/json"}


class HttpDoor(NamedTuple):
    """The address, and how to be let in."""

    url: str
    headers: dict[str, str]
    ssl: SSLContext | None = None

    @classmethod
    def beside(cls, socket_url: str, headers: dict[str, str], ssl: SSLContext | None) -> "HttpDoor":
        """Of the host whose AHP is at this address."""
        parts = urlsplit(socket_url)
        scheme = {"ws": "http", "wss": "https"}[parts.scheme]
        path = parts.path.removesuffix("/ahp")
        return cls(urlunsplit((scheme, parts.netloc, path, "", "")), headers, ssl)

    def http(self) -> httpx.AsyncClient:
        verify: SSLContext | bool = True if self.ssl is None else self.ssl
        return httpx.AsyncClient(
            base_url=self.url,
            headers=self.headers,
            verify=verify,
            timeout=WAIT_SECONDS + ANSWER_SECONDS,
        )


async def answered(
    http: httpx.AsyncClient, method: str, path: str, refused: type[Refused], **options: Any
) -> bytes:
    """The body of the answer. It is asked again while the host is away or too busy, so what is
    asked for must be safe to repeat. Raises `refused` if the host says no.
    """
    while True:
        try:
            response = await http.request(method, path, **options)
        except httpx.TransportError:
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        if response.is_success:
            return response.content
        if response.status_code not in TOO_BUSY:
            raise _refusal(response, refused)
        await asyncio.sleep(PAUSE_SECONDS)


class _Problem(msgspec.Struct):
    code: str = "unknown"
    detail: str = ""


def _refusal(response: httpx.Response, refused: type[Refused]) -> Refused:
    try:
        problem = msgspec.json.decode(response.content, type=_Problem)
    except msgspec.MsgspecError:
        problem = _Problem()
    reason = problem.detail or f"The host answered {response.status_code}."
    return refused(reason, problem.code)
