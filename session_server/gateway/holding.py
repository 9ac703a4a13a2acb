"""One leg of a request that takes long: held for a while, with signs of life, then handed back.

A 2026-era client is told to try again with a state; a 2025-era one has to be kept waiting.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from mcp import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)

from session_server.calls.deliveries import RETURN_SECONDS, Delivery
from session_server.gateway.mcp_callers import Context, Visitor, log_level_of
from session_server.mcp_client.progress import Log, Report

PROGRESS_SECONDS = 10.0
PASS_ON_SECONDS = 0.1
"""A server that reports more often is heard this often."""

STEP = 1e-6

ANSWERING_SECONDS = 60.0
"""How long a client counts as there that shows its user a form."""

MOST_LEGS = 10
"""Then clients give up, by the defaults of the SDKs; whoever asks again has lost the state."""

STOPPING = "The host is stopping. Ask again soon: what is under way goes on there."

T = TypeVar("T")
Item_co = TypeVar("Item_co", covariant=True)

Wait = Callable[[float], Awaitable[T]]
"""Waits for at most this many seconds; `None` is "not yet", and may come early."""


class Patience(NamedTuple):
    """How long the legs of clients of 2026 are held, and that none is when the host stops.

    `lease`: how long a client may be away before people see that nobody waits for their answers.
    """

    seconds: float
    lease: float
    over: asyncio.Event


class Pulse:
    """Progress of one leg to its client, if that asked for it: a server's own numbers as they are.

    Signs of life between them repeat the latest numbers, a little more each time: progress has to
    increase.
    """

    def __init__(self, ctx: Context) -> None:
        self._session = ctx.session
        self._progress: float | None = None
        self._total: float | None = None

    async def show(self, message: str) -> None:
        self._progress = 0.0 if self._progress is None else self._progress + STEP
        await self._session.report_progress(self._progress, self._total, message)

    async def pass_on(self, report: Report) -> None:
        self._progress, self._total = report.progress, report.total
        await self._session.report_progress(*report)


class Source(Protocol[Item_co]):
    async def news(self) -> None: ...

    def taken(self) -> Item_co | None: ...


@contextlib.asynccontextmanager
async def passing(source: Source[T], send: Callable[[T], Awaitable[None]]) -> AsyncGenerator[None]:
    """While the block runs; with pauses, and what is there at its end in any case."""
    sending = asyncio.Lock()

    async def pass_on() -> None:
        while True:
            await source.news()
            async with sending:
                item = source.taken()
                if item is not None:
                    await send(item)
            await asyncio.sleep(PASS_ON_SECONDS)

    task = asyncio.ensure_future(pass_on())
    try:
        yield
        async with sending:  # what is being sent is not broken off
            task.cancel()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    last = source.taken()
    if last is not None:
        await send(last)


@contextlib.asynccontextmanager
async def passing_logs(ctx: Context, log: Log) -> AsyncGenerator[None]:
    """Log messages to the client of this request, on its stream, if it wants any."""
    if log_level_of(ctx) is None:
        yield
        return

    async def send(messages: list[LoggingMessageNotificationParams]) -> None:
        for message in messages:
            notice = LoggingMessageNotification(params=message)
            await ctx.session.send_notification(notice, related_request_id=ctx.request_id)

    async with passing(log, send):
        yield


async def hold(
    visitor: Visitor,
    wait: Wait[T],
    patience: Patience,
    pulse: Pulse | None = None,
    words: Callable[[], str] = str,
) -> T:
    """What was waited for, or `None` when the time of a 2026-era leg is over.

    With a `pulse`, the client is shown these words again and again.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + patience.seconds if visitor.is_modern else math.inf
    found = await wait(0)
    while found is None and (left := end - clock()) > 0 and not patience.over.is_set():
        if pulse is not None:
            await pulse.show(words())
        found = await _unless(patience.over, wait(min(left, PROGRESS_SECONDS))) or found
    if found is None and not visitor.is_modern:
        raise MCPError(INTERNAL_ERROR, STOPPING)
    return found


async def _unless(over: asyncio.Event, waiting: Awaitable[T]) -> T | None:
    """What is waited for, or nothing once the host stops."""
    work, stop = asyncio.ensure_future(waiting), asyncio.ensure_future(over.wait())
    try:
        await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        work.cancel()
        stop.cancel()


def try_again(
    delivery: Delivery, before: Mapping[str, Any], state: Mapping[str, Any]
) -> dict[str, Any]:
    """A result without questions: come back with this state. `before`: the one that was brought.

    Its client counts as there until it does, unless this was the last leg that clients make; for
    longer if its user is asked something.
    """
    legs = before.get("legs", 0) + 1
    if legs < MOST_LEGS:
        delivery.expect_back(ANSWERING_SECONDS if "round" in state else RETURN_SECONDS)
    told = msgspec.json.encode({**state, "legs": legs}).decode()
    return {"resultType": "input_required", "requestState": told}


def carried_in(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The state that a client brings back, which the boundary has unsealed."""
    state: str | None = (params or {}).get("requestState")
    if state is None:
        return {}
    decoded: dict[str, Any] = msgspec.json.decode(state, type=dict[str, Any])
    return decoded
