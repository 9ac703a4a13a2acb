"""`answers: client`: what a server asks is passed on to the client, in the client's own era.

A 2026-era client gets the questions with a sealed state and comes back with answers; a 2025-era one
is asked while its request is held open. Which era the server is of makes no difference to it.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
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

from session_server.calls.calls import check_params
from session_server.calls.config import LEGACY, MODERN, Era
from session_server.calls.connections import Question, Spawn
from session_server.calls.deliveries import Attendance
from session_server.calls.replies import Asks, era_needed, refusal_of, text_of_error
from session_server.calls.sdk import returned_questions
from session_server.calls.servers import Server
from session_server.gateway.errors import lost_state, told_in_mcp
from session_server.gateway.legs import Patience, carried_in, hold, try_again
from session_server.gateway.relayed import Asked, RelayedLeg, RelayedLegs, Result
from session_server.gateway.resuming import (
    AGAIN,
    NOT_AGAIN,
    Before,
    can_fill_forms,
    is_agreed,
    packed,
    run_again,
    unpacked,
)
from session_server.gateway.visitors import Context, Visitor, delivery_of
from session_server.reducers.calls import back_off
from session_server.reducers.recognition import TASKS_EXTENSION
from session_server.reducers.starts import own_params
from session_server.schemas.mcp import CallMethod

ONLY_SESSIONS = (
    "Your access is to sessions of this host, and calls of this server are made in none:"
    " its questions go to the client."
)
PASSED_ON = ("elicitation", "sampling", "roots", "experimental", "extensions")


class Relay:
    def __init__(self, server: Server, spawn: Spawn, patience: Patience, max_rounds: int) -> None:
        self._server = server
        self._spawn = spawn
        self._patience = patience
        self._max_rounds = max_rounds
        self._legs = RelayedLegs()
        self._attendance = Attendance()
        self._process = uuid.uuid4().hex

    async def perform(self, ctx: Context, visitor: Visitor) -> Result:
        with delivery_of(ctx).attending():
            if visitor.is_modern:
                return await self._leg(ctx, visitor)
            return await self._whole(ctx, visitor)

    # For clients of 2026

    async def _leg(self, ctx: Context, visitor: Visitor) -> Result:
        params = dict(ctx.params or {})
        taken = await self._taken_up(ctx, visitor, params, carried_in(params))
        if not isinstance(taken, RelayedLeg):
            return taken
        try:
            found = await self._held(ctx, visitor, taken)
        except MCPError as error:
            self._hand_over(ctx, taken)
            return _visits(error)
        if found is None:
            return self._come_back(ctx, taken)
        if isinstance(found, Asked):
            asked = {key: _for_2026(question) for key, question in found.questions.items()}
            return {**self._come_back(ctx, taken), "inputRequests": asked}
        self._hand_over(ctx, taken)
        return _sealable(found)

    async def _taken_up(
        self, ctx: Context, visitor: Visitor, params: dict[str, Any], state: Mapping[str, Any]
    ) -> RelayedLeg | Result:
        """The leg that is under way, or the next one; or a question of ours."""
        answers: dict[str, Any] = params.get("inputResponses") or {}
        if "again" in state:
            return await self._decided(ctx, visitor, unpacked(state["again"]), answers)
        if "leg" not in state:
            sent = _added(answers, state.get("state"))
            return await self._begun(ctx, visitor, Before(sent=sent))
        leg = self._legs.named(state["leg"])
        if leg is not None:
            delivery_of(ctx).attend(self._attendance, leg.name)
            leg.answer(answers)
            return leg
        if state.get("process") == self._process or state.get("before") is None:
            raise lost_state()
        return await self._after_restart(ctx, visitor, unpacked(state["before"]).answered(answers))

    def _come_back(self, ctx: Context, leg: RelayedLeg) -> Result:
        before = packed(leg.so_far())
        state = {"leg": leg.name, "process": self._process, "before": before}
        return try_again(delivery_of(ctx), {}, state)

    # After a restart of the host

    async def _after_restart(
        self, ctx: Context, visitor: Visitor, before: Before
    ) -> RelayedLeg | Result:
        target = _target(ctx)
        with told_in_mcp():
            await self._server.ready()
            if ctx.method != "tools/call" or self._server.is_repeatable(target):
                return await self._begun(ctx, visitor, before)
        carried = packed(before)
        if carried is None or not can_fill_forms(_capabilities(ctx)):
            raise lost_state(f"The host was restarted, and {target} may already have run.")
        return {
            **try_again(delivery_of(ctx), {}, {"again": carried}),
            "inputRequests": run_again(target),
        }

    async def _decided(
        self, ctx: Context, visitor: Visitor, before: Before, answers: Mapping[str, Any]
    ) -> RelayedLeg | Result:
        if AGAIN not in answers:
            return await self._after_restart(ctx, visitor, before)
        if is_agreed(answers[AGAIN]):
            return await self._begun(ctx, visitor, before)
        return {"content": [{"type": "text", "text": NOT_AGAIN}], "isError": True}

    # One leg at a time

    async def _held(
        self, ctx: Context, visitor: Visitor, leg: RelayedLeg, besides: tuple[str, ...] = ()
    ) -> Result | Asked | None:
        async def wait(seconds: float) -> Result | Asked | None:
            return await leg.wait(seconds, besides)

        leg.listener = ctx.session
        return await hold(visitor, wait, self._patience)

    def _hand_over(self, ctx: Context, leg: RelayedLeg) -> None:
        """Until it has arrived, the same request gets the same result."""

        async def arrived() -> None:
            self._legs.drop(leg)

        delivery = delivery_of(ctx)
        delivery.attend(self._attendance, leg.name)
        delivery.carry(arrived)

    # For clients of 2025

    async def _whole(self, ctx: Context, visitor: Visitor) -> Result:
        sent: dict[str, Any] = {}
        idle = 0
        for _ in range(self._max_rounds + 1):
            result = await self._answered(ctx, visitor, sent)
            if result.get("resultType") != "input_required":
                return result
            asked: dict[str, Question] = result.get("inputRequests") or {}
            idle = 0 if asked else idle + 1
            if idle:
                await asyncio.sleep(back_off(idle) / 1000)
            answers = await self._ask_all(ctx, asked)
            sent = _added(answers, result.get("requestState"))
        raise MCPError(INTERNAL_ERROR, f"The server asked more than {self._max_rounds} times.")

    async def _answered(self, ctx: Context, visitor: Visitor, sent: dict[str, Any]) -> Result:
        """One leg, with everything that is asked on the way."""
        leg = await self._begun(ctx, visitor, Before(sent=sent))
        asked: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                found = await self._held(ctx, visitor, leg, tuple(asked))
                if not isinstance(found, Asked):
                    assert found is not None  # the era's legs have no end
                    break
                for key, question in found.questions.items():
                    asked[key] = asyncio.create_task(_passed_on(ctx, leg, key, question))
        except MCPError:
            self._hand_over(ctx, leg)
            raise
        finally:
            for task in asked.values():
                task.cancel()
        if found.get("resultType") == "input_required":
            self._legs.drop(leg)  # what follows is between us and the client
        else:
            self._hand_over(ctx, leg)
        return found

    async def _ask_all(self, ctx: Context, asked: Mapping[str, Question]) -> dict[str, Any]:
        answers = await asyncio.gather(*(_ask(ctx, question) for question in asked.values()))
        for answer in answers:
            if isinstance(answer, ErrorData):
                raise MCPError.from_error_data(answer)
        return dict(zip(asked, answers, strict=True))

    # The leg itself

    async def _begun(self, ctx: Context, visitor: Visitor, before: Before) -> RelayedLeg:
        """The same request by the same principal joins the leg that is under way."""
        if visitor.principal.sessions is not None:
            raise MCPError(INVALID_REQUEST, ONLY_SESSIONS)
        capabilities = _capabilities(ctx)
        params = {**own_params(ctx.params or {}), **before.sent}
        with told_in_mcp():
            check_params(cast("CallMethod", ctx.method), params)
        about = (visitor.principal.id, ctx.method, params, before.given, capabilities)
        key = hashlib.sha256(msgspec.json.encode(about, order="deterministic")).hexdigest()
        await self._attendance.noticed()
        known = self._legs.same(key)
        if known is not None and known.name not in self._attendance:
            delivery_of(ctx).attend(self._attendance, known.name)
            return known
        leg = RelayedLeg(uuid.uuid4().hex, key, visitor.principal.id, before)
        self._legs.add(leg)
        delivery_of(ctx).attend(self._attendance, leg.name)
        preferred = MODERN if visitor.is_modern else LEGACY
        leg.begin(self._run(leg, ctx.method, params, capabilities, preferred), self._spawn)
        return leg

    async def _run(
        self,
        leg: RelayedLeg,
        method: str,
        params: dict[str, Any],
        capabilities: dict[str, Any],
        preferred: Era,
        again: Era | None = None,
    ) -> Result:
        """As the client would call the server itself: in its own revision, if the server can.

        A tool that needs the other one runs again there if that is harmless; otherwise it does so
        from the next call on.
        """
        name = str(params.get("name")) if method == "tools/call" else method
        era = None if "requestState" not in params else MODERN
        refused: MCPError | None = None
        result: Result = {}
        with told_in_mcp():
            async with self._server.lend(
                leg, name, capabilities=capabilities, principal=leg.by, era=era, preferred=preferred
            ) as line:
                is_modern = line.link.is_modern
                sent = params if is_modern else own_params(params)
                try:
                    result = await line.request(method, sent, leg.progressed)
                except MCPError as error:
                    refused = error  # the SDK's scopes would wrap what leaves them
                failed = text_of_error(result) if refused is None else refused.message
                needed = era_needed(line, failed)
            if needed is not None and again is None and await self._server.needs(name, needed):
                is_harmless = method != "tools/call" or self._server.is_repeatable(name)
                if is_harmless or returned_questions(failed):
                    return await self._run(leg, method, params, capabilities, preferred, needed)
            elif is_modern and result.get("resultType") == "input_required":
                self._server.asked_by_result(name)
        if refused is not None:
            raise refused
        return result


def _capabilities(ctx: Context) -> dict[str, Any]:
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


def _added(answers: Mapping[str, Any] | None, state: str | None) -> dict[str, Any]:
    """What a leg adds to the original request; what is absent stays absent, "" is present."""
    added: dict[str, Any] = {}
    if answers:
        added["inputResponses"] = dict(answers)
    if state is not None:
        added["requestState"] = state
    return added


def _target(ctx: Context) -> str:
    params = ctx.params or {}
    return str(params.get("name") or params.get("uri") or "")


def _sealable(result: Result) -> Result:
    """The server's state goes inside ours; where it has none, there is none."""
    if result.get("resultType") != "input_required" or result.get("requestState") is None:
        return result
    inner = msgspec.json.encode({"state": result["requestState"]}).decode()
    return {**result, "requestState": inner}


def _visits(error: MCPError) -> Result:
    """What a 2025-era server raises to have a URL opened first is a round in 2026."""
    reply = refusal_of(error)
    if not isinstance(reply, Asks):
        raise error
    plain: Result = msgspec.to_builtins(reply.required)
    return {
        **plain,
        "inputRequests": {key: _for_2026(one) for key, one in plain["inputRequests"].items()},
    }


def _for_2026(question: Question) -> Question:
    """An id of an elicitation is of 2025."""
    params = {k: v for k, v in question["params"].items() if k not in ("elicitationId", "_meta")}
    return {"method": question["method"], "params": params}


async def _passed_on(ctx: Context, leg: RelayedLeg, key: str, question: Question) -> None:
    answer = await _ask(ctx, question)
    if isinstance(answer, ErrorData) and answer.code == CONNECTION_CLOSED:
        return  # somebody else may yet bring the answer
    leg.answer({key: answer})


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
