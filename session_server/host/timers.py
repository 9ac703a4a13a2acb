"""The host's clock, timers by the time of day, and tasks that end with their owner."""

import asyncio
import heapq
import logging
import time
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Protocol

from session_server.schemas.wire import Millis


class Tasks:
    def __init__(self, owner: str, logger: logging.Logger) -> None:
        self._owner = owner
        self._logger = logger
        self._running: set[asyncio.Task[None]] = set()
        self.is_over = False

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        if self.is_over:
            task.cancel()
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._logger.error("a task of %s failed", self._owner, exc_info=task.exception())

    async def stop(self) -> None:
        """Cancels all tasks; one that is spawned afterwards is cancelled at once."""
        self.is_over = True
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


logger = logging.getLogger("session_server.host")

RECHECK_SECONDS = 1.0
"""How late a timer may be after the clock was set forward, or the machine woke up."""

COMPACT_AT = 64


class Handle(Protocol):
    def cancel(self) -> object: ...


class Clock:
    """Where the host reads the time, and waits. Tests pass one that they set themselves."""

    def now(self) -> Millis:
        """The time of day."""
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)
    """Seconds that only go forward."""

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Handle:
        return asyncio.get_running_loop().call_later(seconds, call, *args)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


CLOCK = Clock()


class Timer:
    """A pending call. A cancelled one stays in the heap until its time or a compaction."""

    __slots__ = ("_timers", "call", "is_over", "when")

    def __init__(self, timers: "WallTimers", when: Millis, call: Callable[[], None]) -> None:
        self._timers = timers
        self.when = when
        self.call = call
        self.is_over = False

    def cancel(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._timers.cancelled()


class WallTimers:
    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock
        self._waiting: list[tuple[Millis, int, Timer]] = []
        self._numbers = count()
        self._cancelled = 0
        self._handle: Handle | None = None

    def __len__(self) -> int:
        return len(self._waiting) - self._cancelled

    def at(self, when: Millis, call: Callable[[], None]) -> Timer:
        """Calls once, as soon as the wall clock shows this time or a later one."""
        timer = Timer(self, when, call)
        heapq.heappush(self._waiting, (when, next(self._numbers), timer))
        if self._waiting[0][2] is timer:
            self._arm()
        return timer

    def cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > max(COMPACT_AT, len(self._waiting) // 2):
            self._waiting = [entry for entry in self._waiting if not entry[2].is_over]
            heapq.heapify(self._waiting)
            self._cancelled = 0

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._waiting:
            until = max(0, self._waiting[0][0] - self._clock.now()) / 1000
            self._handle = self._clock.call_later(min(until, RECHECK_SECONDS), self._check)

    def _check(self) -> None:
        now = self._clock.now()
        while self._waiting and self._waiting[0][0] <= now:
            timer = heapq.heappop(self._waiting)[2]
            if timer.is_over:
                self._cancelled -= 1
                continue
            timer.is_over = True
            try:
                timer.call()
            except Exception:
                logger.exception("a timer failed")
        self._arm()
