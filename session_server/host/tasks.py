"""Tasks with an owner: they end with it, and none of them fails silently."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any


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
        """Ends all of them; what is begun afterwards ends before it does anything."""
        self.is_over = True
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
