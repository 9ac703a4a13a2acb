"""`answers: session`: a call is started in a session, where its people answer what is asked.

The client needs to know nothing of questions. It waits, and when it comes back, on whatever
connection and after whatever restart, it is where it was.
"""

from typing import Any

from mcp import MCPError
from mcp_types import INTERNAL_ERROR

from session_server.calls.calls import Calls
from session_server.calls.errors import UnknownCallError
from session_server.calls.views import view_of
from session_server.gateway.errors import lost_state, told_in_mcp
from session_server.gateway.legs import Patience, Pulse, carried_in, hold, try_again
from session_server.gateway.places import Places, place_of
from session_server.gateway.visitors import Context, Visitor, delivery_of, place_to_answer
from session_server.host.waiting import Waiting
from session_server.schemas.calls import FailureKind
from session_server.schemas.http import CallState, CallView
from session_server.schemas.mcp import CallMethod
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri


class ParkedCalls:
    def __init__(
        self, calls: Calls, waiting: Waiting, places: Places, server: str, patience: Patience
    ) -> None:
        self._calls = calls
        self._waiting = waiting
        self._places = places
        self._server = server
        self._patience = patience

    async def perform(self, ctx: Context, visitor: Visitor, method: CallMethod) -> dict[str, Any]:
        delivery = delivery_of(ctx)
        with told_in_mcp(), delivery.attending():
            uri, call_id = await self._call(ctx, visitor, method)
            with delivery.while_there(self._calls.askers.waiting(uri, call_id)):
                ended = await self._ended(ctx, visitor, uri, call_id)
            if ended is None:
                state = {"session": uri, "call": call_id}
                return try_again(delivery, carried_in(ctx.params), state)
            self._calls.hand_over(visitor.principal, call_id, delivery)
        return _result(ended)

    async def _call(self, ctx: Context, visitor: Visitor, method: CallMethod) -> tuple[Uri, str]:
        """The call that this leg belongs to; a new one if there is none."""
        state = carried_in(ctx.params)
        delivery = delivery_of(ctx)
        if "call" in state:
            uri, call_id = self._known(visitor, state["session"], state["call"])
            delivery.attend(self._calls.attendance, call_id)
            return uri, call_id
        configured = self._calls.servers[self._server].config.session
        uri = place_of(visitor, self._server, configured)
        await self._places.ready(visitor, uri, f"{visitor.client} · {self._server}")
        params = ctx.params or {}
        call_id = await self._calls.start(
            visitor.principal,
            uri,
            self._server,
            method,
            params,
            lease=self._patience.lease,
            delivery=delivery,
        )
        return uri, call_id

    def _known(self, visitor: Visitor, uri: Uri, call_id: str) -> tuple[Uri, str]:
        try:
            found = self._calls.session_of(call_id)
        except UnknownCallError:
            raise lost_state() from None
        if found != uri or not visitor.principal.reaches(uri):
            raise lost_state()
        return uri, call_id

    async def _ended(
        self, ctx: Context, visitor: Visitor, uri: Uri, call_id: str
    ) -> CallView | None:
        words, place = "", place_to_answer(ctx, uri)

        def look(record: SessionRecord) -> CallView | str | None:
            """The end; or what there is to say on the way, when it is news."""
            call = record.private.calls.get(call_id)
            if call is None:
                raise lost_state()
            view = view_of(record, call)
            said = _words(view, place)
            return said if view.is_open and said != words else None if view.is_open else view

        async def wait(seconds: float) -> CallView | None:
            nonlocal words
            found = await self._waiting.until(uri, look, seconds)
            words = found if isinstance(found, str) else words
            return found if isinstance(found, CallView) else None

        pulse = Pulse(ctx)
        with self._calls.driver.reports.listening(call_id) as reports:
            async with pulse.passing(reports):
                return await hold(visitor, wait, self._patience, pulse, lambda: words)


def _words(view: CallView, place: str) -> str:
    match view.state:
        case CallState.WAITING:
            count = len(view.requests)
            what = "a question" if count == 1 else f"{count} questions"
            return f"Waiting for people to answer {what} in {place}"
        case CallState.UNCERTAIN:
            return f"Waiting for an owner to say whether it runs again, in {place}"
        case _:
            return f"Calling {view.server}/{view.target}"


def _result(ended: CallView) -> dict[str, Any]:
    if ended.result is not None:
        return ended.result
    error = ended.error
    if error is not None and error.kind is FailureKind.UPSTREAM and isinstance(error.data, dict):
        told = error.data
        raise MCPError(told.get("code", INTERNAL_ERROR), told.get("message", ""), told.get("data"))
    words = "The call was abandoned by the people of the session."
    if error is not None:
        words = f"{ended.server}/{ended.target} failed: {error.message}"
    if ended.method == "tools/call":
        return {"content": [{"type": "text", "text": words}], "isError": True}
    raise MCPError(INTERNAL_ERROR, words)
