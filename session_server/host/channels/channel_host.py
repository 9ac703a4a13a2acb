"""What a channel needs from outside: the log and its verdicts, time, names. `Host` has it all."""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from session_server.host.channels.changes import Change
from session_server.host.channels.history import EnvelopeMemory
from session_server.host.channels.state_size import StateMemory
from session_server.host.metrics import Counts
from session_server.log import Batch, Durable, Refused

if TYPE_CHECKING:
    from session_server.host.channels.channel import Channel


class NotStored(NamedTuple):
    """The doubt is gone: nothing of the batch is in the log, and it may be tried again."""

    reason: str


class InDoubt(NamedTuple):
    """The log has not answered for too long. Another verdict follows, once it does."""

    reason: str


Verdict: TypeAlias = Durable | Refused | NotStored | InDoubt


class Appender(Protocol):
    """What has something to append: a channel, or a recording that is read in."""

    def next_batch(self) -> Batch | None:
        """What to append now, if there is still anything; `settled` follows."""
        ...

    def settled(self, verdict: Verdict) -> None:
        """What became of the batch. Verdicts come in the order of all appenders."""
        ...


class Writer(Protocol):
    """The way into the log."""

    def append_soon(self, appender: Appender) -> None:
        """Asks it for its next batch at the end of this turn of the event loop."""
        ...

    def catch_up(self, channel: "Channel[Any]") -> None:
        """Reads what others wrote to it; `channel.apply_missed` follows, or with several nodes,
        where they are applied in the order of the log, `channel.resume`.
        """
        ...


class Loading(Protocol):
    """Brings sessions back into memory."""

    def load(self, channel: "Channel[Any]") -> None:
        """`channel.loaded` or `channel.not_loaded` follows."""
        ...


class Snapshots(Protocol):
    """Stores the states of channels."""

    def take_snapshot(self, channel: "Channel[Any]") -> None: ...


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

    @property
    def loaded(self) -> Loading: ...

    @property
    def maintenance(self) -> Snapshots: ...

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
