"""How fast one connection may send: a bucket of frames that fills up again at a steady rate.

Taking from it is one subtraction and one comparison; the clock is asked only when it seems empty.
So after a quiet time a burst may be up to two buckets long.
"""

from time import monotonic
from typing import NamedTuple

from session_server.schemas.limits import (
    ACTIONS_AT_ONCE,
    ACTIONS_PER_SECOND,
    CONNECTIONS_PER_PRINCIPAL,
    REFUSALS_BEFORE_CLOSE,
    REFUSALS_WINDOW_SECONDS,
    SESSIONS_PER_HOST,
)

WITHOUT_LIMIT = 1 << 62


class Bounds(NamedTuple):
    """What an operator may set; 0 is without limit."""

    actions_per_second: int = ACTIONS_PER_SECOND
    connections_per_principal: int = CONNECTIONS_PER_PRINCIPAL
    sessions: int = SESSIONS_PER_HOST


DEFAULT_BOUNDS = Bounds()


class Pace:
    """`credit` is what is left: whoever takes subtracts, and asks `may_go_on` below zero."""

    __slots__ = ("_filled_at", "_per_second", "_refusals", "_size", "_window_ends", "credit")

    def __init__(self, per_second: int, at_once: int = ACTIONS_AT_ONCE) -> None:
        self._per_second = per_second
        self._size = max(at_once, per_second)
        self.credit = self._size if per_second else WITHOUT_LIMIT
        self._filled_at = monotonic()
        self._refusals = 0
        self._window_ends = 0.0

    def may_go_on(self) -> bool:
        """Whether time has brought something; if so, it is in `credit`."""
        now = monotonic()
        earned = int((now - self._filled_at) * self._per_second)
        if earned < 1:
            self.credit = 0
            return False
        self.credit = min(earned, self._size) - 1
        self._filled_at = now
        return True

    def is_abused(self) -> bool:
        """Counts a refusal: whether somebody goes on and on although it is told not to."""
        now = monotonic()
        if now > self._window_ends:
            self._window_ends, self._refusals = now + REFUSALS_WINDOW_SECONDS, 0
        self._refusals += 1
        return self._refusals > REFUSALS_BEFORE_CLOSE
