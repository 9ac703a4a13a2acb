"""One leg of a call whose client answers for itself: under way, whoever is connected just now.

It goes on when its client disconnects, so that the same request, or a retry, can pick it up.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from mcp import MCPError
from mcp.server.session import ServerSession
from mcp_types import INTERNAL_ERROR, ErrorData

from session_server.calls.connections import Question, Spawn
from session_server.gateway.resuming import Before, Given, fingerprint_of
from session_server.schemas.limits import (
    RELAYED_CALL_SECONDS,
    RELAYED_CALLS,
    RELAYED_CALLS_PER_PRINCIPAL,
)

TOGETHER_SECONDS = 0.05
"""Questions that a 2025-era server asks at the same time arrive one by one."""


class Asked(msgspec.Struct, frozen=True):
    """What is not answered yet, by key."""

    questions: dict[str, Question]


Result: TypeAlias = dict[str, Any]


class RelayedLeg:
    """`ask` is called by the connection; `answer` by whoever brings the client's answers."""

    def __init__(self, name: str, key: str, by: str, before: Before | None = None) -> None:
        """`by` is the principal whose call it is."""
        self.name = name
        self.key = key
        self.by = by
        self.before = before or Before()
        self.listener: ServerSession | None = None
        self.touched = asyncio.get_running_loop().time()
        self._known = list(self.before.given)
        self._given: list[Given] = []
        self._open: dict[str, tuple[Question, asyncio.Future[Any]]] = {}
        self._count = 0
        self._changed = asyncio.Event()
        self._task: asyncio.Task[Result] | None = None

    def begin(self, work: Coroutine[Any, Any, Result], spawn: Spawn) -> None:
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(lambda _: self._changed.set())
        # The host keeps it, and ends it when it stops.
        spawn(self._watched(self._task))

    async def _watched(self, task: asyncio.Task[Result]) -> None:
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()

    @property
    def is_over(self) -> bool:
        return self._task is not None and self._task.done()

    # The server's side

    async def ask(self, question: Question) -> dict[str, Any] | ErrorData:
        known = self._answered_before(question)
        if known is not None:
            return known
        self._count += 1
        key = f"q{self._count}"
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[key] = (question, answered)
        self._changed.set()
        try:
            answer: dict[str, Any] | ErrorData = await answered
        finally:
            self._open.pop(key, None)
        if isinstance(answer, dict):
            self._given.append((fingerprint_of(question), answer))
        return answer

    async def visited(self, elicitation_id: str) -> None:
        """Not passed on: the client hears of it from whom its user visits."""

    def _answered_before(self, question: Question) -> dict[str, Any] | None:
        """What the client has said to this question before the host was restarted."""
        name = fingerprint_of(question)
        found = next((given for given in self._known if given[0] == name), None)
        if found is None:
            return None
        self._known.remove(found)
        self._given.append(found)
        return found[1]

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        if self.listener is not None:
            with contextlib.suppress(Exception):
                await self.listener.report_progress(progress, total, message)

    # The client's side

    def answer(self, responses: Mapping[str, Any]) -> None:
        """Keys that were never asked for are passed over; those left out stay open."""
        for key, response in responses.items():
            question = self._open.get(key)
            if question is not None and not question[1].done():
                question[1].set_result(response)

    def so_far(self) -> Before:
        """What the client needs to carry, so that the leg can be taken up after a restart."""
        asked = {key: fingerprint_of(question) for key, question in self.unanswered().items()}
        return Before(sent=self.before.sent, given=tuple(self._given), asked=asked)

    def give_up(self) -> None:
        """Nobody came back: that is no answer of a person's, and no refusal."""
        for question, answered in self._open.values():
            if not answered.done():
                answered.set_result(_nobody(question))

    def unanswered(self, besides: Iterable[str] = ()) -> dict[str, Question]:
        known = set(besides)
        return {
            key: question
            for key, (question, answered) in self._open.items()
            if not answered.done() and key not in known
        }

    async def wait(self, seconds: float, besides: Iterable[str] = ()) -> Result | Asked | None:
        """The result, or questions that are open (`besides` these), or `None` when time is up."""
        self.touched = asyncio.get_running_loop().time()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.is_over and not self.unanswered(besides):
                    self._changed.clear()
                    await self._changed.wait()
                if not self.is_over:
                    await asyncio.sleep(TOGETHER_SECONDS)
        if self.is_over:
            return self._result()
        questions = self.unanswered(besides)
        return Asked(questions) if questions else None

    def _result(self) -> Result:
        assert self._task is not None  # it is over
        if self._task.cancelled():
            raise MCPError(INTERNAL_ERROR, "The host was stopped; try again.")
        return self._task.result()


def _nobody(question: Question) -> dict[str, Any] | ErrorData:
    if question["method"] == "elicitation/create":
        return {"action": "cancel"}
    return ErrorData(code=INTERNAL_ERROR, message="The client went away.")


class RelayedLegs:
    """Those under way and those whose result nobody has fetched, bounded in number and time."""

    def __init__(self, most: int = RELAYED_CALLS, seconds: float = RELAYED_CALL_SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._by_name: dict[str, RelayedLeg] = {}
        self._by_key: dict[str, RelayedLeg] = {}

    def named(self, name: str) -> RelayedLeg | None:
        return self._by_name.get(name)

    def same(self, key: str) -> RelayedLeg | None:
        return self._by_key.get(key)

    def add(self, leg: RelayedLeg) -> None:
        if len(self._by_name) >= self._most:
            raise MCPError(INTERNAL_ERROR, f"{self._most} calls are under way; try again later.")
        if sum(one.by == leg.by for one in self._by_name.values()) >= RELAYED_CALLS_PER_PRINCIPAL:
            words = f"{RELAYED_CALLS_PER_PRINCIPAL} calls of yours are under way; try again later."
            raise MCPError(INTERNAL_ERROR, words)
        self._by_name[leg.name] = leg
        self._by_key[leg.key] = leg
        self._look_after(leg, self._seconds)

    def drop(self, leg: RelayedLeg) -> None:
        self._by_name.pop(leg.name, None)
        if self._by_key.get(leg.key) is leg:
            del self._by_key[leg.key]

    def _look_after(self, leg: RelayedLeg, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._is_wanted, leg)

    def _is_wanted(self, leg: RelayedLeg) -> None:
        """A client that has not been heard of for so long does not come back."""
        if self._by_name.get(leg.name) is not leg:
            return
        left = leg.touched + self._seconds - asyncio.get_running_loop().time()
        if left > 0:
            self._look_after(leg, left)
        else:
            leg.give_up()
            self.drop(leg)
