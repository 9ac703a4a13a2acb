"""Progress of a server: as text for the people of a session, unchanged for the maker of the call.

Its log messages are for the MCP client that made the call, and for nobody else.
"""

import contextlib
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, NamedTuple

from session_server.schemas.limits import LOG_BYTES_HELD, LOG_MESSAGES_HELD

if TYPE_CHECKING:
    from mcp_types import LoggingMessageNotificationParams

REPORTS_KEPT = 1_000
"""The latest of as many calls; a client that comes back gets it again."""


class Report(NamedTuple):
    progress: float
    total: float | None = None
    message: str | None = None

    @property
    def text(self) -> str:
        done = f"{self.progress:g}"
        if self.total is not None:
            done = f"{done} of {self.total:g}"
        return f"{done}: {self.message}" if self.message else done


def nobody() -> None:
    """Nobody is told that there is news."""


class Listener:
    """The latest report that was not taken yet; those before it are left out."""

    def __init__(self, latest: Report | None) -> None:
        self.notify: Callable[[], None] = nobody
        self._latest = latest

    def add(self, report: Report) -> None:
        self._latest = report
        self.notify()

    @property
    def has_news(self) -> bool:
        return self._latest is not None

    def taken(self) -> Report | None:
        latest, self._latest = self._latest, None
        return latest


class Reports:
    """What the servers of calls report, for those who wait for the calls in this process."""

    def __init__(self) -> None:
        self._latest: dict[str, Report] = {}
        self._listeners: dict[str, set[Listener]] = {}

    def publish(self, call_id: str, report: Report) -> None:
        self._latest.pop(call_id, None)
        self._latest[call_id] = report
        if len(self._latest) > REPORTS_KEPT:
            del self._latest[next(iter(self._latest))]
        for listener in self._listeners.get(call_id, ()):
            listener.add(report)

    @contextlib.contextmanager
    def listening(self, call_id: str) -> Generator[Listener]:
        listener = Listener(self._latest.get(call_id))
        self._listeners.setdefault(call_id, set()).add(listener)
        try:
            yield listener
        finally:
            self._listeners[call_id].discard(listener)
            if not self._listeners[call_id]:
                del self._listeners[call_id]


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least severe on."""

LOGS_KEPT = 100
"""Of as many calls; a client may begin to listen after its call has ended."""


class Log:
    """Messages of one call that its client has not got yet; too many are counted and left out."""

    def __init__(self) -> None:
        self._messages: list[LoggingMessageNotificationParams] = []
        self._bytes = 0
        self._left_out = 0
        self.notify: Callable[[], None] = nobody

    def add(self, message: "LoggingMessageNotificationParams") -> None:
        size = len(message.model_dump_json())
        if len(self._messages) >= LOG_MESSAGES_HELD or self._bytes + size > LOG_BYTES_HELD:
            self._left_out += 1
        else:
            self._messages.append(message)
            self._bytes += size
        self.notify()

    @property
    def has_news(self) -> bool:
        return bool(self._messages or self._left_out)

    def taken(self) -> "list[LoggingMessageNotificationParams] | None":
        messages, self._messages, self._bytes = self._messages, [], 0
        if self._left_out:
            # Loaded by now: what was left out came through the SDK.
            from mcp_types import LoggingMessageNotificationParams  # noqa: PLC0415

            text = f"{self._left_out} log messages were left out: too many at once."
            messages.append(
                LoggingMessageNotificationParams(
                    level="warning", logger="session-server", data=text
                )
            )
            self._left_out = 0
        return messages or None


class Logs:
    """Log messages of servers, by call."""

    def __init__(self) -> None:
        self._logs: dict[str, Log] = {}

    def of(self, call_id: str) -> Log:
        log = self._logs.pop(call_id, None) or Log()
        self._logs[call_id] = log
        if len(self._logs) > LOGS_KEPT:
            del self._logs[next(iter(self._logs))]
        return log
