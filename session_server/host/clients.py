"""Which `clientId` belongs to whom, and in which epoch of the log it was last seen."""

from collections.abc import Callable
from typing import Any

from session_server.host.channel import Channel, Submission
from session_server.host.errors import not_permitted
from session_server.host.logged import ClientSeen, KnownClient, KnownClients
from session_server.log import Log
from session_server.schemas.commands import PROTOCOL_VERSION
from session_server.schemas.principals import Principal, Stamp
from session_server.schemas.refusals import Refusal, RefusalCode


def _nothing(*_: object) -> None:
    pass


class Clients:
    """`channel` is where it is kept: durable, and nobody can subscribe to it."""

    def __init__(self, channel: Channel[KnownClients], log: Log) -> None:
        self.channel = channel
        self._log = log

    def find(self, client_id: str) -> KnownClient | None:
        known = self.channel.committed
        return None if known is None else known.clients.get(client_id)

    def is_of_this_epoch(self, known: KnownClient) -> bool:
        """Otherwise the positions that it knows are not ours."""
        return known.epoch == self._log.epoch

    def know(
        self,
        principal: Principal,
        *,
        done: Callable[[], None] = _nothing,
        refused: Callable[[Refusal], None] = _nothing,
        failed: Callable[[str], None] = _nothing,
    ) -> None:
        """Durable before `initialize` is answered, so that `reconnect` works after a restart."""
        client_id = principal.client_id
        assert client_id is not None
        known = self.find(client_id)
        taken = f"The clientId {client_id!r} belongs to someone else."
        if known is not None and known.principal_id != principal.id:
            raise not_permitted(taken)
        seen = ClientSeen(
            client_id=client_id,
            principal_id=principal.id,
            version=PROTOCOL_VERSION,
            epoch=self._log.epoch,
        )

        def plan(clients: KnownClients, _: Stamp) -> Any:
            owner = clients.clients.get(client_id)
            if owner is not None and owner.principal_id != principal.id:
                return Refusal(code=RefusalCode.NOT_YOURS, message=taken)
            return (seen,)

        self.channel.submit(
            Submission(plan, by=principal.author, done=done, refused=refused, failed=failed)
        )
