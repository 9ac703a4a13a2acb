"""Whether the log can be written to, as operators, `/readyz` and metrics see it.

`LogWriter` and `Maintenance` report every failure and every success here. As long as nothing can be
written the host is read-only, and tries again by itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from session_server.host.metrics import Counts
from session_server.host.timers import Clock, Tasks
from session_server.log import RefusedBecause
from session_server.log.protocol import FailedError, LogError

logger = logging.getLogger("session_server.host")

T = TypeVar("T")

PROBE_SECONDS = 1.0
LOGGED_EVERY_SECONDS = 60.0
UNKNOWN = "unknown"
"""The reason where it is not known whether a batch was stored; next to `RefusedBecause`."""

NOT_THE_DISK = (RefusedBecause.CONFLICT, RefusedBecause.CLOSED)


class LogStatus:
    """`reason` says why nothing can be written, and is `None` while it can.

    `in_doubt` counts the batches of which it is not known whether they are stored.
    """

    def __init__(
        self, counts: Counts, tasks: Tasks, probe: Callable[[], Awaitable[None]], clock: Clock
    ) -> None:
        self.reason: str | None = None
        self.in_doubt = 0
        self.on_back: list[Callable[[], None]] = []
        self._counts = counts
        self._tasks = tasks
        self._probe = probe
        self._clock = clock
        self._since = 0.0
        self._next_line = 0.0
        self._unlogged = 0
        self._is_logged = False

    def failed(self, because: str, reason: str) -> None:
        """Something was not stored."""
        self._counts.store_failures[because] += 1
        now = self._clock.monotonic()
        if self.reason is None:
            self._since = now
            self._tasks.spawn(self._until_back())
        self.reason = reason
        if now < self._next_line:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} failures since the last such line)" if self._unlogged else ""
        logger.error("the log cannot be written, the host is read-only: %s%s", reason, more)
        self._next_line = now + LOGGED_EVERY_SECONDS
        self._unlogged = 0
        self._is_logged = True

    def worked(self) -> None:
        """Something was stored."""
        if self.reason is None or self.in_doubt:
            return
        self.reason = None
        if self._is_logged:
            seconds = self._clock.monotonic() - self._since
            logger.warning("the log can be written again, after %.1f seconds", seconds)
            self._is_logged = False
        for back in self.on_back:
            asyncio.get_running_loop().call_soon(back)

    async def watched(self, work: Awaitable[T]) -> T:
        """Reports the result of writing a snapshot, or of trimming or dropping."""
        try:
            result = await work
        except FailedError as error:
            if error.because not in NOT_THE_DISK:
                self.failed(error.because, error.reason)
            raise
        self.worked()
        return result

    async def _until_back(self) -> None:
        while self.reason is not None:
            await self._clock.sleep(PROBE_SECONDS)
            with suppress(LogError):
                await self._probe()
                self.worked()
