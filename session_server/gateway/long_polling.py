"""Requests that take long: held open for a while, with progress and log messages meanwhile.

A 2026-era client is then told to come back with a state (`request_state`); a 2025-era request is
held until there is an answer.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from mcp import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)

from session_server.gateway.mcp_callers import McpCaller
from session_server.mcp_client.progress import Listener, Log, Report, nobody

PROGRESS_SECONDS = 10.0
PASS_ON_SECONDS = 0.1
"""Of a server that reports more often, the latest report is passed on this often."""

STEP = 1e-6

STOPPING = "The host is stopping. Ask again soon: what is under way goes on there."

T = TypeVar("T")

Wait = Callable[[float], Awaitable[T]]
"""Waits for at most this many seconds; `None` is "not yet", and comes early if the host stops."""


class HoldLimits(NamedTuple):
    """How long requests of 2026-era clients are held; none is once the host stops (`over`).

    `lease`: how long a client may be away before people see that nobody waits for their answers.
    """

    seconds: float
    lease: float
    over: asyncio.Event


class LegProgress:
    """Progress of one request, if its client asked for it: the server's own numbers unchanged.

    Between them the latest number is repeated, a little more each time: progress has to increase.
    """

    def __init__(self, caller: McpCaller) -> None:
        self._session = caller.ctx.session
        self._progress: float | None = None
        self._total: float | None = None

    async def show(self, message: str) -> None:
        self._progress = 0.0 if self._progress is None else self._progress + STEP
        await self._session.report_progress(self._progress, self._total, message)

    async def pass_on(self, report: Report) -> None:
        self._progress, self._total = report.progress, report.total
        await self._session.report_progress(*report)


@contextlib.asynccontextmanager
async def passing(
    source: Listener | Log, send: Callable[[Any], Awaitable[None]]
) -> AsyncGenerator[None]:
    """While the block runs; with pauses, and what is there at its end in any case."""
    sending = asyncio.Lock()
    task: asyncio.Task[None] | None = None

    async def pass_on() -> None:
        while True:
            async with sending:
                item = source.taken()
                if item is None:
                    return
                await send(item)
            await asyncio.sleep(PASS_ON_SECONDS)

    def begin() -> None:
        nonlocal task
        if source.has_news and (task is None or task.done()):
            task = asyncio.get_running_loop().create_task(pass_on())

    source.notify = begin
    begin()
    try:
        yield
        async with sending:  # what is being sent is not broken off
            if task is not None:
                task.cancel()
    finally:
        if source.notify is begin:
            source.notify = nobody
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    last = source.taken()
    if last is not None:
        await send(last)


@contextlib.asynccontextmanager
async def passing_logs(caller: McpCaller, log: Log) -> AsyncGenerator[None]:
    """Log messages to the client of this request, on its stream, if it has asked for them."""
    if caller.log_level is None:
        yield
        return
    ctx = caller.ctx

    async def send(messages: list[LoggingMessageNotificationParams]) -> None:
        for message in messages:
            notice = LoggingMessageNotification(params=message)
            await ctx.session.send_notification(notice, related_request_id=ctx.request_id)

    async with passing(log, send):
        yield


async def hold(
    caller: McpCaller,
    wait: Wait[T],
    limits: HoldLimits,
    progress: LegProgress,
    message: Callable[[], str],
) -> T:
    """What was waited for, or `None` when a 2026-era request was held for its time.

    The client is sent this message as progress again and again.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + limits.seconds if caller.is_modern else math.inf
    found = await wait(0)
    while found is None and (left := end - clock()) > 0 and not limits.over.is_set():
        await progress.show(message())
        found = await wait(min(left, PROGRESS_SECONDS))
    if found is None and not caller.is_modern:
        raise MCPError(INTERNAL_ERROR, STOPPING)
    return found
