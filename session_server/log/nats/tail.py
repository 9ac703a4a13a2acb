"""Keeps an index of the stream up to date, and stores what is added to it.

The servers republish what they have stored; messages that were missed are read by position. A
server may be behind the others, so a message that it does not have yet is requested again.
"""

import asyncio
import heapq
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from nats.aio.msg import Msg

from session_server.log.nats.index import Index
from session_server.log.nats.messages import (
    PART,
    PARTS_AT_MOST,
    SEQS_PER_MESSAGE,
    Mark,
    NewEpoch,
    StoredMessage,
    Subjects,
    body_of,
)
from session_server.log.nats.servers import (
    PAUSE_SECONDS,
    LostError,
    Publication,
    Servers,
    WrongLastError,
    stored_message,
)
from session_server.log.nats.stream_config import Address, check_stream, config_of, tail_subject
from session_server.log.protocol import Epoch, FailedError, OpenError, Refused, RefusedBecause
from session_server.schemas.wire import Seq

logger = logging.getLogger("session_server.log")

POLL_SECONDS = 5.0
"""How often the end of the stream is checked, if nothing else causes it."""

REPUBLISH_SECONDS = 0.5
"""A message that was acknowledged and has not been republished by then is read."""

RECENT_BYTES = 16 * 2**20
"""How much of the newest messages is cached in memory for followers."""

MARK_LIFETIME = "60s"
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
ROLLUP = {"Nats-Rollup": "sub"}
"""Replaces what its subject had before."""

NO_STREAM = 10_059

LOST_ENTRIES = (
    "JetStream has lost entries that it had stored. Restart the host to go on without them."
)
TOO_LARGE = "This is too large for JetStream: raise max_payload of the servers."


class Tail:
    """`applied` is called after each message. With a `fault` nothing more can be stored."""

    def __init__(self, address: Address, applied: Callable[[], None]) -> None:
        self._address = address
        self._applied = applied
        self._loop = asyncio.get_running_loop()
        self.servers = Servers(address, lambda: self._catch_up_to(0))
        self.subjects = Subjects(address.stream)
        self.index = Index(self.subjects)
        self.fault: Refused | None = None
        self._recent: OrderedDict[int, StoredMessage] = OrderedDict()
        self._recent_bytes = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._behind = asyncio.Event()
        self._target = 0
        self._created = ""
        self._task: asyncio.Task[None] | None = None

    async def open(self, name: str) -> None:
        """Applies all that is stored by now; begins an epoch if the stream has none."""
        await self.servers.open(f"session-server {name}")
        await self._check_stream()
        await self.servers.subscribe(f"{tail_subject(self._address.stream)}.>", self._on_stored)
        self._task = self._loop.create_task(self._catch_up(), name="log tail")
        await self.barrier()
        while not self.index.epochs:
            await self.begin_epoch(0)

    async def _check_stream(self) -> None:
        stream = self._address.stream
        found = await self.servers.api(f"STREAM.INFO.{stream}")
        if found.get("error", {}).get("err_code") == NO_STREAM:
            found = await self.servers.api(f"STREAM.CREATE.{stream}", config_of(self._address))
        if error := found.get("error"):
            text = f"{self._address.shown} cannot be made: {error.get('description')}"
            if (replicas := self._address.replicas) > 1:
                text += f" (replicas={replicas}; a single server can keep only replicas=1)"
            raise OpenError(f"{text}.")
        check_stream(self._address, found["config"])
        self._created = found["created"]

    async def begin_epoch(self, known: Seq) -> None:
        """Begins an epoch after `known`, unless another node has begun one since."""
        begun_at = self.index.epochs[-1][0] if self.index.epochs else 0
        body, headers = body_of(_epoch_after(known)), {EXPECTED: str(begun_at)}
        try:
            await self.publish([Publication(self.subjects.epochs, body, headers)])
        except WrongLastError:
            await self.barrier()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._fail_waiting("The log was closed before NATS answered.")
        await self.servers.close()

    # Applying what is stored

    async def _on_stored(self, message: Msg) -> None:
        stored = stored_message(message)
        if stored is None or stored.stream_seq <= self.index.position:
            return
        if stored.stream_seq == self.index.position + 1:
            self._apply(stored)
        else:
            self._catch_up_to(stored.stream_seq)

    def _catch_up_to(self, number: int) -> None:
        self._target = max(self._target, number)
        self._behind.set()

    def _apply(self, message: StoredMessage) -> None:
        self.index.apply(message)
        if message.subject.startswith(self.subjects.entries):
            self._recent[message.stream_seq] = message
            self._recent_bytes += len(message.body)
            while self._recent_bytes > RECENT_BYTES:
                self._recent_bytes -= len(self._recent.popitem(last=False)[1].body)
        while self._waiting and self._waiting[0][0] <= message.stream_seq:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)
        self._applied()

    async def reach(self, number: int) -> None:
        """Waits until a message that is in the stream is applied."""
        if self._task is not None and self._task.done():
            raise LostError("The log failed unexpectedly: restart the host.")
        if self.index.position < number:
            future: asyncio.Future[None] = self._loop.create_future()
            heapq.heappush(self._waiting, (number, id(future), future))
            self._loop.call_later(REPUBLISH_SECONDS, self._check_reached, number)
            await future

    def _check_reached(self, number: int) -> None:
        if self.index.position < number:
            self._catch_up_to(number)

    def _fail_waiting(self, text: str) -> None:
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(LostError(text))

    async def _catch_up(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._behind.wait()
            self._behind.clear()
            try:
                await self._check_history()
                while await self._read_next() or self.index.position < self._target:
                    pass
            except FailedError:
                await asyncio.sleep(PAUSE_SECONDS)
                self._behind.set()
            except Exception as error:  # if this task ended silently, appends would wait forever
                logger.exception("the log over NATS failed unexpectedly")
                text = f"The log failed unexpectedly ({type(error).__name__}): restart the host."
                self.fault = Refused(RefusedBecause.BROKEN, text)
                self._fail_waiting(text)
                raise

    async def _read_next(self) -> bool:
        """Whether there may be more to read.

        A message that is missing was deleted, or the server that answered is behind. A server that
        has a new message has all before it: so one is stored and waited for.
        """
        messages = await self.servers.read(self.index.position, self.subjects.all)
        for message in messages:
            if message.stream_seq > self.index.position:
                self._apply(message)
        if not messages and self.index.position < self._target:
            self._target = max(self._target, await self._mark())
            await asyncio.sleep(PAUSE_SECONDS)
        return bool(messages)

    async def _check_history(self) -> None:
        """A stream that ends before what was seen of it has lost entries.

        A new leader may not know its last message yet, so it is asked to store one.
        """
        if self.fault is not None or not self.index.epochs:
            return
        found = await self.servers.api(f"STREAM.INFO.{self._address.stream}")
        if "error" in found:
            is_suspect = found["error"].get("err_code") == NO_STREAM
        else:
            is_suspect = found["created"] != self._created
            is_suspect |= found["state"]["last_seq"] < self.index.position
        if is_suspect:
            await self._mark()

    async def _lose(self) -> None:
        """Begins a new epoch and stores nothing more, so that clients notice the loss."""
        self.fault = Refused(RefusedBecause.BROKEN, LOST_ENTRIES)
        logger.error("%s: %s", self._address.shown, LOST_ENTRIES)
        body = body_of(_epoch_after(self.index.last_seq))
        await self.servers.publish([Publication(self.subjects.epochs, body)])
        self._fail_waiting(LOST_ENTRIES)

    # Storing

    async def publish(self, publications: Sequence[Publication]) -> int:
        """Stores them all or none; when this returns they are applied.

        The number of the last one. Raises `WrongLastError`, `LostError` or another `FailedError`.
        """
        number = await self._store(publications)
        await self.reach(number)
        return number

    async def _store(self, publications: Sequence[Publication]) -> int:
        position = self.index.position
        number = await self.servers.publish(publications)
        if number <= position:
            if self.fault is None:
                await self._lose()
            raise LostError(LOST_ENTRIES)
        return number

    async def publish_parts(
        self,
        subject: str,
        bodies: Sequence[bytes],
        end: int,
        is_as_expected: Callable[[], bool],
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """The same for one thing in several messages, if its subject ends with message `end`.

        If the subject has a newer message and `is_as_expected` still holds, it is tried again.
        """
        if len(bodies) > PARTS_AT_MOST or len(bodies[-1]) > self.servers.largest:
            raise FailedError(RefusedBecause.BROKEN, TOO_LARGE)
        parts = [Publication(subject, body, {PART: "1"}) for body in bodies[:-1]]
        first, *others = *parts, Publication(subject, bodies[-1])
        is_repeated = False
        while True:
            expecting = {**first.headers, **(headers or {}), EXPECTED: str(end)}
            try:
                try:
                    return await self.publish([first._replace(headers=expecting), *others])
                except WrongLastError as error:
                    is_repeated = True
                    if error.actual is None:
                        await self.barrier()
                    elif error.actual < end:
                        raise  # messages were deleted
                    else:
                        await self.reach(error.actual)
                        end = error.actual
                    if not is_as_expected():
                        raise
            except WrongLastError:
                raise
            except FailedError as error:
                if is_repeated:  # the newer message may be this very one, or come after all
                    raise LostError(error.reason) from error
                raise

    async def _mark(self) -> int:
        headers = {"Nats-TTL": MARK_LIFETIME}
        return await self._store([Publication(self.subjects.marks, body_of(Mark()), headers)])

    async def barrier(self) -> None:
        """Waits until all that is stored by now is applied."""
        await self.reach(await self._mark())

    # Reading

    async def collect(
        self, subject: str, numbers: Sequence[int], into: dict[int, StoredMessage]
    ) -> None:
        """Reads messages of a subject, in order, as far as the server that answers has them."""
        into.update((n, self._recent[n]) for n in numbers if n in self._recent)
        wanted = frozenset(numbers)
        position = 0
        for number in numbers:
            while position < number and number not in into:
                found = await self.servers.read(number - 1, subject)
                if not found:
                    return
                into.update((m.stream_seq, m) for m in found if m.stream_seq in wanted)
                position = found[-1].stream_seq


def _epoch_after(known: Seq) -> NewEpoch:
    """Beyond all places of the message that is known.

    By the same clock as for other logs, though seqs are further apart here: clients of AHP 1.x are
    sent numbers a thousand times as high, and those must stay whole in JavaScript.
    """
    return NewEpoch(*Epoch.after(known + SEQS_PER_MESSAGE))
