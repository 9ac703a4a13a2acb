"""How large session states are, so that a session and all of them together stay within limits.

The size is that of the whole record, public and private, as JSON. Measuring it means encoding it,
so each entry only adds its own size to an estimate, from before it is written. When the estimate
reaches the limit, the record is measured, at most once a second or after it may have grown by an
eighth of the limit.
"""

from collections.abc import Callable

from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.limits import SESSION_BYTES, STATE_BYTES_PER_HOST
from session_server.schemas.wire import Millis

MEASURED_EVERY_MS = 1_000


class StateMemory:
    """The states of all sessions of a host. Limits of 0 are none."""

    def __init__(
        self, per_session: int = SESSION_BYTES, per_host: int = STATE_BYTES_PER_HOST
    ) -> None:
        self.bytes = 0
        self.sessions = 0
        self.evicted_bytes = 0
        self.evicted_sessions = 0
        self.per_session = per_session
        self.per_host = per_host

    @property
    def loaded_bytes(self) -> int:
        """Of the states that are in memory."""
        return self.bytes - self.evicted_bytes

    @property
    def is_full(self) -> bool:
        return self.bytes > self.per_host > 0

    def limit(self) -> int:
        """For one session: when the host is full, no more than an equal share; 0 is without limit.

        So small sessions go on, whatever fills the host.
        """
        if not self.is_full:
            return self.per_session
        share = self.per_host // max(1, self.sessions)
        return min(self.per_session or share, share)


class StateSize:
    """An estimate of one session's size. It counts while the session is not in memory, too."""

    __slots__ = ("_is_evicted", "_measured", "_measured_at", "_memory", "bytes")

    def __init__(self, memory: StateMemory) -> None:
        self.bytes = 0
        self._memory = memory
        self._measured = 0
        self._measured_at: Millis = 0
        self._is_evicted = False
        memory.sessions += 1

    def add(self, size: int) -> bool:
        """Whether the estimate, and so perhaps the session, is now beyond a limit."""
        memory = self._memory
        self.bytes += size
        memory.bytes += size
        return self.bytes > memory.per_session > 0 or memory.bytes > memory.per_host > 0

    def set(self, size: int) -> None:
        """The size that was measured."""
        self.add(size - self.bytes)
        self._measured = size

    def evict(self) -> None:
        """The session has left memory, and is as large as it is now until it is removed."""
        self._is_evicted = True
        self._memory.evicted_bytes += self.bytes
        self._memory.evicted_sessions += 1

    def remove(self) -> None:
        """The session is gone."""
        if self._is_evicted:
            self._memory.evicted_bytes -= self.bytes
            self._memory.evicted_sessions -= 1
        self.add(-self.bytes)
        self._memory.sessions -= 1

    @property
    def grown(self) -> int:
        """How much of the estimate has not been measured."""
        return self.bytes - self._measured

    def refusal(self, growth: int, measure: Callable[[], int], now: Millis) -> Refusal | None:
        """The refusal of an entry of this size, if the session really has no room for it."""
        limit = self._memory.limit()
        if self._fits(growth, limit):
            return None
        if self.grown * 8 >= limit or now - self._measured_at >= MEASURED_EVERY_MS:
            self.set(measure())
            self._measured_at = now
            limit = self._memory.limit()
            if self._fits(growth, limit):
                return None
        return Refusal(code=RefusalCode.LIMIT, message=_message(self._memory, limit))

    def _fits(self, growth: int, limit: int) -> bool:
        return not limit or self.bytes + growth <= limit


def _message(memory: StateMemory, limit: int) -> str:
    if memory.is_full:
        return (
            "This host has reached its memory limit for sessions, and this session uses more than"
            " its share. Dispose of sessions that you no longer need, or make room in this one:"
            " complete or withdraw questions, remove waiting messages, truncate turns."
        )
    return (
        f"This session is full: it holds {limit // 1_048_576} MiB. Continue in a new session, or"
        " make room: complete or withdraw questions, remove waiting messages, truncate turns."
    )
