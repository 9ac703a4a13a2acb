"""Calls that MCP clients make through the gateway: each lives in a session.

A client waits for its call, and takes it up again when it comes back, on any connection and after a
restart. What its own user is asked goes to it in its era, by `client_questions`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any

from mcp import MCPError
from mcp_types import INTERNAL_ERROR

from session_server.calls.service import Calls
from session_server.gateway.client_questions import CAN_ASK, ClientQuestions
from session_server.gateway.gateway_sessions import GatewaySessions, session_for
from session_server.gateway.long_polling import (
    HoldLimits,
    LegProgress,
    hold,
    passing,
    passing_logs,
)
from session_server.gateway.mcp_callers import Context, McpCaller
from session_server.gateway.mcp_errors import as_mcp_errors, lost_state_error
from session_server.gateway.request_state import input_required_result, request_state_in
from session_server.host.async_api import StateWaiters
from session_server.host.host import Host
from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.sdk import was_cancelled
from session_server.reducers.calls.presentation import requests_of, view_of
from session_server.schemas.errors import UnknownCallError
from session_server.schemas.http import CallView
from session_server.schemas.limits import TITLE_CHARS
from session_server.schemas.mcp import CallMethod
from session_server.schemas.record import (
    Call,
    CallClient,
    ClientRound,
    FailureKind,
    SessionRecord,
    Uncertain,
    Waiting,
)
from session_server.schemas.wire import Uri


class ClientCalls:
    def __init__(
        self,
        host: Host,
        calls: Calls,
        waiting: StateWaiters,
        sessions: GatewaySessions,
        config: ServerConfig,
        limits: HoldLimits,
    ) -> None:
        self._host = host
        self._calls = calls
        self._waiting = waiting
        self._sessions = sessions
        self._config = config
        self._limits = limits

    async def serve_call(self, ctx: Context, method: CallMethod) -> dict[str, Any]:
        """The result of the call, or one with which the client is to come back."""
        caller, state = McpCaller(ctx), request_state_in(ctx.params)
        requester = caller.requester
        with as_mcp_errors(self._config.name), requester.connected():
            uri, call_id = await self._find_or_start(caller, method, state)
            async with self._unless_cancelled(caller, call_id):
                questions = ClientQuestions(self._calls.driver, self._waiting, caller, uri, call_id)
                await questions.accept(state)
                with requester.while_connected(self._host.askers.waiting(uri, call_id)):
                    found = await self._followed(caller, uri, call_id, questions)
                    if isinstance(found, ClientRound) and await questions.accept_ahead(
                        found, state
                    ):
                        found = await self._followed(caller, uri, call_id, questions)
            if not isinstance(found, CallView):
                now = {"session": uri, "call": call_id, **questions.request_state(found)}
                asked = None if found is None else found.questions
                return input_required_result(requester, state, now, asked)
            self._calls.hand_over(caller.principal, call_id, requester)
        return _result(found)

    async def _find_or_start(
        self, caller: McpCaller, method: CallMethod, state: dict[str, Any]
    ) -> tuple[Uri, str]:
        """The call that this leg belongs to; a new one if there is none."""
        if "call" in state:
            uri, call_id = state["session"], state["call"]
            try:
                is_known = self._calls.session_of(call_id) == uri
            except UnknownCallError:
                is_known = False
            if not is_known or not caller.principal.reaches(uri):
                raise lost_state_error()
            caller.requester.join(self._calls.requesters, call_id)
            return uri, call_id
        uri = session_for(caller, self._config.name, self._config.session)
        await self._sessions.ready(caller, uri, self._first_title(caller))
        call_id = await self._calls.start(
            caller.principal,
            uri,
            self._config.name,
            method,
            caller.ctx.params or {},
            lease=self._limits.lease,
            requester=caller.requester,
            client=self._client(caller),
            title=partial(self._new_title, caller),
        )
        return uri, call_id

    def _first_title(self, caller: McpCaller) -> str:
        return f"{caller.client} · {self._config.name}"

    def _new_title(self, caller: McpCaller, record: SessionRecord, call: Call) -> str | None:
        """The title names the latest call, unless a person has set another one."""
        new, present = _title(call), record.public.summary.title
        if new == present:
            return None
        ours = {_title(known) for known in record.private.calls.values()}
        ours.add(self._first_title(caller))
        return new if present in ours else None

    def _client(self, caller: McpCaller) -> CallClient:
        """Who is asked: `both` is the session alone where the client cannot be asked."""
        answers, declared = self._config.answers, caller.declared
        if answers == "session":
            return CallClient(name=caller.client, log_level=caller.log_level)
        capabilities: dict[str, Any] | None = declared
        if answers == "both":
            answers = "both" if "elicitation" in declared else "session"
            others = {name: can for name, can in declared.items() if name != "elicitation"}
            if others and self._config.roots is not None:
                others.setdefault("roots", {})
            capabilities = others | CAN_ASK if others else None
        return CallClient(
            name=caller.client,
            answers=answers,
            capabilities=capabilities,
            is_2025=not caller.is_modern,
            log_level=caller.log_level,
        )

    @contextlib.asynccontextmanager
    async def _unless_cancelled(self, caller: McpCaller, call_id: str) -> AsyncGenerator[None]:
        """A client that answers for itself ends its call; people in a session may still want it."""
        try:
            yield
        except asyncio.CancelledError:
            if self._config.answers == "client" and was_cancelled(caller.ctx):
                reason = f"{caller.client} cancelled it."
                self._calls.driver.spawn(self._calls.abandon(caller.principal, call_id, reason))
            raise

    async def _followed(
        self, caller: McpCaller, uri: Uri, call_id: str, questions: ClientQuestions
    ) -> CallView | ClientRound | None:
        """Until it has ended, its 2026-era client is to be asked, or it was held for its time."""
        message = ""

        def look(record: SessionRecord) -> CallView | ClientRound | str | None:
            call = record.private.calls.get(call_id)
            if call is None:
                raise lost_state_error()
            if not call.is_open:
                return view_of(record, call)
            answerable = questions.answerable(record)
            following = questions.next(answerable)
            if following is not None:
                return following
            where, is_asked = partial(caller.where_to_answer, uri), answerable is not None
            now = _message(record, call, where, is_asked=is_asked)
            return now if now != message else None

        async def wait(seconds: float) -> CallView | ClientRound | None:
            nonlocal message
            found: CallView | ClientRound | str | None
            found = await self._waiting.until(uri, look, seconds)
            if isinstance(found, str):
                message = found
                return None
            return found

        progress = LegProgress(caller)
        driver = self._calls.driver
        with driver.reports.listening(call_id) as reports:
            async with (
                questions.asking_client(),
                passing_logs(caller, driver.logs.of(call_id)),
                passing(reports, progress.pass_on),
            ):
                return await hold(caller, wait, self._limits, progress, lambda: message)


def _title(call: Call) -> str:
    return f"{call.server}: {call.target}"[:TITLE_CHARS]


def _message(record: SessionRecord, call: Call, where: Callable[[], str], *, is_asked: bool) -> str:
    match call.phase:
        case Waiting():
            count = len(requests_of(record, call))
            if not count:
                return "Waiting for your answer"
            what = "a question" if count == 1 else f"{count} questions"
            if is_asked:
                return f"Waiting for you to answer {what}, or for people in {where()}"
            return f"Waiting for people to answer {what} in {where()}"
        case Uncertain():
            return f"Waiting for an owner to say whether it runs again, in {where()}"
        case _:
            return f"Calling {call.server}/{call.target}"


def _result(ended: CallView) -> dict[str, Any]:
    if ended.result is not None:
        return ended.result
    error = ended.error
    if error is not None and error.kind is FailureKind.UPSTREAM and isinstance(error.data, dict):
        own = error.data
        raise MCPError(own.get("code", INTERNAL_ERROR), own.get("message", ""), own.get("data"))
    text = f"{ended.server}/{ended.target} was abandoned: {ended.reason}"
    if error is not None:
        text = f"{ended.server}/{ended.target} failed: {error.message}"
    if ended.method == "tools/call":
        return {"content": [{"type": "text", "text": text}], "isError": True}
    raise MCPError(INTERNAL_ERROR, text)
