"""How fast a principal may send: one rate limit for all its connections and HTTP requests.

Messages and bytes are counted in one unit: a message costs 1, and 1 more per `BYTES_PER_CREDIT`
bytes; a large answer costs something too. Taking credit is one subtraction and one comparison; the
clock is read only when the credit seems used up, so after a quiet time a burst may be up to two
buckets long.

While the shared credit is used up, each connection still has a small share of a reserve, so that
one that floods does not silence the others of its principal. A connection that goes on after many
refusals is closed, and its principal may not open another one for a while.
"""

from collections.abc import Callable
from time import monotonic

from session_server.schemas.errors import RateLimitError
from session_server.schemas.limits import (
    ACTIONS_AT_ONCE,
    ANSWER_BYTES_PER_CREDIT,
    BYTES_PER_CREDIT,
    CONNECTION_COST,
    FLOOD_MEMORY_SECONDS,
    FLOOD_PAUSE_LIMIT_SECONDS,
    FLOOD_PAUSE_SECONDS,
    FRAME_BYTES,
    REFUSALS_BEFORE_CLOSE,
    REFUSALS_WINDOW_SECONDS,
    REQUEST_COST,
    RESERVE_PART,
    UNSETTLED_BYTES,
    UNSETTLED_BYTES_PER_PRINCIPAL,
)

WITHOUT_LIMIT = 1 << 62
TIDY_AT = 1_024
"""Principals that are remembered before those at rest are forgotten."""

LEAST_REFUSALS = 50
"""Refusals that any connection may have, however many others its principal has."""

Clock = Callable[[], float]


class SharedBytes:
    """Bytes of the whole host that wait to be written to the log."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class ByteBudget:
    """The same of one principal. Both are bounded, so that nobody can use up the memory while the
    log is slow.
    """

    __slots__ = ("_limit", "_whole", "bytes")

    def __init__(self, limit: int, whole: SharedBytes) -> None:
        self.bytes = 0
        self._limit = limit
        self._whole = whole

    def acquire(self, size: int) -> bool:
        """Whether there is room; if so, it is used."""
        whole = self._whole
        if self.bytes + size > self._limit or whole.bytes + size > UNSETTLED_BYTES:
            return False
        self.bytes += size
        whole.bytes += size
        return True

    def release(self, size: int) -> None:
        self.bytes -= size
        self._whole.bytes -= size


class Allowance:
    """What one principal has left. `credit` is subtracted from directly; see `Pace`."""

    __slots__ = (
        "_filled_at",
        "_floods",
        "_per_second",
        "_size",
        "clock",
        "connections",
        "credit",
        "paused_until",
        "requests",
        "reserve",
        "unsettled",
    )

    def __init__(
        self,
        per_second: int,
        unsettled: ByteBudget,
        at_once: int = ACTIONS_AT_ONCE,
        clock: Clock = monotonic,
    ) -> None:
        self._per_second = per_second
        self._size = max(at_once, per_second)
        self.clock = clock
        self._filled_at = clock()
        self._floods = 0
        self.credit = self._size if per_second else WITHOUT_LIMIT
        self.unsettled = unsettled
        self.connections = 0
        self.reserve = per_second / RESERVE_PART
        self.paused_until = 0.0
        self.requests = Pace(self)
        """All HTTP requests together count as one connection."""

    def refill(self, now: float) -> None:
        """Adds what time has brought since the last time that the credit was used up."""
        earned = int((now - self._filled_at) * self._per_second)
        if earned > 0:
            self.credit = min(self.credit + earned, self._size)
            self._filled_at = now

    def charge_request(self, size: int) -> None:
        """An HTTP request with a body of this size; raises `RateLimitError` if that is too much."""
        if not self.requests.charge(REQUEST_COST, min(size, FRAME_BYTES)):
            raise RateLimitError("You send requests too fast; wait and try again.", 1)

    def charge_answer(self, size: int) -> None:
        """What an answer costs is known only then: it may leave a debt, and later ones wait."""
        self.credit -= size // ANSWER_BYTES_PER_CREDIT

    def charge_write(self, size: int) -> None:
        """What the host writes because of its actions; it may leave a debt too."""
        self.credit -= size // BYTES_PER_CREDIT

    def check_connecting(self) -> None:
        """Takes the price of a new connection, or raises `RateLimitError`."""
        now = self.clock()
        if now < self.paused_until:
            message = "You were disconnected because you sent too much; wait before you reconnect."
            raise RateLimitError(message, self.paused_until - now)
        if not self.requests.charge(CONNECTION_COST, 0):
            raise RateLimitError("You open connections too fast; wait and try again.", 1)

    def flooded(self) -> int:
        """One of its connections is closed for sending too much: a pause begins, longer each time.

        Its seconds; 0 if there is one already, as several connections may be closed together.
        """
        now = self.clock()
        if now < self.paused_until:
            return 0
        if now > self.paused_until + FLOOD_MEMORY_SECONDS:
            self._floods = 0
        pause = min(FLOOD_PAUSE_SECONDS << self._floods, FLOOD_PAUSE_LIMIT_SECONDS)
        self._floods = min(self._floods + 1, 16)
        self.paused_until = now + pause
        return pause

    def is_at_rest(self, now: float) -> bool:
        """Whether nothing is lost by forgetting it."""
        return (
            not self.connections
            and not self.unsettled.bytes
            and now > self.paused_until + FLOOD_MEMORY_SECONDS
            and self.credit + (now - self._filled_at) * self._per_second >= self._size
        )


class Pace:
    """The rate limit as one connection meets it."""

    __slots__ = ("_allowance", "_own", "_own_at", "_refused", "_window_ends")

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._own = 0.0
        self._own_at = allowance.clock()
        self._refused = 0
        self._window_ends = 0.0

    def charge(self, messages: int, size: int) -> bool:
        """Whether this may go on; if not, it has cost nothing."""
        cost = messages + size // BYTES_PER_CREDIT
        allowance = self._allowance
        allowance.credit -= cost
        return allowance.credit >= 0 or self._spend_reserve(cost)

    def _spend_reserve(self, cost: int) -> bool:
        """After the shared credit fell below zero: whether time or the reserve make up for it."""
        allowance = self._allowance
        now = allowance.clock()
        allowance.refill(now)
        if allowance.credit >= 0:
            return True
        allowance.credit += cost
        share = allowance.reserve / max(1, allowance.connections)
        self._own = min(self._own + (now - self._own_at) * share, max(share, 1))
        self._own_at = now
        if self._own < cost:
            return False
        self._own -= cost
        return True

    def count_refusal(self, messages: int, size: int) -> bool:
        """Whether the sender has gone on too often although it was refused again and again.

        All connections of a principal together may have so many; each has its part of them.
        """
        now = self._allowance.clock()
        if now > self._window_ends:
            self._window_ends, self._refused = now + REFUSALS_WINDOW_SECONDS, 0
        self._refused += messages + size // BYTES_PER_CREDIT
        part = REFUSALS_BEFORE_CLOSE / max(1, self._allowance.connections)
        return self._refused > max(part, LEAST_REFUSALS)


class Allowances:
    """Of every principal that was seen lately: a new connection brings no new credit."""

    def __init__(self, per_second: int, clock: Clock = monotonic) -> None:
        """0 is without limit."""
        self._per_second = per_second
        self._clock = clock
        self._unsettled = SharedBytes()
        self._of: dict[str, Allowance] = {}
        self._tidy_at = TIDY_AT

    def of(self, principal_id: str) -> Allowance:
        found = self._of.get(principal_id)
        if found is None:
            if len(self._of) >= self._tidy_at:
                self._tidy()
            unsettled = ByteBudget(UNSETTLED_BYTES_PER_PRINCIPAL, self._unsettled)
            found = self._of[principal_id] = Allowance(
                self._per_second, unsettled, clock=self._clock
            )
        return found

    def _tidy(self) -> None:
        now = self._clock()
        self._of = {name: one for name, one in self._of.items() if not one.is_at_rest(now)}
        self._tidy_at = max(TIDY_AT, 2 * len(self._of))
