"""Operations on a channel run one after the other; channels do not wait for each other."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeAlias

from session_server.log.nats.tail import Tail
from session_server.log.protocol import CLOSED, FailedError, LogError
from session_server.schemas.wire import Uri

CLOSING_SECONDS = 10.0
"""How long closing waits for servers that do not answer; what is in flight is then unknown."""

Operation: TypeAlias = Callable[[], Awaitable[None]]


class ChannelQueues:
    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._loop = asyncio.get_running_loop()
        self._queues: dict[Uri, deque[Operation]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, channel: Uri, operation: Operation) -> None:
        queue = self._queues.get(channel)
        if queue is not None:
            queue.append(operation)
            return
        self._queues[channel] = deque([operation])
        self.spawn(self._run_queue(channel))

    async def run(self, channel: Uri, operation: Operation) -> None:
        """Waits for its turn and its end. Raises a `FailedError`."""
        result: asyncio.Future[None] = self._loop.create_future()

        async def work() -> None:
            error = await self._failure_of(operation)
            if not result.done() and error is not None:
                result.set_exception(error)
            elif not result.done():
                result.set_result(None)

        self.add(channel, work)
        await result

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs it in a task that closing waits for."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_queue(self, channel: Uri) -> None:
        queue = self._queues[channel]
        while queue:
            with suppress(asyncio.CancelledError):  # the others still have to report their ends
                await queue.popleft()()
        del self._queues[channel]

    async def _failure_of(self, operation: Operation) -> LogError | None:
        if self._tail.fault is not None:
            return FailedError(*self._tail.fault)
        try:
            await operation()
        except LogError as error:
            return error
        except asyncio.CancelledError:
            return FailedError(*CLOSED)
        return None

    async def close(self) -> None:
        """What is running may end by itself for a while; then it is cancelled."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING_SECONDS)
        self._tail.fault = CLOSED
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
