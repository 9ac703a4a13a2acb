"""Which `clientId` belongs to whom, and when it was last seen."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from session_server.host.channels.changes import Change, PlannedChange
from session_server.host.channels.channel import Channel
from session_server.host.channels.channel_kinds import CLIENTS
from session_server.host.persistence.log_status import LogStatus
from session_server.schemas.ahp.commands import PROTOCOL_VERSION
from session_server.schemas.errors import Refusal, RefusalCode, not_permitted
from session_server.schemas.limits import CLIENT_LIFETIME_MS
from session_server.schemas.log_entries import (
    ClientSeen,
    KnownClient,
    KnownClients,
    LoggedAction,
    Spelling,
)
from session_server.schemas.principals import Principal, Stamp

SEEN_EVERY_MS = 24 * 3_600_000


def _nothing(*_: object) -> None:
    pass


class Clients:
    """`channel` is where it is kept: durable, and not open to subscriptions.

    A client id that was not seen for long is free for others, but not while it is connected.
    """

    def __init__(
        self, channel: Channel[KnownClients], log_status: LogStatus, now: Callable[[], int]
    ) -> None:
        self.channel = channel
        self._log_status = log_status
        self._now = now
        self._unsaved = KnownClients()
        log_status.on_back.append(self._save)
        self._here: dict[str, list[str]] = {}

    def arrived(self, client_id: str, principal_id: str) -> None:
        self._here.setdefault(client_id, []).append(principal_id)

    def left(self, client_id: str, principal_id: str) -> None:
        here = self._here[client_id]
        here.remove(principal_id)
        if not here:
            del self._here[client_id]

    def find(self, client_id: str) -> KnownClient | None:
        known = self.channel.committed
        remembered = None if known is None else self._remembered(known, client_id)
        return self._unsaved.clients.get(client_id, remembered)

    def _remembered(self, known: KnownClients, client_id: str) -> KnownClient | None:
        client = known.clients.get(client_id)
        is_gone = client is None or client.seen_at < self._now() - CLIENT_LIFETIME_MS
        return None if is_gone else client

    def is_of_other(self, known: KnownClients | None, principal: Principal) -> bool:
        """Whether the client id belongs to another principal."""
        assert principal.client_id is not None
        owner = None if known is None else self._remembered(known, principal.client_id)
        owner = self._unsaved.clients.get(principal.client_id, owner)
        if owner is not None:
            return owner.principal_id != principal.id
        return any(other != principal.id for other in self._here.get(principal.client_id, ()))

    def is_stale(self, known: KnownClient) -> bool:
        """Whether the time of its last connection has to be written again."""
        return known.seen_at < self._now() - SEEN_EVERY_MS

    def know(
        self,
        principal: Principal,
        version: str = PROTOCOL_VERSION,
        spelling: Spelling | None = None,
        *,
        done: Callable[[], None] = _nothing,
        refused: Callable[[Refusal], None] = _nothing,
    ) -> None:
        """Durable before `initialize` is answered, so that `reconnect` works after a restart.

        While the log is read-only it is kept in memory, and written when that works again.
        """
        assert principal.client_id is not None
        if self.is_of_other(self.channel.committed, principal):
            raise not_permitted(_not_yours(principal.client_id))
        seen = ClientSeen(
            client_id=principal.client_id,
            principal_id=principal.id,
            version=version,
            spelling=spelling,
        )
        introduction = _Introduction(self, principal, seen, done, refused)
        if self._log_status.reason is None:
            self.channel.submit(introduction)
        else:
            introduction.failed(self._log_status.reason)

    def remember(self, seen: ClientSeen) -> None:
        """Keeps it in memory until it can be written."""
        self._unsaved = CLIENTS.reduce(self._unsaved, seen, self._now())

    def _save(self) -> None:
        """Writes what is kept in memory; what fails again stays there.

        Another node may have written meanwhile that it is someone else's.
        """
        for client_id, client in tuple(self._unsaved.clients.items()):
            seen = ClientSeen(
                client_id=client_id,
                principal_id=client.principal_id,
                version=client.version,
                spelling=client.spelling,
            )
            plan, written = partial(self._still_free, seen), partial(self.written, client_id)
            self.channel.submit(PlannedChange(plan, None, done=written))

    def _still_free(self, seen: ClientSeen, known: KnownClients, _: Stamp) -> Any:
        owner = self._remembered(known, seen.client_id)
        return () if owner is not None and owner.principal_id != seen.principal_id else (seen,)

    def written(self, client_id: str) -> None:
        self._unsaved.clients.pop(client_id, None)


class _Introduction(Change):
    """Writes a client and admits it once: when it is written, or cannot be for now."""

    def __init__(
        self,
        clients: Clients,
        principal: Principal,
        seen: ClientSeen,
        let_in: Callable[[], None],
        refuse: Callable[[Refusal], None],
    ) -> None:
        super().__init__(None, principal.author)
        self._clients = clients
        self._client = principal
        self._seen = seen
        self._let_in = let_in
        self._refuse = refuse

    def plan(self, record: Any, stamp: Stamp) -> Sequence[LoggedAction] | Refusal:  # noqa: ARG002
        if self._clients.is_of_other(record, self._client):
            return Refusal(code=RefusalCode.NOT_YOURS, message=_not_yours(self._seen.client_id))
        return (self._seen,)

    def done(self) -> None:
        self._clients.written(self._seen.client_id)
        self._enter()

    def refused(self, refusal: Refusal) -> None:
        self._refuse(refusal)

    def failed(self, reason: str) -> None:  # noqa: ARG002
        self._clients.remember(self._seen)
        self._enter()

    doubted = failed

    def _enter(self) -> None:
        let_in, self._let_in = self._let_in, _nothing
        let_in()


def _not_yours(client_id: str) -> str:
    return f"The clientId {client_id!r} belongs to someone else."
