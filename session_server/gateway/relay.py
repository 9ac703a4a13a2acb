"""`answers: client`: what a server asks is passed on to the client, in the client's own era.

A 2026-era client gets the questions with a sealed state and comes back with answers; a 2025-era one
is asked while its request is held open. Which era the server is of makes no difference to it.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Mapping
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

from session_server.calls.replies import Asks, refusal_of
from session_server.gateway.errors import lost_state, told_in_mcp
from session_server.gateway.legs import Patience, carried_in, hold, try_again
from session_server.gateway.relayed import Asked, RelayedLeg, RelayedLegs, Result
from session_server.gateway.upstreams import Question, Spawn, Upstream
from session_server.gateway.visitors import Context, Visitor
from session_server.reducers.calls import back_off
from session_server.reducers.starts import own_params

PASSED_ON = ("elicitation", "sampling", "roots")


class Relay:
    def __init__(
        self, upstream: Upstream, spawn: Spawn, patience: Patience, max_rounds: int
    ) -> None:
        self._upstream = upstream
        self._spawn = spawn
        self._patience = patience
        self._max_rounds = max_rounds
        self._legs = RelayedLegs()

    async def perform(self, ctx: Context, visitor: Visitor) -> Result:
        if visitor.is_modern:
            return await self._leg(ctx, visitor)
        return await self._whole(ctx, visitor)

    # For clients of 2026

    async def _leg(self, ctx: Context, visitor: Visitor) -> Result:
        params = dict(ctx.params or {})
        state = carried_in(params)
        leg = self._resumed(state, params) or self._begun(ctx, visitor, _next_params(params, state))
        try:
            found = await self._held(ctx, visitor, leg)
        except MCPError as error:
            return _visits(error)
        if found is None:
            return try_again({"leg": leg.name})
        if isinstance(found, Asked):
            asked = {key: _for_2026(question) for key, question in found.questions.items()}
            return {**try_again({"leg": leg.name}), "inputRequests": asked}
        return _sealable(found)

    def _resumed(self, state: Mapping[str, Any], params: Mapping[str, Any]) -> RelayedLeg | None:
        if "leg" not in state:
            return None
        leg = self._legs.named(state["leg"])
        if leg is None:
            raise lost_state()
        leg.answer(params.get("inputResponses") or {})
        return leg

    async def _held(
        self, ctx: Context, visitor: Visitor, leg: RelayedLeg, besides: tuple[str, ...] = ()
    ) -> Result | Asked | None:
        async def wait(seconds: float) -> Result | Asked | None:
            return await leg.wait(seconds, besides)

        leg.listener = ctx.session
        try:
            found = await hold(ctx, visitor, wait, self._patience)
        except MCPError:
            self._legs.drop(leg)
            raise
        if found is not None and not isinstance(found, Asked):
            self._legs.drop(leg)
        return found

    # For clients of 2025

    async def _whole(self, ctx: Context, visitor: Visitor) -> Result:
        original = own_params(ctx.params or {})
        params, idle = original, 0
        for _ in range(self._max_rounds + 1):
            result = await self._answered(ctx, visitor, params)
            if result.get("resultType") != "input_required":
                return result
            asked: dict[str, Question] = result.get("inputRequests") or {}
            idle = 0 if asked else idle + 1
            if idle:
                await asyncio.sleep(back_off(idle) / 1000)
            answers = await self._ask_all(ctx, asked)
            params = _retry(original, answers, result.get("requestState"))
        raise MCPError(INTERNAL_ERROR, f"The server asked more than {self._max_rounds} times.")

    async def _answered(self, ctx: Context, visitor: Visitor, params: dict[str, Any]) -> Result:
        """One leg, with everything that is asked on the way."""
        leg = self._begun(ctx, visitor, params)
        sent: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                found = await self._held(ctx, visitor, leg, tuple(sent))
                if not isinstance(found, Asked):
                    assert found is not None  # the era's legs have no end
                    return found
                for key, question in found.questions.items():
                    sent[key] = asyncio.create_task(_passed_on(ctx, leg, key, question))
        finally:
            for task in sent.values():
                task.cancel()

    async def _ask_all(self, ctx: Context, asked: Mapping[str, Question]) -> dict[str, Any]:
        answers = await asyncio.gather(*(_ask(ctx, question) for question in asked.values()))
        for answer in answers:
            if isinstance(answer, ErrorData):
                raise MCPError.from_error_data(answer)
        return dict(zip(asked, answers, strict=True))

    # The leg itself

    def _begun(self, ctx: Context, visitor: Visitor, params: dict[str, Any]) -> RelayedLeg:
        """The same request by the same principal joins the leg that is under way."""
        capabilities = _capabilities(ctx)
        about = (visitor.principal.id, ctx.method, params, capabilities)
        key = hashlib.sha256(msgspec.json.encode(about, order="deterministic")).hexdigest()
        known = self._legs.same(key)
        if known is not None:
            return known
        leg = RelayedLeg(uuid.uuid4().hex, key)
        self._legs.add(leg)
        leg.begin(self._run(leg, ctx.method, params, capabilities), self._spawn)
        return leg

    async def _run(
        self, leg: RelayedLeg, method: str, params: dict[str, Any], capabilities: dict[str, Any]
    ) -> Result:
        with told_in_mcp():
            async with self._upstream.lend(capabilities, leg) as link:
                sent = params if link.is_modern else own_params(params)
                return await link.request(method, sent, leg.progressed)


def _capabilities(ctx: Context) -> dict[str, Any]:
    """What the client can answer, and nothing else."""
    declared = ctx.session.client_capabilities
    plain = (
        {}
        if declared is None
        else declared.model_dump(by_alias=True, mode="json", exclude_none=True)
    )
    return {name: plain[name] for name in PASSED_ON if name in plain}


def _next_params(params: dict[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """A client's leg as the server's: its answers, and the server's own state."""
    answers = params.get("inputResponses")
    return _retry(own_params(params), answers, state.get("state"))


def _retry(
    original: Mapping[str, Any], answers: Mapping[str, Any] | None, state: str | None
) -> dict[str, Any]:
    """Exactly the original arguments; what is absent stays absent, and "" is present."""
    leg = dict(original)
    if answers:
        leg["inputResponses"] = dict(answers)
    if state is not None:
        leg["requestState"] = state
    return leg


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
