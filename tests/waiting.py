"""Waiting for what sends no event, such as the state of another process; bounded generously."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.effort import PATIENCE

PAUSE = 0.02
T = TypeVar("T")


async def until(holds: Callable[[], T | Awaitable[T]], seconds: float = PATIENCE) -> T:
    """What the condition gives, once that is true. It may be a coroutine."""
    async with asyncio.timeout(seconds):
        while True:
            found = holds()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(PAUSE)


def wait_until(holds: Callable[[], T], seconds: float = PATIENCE) -> T:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(PAUSE)
    return found
