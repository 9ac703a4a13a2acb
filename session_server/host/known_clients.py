"""Which `clientId` belongs to whom, and when it was last seen."""

from collections.abc import Callable
from functools import partial
from typing import Any

from session_server.host.channel import Channel, Submission
from session_server.host.channel_kinds import CLIENTS, ClientSeen, KnownClient, KnownClients
from session_server.host.errors import not_permitted
from session_server.host.storage import Storage
from session_server.schemas.ahp.commands import PROTOCOL_VERSION
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.limits import CLIENT_LIFETIME_MS
from session_server.schemas.principals import Principal, Stamp

SEEN_EVERY_MS = 24 * 3_600_000


def _nothing(*_: object) -> None:
    pass


class Clients:
    """`channel` is where it is kept: durable, and nobody can subscribe to it.

    One that was not seen for long is forgotten, and anybody's; but not while it is connected.
    """

    def __init__(
        self, channel: Channel[KnownClients], storage: Storage, now: Callable[[], int]
    ) -> None:
        self.channel = channel
        self._storage = storage
        self._now = now
        self._unsaved = KnownClients()
        storage.on_back.append(self._save)
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

    def is_taken(self, known: KnownClients | None, principal: Principal) -> bool:
        """By someone else."""
        assert principal.client_id is not None
        owner = None if known is None else self._remembered(known, principal.client_id)
        owner = self._unsaved.clients.get(principal.client_id, owner)
        if owner is not None:
            return owner.principal_id != principal.id
        return any(other != principal.id for other in self._here.get(principal.client_id, ()))

    def is_stale(self, known: KnownClient) -> bool:
        """Worth writing down that it was seen again."""
        return known.seen_at < self._now() - SEEN_EVERY_MS

    def know(
        self,
        principal: Principal,
        *,
        done: Callable[[], None] = _nothing,
        refused: Callable[[Refusal], None] = _nothing,
    ) -> None:
        """Durable before `initialize` is answered, so that `reconnect` works after a restart.

        While nothing can be written it is kept in memory, and written down when that works again.
        """
        client_id = principal.client_id
        assert client_id is not None
        if self.is_taken(self.channel.committed, principal):
            raise not_permitted(_taken(client_id))
        seen = ClientSeen(
            client_id=client_id,
            principal_id=principal.id,
            version=PROTOCOL_VERSION,
        )
        is_let_in = False

        def let_in() -> None:
            nonlocal is_let_in
            if not is_let_in:
                is_let_in = True
                done()

        def written() -> None:
            self._written(client_id)
            let_in()

        def keep(_: str) -> None:
            self._unsaved = CLIENTS.reduce(self._unsaved, seen, self._now())
            let_in()

        def plan(clients: KnownClients, _: Stamp) -> Any:
            if self.is_taken(clients, principal):
                return Refusal(code=RefusalCode.NOT_YOURS, message=_taken(client_id))
            return (seen,)

        if self._storage.reason is not None:
            keep(self._storage.reason)
            return
        self.channel.submit(
            Submission(
                plan,
                by=principal.author,
                done=written,
                refused=refused,
                failed=keep,
                doubted=keep,
            )
        )

    def _save(self) -> None:
        """What is kept in memory is written down; what fails again stays there."""
        for client_id, client in tuple(self._unsaved.clients.items()):
            seen = ClientSeen(
                client_id=client_id,
                principal_id=client.principal_id,
                version=client.version,
            )
            written = partial(self._written, client_id)
            self.channel.submit(Submission(lambda *_, seen=seen: (seen,), by=None, done=written))

    def _written(self, client_id: str) -> None:
        self._unsaved.clients.pop(client_id, None)


def _taken(client_id: str) -> str:
    return f"The clientId {client_id!r} belongs to someone else."
