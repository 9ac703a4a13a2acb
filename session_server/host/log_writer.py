"""The host's side of the log: verdicts in one order; questions are asked until answered."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

from session_server.host.append_order import InDoubt, Order, Settled, Verdict
from session_server.host.channel import Channel, UnreadableError
from session_server.host.metrics import Histogram
from session_server.host.storage import Storage
from session_server.host.timers import Tasks
from session_server.log import Batch, Entry, Log
from session_server.log.errors import LogError
from session_server.schemas.wire import Uri

logger = logging.getLogger("session_server.host")

T = TypeVar("T")

READ_AT_ONCE = 5_000
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
LONGEST_DOUBT = 1.0
"""Seconds between two questions to a log that does not answer: everything waits for it."""


class Journal:
    def __init__(
        self,
        log: Log,
        tasks: Tasks,
        storage: Storage,
        append_seconds: Histogram,
        patience: float,
    ) -> None:
        self._log = log
        self._tasks = tasks
        self._append_seconds = append_seconds
        self._order = Order(log, self._find_out, storage, patience)

    async def fold_into(
        self, channel_of: Callable[[Uri], Channel[Any]], channels: Collection[Uri] | None = None
    ) -> dict[Uri, str]:
        """What the log holds of these channels, or of all, into the channels.

        Returns the channels that cannot be read, each with the reason. What was folded of them
        before the damage is not to be used.
        """
        floors = await self._log.floors()
        wanted = frozenset(floors) if channels is None else frozenset(channels)
        unreadable = dict.fromkeys(wanted & floors.keys(), "its snapshot is missing")
        whole = set(channels or ())
        for stored in await self._log.snapshots():
            if channels is not None and stored.channel not in wanted:
                continue
            try:
                channel_of(stored.channel).restore(stored)
                unreadable.pop(stored.channel, None)
            except UnreadableError as error:
                if stored.channel in floors:
                    unreadable[stored.channel] = str(error)
                else:
                    logger.warning("%s: %s; its entries are read instead", stored.channel, error)
                    whole.add(stored.channel)
        if whole:
            await self._replay(partial(self._log.read, channels=whole), channel_of, unreadable)
        if channels is None:
            await self._replay(self._log.read_uncovered, channel_of, unreadable)
        for uri in wanted & floors.keys():
            channel_of(uri).history.begin(floors[uri])
        return unreadable

    async def _replay(
        self,
        read: Callable[..., Awaitable[Sequence[Entry]]],
        channel_of: Callable[[Uri], Channel[Any]],
        unreadable: dict[Uri, str],
    ) -> None:
        after = 0
        while entries := await read(after=after, limit=READ_AT_ONCE):
            for entry in entries:
                channel = channel_of(entry.channel)
                if entry.seq > channel.last_seq and entry.channel not in unreadable:
                    try:
                        channel.replay(entry)
                    except UnreadableError as error:
                        unreadable[entry.channel] = str(error)
            after = entries[-1].seq

    def append(self, batch: Batch, settled: Settled) -> None:
        begun = time.perf_counter()

        def timed(verdict: Verdict) -> None:
            if not isinstance(verdict, InDoubt):
                self._append_seconds.observe(time.perf_counter() - begun)
            settled(verdict)

        self._order.append(batch, timed)

    def _find_out(self, ids: tuple[str, ...], then: Callable[[dict[str, int]], None]) -> None:
        async def find() -> None:
            then(await _insist(lambda: self._log.find(ids)))

        self._tasks.spawn(find())

    def catch_up(self, channel: Channel[Any]) -> None:
        """Reads what others wrote to it, and lets it take that in."""

        async def read() -> None:
            channels = (channel.uri,)
            entries = await _insist(
                lambda: self._log.read(
                    after=channel.last_seq, limit=READ_AT_ONCE, channels=channels
                )
            )
            try:
                channel.absorb(entries)
            except UnreadableError as error:
                logger.exception("%s stops", channel.uri)
                channel.close(f"This session cannot go on: {error}.")

        self._tasks.spawn(read())


async def _insist(question: Callable[[], Awaitable[T]]) -> T:
    """Asks the log until it answers: a channel that does not know cannot go on.

    That it does not is known to the operator: the write that led to the question has failed.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await question()
        except LogError:
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_DOUBT)
