"""A clock that stands still until a test moves it."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import Any

from session_server.host.timers import Clock, Handle

START_MS = 1_800_000_000_000
TURNS = 10
"""Of the event loop: what a timer brought is then written to a memory log, and delivered."""


class Hands:
    """What stands for `monotonic`, and is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Waiting(Handle):
    def __init__(self, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.call, self.args = call, args
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ManualClock(Clock):
    """`ahead` is by how many milliseconds the time of day was set forward, or back."""

    def __init__(self) -> None:
        self.ahead = 0
        self._seconds = 0.0
        self._waiting: list[tuple[float, int, Waiting]] = []
        self._numbers = count()

    def now(self) -> int:
        return START_MS + round(self._seconds * 1000) + self.ahead

    def monotonic(self) -> float:
        return self._seconds

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Handle:
        waiting = Waiting(call, args)
        heapq.heappush(self._waiting, (self._seconds + seconds, next(self._numbers), waiting))
        return waiting

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self.call_later(seconds, woken.set)
        await woken.wait()

    async def advance(self, seconds: float) -> None:
        """Everything that falls into this time happens, in order."""
        until = self._seconds + seconds
        await self._settle()
        while self._waiting and self._waiting[0][0] <= until:
            self._seconds, _, waiting = heapq.heappop(self._waiting)
            if not waiting.is_cancelled:
                waiting.call(*waiting.args)
                await self._settle()
        self._seconds = until

    async def _settle(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)
