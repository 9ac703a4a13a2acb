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

from session_server.calls.driver import CallDriver
from session_server.gateway.mcp_callers import Context, McpCaller
from session_server.host.async_api import StateWaiters
from session_server.mcp_client.sdk import plain
from session_server.reducers.calls.client_answers import AGAIN, client_answered, client_round
from session_server.reducers.calls.rounds import CLIENT_CAPABILITIES
from session_server.schemas.principals import Author, Stamp
from session_server.schemas.record import ClientAnswers, ClientRound, SessionRecord
from session_server.schemas.wire import Extra, Uri

CAN_ASK: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
"""What the host declares to a server whose questions people can answer."""

OF_2025 = ("elicitationId", "_meta")
"""Parameters of a question that 2026-era clients do not get."""

QUICK_MS = 1_000
"""Nobody has read a question sooner: some clients decline by themselves."""

Question = dict[str, Any]


class ClientQuestions:
    """Those of one call, for the client that has made this request."""

    def __init__(
        self,
        driver: CallDriver,
        waiting: StateWaiters,
        caller: McpCaller,
        uri: Uri,
        call_id: str,
    ) -> None:
        self._driver = driver
        self._waiting = waiting
        self._caller = caller
        self._uri = uri
        self._call_id = call_id
        self._skipped_round: tuple[int, int | None] | None = None

    def answerable(self, record: SessionRecord) -> ClientRound | None:
        """The questions that this client can be asked now."""
        found = client_round(record, self._call_id)
        if found is None:
            return None
        can = self._caller.declared
        questions = {key: q for key, q in found.questions.items() if _is_answerable(q, can)}
        return msgspec.structs.replace(found, questions=questions) if questions else None

    # In the 2026 era

    async def accept(self, state: Mapping[str, Any]) -> None:
        """Records the answers of a retry to the questions that its state names."""
        skipped = state.get("passed")
        self._skipped_round = None if skipped is None else (skipped[0], skipped[1])
        if "round" in state:
            asked = msgspec.convert(state["round"], ClientRound)
            await self._record(asked, self._driver.clock.now() - state["at"])

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
        given = (self._caller.ctx.params or {}).get("inputResponses") or {}
        return {key: one for key, one in given.items() if isinstance(one, dict)}

    async def _record(self, asked: ClientRound, after: int) -> None:
        answers = ClientAnswers(round=asked, given=self._given(), within=_if_quick(after))
        record = await self._write(answers)
        call = None if record is None else record.private.calls.get(self._call_id)
        is_first_come = call is not None and call.answers == "both"
        if is_first_come or AGAIN in answers.given:
            self._skipped_round = answers.round.name

    def next(self, found: ClientRound | None) -> ClientRound | None:
        """Of what is answerable, what a 2026-era client is to be asked.

        Not twice what people can answer as well.
        """
        if found is None or not self._caller.is_modern or found.name == self._skipped_round:
            return None
        shown: dict[str, Question] = {}
        for key, question in found.questions.items():
            params = question.get("params") or {}
            kept = {k: v for k, v in params.items() if k not in OF_2025}
            shown[key] = {"method": question["method"], "params": kept}
        return msgspec.structs.replace(found, questions=shown)

    def request_state(self, asked: ClientRound | None) -> dict[str, Any]:
        """What a client that was asked this, or only told to come back, brings again."""
        if asked is None:
            # The key keeps its name: clients may bring states that an earlier version has sealed.
            return {} if self._skipped_round is None else {"passed": self._skipped_round}
        known = msgspec.structs.replace(asked, questions={})
        return {"round": msgspec.to_builtins(known), "at": self._driver.clock.now()}

    # In the 2025 era

    @contextlib.asynccontextmanager
    async def asking_client(self) -> AsyncGenerator[None]:
        """Asks whatever there is to ask while the block runs."""
        if self._caller.is_modern:
            yield
            return
        task = asyncio.ensure_future(self._ask_rounds())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _ask_rounds(self) -> None:
        asked: set[tuple[int, int | None]] = set()

        def new(record: SessionRecord) -> ClientRound | None:
            found = self.answerable(record)
            return None if found is None or found.name in asked else found

        async with asyncio.TaskGroup() as group:
            while (found := await self._waiting.until(self._uri, new)) is not None:
                asked.add(found.name)
                for key in found.questions:
                    group.create_task(self._ask_one(found, key))

    async def _ask_one(self, asked: ClientRound, key: str) -> None:
        """Until it is answered, here or by people in the session: then it is taken back."""

        def is_over(record: SessionRecord) -> bool | None:
            now = self.answerable(record)
            is_open = now is not None and now.name == asked.name and key in now.questions
            return None if is_open else True

        began = self._driver.clock.now()
        asking = asyncio.ensure_future(_ask(self._caller.ctx, asked.questions[key]))
        over = asyncio.ensure_future(self._waiting.until(self._uri, is_over))
        try:
            await asyncio.wait((asking, over), return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return
            answer, within = asking.result(), _if_quick(self._driver.clock.now() - began)
            if isinstance(answer, dict):
                await self._write(ClientAnswers(round=asked, given={key: answer}, within=within))
            elif answer.code != CONNECTION_CLOSED:  # then it may still come in another way
                errors = {key: plain(answer)}
                await self._write(ClientAnswers(round=asked, errors=errors, within=within))
        finally:
            asking.cancel()
            over.cancel()
            await asyncio.gather(asking, over, return_exceptions=True)

    # Writing

    async def _write(self, answers: ClientAnswers) -> SessionRecord | None:
        def plan(record: SessionRecord, stamp: Stamp) -> Any:
            return client_answered(record, self._call_id, answers, stamp)

        # The person at the client is known by the client's name, and whose credential it has.
        principal, name = self._caller.principal, self._caller.client
        if principal.name is not None:
            name = f"{principal.name} in {name}"
        await self._driver.write_until_saved(self._uri, plan, Author(id=principal.id, name=name))
        found: SessionRecord | None = await self._driver.until(self._uri, lambda record: record)
        return found


def _is_answerable(question: Extra, can: Mapping[str, Any]) -> bool:
    """An elicitation capability that names no modes is one for forms."""
    kind = CLIENT_CAPABILITIES[question["method"]]
    if kind not in can or kind != "elicitation":
        return kind in can
    mode = question["params"].get("mode") or "form"
    return mode in can[kind] or (mode == "form" and not can[kind])


def _if_quick(after: int) -> int | None:
    return max(after, 0) if after < QUICK_MS else None


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
    return plain(answer)


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
