"""Which calls and questions clients are connected for, and which results they have fetched.

A result is fetched when its whole response was written to a connection that was still open. Until
then the same request, or the call's id, finds it; afterwards the same request is a new call.
`watched_response` watches the connections; `service` and the ask tools decide which requests are
the same.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator
from functools import partial

RETURN_SECONDS = 5.0
"""How long a client that was given a state counts as connected: it comes back by itself."""

NOTICE_SECONDS = 0.05
"""Within this time the end of a connection is known, also on a busy host."""

Work = Callable[[], Awaitable[None]]


class Requesters:
    """The clients that are connected for a call or a question, by its id.

    A client counts whose request is open, whose response is being written, or who was given a state
    and comes back with it. Two requests of connected clients are never the same one; a request
    joins what no client is connected for any more.
    """

    def __init__(self) -> None:
        self._connected: dict[str, set[Requester]] = {}
        self._expected: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._connected or name in self._expected

    def may_have_left(self, name: str) -> bool:
        """Whether a client counts as connected that may have just left, and comes back.

        One that has fetched its result does not come back for it.
        """
        connected = self._connected.get(name, ())
        return any(not requester.has_fetched for requester in connected)

    def join(self, name: str, requester: "Requester") -> None:
        self._forget(name)
        self._connected.setdefault(name, set()).add(requester)

    def leave(self, name: str, requester: "Requester") -> None:
        requesters = self._connected.get(name, set())
        requesters.discard(requester)
        if not requesters:
            self._connected.pop(name, None)

    async def expect(self, name: str, seconds: float = RETURN_SECONDS) -> None:
        """Its client was given a state with which it comes back."""
        if len(self._connected.get(name, ())) > 1:
            return  # it is back already
        self._forget(name)
        loop = asyncio.get_running_loop()
        self._expected[name] = loop.call_later(seconds, self._forget, name)

    def _forget(self, name: str) -> None:
        timer = self._expected.pop(name, None)
        if timer is not None:
            timer.cancel()

    def fetched(self, name: str, requester: "Requester", work: Work) -> None:
        """The client counts as connected until this is done, even if its request ends before."""

        async def done() -> None:
            try:
                await work()
            finally:
                self.leave(name, requester)

        task = asyncio.get_running_loop().create_task(done())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class DepartureCheck:
    """For a request that is the same as another: whether the client of that one has just left.

    If the same request is still connected, wait 50 ms once and plan again: its client may have just
    disconnected. The plan requests the wait, and then plans nothing.
    """

    def __init__(self, requesters: Requesters) -> None:
        self._requesters = requesters
        self._is_requested = self._has_waited = False

    def request_wait(self, name: str) -> bool:
        """Whether a wait is requested: a client is connected for this, and none was waited for."""
        self._is_requested = not self._has_waited and self._requesters.may_have_left(name)
        return self._is_requested

    async def wait_if_requested(self) -> bool:
        """Whether it has waited, so that the same is to be planned again."""
        if self._is_requested:
            self._has_waited = True
            await asyncio.sleep(NOTICE_SECONDS)
        return self._has_waited


class Requester:
    """The client of one request, until its response has ended."""

    def __init__(self) -> None:
        self.has_fetched = False
        self._joined: tuple[Requesters, str] | None = None
        self._work: Work | None = None
        self._waiting = contextlib.ExitStack()
        self._is_gone = False

    def join(self, requesters: Requesters, name: str) -> None:
        """It is connected for this, and for nothing else, as long as it can be answered."""
        self.leave()
        if not self._is_gone:
            self._joined = (requesters, name)
            requesters.join(name, self)

    def leave(self) -> None:
        if self._joined is not None:
            requesters, name = self._joined
            requesters.leave(name, self)
        self._joined = self._work = None
        self._waiting.close()

    @contextlib.contextmanager
    def while_connected(self, waiting: contextlib.AbstractContextManager[None]) -> Generator[None]:
        """Enters this for the block, or until the client disconnects, if that is sooner."""
        with self._waiting as stack:
            if self._joined is not None:
                stack.enter_context(waiting)
            yield

    @contextlib.contextmanager
    def connected(self) -> Generator[None]:
        """A client that cancels its request, or gets an error, no longer waits for the call.

        Unless the error is what the call came to: then it is written, as a result would be.
        """
        try:
            yield
        except Exception:
            if self._work is None:
                self.leave()
            raise
        except BaseException:
            self.leave()
            raise

    def when_fetched(self, work: Work) -> None:
        """What is done once the response that follows was written whole."""
        if self._joined is not None:
            self._work = work

    def expect_back(self, seconds: float = RETURN_SECONDS) -> None:
        """The response is a state, with which the client comes back."""
        if self._joined is not None:
            requesters, name = self._joined
            self.when_fetched(partial(requesters.expect, name, seconds))

    # For `watched_response`

    @property
    def is_owed(self) -> bool:
        return self._work is not None

    def disconnected(self) -> None:
        self._is_gone = True
        if self._work is None:
            self.leave()

    def ended(self, *, is_written: bool) -> None:
        self._is_gone = True
        if self._joined is not None and self._work is not None and is_written:
            requesters, name = self._joined
            self.has_fetched = True
            requesters.fetched(name, self, self._work)
            self._joined = self._work = None
        else:
            self.leave()
