"""Waiting for something to become true of a session, for whoever can wait: HTTP, agents, calls.

The record is the only truth: a future here says when to look again, and nothing else.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from session_server.host.channel import Channel
from session_server.host.errors import no_session
from session_server.host.host import Host
from session_server.host.logged import LoggedAction
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri

T = TypeVar("T")

Look = Callable[[SessionRecord], T | None]


class Waiting:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiters: dict[Uri, set[asyncio.Event]] = {}
        self.over = asyncio.Event()
        host.on_committed.append(self._committed)
        host.on_disposed.append(self._disposed)

    async def until(self, uri: Uri, look: Look[T], seconds: float | None = None) -> T | None:
        """What `look` finds in the committed record, as soon as it finds something.

        `None` if it found nothing in this time; without a number it waits for as long as it takes.
        A session that is not there, or no longer, is a `CommandError`.
        """
        changed = asyncio.Event()
        self._waiters.setdefault(uri, set()).add(changed)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    record = self._host.record(uri)
                    if record is None:
                        raise no_session(uri)
                    found = look(record)
                    if found is not None or self.over.is_set():
                        return found
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            return None
        finally:
            waiters = self._waiters.get(uri, set())
            waiters.discard(changed)
            if not waiters:
                self._waiters.pop(uri, None)

    def close(self) -> None:
        """Nobody waits any longer, as if the time were over: the host is about to stop."""
        self.over.set()
        self._host.askers.stop()
        for uri in tuple(self._waiters):
            self._wake(uri)

    def _committed(
        self,
        channel: Channel[SessionRecord],
        _before: SessionRecord,
        _action: LoggedAction,
        _after: SessionRecord,
    ) -> None:
        if channel.uri in self._waiters:
            self._wake(channel.uri)

    def _disposed(self, uri: Uri) -> None:
        asyncio.get_running_loop().call_soon(self._wake, uri)

    def _wake(self, uri: Uri) -> None:
        for changed in self._waiters.get(uri, ()):
            changed.set()
