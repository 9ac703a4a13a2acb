"""A client's copy of one channel: what the host has confirmed, and our own actions on top of it.

No I/O, no clock, no waiting: envelopes come in, changes and verdicts go out through callbacks. The
protocol above decides when actions are sent; reducers below say what they do.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar
from weakref import WeakSet

import msgspec

from session_server.client.echoes import (
    Delivery,
    is_closing,
    is_deferred_echo,
    is_echo,
    is_superseded,
)
from session_server.client.errors import ClientError, Rejected, Unconfirmed
from session_server.schemas.ahp.actions import Action
from session_server.schemas.ahp.commands import Snapshot
from session_server.schemas.ahp.envelopes import ActionEnvelope, ActionOrigin
from session_server.schemas.ahp.questions import Answer, InputRequest
from session_server.schemas.wire import Extra, Uri

S = TypeVar("S")

Verdict: TypeAlias = ActionEnvelope | ClientError
"""The result of an own action."""


class Cause(StrEnum):
    ACTION = "action"
    """Somebody else, or the host, did something."""
    DISPATCHED = "dispatched"
    """We did something that is not confirmed yet."""
    CONFIRMED = "confirmed"
    """The host accepted what we did."""
    REJECTED = "rejected"
    """The host refused what we did, so it is undone."""
    SNAPSHOT = "snapshot"
    """The host sent the whole state, because this client was disconnected for too long."""
    SEVERAL = "several"
    """Changes came faster than they were read; this one replaces all of them."""


class Change(NamedTuple, Generic[S]):
    """`before` and `after` are what people see: confirmed state with own actions on top."""

    cause: Cause
    before: S
    after: S
    envelope: ActionEnvelope | None = None
    reason: str | None = None


class Event(NamedTuple):
    """An action as reducers get it; `document` is the JSON object that it came as, if needed."""

    channel: Uri
    action: Any
    document: Extra | None = None


class Observer(Protocol[S]):
    def changed(self, change: Change[S]) -> None: ...

    def ended(self, error: ClientError) -> None: ...


class Pending(msgspec.Struct, eq=False):
    """An own action that the host has not judged yet. It keeps its number on every connection."""

    client_seq: int
    channel: Uri
    action: Action
    at: int
    frame: bytes
    waiters: list[Callable[[Verdict], None]]
    is_sent: bool = False
    is_repeated: bool = False
    based_on: tuple[Answer | None, ...] = ()
    """What the host may have when this answer arrives."""
    completing: InputRequest | None = None

    def settle(self, verdict: Verdict) -> None:
        for settled in self.waiters:
            settled(verdict)


class Mirror(Generic[S]):
    """`positions`: up to which `serverSeq` each channel that it shows is complete."""

    def __init__(self, client_id: str, snapshot: Snapshot) -> None:
        self.channel = snapshot.resource
        self.positions = {self.channel: snapshot.from_seq}
        self.confirmed = self.state = self._state_of((snapshot,))
        self.pending: list[Pending] = []
        self.error: ClientError | None = None
        self._client_id = client_id
        self._observers: WeakSet[Observer[S]] = WeakSet()

    @property
    def position(self) -> int:
        return max(self.positions.values())

    # Own actions

    def dispatch(self, pending: Pending) -> None:
        before = self.state
        self.state = self._predicted(before, pending)
        self.pending.append(pending)
        self._notify(Cause.DISPATCHED, before)

    def compact(self) -> None:
        for pending in tuple(self.pending):
            self.supersede(pending)

    def supersede(self, newer: Pending) -> None:
        """Drops an own draft that this one replaces; its waiters wait for this one instead."""
        older = self._replaced_by(newer)
        if older is not None:
            self.pending.remove(older)
            newer.waiters = [*older.waiters, *newer.waiters]
            newer.is_repeated |= older.is_sent or older.is_repeated
            self._rebase()

    def _replaced_by(self, newer: Pending) -> Pending | None:
        found: Pending | None = None
        for older in self.pending:
            if older is newer:
                break
            if is_superseded(older.action, newer.action):
                found = older
            elif is_closing(older.action, newer.action):
                found = None
        return found

    # From the host

    def receive(self, envelope: ActionEnvelope, at: int, document: Extra | None = None) -> None:
        """An accepted action; one that we have already, from before a reconnect, is passed over."""
        if envelope.server_seq <= self.positions[envelope.channel]:
            return
        before, known = self.state, self.confirmed
        event = Event(envelope.channel, envelope.action, document)
        self.confirmed = self._reduce(known, event, at)
        self.positions[envelope.channel] = envelope.server_seq
        self._note(known, envelope)
        settled = [pending for pending in self.pending if self._settles(envelope, pending)]
        for pending in settled:
            self.pending.remove(pending)
        self._rebase()
        self._notify(Cause.CONFIRMED if settled else Cause.ACTION, before, envelope)
        for pending in settled:
            pending.settle(envelope)

    def reject(self, client_seq: int, reason: str) -> None:
        pending = next((p for p in self.pending if p.client_seq == client_seq), None)
        if pending is not None:
            self._undo(pending, self._refusal(pending, reason), reason)

    def _undo(self, pending: Pending, verdict: Verdict, reason: str) -> None:
        before = self.state
        self.pending.remove(pending)
        self._rebase()
        self._notify(Cause.REJECTED, before, reason=reason)
        pending.settle(verdict)

    def skip(self, channel: Uri, position: int) -> None:
        """An action of a kind that we do not know: like AHP's own reducers, we leave it out."""
        self.positions[channel] = max(self.positions[channel], position)

    def replace(self, snapshots: Iterable[Snapshot]) -> None:
        """Whatever happened meanwhile is in them. Raises `NotUnderstood`."""
        self._show(self._state_of(snapshots), snapshots)

    def _show(self, state: S, snapshots: Iterable[Snapshot]) -> None:
        before = self.state
        self.confirmed = state
        self.positions |= {snapshot.resource: snapshot.from_seq for snapshot in snapshots}
        self._rebase()
        self._notify(Cause.SNAPSHOT, before)

    def resume(self, snapshots: Iterable[Snapshot]) -> None:
        """Snapshots on a new connection, after which nothing of the old one will be answered."""
        state = self._state_of(snapshots)
        deliveries = [
            (p, self._delivery(state, p.action) if p.is_sent else None) for p in self.pending
        ]
        self.pending = [p for p, delivery in deliveries if delivery in (None, Delivery.REPEAT)]
        self._show(state, snapshots)
        for pending, delivery in deliveries:
            if delivery is Delivery.DONE:
                pending.settle(self._as_seen(pending))
            elif delivery is Delivery.UNKNOWN:
                pending.settle(Unconfirmed(pending.action))

    def drop_outdated(self) -> None:
        """After a break: what was done on a state that others have changed since is not sent."""
        for pending, verdict in self._outdated():
            self._undo(pending, verdict, verdict.reason)

    def end(self, error: ClientError) -> None:
        """The channel has ended."""
        self.error = error
        pending, self.pending = self.pending, []
        self._rebase()
        for observer in tuple(self._observers):
            observer.ended(error)
        for own in pending:
            own.settle(error)

    # Observers

    def observe(self, observer: Observer[S]) -> None:
        """Calls the observer as long as there is a reference to it."""
        self._observers.add(observer)

    # How

    def _settles(self, envelope: ActionEnvelope, pending: Pending) -> bool:
        """A batch can hold several actions of one origin, so the content counts too."""
        origin = envelope.origin
        if origin is None:
            return pending.is_sent and is_deferred_echo(pending.action, envelope.action)
        return (
            origin.client_id == self._client_id
            and origin.client_seq == pending.client_seq
            and is_echo(pending.action, envelope.action)
        )

    def _as_seen(self, pending: Pending) -> ActionEnvelope:
        """The envelope was missed; this is what is known of it."""
        origin = ActionOrigin(client_id=self._client_id, client_seq=pending.client_seq)
        return ActionEnvelope(
            channel=pending.channel, action=pending.action, server_seq=self.position, origin=origin
        )

    def _rebase(self) -> None:
        state = self.confirmed
        for pending in self.pending:
            state = self._predicted(state, pending)
        self.state = state

    def _notify(
        self,
        cause: Cause,
        before: S,
        envelope: ActionEnvelope | None = None,
        reason: str | None = None,
    ) -> None:
        change = Change(cause, before, self.state, envelope, reason)
        for observer in tuple(self._observers):
            observer.changed(change)

    # What kinds of channels do differently

    def lacking(self) -> Uri | None:
        """A channel that it should show and does not yet."""
        return None

    def _state_of(self, snapshots: Iterable[Snapshot]) -> S:
        raise NotImplementedError

    def _reduce(self, state: S, event: Event, at: int) -> S:
        raise NotImplementedError

    def _predicted(self, state: S, pending: Pending) -> S:
        """What the state will be once the host has accepted the action."""
        return self._reduce(state, Event(pending.channel, pending.action), pending.at)

    def _note(self, known: S, envelope: ActionEnvelope) -> None:
        """Called with the confirmed state from before the envelope."""

    def _refusal(self, pending: Pending, reason: str) -> Verdict:
        return Rejected(reason, pending.action, is_repeated=pending.is_repeated)

    def _outdated(self) -> list[tuple[Pending, Rejected]]:
        return []

    def _delivery(self, state: S, action: Action) -> Delivery:  # noqa: ARG002
        return Delivery.REPEAT
