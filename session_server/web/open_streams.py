"""What waits over HTTP, streams and long polls: bounded, and ended with its client or the server.

Without it, stopping would take as long as the server is patient with requests in progress, and what
somebody has left would be waited for all the same.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable
from typing import Annotated, NamedTuple, TypeVar

from fastapi import Depends, Query
from starlette.requests import ClientDisconnect, HTTPConnection, Request

from session_server.host.errors import CloseCode
from session_server.host.host import Host
from session_server.host.pace import TooFastError
from session_server.host.waiting import Waiting
from session_server.identity.standing import while_allowed
from session_server.schemas.limits import LONG_POLLS_PER_PRINCIPAL, WAIT_SECONDS
from session_server.schemas.principals import Principal
from session_server.web.caller import Caller, TheHost
from session_server.web.streams import EventOutbox

T = TypeVar("T")

STOPPING = "the host stops; come back to resume"


class TooManyLongPollsError(TooFastError):
    code = "tooManyLongPolls"

    def __init__(self) -> None:
        super().__init__(
            f"You have {LONG_POLLS_PER_PRINCIPAL} requests that wait; let some of them end first.",
            1,
        )


class OpenStreams:
    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._long_polls: Counter[str] = Counter()
        self._streams: set[EventOutbox] = set()
        self._is_over = False

    def opened(self, stream: EventOutbox) -> None:
        self._streams.add(stream)
        if self._is_over:
            stream.close(CloseCode.RESTARTING, STOPPING)

    def closed(self, stream: EventOutbox) -> None:
        self._streams.discard(stream)

    def begin_long_poll(self, who: Principal) -> None:
        if self._long_polls[who.id] >= LONG_POLLS_PER_PRINCIPAL:
            raise TooManyLongPollsError
        self._long_polls[who.id] += 1

    def end_long_poll(self, who: Principal) -> None:
        self._long_polls[who.id] -= 1
        if not self._long_polls[who.id]:
            del self._long_polls[who.id]

    @property
    def long_polls(self) -> int:
        return self._long_polls.total()

    def end(self) -> None:
        self._is_over = True
        self._waiting.close()
        for stream in self._streams:
            stream.close(CloseCode.RESTARTING, STOPPING)


async def _streams(connection: HTTPConnection) -> OpenStreams:
    streams: OpenStreams = connection.app.state.streams
    return streams


TheStreams = Annotated[OpenStreams, Depends(_streams)]


class LongPoll(NamedTuple):
    """A request that may wait for `seconds`."""

    request: Request
    host: Host
    who: Principal
    seconds: float

    async def until(self, work: Awaitable[T]) -> T:
        """What the work brings, unless its client leaves or its credential ends before that."""
        if not self.seconds:
            return await work
        allowed = asyncio.ensure_future(while_allowed(self.host, self.who, work))
        leaving = asyncio.ensure_future(self._left())
        try:
            await asyncio.wait((allowed, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not allowed.done():
                raise ClientDisconnect
            return allowed.result()
        finally:
            allowed.cancel()
            leaving.cancel()
            await asyncio.gather(allowed, leaving, return_exceptions=True)

    async def _left(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass


async def _long_poll(
    request: Request,
    host: TheHost,
    who: Caller,
    streams: TheStreams,
    wait: Annotated[
        float,
        Query(ge=0, le=WAIT_SECONDS, description="Seconds that the answer may be waited for."),
    ] = 0,
) -> AsyncGenerator[LongPoll]:
    """Its place is taken before anything is done, so that a refusal has changed nothing."""
    if not wait:
        yield LongPoll(request, host, who, 0)
        return
    streams.begin_long_poll(who)
    try:
        yield LongPoll(request, host, who, wait)
    finally:
        streams.end_long_poll(who)


TheLongPoll = Annotated[LongPoll, Depends(_long_poll)]
