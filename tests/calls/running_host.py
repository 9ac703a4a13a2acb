"""A host with configured MCP servers in this process, and people who answer in its sessions."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from session_server.agents.interface import Agent
from session_server.agents.turn_runner import AgentTurns, installed_agents
from session_server.calls.service import Calls
from session_server.host.async_api import StateWaiters, perform
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.host.host_limits import DEFAULT_LIMITS, HostLimits
from session_server.host.takeover import Takeover
from session_server.host.timers import CLOCK, Clock
from session_server.log.opening import open_log
from session_server.log.protocol import Log, SharedLog
from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.revisions import Revisions
from session_server.schemas.ahp.actions import InputCompleted
from session_server.schemas.ahp.commands import CreateSessionParams
from session_server.schemas.ahp.customizations import McpServer
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanValue,
    InputRequest,
    NumberValue,
    Question,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Submitted,
    TextValue,
    Value,
)
from session_server.schemas.ahp.tool_calls import ToolCall
from session_server.schemas.ahp.turns import SystemNotificationPart, ToolCallPart
from session_server.schemas.http import CallView
from session_server.schemas.mcp import CallMethod
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import SessionRecord
from tests.mcp import zoo

T = TypeVar("T")

SESSION = "ahp-session:/desk"
OWNER = Principal(id="u-ana", name="Ana", role=Role.OWNER)
BO = Principal(id="u-bo", name="Bo", role=Role.ANSWERER)
AGENT = Principal(id="u-agent", role=Role.AGENT)
PATIENCE = 90.0


def stdio(kind: zoo.Kind, *arguments: str, **more: Any) -> ServerConfig:
    return msgspec.convert(zoo.stdio_entry(kind, *arguments, **more), ServerConfig)


def http(url: str, **more: Any) -> ServerConfig:
    return msgspec.convert({"url": url, **more}, ServerConfig)


class RunningHost:
    def __init__(self, host: Host, waiting: StateWaiters, calls: Calls) -> None:
        self.host = host
        self.waiting = waiting
        self.calls = calls

    @property
    def record(self) -> SessionRecord:
        record = self.host.record(SESSION)
        assert record is not None
        return record

    async def new_session(self, provider: str = "people", uri: str = SESSION) -> None:
        made: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.host.lifecycle.create(
            OWNER,
            CreateSessionParams(channel=uri, provider=provider),
            done=lambda: made.set_result(None),
            failed=lambda reason: made.set_exception(RuntimeError(reason)),
        )
        await made

    async def call(
        self,
        tool: str,
        *,
        by: Principal = OWNER,
        server: str = "zoo",
        key: str | None = None,
        **arguments: Any,
    ) -> str:
        params = {"name": tool, "arguments": arguments}
        return await self.calls.start(by, SESSION, server, "tools/call", params, key=key)

    async def request(self, method: CallMethod, **params: Any) -> str:
        return await self.calls.start(OWNER, SESSION, "zoo", method, params)

    async def ended(self, call_id: str, by: Principal = OWNER) -> CallView:
        view = await self.calls.result(by, call_id, PATIENCE)
        assert not view.is_open, view
        return view

    async def result(self, call_id: str, by: Principal = OWNER) -> CallView:
        """The same, fetched."""
        view = await self.ended(call_id, by)
        await self.calls.collect(by, call_id)
        return view

    async def text(self, call_id: str) -> str:
        """The first text of its result."""
        view = await self.result(call_id)
        assert view.result is not None, view.error
        return zoo.text_of(view.result)

    async def error(self, call_id: str) -> str:
        view = await self.result(call_id)
        assert view.error is not None, view.result
        return view.error.message

    async def until(self, look: Callable[[SessionRecord], T | None]) -> T:
        found = await self.waiting.until(SESSION, look, PATIENCE)
        assert found is not None, f"it did not become true in time: {self.record}"
        return found

    async def asked(self, *parts: str) -> list[InputRequest]:
        """The open requests, once there is one with each of these texts in its message."""

        def look(record: SessionRecord) -> list[InputRequest] | None:
            requests = record.public.input_requests or ()
            found = [r for part in parts for r in requests if part in (r.message or "")]
            return found if len(found) == len(parts) else None

        return await self.until(look)

    async def answer(self, part: str, by: Principal = OWNER, **values: Any) -> None:
        (request,) = await self.asked(part)
        questions = {question.id: question for question in request.questions or ()}
        answers: dict[str, Answer] = {
            name: Submitted(value=value_of(questions[name], value))
            for name, value in values.items()
        }
        await self.complete(request, ResponseKind.ACCEPT, answers, by)

    async def refuse(
        self, part: str, how: ResponseKind = ResponseKind.DECLINE, by: Principal = OWNER
    ) -> None:
        (request,) = await self.asked(part)
        await self.complete(request, how, None, by)

    async def complete(
        self,
        request: InputRequest,
        how: ResponseKind,
        answers: dict[str, Answer] | None,
        by: Principal = OWNER,
    ) -> None:
        action = InputCompleted(request_id=request.id, response=how, answers=answers)
        await perform(self.host, by, SESSION, action)

    async def settled(self) -> None:
        """Returns when the legs that are out have come back or were given up."""
        legs = self.calls.driver._legs
        async with asyncio.timeout(PATIENCE):
            while legs:
                await asyncio.wait(tuple(legs.values()))

    def tool_call(self, call_id: str) -> ToolCall | None:
        state = self.record.public
        turns = [*state.turns, *([state.active_turn] if state.active_turn else [])]
        for turn in turns:
            for part in turn.response_parts:
                if isinstance(part, ToolCallPart) and part.tool_call.tool_call_id == call_id:
                    return part.tool_call
        return None

    def notes(self) -> list[str]:
        state = self.record.public
        turns = [*state.turns, *([state.active_turn] if state.active_turn else [])]
        return [
            str(part.content)
            for turn in turns
            for part in turn.response_parts
            if isinstance(part, SystemNotificationPart)
        ]

    def listed(self) -> dict[str, str]:
        """The servers that the session lists, and where it says that they stand."""
        return listed(self.record)


def listed(record: SessionRecord) -> dict[str, str]:
    return {
        entry.name: str(entry.state.__struct_config__.tag)
        for entry in record.public.customizations or ()
        if isinstance(entry, McpServer)
    }


def value_of(question: Question, value: Any) -> Value:
    match value:
        case bool():
            return BooleanValue(value=value)
        case int() | float():
            return NumberValue(value=value)
        case list():
            return SelectedManyValue(value=tuple(value))
        case _ if isinstance(question, SingleSelectQuestion):
            return SelectedValue(value=value)
        case _:
            return TextValue(value=value)


@contextlib.asynccontextmanager
async def running_host(
    servers: Mapping[str, ServerConfig] | ServerConfig,
    store: str = "memory:",
    agents: Mapping[str, Agent] | None = None,
    revisions: Revisions | None = None,
    shared: SharedLog | None = None,
    log: Log | None = None,
    limits: HostLimits = DEFAULT_LIMITS,
    *,
    clock: Clock = CLOCK,
) -> AsyncGenerator[RunningHost]:
    """Open while the block runs; on a store that has the session, it goes on there.

    `shared` is a log that other hosts have too; `log` one of the test's own.
    """
    configs = {"zoo": servers} if isinstance(servers, ServerConfig) else servers
    known = {**installed_agents(), **(agents or {})}
    infos = tuple(agent.info for agent in known.values())
    used = shared or log or await open_log(store)
    host = Host(used, infos, limits, clock, is_shared=shared is not None)
    waiting = StateWaiters(host)
    calls = Calls(host, waiting, configs, revisions)
    takeover = Takeover(host, EffectRunner(host, AgentTurns(host, known, calls), calls.driver))
    await host.start()
    calls.open()
    takeover.started()
    opened = RunningHost(host, waiting, calls)
    if SESSION not in host.sessions:
        await opened.new_session()
    try:
        yield opened
    finally:
        await calls.close()
        await host.stop()
