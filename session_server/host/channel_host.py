"""What a channel needs from outside: the log and its verdicts, time, names. `Host` has it all."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from session_server.host.changes import Change
from session_server.host.history import EnvelopeMemory
from session_server.host.metrics import Counts
from session_server.host.state_size import StateMemory
from session_server.log import Batch, Durable, Refused

if TYPE_CHECKING:
    from session_server.host.channel import Channel


class NotStored(NamedTuple):
    """The doubt is gone: nothing of the batch is in the log, and it may be tried again."""

    reason: str


class InDoubt(NamedTuple):
    """The log has not answered for too long. Another verdict follows, once it does."""

    reason: str


Verdict: TypeAlias = Durable | Refused | NotStored | InDoubt
Settled: TypeAlias = Callable[[Verdict], None]


class Writer(Protocol):
    """The way into the log."""

    def launch_soon(self, launch: Callable[[], None]) -> None:
        """Calls back at the end of this turn of the event loop."""
        ...

    def append(self, batch: Batch, settled: Settled) -> None:
        """Hands the batch to the log; the verdict comes in the order of all channels."""
        ...

    def catch_up(self, channel: "Channel[Any]") -> None:
        """Reads what others wrote, then calls `channel.apply_missed`."""
        ...


class ChannelHost(Protocol):
    """What a channel needs from outside: time, names, and the log."""

    @property
    def counts(self) -> Counts: ...

    @property
    def envelopes(self) -> EnvelopeMemory: ...

    @property
    def states(self) -> StateMemory: ...

    @property
    def writer(self) -> Writer: ...

    def now(self) -> int: ...

    def new_id(self) -> str: ...

    def reached(self, seq: int) -> None:
        """Everything up to this seq has been handed to its subscribers."""
        ...

    def committed(self, channel: "Channel[Any]", change: Change) -> None:
        """A change became durable: its effects are due."""
        ...

    def overdue(self, channel: "Channel[Any]") -> None:
        """The time has come for something in it, and what is due is to be submitted first."""
        ...

    def take_snapshot(self, channel: "Channel[Any]") -> None:
        """Much was written since the last one."""
        ...

    def load(self, channel: "Channel[Any]") -> None:
        """Something waits for it to be in memory again: `loaded` or `not_loaded` follows."""
        ...
