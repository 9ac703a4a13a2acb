"""Calling tools of the host's MCP servers: AHP has no command for it, so it goes over HTTP.

A call outlasts connections: it is made once under a key of its own, and waited for as long as it
takes. What the server asks is asked in the session, where any client can answer.
"""

import asyncio
import uuid
from collections.abc import Mapping
from ssl import SSLContext
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from session_server.client.door import HttpDoor
from session_server.client.errors import CallFailed, CallRefused
from session_server.reducers.session_names import session_name
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.http import CallState, CallView, NewCall
from session_server.schemas.limits import WAIT_SECONDS
from session_server.schemas.wire import Uri

ANSWER_SECONDS = 15.0
PAUSE_SECONDS = 1.0
TOO_BUSY = (429, 503)

decode_call: Decoder[CallView] = Decoder(CallView)


async def called(
    door: HttpDoor, uri: Uri, wanted: NewCall, seconds: float | None = None
) -> dict[str, Any]:
    """The result of the call, once it has ended; `TimeoutError` if that takes too long."""
    verify: SSLContext | bool = True if door.ssl is None else door.ssl
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(base_url=door.url, headers=door.headers, verify=verify) as http,
    ):
        path = f"/v1/sessions/{session_name(uri)}/calls"
        key = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
        view = await _answered(http, "POST", path, content=encode(wanted), headers=key)
        while view.is_open:
            path = f"/v1/calls/{quote(view.id, safe='')}"
            view = await _answered(http, "GET", path, params={"wait": WAIT_SECONDS})
    return _result(view)


async def _answered(http: httpx.AsyncClient, method: str, path: str, **options: Any) -> CallView:
    """A host that is away comes back, and knows the call by its key or its id."""
    while True:
        try:
            response = await http.request(
                method, path, timeout=WAIT_SECONDS + ANSWER_SECONDS, **options
            )
        except httpx.TransportError:
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        if response.is_success:
            return decode_call(response.content)
        if response.status_code not in TOO_BUSY:
            raise _refusal(response)
        await asyncio.sleep(PAUSE_SECONDS)


class _Problem(msgspec.Struct):
    code: str = "unknown"
    detail: str = ""


def _refusal(response: httpx.Response) -> CallRefused:
    try:
        problem = msgspec.json.decode(response.content, type=_Problem)
    except msgspec.MsgspecError:
        problem = _Problem()
    words = problem.detail or f"The host answered {response.status_code}."
    return CallRefused(words, problem.code)


def _result(view: CallView) -> dict[str, Any]:
    if view.result is not None:
        return view.result
    if view.state is CallState.ABANDONED or view.error is None:
        raise CallFailed("The call was given up.", "abandoned")
    raise CallFailed(view.error.message, view.error.kind, view.error.data)


def tool_call(server: str, tool: str, arguments: Mapping[str, Any] | None) -> NewCall:
    return NewCall(server=server, tool=tool, arguments=dict(arguments or {}))
