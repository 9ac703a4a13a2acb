"""The connection to the servers: requests, publishing, reading by position.

The client library reconnects by itself. Requests that were in flight when the connection was lost
fail at once, since their answers will not arrive.
"""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from session_server.log.nats.messages import PART, StoredMessage
from session_server.log.nats.stream_config import Address
from session_server.log.protocol import FailedError, RefusedBecause

ANSWER_SECONDS = 5.0
PATIENCE_SECONDS = 3.0
"""How long a request waits for a reconnect, or for a leader to be elected."""

PAUSE_SECONDS = 0.05
OPENING_SECONDS = 6.0
CONNECT_SECONDS = 2
PING_SECONDS = 2
PINGS_UNANSWERED = 2
"""After about six seconds without an answer the connection to a server is closed."""

READ_MESSAGES = 256
READ_BYTES = 4 * 2**20

WRONG_LAST_CODES = (10_071, 10_164)
FULL_CODES = (10_023, 10_028, 10_047, 10_077, 10_110)
UNAVAILABLE_CODES = (10_008, 10_009, 10_039, 10_118)
"""No leader, or the server is starting: the request can be repeated.

A leader that is being replaced answers so too, and the next one may still do what it was asked.
"""

UNREACHABLE = "NATS cannot be reached, or the connection to it was lost."
LEADERLESS = (
    "JetStream has no leader for the stream: most of its servers are down. Start them again."
)


class WrongLastError(FailedError):
    """Another process has written to the log in between.

    `actual` is the last message on the subject, where the server says so.
    """

    def __init__(self, actual: int | None) -> None:
        super().__init__(RefusedBecause.CONFLICT, "Another process has written to this log.")
        self.actual = actual


class LostError(FailedError):
    """No answer came, so that it is not known whether something was stored.

    Any other `FailedError` here means that it was not.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(RefusedBecause.BROKEN, reason)


class Publication(NamedTuple):
    subject: str
    body: bytes
    headers: Mapping[str, str] = {}


_LAST = re.compile(r"wrong last sequence: (\d+)")


class _Answer(NamedTuple):
    """One message, or many until one with a status ends them."""

    future: asyncio.Future[list[Msg]]
    is_many: bool
    messages: list[Msg]


class Servers:
    """`reconnected` is called when the connection was lost and is there again."""

    def __init__(self, address: Address, reconnected: Callable[[], None] = lambda: None) -> None:
        self.address = address
        self._reconnected = reconnected
        self._client = Client()
        self._loop = asyncio.get_running_loop()
        self._inbox = f"_INBOX.{secrets.token_hex(8)}"
        self._tokens = count()
        self._answers: dict[str, _Answer] = {}
        self._is_back = asyncio.Event()
        self._error: Exception | None = None

    async def open(self, name: str) -> None:
        """Raises an `OSError` or what the client library raises."""
        try:
            async with asyncio.timeout(OPENING_SECONDS):
                await self._client.connect(
                    servers=list(self.address.servers),
                    name=name,
                    allow_reconnect=True,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=1,
                    connect_timeout=CONNECT_SECONDS,
                    ping_interval=PING_SECONDS,
                    max_outstanding_pings=PINGS_UNANSWERED,
                    error_cb=self._on_error,
                    disconnected_cb=self._on_disconnected,
                    reconnected_cb=self._on_reconnected,
                    **self.address.options(),
                )
        except TimeoutError:
            raise OSError(f"no server can be reached ({self._error or 'no answer'})") from None
        await self._client.subscribe(f"{self._inbox}.*", cb=self._on_answer)
        self._is_back.set()

    async def _on_error(self, error: Exception) -> None:
        """While it reconnects; requests fail with errors of their own."""
        self._error = error

    @property
    def largest(self) -> int:
        return self._client.max_payload

    async def _on_disconnected(self) -> None:
        self._is_back.clear()
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            if not answer.future.done():
                answer.future.set_exception(LostError(UNREACHABLE))

    async def _on_reconnected(self) -> None:
        self._is_back.set()
        self._reconnected()

    async def _on_answer(self, message: Msg) -> None:
        """Several servers may answer; only the first message counts unless many are wanted."""
        answer = self._answers.get(message.subject.rpartition(".")[2])
        if answer is not None and not answer.future.done():
            answer.messages.append(message)
            if not answer.is_many or _status(message):
                answer.future.set_result(answer.messages)

    async def close(self) -> None:
        await self._client.close()

    async def subscribe(self, subject: str, callback: Callable[[Msg], Awaitable[None]]) -> None:
        await self._client.subscribe(subject, cb=callback)
        await self._client.flush()

    async def confirm(self, message: Msg) -> None:
        """Answers a process that asks whether this one is there."""
        await self._client.publish(message.reply)

    async def send(self, subject: str, message: bytes) -> None:
        """To all subscribers. Without a connection it is dropped, and not sent later."""
        if self._is_back.is_set():
            with suppress(NatsError):
                await self._client.publish(subject, message)

    async def _ready(self) -> None:
        """Raises a `FailedError` when there is no connection, and will not be in a moment."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._is_back.wait()
        except TimeoutError:
            raise FailedError(RefusedBecause.BROKEN, UNREACHABLE) from None

    async def ask(
        self,
        publications: Sequence[Publication],
        *,
        is_many: bool = False,
        seconds: float = ANSWER_SECONDS,
    ) -> list[Msg]:
        """Sends them all; the last one is to be answered. Raises a `FailedError`."""
        await self._ready()
        token = str(next(self._tokens))
        answer = self._answers[token] = _Answer(self._loop.create_future(), is_many, [])
        replies = [*[""] * (len(publications) - 1), f"{self._inbox}.{token}"]
        try:
            async with asyncio.timeout(seconds):
                for (subject, body, headers), reply in zip(publications, replies, strict=True):
                    await self._client.publish(subject, body, reply, headers=dict(headers) or None)
                return await answer.future
        except NatsError as error:
            raise LostError(UNREACHABLE) from error
        except TimeoutError:
            raise LostError("NATS does not answer.") from None
        finally:
            self._answers.pop(token, None)

    async def api(self, question: str, body: object = None) -> dict[str, Any]:
        """What the servers' own API answers; an `error` in it is the caller's to read."""
        encoded = b"" if body is None else msgspec.json.encode(body)
        answer, _ = await self._ask_leader([Publication(f"$JS.API.{question}", encoded)])
        return answer

    async def _ask_leader(self, publications: Sequence[Publication]) -> tuple[dict[str, Any], bool]:
        """The answer to the last one, and whether it was sent again after a leader had received it.

        Waits for a leader to be elected.
        """
        until = self._loop.time() + PATIENCE_SECONDS
        was_received = False
        while True:
            try:
                (message,) = await self.ask(publications)
            except FailedError as error:
                if was_received:  # it may have been done
                    raise LostError(error.reason) from error
                raise
            if not _status(message):
                answer: dict[str, Any] = msgspec.json.decode(message.data)
                if answer.get("error", {}).get("err_code") not in UNAVAILABLE_CODES:
                    return answer, was_received
                was_received = True
            if self._loop.time() > until:
                if was_received:
                    raise LostError(LEADERLESS)
                raise FailedError(RefusedBecause.BROKEN, LEADERLESS)
            await asyncio.sleep(PAUSE_SECONDS)

    async def publish(self, publications: Sequence[Publication]) -> int:
        """Stores them all or none; the number of the last one.

        Raises `WrongLastError`, `LostError` or another `FailedError`.
        """
        if len(publications) > 1:
            batch_id = secrets.token_hex(8)
            publications = [
                Publication(
                    subject,
                    body,
                    {**headers, "Nats-Batch-Id": batch_id, "Nats-Batch-Sequence": str(n)},
                )
                for n, (subject, body, headers) in enumerate(publications, start=1)
            ]
            commit = {**publications[-1].headers, "Nats-Batch-Commit": "1"}
            publications[-1] = publications[-1]._replace(headers=commit)
        ack, was_repeated = await self._ask_leader(publications)
        if "error" not in ack:
            return int(ack.get("seq", 0))
        error = _refusal(ack["error"])
        if was_repeated and not isinstance(error, WrongLastError):
            raise LostError(error.reason)
        raise error

    async def read(self, after: int, subject: str) -> list[StoredMessage]:
        """The next messages of the stream, as far as the server that answers has them."""
        question = {
            "seq": after + 1,
            "next_by_subj": subject,
            "batch": READ_MESSAGES,
            "max_bytes": READ_BYTES,
        }
        subject = f"$JS.API.DIRECT.GET.{self.address.stream}"
        publication = Publication(subject, msgspec.json.encode(question))
        messages = await self.ask([publication], is_many=True)
        if _status(messages[-1]) == "503":
            raise FailedError(RefusedBecause.BROKEN, LEADERLESS)
        found: list[StoredMessage] = []
        for message in messages:
            # Each names the one before it, so that a missing message is noticed.
            previous = found[-1].stream_seq if found else 0
            if int((message.headers or {}).get("Nats-Last-Sequence", previous)) != previous:
                raise LostError("Some messages of the stream did not arrive.")
            if stored := stored_message(message):
                found.append(stored)
        return found


def stored_message(message: Msg) -> StoredMessage | None:
    headers = message.headers or {}
    number = headers.get("Nats-Sequence")
    if number is None:
        return None
    return StoredMessage(int(number), headers["Nats-Subject"], PART in headers, message.data)


def _refusal(error: Mapping[str, Any]) -> FailedError:
    code, description = error.get("err_code"), str(error.get("description"))
    if code in WRONG_LAST_CODES:
        found = _LAST.search(description)
        return WrongLastError(int(found[1]) if found else None)
    if code in FULL_CODES:
        text = f"JetStream has no space left ({description}). Free some, then try again."
        return FailedError(RefusedBecause.FULL, text)
    text = f"JetStream could not store it: {description} ({code})."
    return FailedError(RefusedBecause.BROKEN, text)


def _status(message: Msg) -> str | None:
    return (message.headers or {}).get("Status")
