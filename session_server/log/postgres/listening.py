"""Notices what other nodes wrote, on a connection of its own.

A notification only wakes readers up, and they read by position. So one that is lost costs time and
nothing else; and once in a while the end of the log is looked up without one.
"""

import asyncio
from collections.abc import Callable

import psycopg

from session_server.log.postgres.faults import is_lost
from session_server.log.postgres.link import LONGEST_PAUSE, Link
from session_server.log.postgres.queries import MESSAGE_MARK
from session_server.log.postgres.schema import Connection, in_schema, one
from session_server.log.progress import Progress
from session_server.log.protocol import LogError

POLL_SECONDS = 5.0


class Listener:
    def __init__(self, link: Link, schema: str, progress: Progress) -> None:
        self.link = link
        self._schema = schema
        self._progress = progress
        self.heard: Callable[[str], None] | None = None
        self._task = asyncio.get_running_loop().create_task(self._run(), name="log listener")

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._listen(await self.link.connection())
                except (psycopg.Error, OSError, LogError) as error:
                    if is_lost(error):
                        await self.link.lose(error)
                    await asyncio.sleep(LONGEST_PAUSE)
        finally:
            await self.link.close()

    async def _listen(self, connection: Connection) -> None:
        """What was written before it listened is looked up too."""
        await connection.execute(in_schema("LISTEN {s}", self._schema))
        end = in_schema("SELECT last_seq FROM {s}.counter", self._schema)
        self._progress.reach(await one(connection, end))
        async for notification in connection.notifies(timeout=POLL_SECONDS):
            payload = notification.payload
            if not payload.startswith(MESSAGE_MARK):
                self._progress.reach(int(payload))
            elif self.heard is not None:
                self.heard(payload.removeprefix(MESSAGE_MARK))

    def stop(self) -> None:
        self._task.cancel()

    async def stopped(self) -> None:
        await asyncio.wait({self._task})
