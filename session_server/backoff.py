"""Growing pauses between attempts, for everything that is tried again."""

import asyncio
from collections.abc import Callable


class Backoff:
    """Each pause is twice as long as the one before, up to the longest.

    With `jitter`, a source of numbers below 1, each is shortened by up to a half, so that many
    clients do not come at the same time.
    """

    def __init__(
        self, first: float, longest: float, jitter: Callable[[], float] | None = None
    ) -> None:
        self._first = first
        self._longest = longest
        self._next = first
        self._jitter = jitter

    def pause(self) -> float:
        """The seconds before the next attempt."""
        seconds = self._next
        self._next = min(seconds * 2, self._longest)
        return seconds if self._jitter is None else seconds * (1 - self._jitter() / 2)

    def reset(self) -> None:
        """After a success."""
        self._next = self._first

    async def sleep(self) -> None:
        await asyncio.sleep(self.pause())
