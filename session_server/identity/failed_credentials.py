"""Failed credentials: counted, logged with their address, and throttled.

Only failures are throttled. A valid token always passes: behind a proxy everyone may have the same
address, and guessing must not lock the owner out.
"""

import logging
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic

from session_server.schemas.errors import BadCredentialError, CredentialFailure, RateLimitError
from session_server.schemas.limits import (
    FAILED_CREDENTIAL_ADDRESSES,
    FAILED_CREDENTIAL_LOG_LINES,
    FAILED_CREDENTIAL_WINDOW_SECONDS,
    FAILED_CREDENTIALS_PER_ADDRESS,
)

logger = logging.getLogger("session_server.identity")

THROTTLED = "throttled"
UNKNOWN_ADDRESS = "an unknown address"
NETWORK_BITS = 64
"""One customer usually has a whole IPv6 network of this size."""


class TooManyFailuresError(RateLimitError):
    """Too many wrong tokens came from one address."""

    code = "tooManyFailures"


class _Window:
    __slots__ = ("began", "guesses")

    def __init__(self, began: float) -> None:
        self.began = began
        self.guesses = 0


class FailedCredentials:
    """`counts` is by reason; `throttled` ones are counted as that and not by their reason."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys((*CredentialFailure, THROTTLED), 0))
        self._now = now
        self._windows: dict[str, _Window] = {}
        self._log_began = 0.0
        self._lines = 0

    def failed(self, error: BadCredentialError, address: str | None) -> Exception:
        """The error to answer with: the given one, or that too many came from this address.

        Expired and revoked tokens are not guesses: the host has signed them.
        """
        source = _source(address)
        window = self._window(source)
        if error.failure is CredentialFailure.UNKNOWN:
            window.guesses += 1
        if window.guesses > FAILED_CREDENTIALS_PER_ADDRESS:
            self.counts[THROTTLED] += 1
            ends_in = window.began + FAILED_CREDENTIAL_WINDOW_SECONDS - self._now()
            return TooManyFailuresError(
                "Too many wrong tokens came from your address; wait, or send a valid one.", ends_in
            )
        self.counts[error.failure] += 1
        if window.guesses == FAILED_CREDENTIALS_PER_ADDRESS:
            self._log(
                f"{window.guesses} wrong tokens from {source} within"
                f" {FAILED_CREDENTIAL_WINDOW_SECONDS} s; more are answered with 429 for a while"
            )
        return error

    def _window(self, source: str) -> _Window:
        """The current window of this address. The oldest are first, and dropped first."""
        now = self._now()
        found = self._windows.get(source)
        if found is not None and now - found.began < FAILED_CREDENTIAL_WINDOW_SECONDS:
            return found
        self._windows.pop(source, None)
        if len(self._windows) >= FAILED_CREDENTIAL_ADDRESSES:
            del self._windows[next(iter(self._windows))]
        window = self._windows[source] = _Window(now)
        self._log(f"a token that is not valid came from {source}")
        return window

    def _log(self, message: str) -> None:
        """Bounded, so that many addresses do not fill up the log."""
        now = self._now()
        if now - self._log_began >= FAILED_CREDENTIAL_WINDOW_SECONDS:
            self._log_began, self._lines = now, 0
        self._lines += 1
        if self._lines < FAILED_CREDENTIAL_LOG_LINES:
            logger.warning("%s", message)
        elif self._lines == FAILED_CREDENTIAL_LOG_LINES:
            logger.warning("%s; further lines of this kind are left out for a minute", message)


def _source(address: str | None) -> str:
    """An address from a proxy's header may be any text; only valid ones are distinguished."""
    try:
        found = ip_address(address or "")
    except ValueError:
        return UNKNOWN_ADDRESS
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found), NETWORK_BITS), strict=False))
