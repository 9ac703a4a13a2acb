"""The other end of a connection: who it is, what it watches, and how it is answered."""

from typing import Any

import msgspec

from session_server.host.channel import Channel
from session_server.host.delivery import Outbox
from session_server.host.errors import CommandError
from session_server.host.host import Host
from session_server.host.replies import Replies
from session_server.host.subscriptions import Subscriptions
from session_server.reducers.words import visible_name
from session_server.schemas.errors import ErrorCode
from session_server.schemas.limits import ID_CHARS, NAME_CHARS
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Uri


class Peer:
    """`is_known` from the handshake on; before it, there is no `client_id`."""

    def __init__(self, host: Host, principal: Principal, outbox: Outbox) -> None:
        self.host = host
        self.principal = principal
        self.outbox = outbox
        self.replies = Replies(host, host.allowances.of(principal.id), outbox)
        self.subscriptions = Subscriptions(host, outbox)
        self.is_known = False
        self._may_choose_name = principal.name is None

    @property
    def client_id(self) -> str:
        assert self.principal.client_id is not None
        return self.principal.client_id

    def bind(self, client_id: str) -> None:
        if not client_id or len(client_id) > ID_CHARS:
            words = f"A clientId has between 1 and {ID_CHARS} characters."
            raise CommandError(ErrorCode.INVALID_PARAMS, words)
        self.principal = msgspec.structs.replace(self.principal, client_id=client_id)

    def arrive(self) -> None:
        self.is_known = True
        self.host.clients.arrived(self.client_id, self.principal.id)
        self.host.active_clients.arrived(self.client_id)

    def leave(self) -> None:
        if self.is_known:
            self.host.clients.left(self.client_id, self.principal.id)
            self.host.active_clients.left(self.client_id)
        self.subscriptions.remove_all()

    def choose_name(self, name: str) -> None:
        """It also stands beside the answers that follow; a credential's own name goes before."""
        shown = visible_name(name[:NAME_CHARS])
        if shown and self._may_choose_name:
            self.principal = msgspec.structs.replace(self.principal, name=shown)

    def is_opening(self, uri: Uri) -> bool:
        """Whether there may soon be a channel that it may look at."""
        return self.host.is_opening(uri) and self.principal.reaches(uri)

    def channel(self, uri: Uri) -> Channel[Any] | None:
        """A channel that it may look at."""
        return self.host.channel(self.principal, uri)
