"""Waiting for something at a host: long polls, one after the other, also while it is restarted."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Generator
from typing import Annotated, Any, TypeVar

import httpx2

from session_server.cli.failures import CliError
from session_server.cli.output import err
from session_server.cli.values import time_option
from session_server.schemas.limits import LEASE_LIMIT_SECONDS

PAUSE_SECONDS = 1.0
ANSWER_SECONDS = 10.0
"""How much longer than the requested wait an answer may take."""

T = TypeVar("T")

WaitOption = Annotated[
    float | None, time_option("How long to wait: 90s, 10m; waits forever by default.")
]


def lease_option(awaited: str, without: str) -> Any:
    return time_option(
        "How long this program may be gone, killed or cut off, before people see that nobody"
        f" waits for the {awaited}. Not with {without}.",
        LEASE_LIMIT_SECONDS,
    )


class Deadline:
    """How much time is left; `None` is forever."""

    def __init__(self, seconds: float | None) -> None:
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def left(self, at_most: float) -> float:
        """The length of the next wait; 0 if the time is up."""
        if self._deadline is None:
            return at_most
        return min(at_most, max(0.0, self._deadline - time.monotonic()))


def polled(http: httpx2.Client, path: str, wait: float, decode: Callable[[bytes], T]) -> T | None:
    """What is there after at most this time; `None` if the host is away just now."""
    try:
        response = http.get(path, params={"wait": wait}, timeout=wait + ANSWER_SECONDS)
    except httpx2.TransportError:
        time.sleep(min(PAUSE_SECONDS, wait))
        return None
    return decode(response.content)


@contextlib.contextmanager
def withdrawn_when_interrupted(
    http: httpx2.Client, path: str, message: str, *, on_sigterm: bool = True
) -> Generator[None]:
    """Ctrl-C withdraws what was asked for, and so do SIGTERM and a closed terminal.

    Without `on_sigterm` only Ctrl-C does: asking again with the same key goes on waiting.
    """
    try:
        with _termination_raises():
            yield
    except (KeyboardInterrupt, _Terminated) as stopped:
        if on_sigterm or isinstance(stopped, KeyboardInterrupt):
            with contextlib.suppress(httpx2.HTTPError, CliError):
                http.delete(path)
                err.print(message)
        raise


class _Terminated(SystemExit):
    """With the exit code that shells use for a process ended by a signal."""


@contextlib.contextmanager
def _termination_raises() -> Generator[None]:
    def stop(number: int, _: object) -> None:
        raise _Terminated(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    signals = [signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ())]
    earlier = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
