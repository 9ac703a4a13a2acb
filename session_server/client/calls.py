"""Calling tools of the host's MCP servers: AHP has no command for it, so it goes over HTTP.

A call outlasts connections: it is made once under a key of its own, and waited for as long as it
takes. What the server asks is asked in the session, where any client can answer.
"""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from session_server.client.door import JSON, HttpDoor, answered
from session_server.client.errors import CallFailed, CallRefused
from session_server.reducers.session_names import session_name
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.http import CallState, CallView, NewCall
from session_server.schemas.limits import LEASE_SECONDS, WAIT_SECONDS
from session_server.schemas.wire import Uri

decode_call: Decoder[CallView] = Decoder(CallView)


async def called(
    door: HttpDoor, uri: Uri, wanted: NewCall, seconds: float | None = None
) -> dict[str, Any]:
    """The result of the call, once it has ended; `TimeoutError` if that takes too long."""
    async with asyncio.timeout(seconds), door.http() as http:
        path = f"/v1/sessions/{session_name(uri)}/calls"
        headers = {**JSON, "Idempotency-Key": uuid.uuid4().hex}
        content = encode(wanted)
        view = decode_call(
            await answered(http, "POST", path, CallRefused, content=content, headers=headers)
        )
        while view.is_open:
            path = f"/v1/calls/{quote(view.id, safe='')}"
            wait = {"wait": WAIT_SECONDS}
            view = decode_call(await answered(http, "GET", path, CallRefused, params=wait))
    return _result(view)


def _result(view: CallView) -> dict[str, Any]:
    if view.result is not None:
        return view.result
    if view.state is CallState.ABANDONED or view.error is None:
        reason = view.reason or "no reason was given."
        raise CallFailed(f"The call was abandoned: {reason}", "abandoned")
    raise CallFailed(view.error.message, view.error.kind, view.error.data)


def tool_call(server: str, tool: str, arguments: Mapping[str, Any] | None) -> NewCall:
    arguments = dict(arguments or {})
    return NewCall(server=server, tool=tool, arguments=arguments, lease=LEASE_SECONDS)
