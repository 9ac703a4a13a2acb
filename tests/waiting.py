"""Waiting for what sends no event, such as the state of another process; bounded generously."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from tests.effort import PATIENCE

PAUSE = 0.02
T = TypeVar("T")


async def until(holds: Callable[[], T], seconds: float = PATIENCE) -> T:
    """What the condition gives, once that is true."""
    async with asyncio.timeout(seconds):
        while not (found := holds()):  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(PAUSE)
    return found


def wait_until(holds: Callable[[], T], seconds: float = PATIENCE) -> T:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(PAUSE)
    return found
