"""When to come back after a connection has ended, and when not to."""

import random
from collections.abc import Callable
from ssl import SSLCertVerificationError

from websockets.exceptions import ConnectionClosed, InvalidStatus

from session_server.client.errors import GaveUp

FIRST_DELAY = 0.1
LONGEST_DELAY = 10.0
STEADY_SECONDS = 5.0
"""A connection that lasted this long was a good one: the next delay is short again."""

ABNORMAL = 1006
COME_BACK = frozenset({1000, 1001, 1005, ABNORMAL, 1011, 1012, 1013, 1014})
COME_BACK_RANGE = range(4000, 4500)
PASSING_STATUS = frozenset({408, 425, 429})


class BackOff:
    """Delays that double up to a limit, each shortened by chance so that clients spread out."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._failures = 0

    def next_delay(self, lasted: float) -> float:
        """`lasted` is for how long the connection was there."""
        self._failures = 0 if lasted >= STEADY_SECONDS else self._failures
        longest = min(LONGEST_DELAY, FIRST_DELAY * 2.0**self._failures)
        self._failures = min(self._failures + 1, 32)
        return longest * (0.5 + 0.5 * self._chance())


def final_error(error: Exception) -> GaveUp | None:
    """The error to give up with, or `None` where coming back may help."""
    match error:
        case GaveUp():
            return error
        case ConnectionClosed():
            return _closed(error)
        case InvalidStatus():
            return _turned_away(error.response.status_code)
        case SSLCertVerificationError():
            return GaveUp(f"The host's certificate is not trusted: {error.verify_message}")
        case _:
            return None


def _closed(error: ConnectionClosed) -> GaveUp | None:
    close = error.rcvd or error.sent
    code = ABNORMAL if close is None else close.code
    if code in COME_BACK or code in COME_BACK_RANGE:
        return None
    reason = close.reason if close is not None and close.reason else "no reason given"
    return GaveUp(f"The connection was closed for good ({code}: {reason}).", close_code=code)


def _turned_away(status: int) -> GaveUp | None:
    if status >= 500 or status in PASSING_STATUS:
        return None
    if status in (401, 403):
        return GaveUp(f"The host does not let us in (HTTP {status}).", status=status)
    return GaveUp(f"There is no AHP at this address (HTTP {status}).", status=status)
