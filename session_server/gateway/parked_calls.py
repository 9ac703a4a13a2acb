"""Calls that MCP clients make: each lives in a session, whoever is asked what its server asks.

A client waits, and when it comes back, on whatever connection and after whatever restart, it is
where it was. What its own user is asked goes to it in its era: `client_questions` puts it there.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from mcp import MCPError
from mcp_types import INTERNAL_ERROR

from session_server.calls.service import Calls, view_of
from session_server.gateway.client_questions import (
    CAN_ASK,
    ClientQuestions,
    answerable,
    declared_by,
)
from session_server.gateway.holding import (
    Patience,
    Pulse,
    carried_in,
    hold,
    passing,
    passing_logs,
    try_again,
)
from session_server.gateway.mcp_callers import (
    Context,
    Visitor,
    delivery_of,
    log_level_of,
    place_to_answer,
    was_cancelled,
)
from session_server.gateway.mcp_errors import lost_state, told_in_mcp
from session_server.gateway.session_choice import Places, place_of
from session_server.host.acting import StateWaiters
from session_server.mcp_client.errors import UnknownCallError
from session_server.schemas.http import CallState, CallView
from session_server.schemas.limits import TITLE_CHARS
from session_server.schemas.mcp import CallMethod
from session_server.schemas.record import Call, CallClient, ClientRound, FailureKind, SessionRecord
from session_server.schemas.wire import Uri


class ParkedCalls:
    def __init__(
        self, calls: Calls, waiting: StateWaiters, places: Places, server: str, patience: Patience
    ) -> None:
        self._calls = calls
        self._waiting = waiting
        self._places = places
        self._server = server
        self._config = calls.servers[server].config
        self._patience = patience

    async def perform(self, ctx: Context, visitor: Visitor, method: CallMethod) -> dict[str, Any]:
        delivery, state = delivery_of(ctx), carried_in(ctx.params)
        with told_in_mcp(), delivery.attending():
            uri, call_id = await self._call(ctx, visitor, method, state)
            async with self._unless_cancelled(ctx, visitor, call_id):
                asking = ClientQuestions(self._calls, self._waiting, ctx, visitor, (uri, call_id))
                await asking.take(state)
                with delivery.while_there(self._calls.askers.waiting(uri, call_id)):
                    found = await self._followed(ctx, visitor, uri, call_id, asking)
                    if isinstance(found, ClientRound) and await asking.take_ahead(found, state):
                        found = await self._followed(ctx, visitor, uri, call_id, asking)
            if not isinstance(found, CallView):
                plain = {"session": uri, "call": call_id}
                return {
                    **try_again(delivery, state, plain | asking.carried(found)),
                    **({} if found is None else {"inputRequests": found.questions}),
                }
            self._calls.hand_over(visitor.principal, call_id, delivery)
        return _result(found)

    async def _call(
        self, ctx: Context, visitor: Visitor, method: CallMethod, state: dict[str, Any]
    ) -> tuple[Uri, str]:
        """The call that this leg belongs to; a new one if there is none."""
        delivery = delivery_of(ctx)
        if "call" in state:
            uri, call_id = self._known(visitor, state["session"], state["call"])
            delivery.attend(self._calls.attendance, call_id)
            return uri, call_id
        uri = place_of(visitor, self._server, self._config.session)
        await self._places.ready(visitor, uri, self._first_title(visitor))
        call_id = await self._calls.start(
            visitor.principal,
            uri,
            self._server,
            method,
            ctx.params or {},
            lease=self._patience.lease,
            delivery=delivery,
            client=self._client(ctx, visitor),
        )
        await self._retitle(visitor, uri, call_id)
        return uri, call_id

    def _first_title(self, visitor: Visitor) -> str:
        return f"{visitor.client} · {self._server}"

    async def _retitle(self, visitor: Visitor, uri: Uri, call_id: str) -> None:
        """The title names the latest call, unless somebody has given the session another one."""

        def title(record: SessionRecord) -> str | None:
            calls, known = record.private.calls, record.public.summary.title
            ours = {_title(call) for call in calls.values()} | {self._first_title(visitor)}
            return _title(calls[call_id]) if known in ours and call_id in calls else None

        await self._places.retitle(visitor, uri, title)

    def _client(self, ctx: Context, visitor: Visitor) -> CallClient:
        """Who is asked: `both` is the session alone where the client cannot be asked."""
        declared, answers = declared_by(ctx), self._config.answers
        level = log_level_of(ctx)
        if answers == "client":
            return CallClient(
                name=visitor.client,
                answers=answers,
                capabilities=declared,
                is_2025=not visitor.is_modern,
                log_level=level,
            )
        if answers == "session":
            return CallClient(name=visitor.client, log_level=level)
        others = {name: can for name, can in declared.items() if name != "elicitation"}
        if others and self._config.roots is not None:
            others.setdefault("roots", {})
        return CallClient(
            name=visitor.client,
            answers="both" if "elicitation" in declared else "session",
            capabilities=others | CAN_ASK if others else None,
            is_2025=not visitor.is_modern,
            log_level=level,
        )

    def _known(self, visitor: Visitor, uri: Uri, call_id: str) -> tuple[Uri, str]:
        try:
            found = self._calls.session_of(call_id)
        except UnknownCallError:
            raise lost_state() from None
        if found != uri or not visitor.principal.reaches(uri):
            raise lost_state()
        return uri, call_id

    @contextlib.asynccontextmanager
    async def _unless_cancelled(
        self, ctx: Context, visitor: Visitor, call_id: str
    ) -> AsyncGenerator[None]:
        """A client that answers for itself ends its call; people in a session may still want it."""
        try:
            yield
        except asyncio.CancelledError:
            if self._config.answers == "client" and was_cancelled(ctx):
                words = f"{visitor.client} cancelled it."
                self._calls.driver.spawn(self._calls.abandon(visitor.principal, call_id, words))
            raise

    async def _followed(
        self, ctx: Context, visitor: Visitor, uri: Uri, call_id: str, asking: ClientQuestions
    ) -> CallView | ClientRound | None:
        """Until it has ended, or its 2026-era client is to be asked, or the leg is over."""
        words, place = "", place_to_answer(ctx, uri)

        def look(record: SessionRecord) -> CallView | ClientRound | str | None:
            call = record.private.calls.get(call_id)
            if call is None:
                raise lost_state()
            view = view_of(record, call)
            if not view.is_open:
                return view
            asked = answerable(record, call_id, ctx)
            told = _words(view, place, is_asked=asked is not None)
            return asking.next(record) or (told if told != words else None)

        async def wait(seconds: float) -> CallView | ClientRound | None:
            nonlocal words
            found: CallView | ClientRound | str | None
            found = await self._waiting.until(uri, look, seconds)
            if isinstance(found, str):
                words = found
                return None
            return found

        pulse = Pulse(ctx)
        driver = self._calls.driver
        with driver.reports.listening(call_id) as reports:
            async with (
                asking.passing_on(),
                passing_logs(ctx, driver.logs.of(call_id)),
                passing(reports, pulse.pass_on),
            ):
                return await hold(visitor, wait, self._patience, pulse, lambda: words)


def _title(call: Call) -> str:
    return f"{call.server}: {call.target}"[:TITLE_CHARS]


def _words(view: CallView, place: str, *, is_asked: bool) -> str:
    match view.state:
        case CallState.WAITING if not view.requests:
            return "Waiting for your answer"
        case CallState.WAITING:
            count = len(view.requests)
            what = "a question" if count == 1 else f"{count} questions"
            if is_asked:
                return f"Waiting for you to answer {what}, or for people in {place}"
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
    words = f"{ended.server}/{ended.target} was abandoned: {ended.reason}"
    if error is not None:
        words = f"{ended.server}/{ended.target} failed: {error.message}"
    if ended.method == "tools/call":
        return {"content": [{"type": "text", "text": words}], "isError": True}
    raise MCPError(INTERNAL_ERROR, words)
