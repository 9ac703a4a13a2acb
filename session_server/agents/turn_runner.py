"""Running the turns of agents: which are installed, and one task per turn, logged step by step."""

import asyncio
import logging
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from session_server.agents.demo import DemoAgent, PeopleAgent
from session_server.agents.interface import Agent, CallFailedError
from session_server.calls.service import Calls, id_of_step
from session_server.host.channels.changes import Change, PlannedChange
from session_server.host.effects import SessionChannel
from session_server.host.host import Host
from session_server.host.nodes import Nodes
from session_server.reducers.batches import batch_of, judged_batch
from session_server.reducers.rules.input_rules import outcome_of
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.state.turns import active_turn
from session_server.schemas.ahp.actions import (
    Delta,
    InputRequested,
    ResponsePartAdded,
    SessionAction,
    ToolCallComplete,
    ToolCallReady,
    ToolCallStart,
    TurnComplete,
    TurnFailed,
)
from session_server.schemas.ahp.questions import InputRequest, Question, RequestMeta
from session_server.schemas.ahp.tool_calls import ConfirmationReason, ToolResult
from session_server.schemas.ahp.turn_messages import Message
from session_server.schemas.ahp.turns import MarkdownPart, ReasoningPart, ResponsePart, ToolCallPart
from session_server.schemas.errors import (
    CommandError,
    Refusal,
    RefusalCode,
    SessionServerError,
    UnknownCallError,
)
from session_server.schemas.mcp import CallMethod
from session_server.schemas.principals import Principal, Role, Stamp
from session_server.schemas.record import Outcome, SessionRecord, TurnTaken
from session_server.schemas.wire import ErrorInfo, Text, Uri

ENTRY_POINTS = "session_server.agents"
"""Entry points in this group name the classes of installed agents."""


def installed_agents() -> dict[str, Agent]:
    """By provider. A package can replace a built-in agent by using its name."""
    agents: list[Agent] = [DemoAgent(), PeopleAgent()]
    agents += (point.load()() for point in entry_points(group=ENTRY_POINTS))
    return {agent.info.provider: agent for agent in agents}


logger = logging.getLogger("session_server.agents")


class TurnEndedError(SessionServerError):
    """The turn was ended by someone else while the agent was working in it."""

    code = "turnEnded"


class AgentTurns:
    """The turns that are running; the host's `TurnRunner`."""

    def __init__(self, host: Host, agents: Mapping[str, Agent], calls: Calls | None = None) -> None:
        self.calls = calls
        self._host = host
        self._agents = agents
        self._running: dict[tuple[Uri, str], asyncio.Task[None]] = {}
        self._waiters: dict[tuple[Uri, str], list[asyncio.Future[None]]] = {}
        host.on_committed.append(self._committed)

    def run(self, channel: SessionChannel, turn_id: str, *, resumed: bool) -> None:
        record = channel.committed
        agent = None if record is None else self._agents.get(record.public.summary.provider)
        key = (channel.uri, turn_id)
        if agent is None or key in self._running:
            return
        turn = RunningTurn(self, self._host, channel, turn_id, agent)
        task = self._host.spawn(turn.begin(resumed=resumed))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    def stop(self, channel: SessionChannel, turn_id: str) -> None:
        task = self._running.get((channel.uri, turn_id))
        if task is not None:
            task.cancel()

    def _committed(self, channel: SessionChannel, change: Change) -> None:
        """Stops a turn that another node has taken over while this node was silent."""
        action = change.actions[-1]
        if isinstance(action, TurnTaken) and action.node != self._host.node:
            self.stop(channel, action.turn_id)

    def deliver(self, channel: SessionChannel, request_id: str) -> None:
        for waiter in self._waiters.pop((channel.uri, request_id), ()):
            if not waiter.done():
                waiter.set_result(None)

    async def outcome(self, channel: SessionChannel, request_id: str) -> Outcome:
        """The outcome, read from the record; the future only signals when to read it."""
        while True:
            record = channel.committed
            outcome = None if record is None else outcome_of(record, request_id)
            if outcome is not None:
                return outcome
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.setdefault((channel.uri, request_id), []).append(waiter)
            await waiter


class RunningTurn:
    """One turn of one agent: a `TurnContext`."""

    def __init__(
        self, turns: AgentTurns, host: Host, channel: SessionChannel, turn_id: str, agent: Agent
    ) -> None:
        self._turns = turns
        self._host = host
        self._channel = channel
        self._agent = agent
        self._principal = Principal(
            id=f"agent:{agent.info.provider}", name=agent.info.display_name, role=Role.AGENT
        )
        self.turn_id = turn_id

    @property
    def session(self) -> Uri:
        return self._channel.uri

    @property
    def message(self) -> Message:
        turn = active_turn(self._record().public, self.turn_id)
        if turn is None:
            raise TurnEndedError
        return turn.message

    async def begin(self, *, resumed: bool) -> None:
        """Runs the turn, unless another node runs it."""
        if self._host.nodes is not None and not await self._claimed(self._host.nodes):
            return
        if resumed and not self._agent.resumes:
            message = (
                "The process that ran this turn has ended, and this agent cannot resume its turns."
            )
            self._fail("interrupted", message)
        else:
            await self._run()

    async def _claimed(self, nodes: Nodes) -> bool:
        """Whether this node is the one that runs it: durable before it does anything."""
        won = False
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def plan(record: SessionRecord, _: Stamp) -> Any:
            nonlocal won
            owner = record.private.turn_owner
            is_new = owner is None or owner.turn_id != self.turn_id
            is_free = owner is None or is_new or not nodes.is_alive(owner.node)
            won = active_turn(record.public, self.turn_id) is not None and is_free
            return (TurnTaken(turn_id=self.turn_id, node=nodes.name),) if won else ()

        self._host.write(self._channel, plan, done=lambda: _settle(written, None))
        await written
        return won

    async def _run(self) -> None:
        try:
            await self._agent.run(self)
            self._end(TurnComplete(turn_id=self.turn_id))
        except TurnEndedError:
            return
        except Exception as error:
            logger.exception("the agent %s failed", self._agent.info.provider)
            self._fail("agentFailed", f"The agent failed: {type(error).__name__}.")

    async def say(self, text: str, *, key: str) -> None:
        await self._add(MarkdownPart(id=self._id(key), content=text))

    async def think(self, text: str, *, key: str) -> None:
        await self._add(ReasoningPart(id=self._id(key), content=text))

    async def stream(self, chunk: str, *, key: str) -> None:
        part_id = self._id(key)
        await self._add(MarkdownPart(id=part_id, content=""))
        await self._write(Delta(turn_id=self.turn_id, part_id=part_id, content=chunk))

    async def show_tool_call(
        self, name: str, *, key: str, message: Text, tool_input: str | None = None
    ) -> None:
        if self._has_part(self._id(key)):
            return
        on_call: dict[str, Any] = {"turn_id": self.turn_id, "tool_call_id": self._id(key)}
        await self._write(ToolCallStart(**on_call, tool_name=name, display_name=name))
        await self._write(
            ToolCallReady(
                **on_call,
                invocation_message=message,
                tool_input=tool_input,
                confirmed=ConfirmationReason.NOT_NEEDED,
            )
        )

    async def finish_tool_call(self, *, key: str, result: ToolResult) -> None:
        await self._write(
            ToolCallComplete(turn_id=self.turn_id, tool_call_id=self._id(key), result=result)
        )

    async def ask(
        self,
        *questions: Question,
        key: str,
        message: str | None = None,
        url: Uri | None = None,
        expires_at: int | None = None,
    ) -> Outcome:
        request = InputRequest(
            id=self._id(key),
            message=message,
            url=url,
            questions=questions or None,
            meta=None if expires_at is None else RequestMeta(expires_at=expires_at),
        )
        record = self._record()
        asked = open_request(record.public, request.id) or outcome_of(record, request.id)
        if asked is None:
            await self._write(InputRequested(request=request))
        return await self._turns.outcome(self._channel, request.id)

    async def call_tool(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        key: str,
    ) -> dict[str, Any]:
        params = {"name": tool, "arguments": dict(arguments or {})}
        return await self.call(server, "tools/call", params, key=key)

    async def call(
        self, server: str, method: CallMethod, params: Mapping[str, Any], *, key: str
    ) -> dict[str, Any]:
        calls = self._turns.calls
        if calls is None:
            raise CallFailedError("No MCP servers are configured.")
        call_id = id_of_step(self.session, self.turn_id, key)
        try:
            calls.session_of(call_id)
        except UnknownCallError:
            await calls.start(
                self._principal, self.session, server, method, params, call_id=call_id
            )
        view = await calls.result(self._principal, call_id, wait=None)
        if view.result is None:
            raise CallFailedError("It was abandoned." if view.error is None else view.error.message)
        return view.result

    # How it is written

    def _id(self, key: str) -> str:
        return f"{self.turn_id}:{key}"

    def _record(self) -> SessionRecord:
        record = self._channel.committed
        if record is None:
            raise TurnEndedError
        return record

    def _has_part(self, part_id: str) -> bool:
        turn = active_turn(self._record().public, self.turn_id)
        return turn is not None and any(_id_of(part) == part_id for part in turn.response_parts)

    async def _add(self, part: ResponsePart) -> None:
        if not self._has_part(_id_of(part) or ""):
            await self._write(ResponsePartAdded(turn_id=self.turn_id, part=part))

    def _fail(self, kind: str, text: str) -> None:
        error = ErrorInfo(error_type=kind, message=text)
        self._end(TurnFailed(turn_id=self.turn_id, error=error))

    def _end(self, action: TurnComplete | TurnFailed) -> None:
        """Ends the turn. The host repeats this until it is saved, so that no turn stays open."""

        def plan(record: SessionRecord, stamp: Stamp) -> Any:
            has_ended = active_turn(record.public, self.turn_id) is None
            return () if has_ended else batch_of(record, action, stamp)

        self._host.write(self._channel, plan, by=self._principal.author)

    async def _write(self, action: SessionAction) -> None:
        """Returns when the action is durable and visible."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def plan(record: SessionRecord | None, stamp: Stamp) -> Any:
            assert record is not None
            if active_turn(record.public, self.turn_id) is None:
                return Refusal(code=RefusalCode.NO_TURN, message="The turn has ended.")
            return judged_batch(self._principal, record, action, stamp)

        def refused(refusal: Refusal) -> None:
            has_ended = active_turn(self._record().public, self.turn_id) is None
            _settle(written, TurnEndedError() if has_ended else ValueError(refusal.message))

        change = PlannedChange(
            plan,
            self._principal.author,
            done=lambda: _settle(written, None),
            refused=refused,
            failed=lambda reason: _settle(written, OSError(reason)),
        )
        try:
            self._host.submit(self._channel.uri, change)
        except CommandError:
            raise TurnEndedError from None
        await written


def _settle(future: asyncio.Future[None], error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def _id_of(part: ResponsePart) -> str | None:
    if isinstance(part, MarkdownPart | ReasoningPart):
        return part.id
    return part.tool_call.tool_call_id if isinstance(part, ToolCallPart) else None
