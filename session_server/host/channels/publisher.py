"""What the subscribers of a channel get: envelopes, snapshots and replays.

An envelope is encoded once, when its entry is durable. It is kept for clients that reconnect, and
sent to all subscribers together with the others of its commit. Clients of AHP 0.9 and 1.x have
`views`: projections of the same entries.
"""

import logging
from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from session_server.host.channels.ahp1_views import BEFORE_ENVELOPE, Views
from session_server.host.channels.changes import Change
from session_server.host.channels.channel_kinds import Kind
from session_server.host.channels.history import EnvelopeMemory, History
from session_server.host.channels.messages import BROKEN, Message, Outbox, deliver
from session_server.host.metrics import Counts
from session_server.reducers.ahp1.envelopes import Committed
from session_server.reducers.state.host_channels import PRIVATE_ACTIONS
from session_server.schemas.ahp.envelopes import ActionEnvelope, EnvelopeMeta
from session_server.schemas.codec import encode
from session_server.schemas.errors import CloseCode
from session_server.schemas.log_entries import Logged, SessionOpened
from session_server.schemas.wire import Seq, Uri

logger = logging.getLogger("session_server.host")

R = TypeVar("R", bound=msgspec.Struct)

NO_SNAPSHOT = (None, b"null")


class Publisher(Generic[R]):
    """`views` exist from when the first client of AHP 0.9 or 1.x has come for the channel."""

    def __init__(self, uri: Uri, kind: Kind[R], envelopes: EnvelopeMemory, counts: Counts) -> None:
        self.subscribers: dict[Outbox, None] = {}
        self.history = History(envelopes)
        self.views: Views | None = None
        self._uri = uri
        self._kind = kind
        self._envelopes = envelopes
        self._counts = counts
        self._unsent: list[Message] = []
        self._snapshot: tuple[R | None, bytes] = NO_SNAPSHOT

    @property
    def is_watched(self) -> bool:
        return bool(self.subscribers) or (self.views is not None and bool(self.views.watchers))

    def publish(self, seq: Seq, logged: Logged) -> None:
        """The envelope of an entry; `flush` sends it."""
        action, stamp = logged.action, logged.stamp
        self._snapshot = NO_SNAPSHOT  # it is as large as the record, and out of date
        if type(action) in PRIVATE_ACTIONS:
            if not self._kind.is_watched:
                self.history.skip(seq)
            elif isinstance(action, SessionOpened):
                self.history.begin(seq)
            return
        envelope = encode(
            ActionEnvelope(
                channel=self._uri,
                action=action,  # type: ignore[arg-type]  # public ones are just these
                server_seq=seq,
                origin=logged.origin,
                meta=EnvelopeMeta(at=stamp.at, by=stamp.by),
            )
        )
        self.history.keep(seq, stamp.at, envelope)
        if self.subscribers:
            self._unsent.append(Message(b"%b%b}" % (BEFORE_ENVELOPE, envelope)))

    def flush(self) -> None:
        """Sends what was published since the last time, as one burst to each subscriber."""
        if self._unsent:
            unsent, self._unsent = self._unsent, []
            self._counts.deliveries += len(unsent) * len(self.subscribers)
            deliver(unsent, self.subscribers)

    def project(self, changes: Sequence[Change], seqs: Sequence[Seq], size: int) -> None:
        """Publishes the same to clients of AHP 0.9 and 1.x, at once; `size` is that of the entries.

        If that fails, only these clients are disconnected.
        """
        views = self.views
        if views is None or not seqs:
            return
        entries: list[Committed] = []
        for change in changes:
            first = len(entries)
            entries += _entries(change, seqs[first : first + len(change.actions)])
        try:
            self._counts.deliveries += views.committed(changes[0].before, entries, size)
            if views.are_useless:
                self.drop_views()
        except Exception:
            logger.exception("the projection of %s for AHP 0.9 and 1.x failed", self._uri)
            self.drop_views()
            for outbox in views.watchers:
                outbox.close(CloseCode.INTERNAL_ERROR, BROKEN)

    def ahp1_views(self, last_seq: Seq) -> Views:
        """Made when they are first needed; `last_seq` is the channel's."""
        if self.views is None:
            assert self._kind.ahp1 is not None
            self.views = Views(self._kind.ahp1, last_seq, self._envelopes)
        return self.views

    def drop_views(self) -> None:
        if self.views is not None:
            self.views.let_go()
            self.views = None

    def snapshot(self, record: R) -> bytes:
        """Encoded once per record."""
        if self._snapshot[0] is not record:
            self._snapshot = (record, self._kind.shown(record))
        return self._snapshot[1]

    def free_idle(self, before: int) -> bool:
        """Frees what can be made again if nothing has happened since; whether it did."""
        if not self.history.rest(before):
            return False
        self._snapshot = NO_SNAPSHOT
        if self.views is not None and not self.views.watchers:
            self.drop_views()
        return True

    def free(self) -> None:
        """The record leaves memory, or is gone."""
        self._snapshot = NO_SNAPSHOT
        self.drop_views()
        self.history.let_go()


def _entries(change: Change, seqs: Sequence[Seq]) -> list[Committed]:
    at, by = change.stamp.at, change.stamp.by
    return [
        Committed(seq, logged.action, at, by, logged.origin)  # type: ignore[arg-type]
        for seq, logged in zip(seqs, change.logged, strict=True)
    ]
