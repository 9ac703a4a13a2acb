"""What a server asks the user of an MCP client, carried to that client in its own era.

A 2026-era client gets the questions with a sealed state and comes back with answers; a 2025-era one
is asked while its request is held open. What answers mean for the call is decided in
`reducers.calls.client_answers`.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    CreateMessageRequest,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    ListRootsRequest,
    ListRootsResult,
)
from pydantic import BaseModel, ValidationError

from session_server.calls.service import Calls
from session_server.gateway.mcp_callers import Context, McpCaller
from session_server.host.awaiting import StateWaiters
from session_server.reducers.calls.client_answers import AGAIN, client_answered, client_round
from session_server.reducers.calls.input_required import TASKS_EXTENSION
from session_server.reducers.calls.rounds import CLIENT_CAPABILITIES
from session_server.schemas.errors import CommandError
from session_server.schemas.principals import Author, Stamp
from session_server.schemas.record import ClientAnswers, ClientRound, SessionRecord
from session_server.schemas.wire import Extra, Uri

PASSED_ON = ("elicitation", "sampling", "roots", "experimental", "extensions")
CAN_ASK: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
"""What the host declares to a server whose questions people can answer."""

QUICK_MS = 1_000
"""Nobody has read a question sooner: some clients decline by themselves."""

Question = dict[str, Any]


class ClientQuestions:
    """Those of one call, for the client that has made this request."""

    def __init__(
        self,
        calls: Calls,
        waiting: StateWaiters,
        ctx: Context,
        caller: McpCaller,
        where: tuple[Uri, str],
    ) -> None:
        self._calls = calls
        self._waiting = waiting
        self._ctx = ctx
        self._caller = caller
        self._uri, self._call_id = where
        self._passed: tuple[int, int | None] | None = None

    # In the 2026 era

    async def accept(self, state: Mapping[str, Any]) -> None:
        """Records the answers of a retry to the questions that its state names."""
        passed = state.get("passed")
        self._passed = None if passed is None else (passed[0], passed[1])
        if "round" in state:
            asked = msgspec.convert(state["round"], ClientRound)
            await self._record(asked, self._calls.now() - state["at"])

    async def accept_ahead(self, asked: ClientRound, state: Mapping[str, Any]) -> bool:
        """Whether the client's first request already holds answers to the first questions.

        A server that gives no state takes these, so a client may send them at once.
        """
        is_first = not state and asked.name == (1, None)
        if not is_first or not asked.questions.keys() & self._given().keys():
            return False
        await self._record(asked, 0)
        return True

    def _given(self) -> dict[str, Any]:
        given = (self._ctx.params or {}).get("inputResponses") or {}
        return {key: one for key, one in given.items() if isinstance(one, dict)}

    async def _record(self, asked: ClientRound, after: int) -> None:
        answers = ClientAnswers(round=asked, given=self._given(), within=_hasty(after))
        record = await self._write(answers)
        call = None if record is None else record.private.calls.get(self._call_id)
        is_first_come = call is not None and call.answers == "both"
        if is_first_come or AGAIN in answers.given:
            self._passed = answers.round.name

    def next(self, record: SessionRecord) -> ClientRound | None:
        """What a 2026-era client is to be asked; not twice what people can answer as well."""
        if not self._caller.is_modern:
            return None
        found = answerable(record, self._call_id, self._ctx)
        if found is None or found.name == self._passed:
            return None
        shown = {key: _for_2026(question) for key, question in found.questions.items()}
        return msgspec.structs.replace(found, questions=shown)

    def carried(self, asked: ClientRound | None) -> dict[str, Any]:
        """What the state tells when the client comes back."""
        if asked is None:
            return {} if self._passed is None else {"passed": self._passed}
        known = msgspec.structs.replace(asked, questions={})
        return {"round": msgspec.to_builtins(known), "at": self._calls.now()}

    # In the 2025 era

    @contextlib.asynccontextmanager
    async def passing_on(self) -> AsyncGenerator[None]:
        """Asks whatever there is to ask while the block runs."""
        if self._caller.is_modern:
            yield
            return
        task = asyncio.ensure_future(self._passing_on())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _passing_on(self) -> None:
        asked: set[tuple[int, int | None]] = set()

        def new(record: SessionRecord) -> ClientRound | None:
            found = answerable(record, self._call_id, self._ctx)
            return None if found is None or found.name in asked else found

        async with asyncio.TaskGroup() as group:
            while (found := await self._waiting.until(self._uri, new)) is not None:
                asked.add(found.name)
                for key in found.questions:
                    group.create_task(self._pass_on(found, key))

    async def _pass_on(self, asked: ClientRound, key: str) -> None:
        """Until it is answered, here or by people in the session: then it is taken back."""

        def is_over(record: SessionRecord) -> bool | None:
            now = answerable(record, self._call_id, self._ctx)
            is_open = now is not None and now.name == asked.name and key in now.questions
            return None if is_open else True

        began = self._calls.now()
        asking = asyncio.ensure_future(_ask(self._ctx, asked.questions[key]))
        over = asyncio.ensure_future(self._waiting.until(self._uri, is_over))
        try:
            await asyncio.wait((asking, over), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                await self._brought(asked, key, asking.result(), self._calls.now() - began)
        finally:
            asking.cancel()
            over.cancel()
            await asyncio.gather(asking, over, return_exceptions=True)

    async def _brought(
        self, asked: ClientRound, key: str, answer: dict[str, Any] | ErrorData, after: int
    ) -> None:
        answers = ClientAnswers(round=asked, within=_hasty(after))
        if isinstance(answer, dict):
            answers = msgspec.structs.replace(answers, given={key: answer})
        elif answer.code == CONNECTION_CLOSED:
            return  # the answer may still come in another way
        else:
            error = answer.model_dump(mode="json", exclude_none=True)
            answers = msgspec.structs.replace(answers, errors={key: error})
        await self._write(answers)

    # Writing

    async def _write(self, answers: ClientAnswers) -> SessionRecord | None:
        def plan(record: SessionRecord, stamp: Stamp) -> Any:
            return client_answered(record, self._call_id, answers, stamp)

        await self._calls.driver.record(self._uri, plan, self._author())
        with contextlib.suppress(CommandError):
            return await self._waiting.until(self._uri, lambda record: record)
        return None

    def _author(self) -> Author:
        """The person at the client is known by the client's name, and whose credential it has."""
        principal, client = self._caller.principal, self._caller.client
        name = client if principal.name is None else f"{principal.name} in {client}"
        return Author(id=principal.id, name=name)


def declared_by(ctx: Context) -> dict[str, Any]:
    """What the client can answer, and what it says of itself; not what the gateway cannot carry."""
    declared = ctx.session.client_capabilities
    plain = (
        {}
        if declared is None
        else declared.model_dump(by_alias=True, mode="json", exclude_none=True)
    )
    if "extensions" in plain:
        plain["extensions"].pop(TASKS_EXTENSION, None)
    return {name: plain[name] for name in PASSED_ON if name in plain}


def answerable(record: SessionRecord, call_id: str, ctx: Context) -> ClientRound | None:
    """The questions that this client can be asked now."""
    found = client_round(record, call_id)
    if found is None:
        return None
    can = declared_by(ctx)
    questions = {key: q for key, q in found.questions.items() if _is_answerable(q, can)}
    return msgspec.structs.replace(found, questions=questions) if questions else None


def _is_answerable(question: Extra, can: Mapping[str, Any]) -> bool:
    """An elicitation capability that names no modes is one for forms."""
    kind = CLIENT_CAPABILITIES[question["method"]]
    if kind not in can or kind != "elicitation":
        return kind in can
    mode = question["params"].get("mode") or "form"
    return mode in can[kind] or (mode == "form" and not can[kind])


def _hasty(after: int) -> int | None:
    return max(after, 0) if after < QUICK_MS else None


def _for_2026(question: Question) -> Question:
    """An id of an elicitation is of 2025."""
    params = question.get("params") or {}
    kept = {k: v for k, v in params.items() if k not in ("elicitationId", "_meta")}
    return {"method": question["method"], "params": kept}


async def _ask(ctx: Context, question: Question) -> dict[str, Any] | ErrorData:
    """A question to a client of 2025, on the stream of the request that it belongs to."""
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        request, shape = _for_2025(question)
        answer = await ctx.session.send_request(request, shape, metadata=related)
    except MCPError as error:
        return error.error
    except ValidationError:
        return ErrorData(code=INTERNAL_ERROR, message="The client's answer is not valid.")
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def _for_2025(question: Question) -> tuple[Any, type[BaseModel]]:
    match question["method"]:
        case "elicitation/create":
            request = ElicitRequest.model_validate(question)
            if isinstance(request.params, ElicitRequestURLParams):
                request.params.elicitation_id = request.params.elicitation_id or uuid.uuid4().hex
            return request, ElicitResult
        case "sampling/createMessage":
            return CreateMessageRequest.model_validate(question), CreateMessageResultWithTools
        case _:
            return ListRootsRequest.model_validate(question), ListRootsResult
