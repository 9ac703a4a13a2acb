"""Calls of MCP servers over HTTP: make one, wait for its result, abandon it."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from session_server.calls.requesters import Requester
from session_server.calls.service import Calls
from session_server.http.bodies import JSON, JsonBody, SessionUri, json_response
from session_server.http.dependencies import Caller, TheCalls, TheHost, TheLongPoll
from session_server.http.idempotency import REPLAYED, TheIdempotencyKey
from session_server.http.openapi import described, link
from session_server.http.request_routes import visible_record
from session_server.schemas.codec import encode
from session_server.schemas.errors import InvalidCallError
from session_server.schemas.http import CallList, CallView, NewCall
from session_server.schemas.principals import Principal
from session_server.watched_response import WatchedResponse

router = APIRouter(prefix="/v1", tags=["calls"])

LINKS = {name: link(name, cid="$response.body#/id") for name in ("read_call", "abandon_call")}


async def _call(
    cid: Annotated[str, Path(description="The id of a call.", examples=["call-1"])],
) -> str:
    return unquote(cid)


CallId = Annotated[str, Depends(_call)]


@router.post(
    "/sessions/{id}/calls", **described(201, CallView, 404, 409, body=NewCall, links=LINKS)
)
async def start_call(
    uri: SessionUri,
    host: TheHost,
    calls: TheCalls,
    who: Caller,
    poll: TheLongPoll,
    key: TheIdempotencyKey,
    wanted: Annotated[NewCall, Depends(JsonBody(NewCall))],
) -> Response:
    """Call a tool, a prompt or a resource of a configured MCP server.

    When the server asks, the people in the session answer. The same request again, while it is open
    or its result was not fetched, is the same call.
    """
    known = set((await visible_record(host, who, uri)).private.calls)
    call_id = None
    if key is not None:
        key.found(wanted, (name.removeprefix("call-") for name in known))
        call_id = f"call-{key.name(wanted)}"
    made = await calls.start(
        who,
        uri,
        wanted.server,
        wanted.method,
        params_of(wanted),
        call_id=call_id,
        lease=wanted.lease,
    )
    view = await poll.until(calls.result(who, made, poll.seconds))
    headers = {"Location": f"/v1/calls/{quote(made, safe='')}"}
    return _handed_over(calls, who, view, 201, headers | (REPLAYED if made in known else {}))


@router.get("/sessions/{id}/calls", **described(200, CallList, 404))
async def list_calls(uri: SessionUri, host: TheHost, calls: TheCalls, who: Caller) -> Response:
    """The session's calls that you may look at, the latest first."""
    await visible_record(host, who, uri)
    return json_response(CallList(items=await calls.calls_of(who, uri)))


@router.get("/calls/{cid}", **described(200, CallView, 404))
async def read_call(call_id: CallId, calls: TheCalls, who: Caller, poll: TheLongPoll) -> Response:
    """The call as it is; with `wait`, as soon as it has ended, or when the time is up."""
    return _handed_over(calls, who, await poll.until(calls.result(who, call_id, poll.seconds)))


@router.delete("/calls/{cid}", **described(200, CallView, 404))
async def abandon_call(call_id: CallId, calls: TheCalls, who: Caller) -> Response:
    """Abandon the call: its questions close. The server may still finish what it has begun."""
    await calls.abandon(who, call_id)
    return json_response(await calls.result(who, call_id))


def _handed_over(
    calls: Calls,
    who: Principal,
    view: CallView,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    if view.is_open:
        return json_response(view, status, headers)
    return _ResultResponse(view, status, headers, partial(calls.hand_over, who, view.id))


class _ResultResponse(Response):
    """Marks the result as fetched when the whole answer was written."""

    def __init__(
        self,
        view: CallView,
        status: int,
        headers: dict[str, str] | None,
        hand_over: Callable[[Requester], None],
    ) -> None:
        super().__init__(encode(view), status, headers, media_type=JSON)
        self._hand_over = hand_over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        requester = Requester()
        async with WatchedResponse(requester, receive, send) as response:
            response.listen()
            self._hand_over(requester)
            await super().__call__(scope, response.receive, response.send)


def params_of(wanted: NewCall) -> dict[str, Any]:
    """The parameters of MCP, from either way to name what is called."""
    if wanted.params is not None:
        if wanted.tool is not None or wanted.arguments is not None:
            raise InvalidCallError("Give `params`, or `tool` and `arguments`, not both.")
        return wanted.params
    if wanted.tool is None or wanted.method != "tools/call":
        raise InvalidCallError(f"Name the `tool` to call, or give `params` for {wanted.method}.")
    return {"name": wanted.tool, "arguments": wanted.arguments or {}}
