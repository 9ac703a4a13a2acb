"""What the log holds: entries, and the states of the host's own channels.

A session's channel begins with `SessionOpened`. Two channels are the host's own: which client id
belongs to whom, and which tokens were issued.
"""

from enum import StrEnum
from typing import TypeAlias

from session_server.schemas.ahp.actions import Action, ActionBase
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.http import IssuedToken
from session_server.schemas.principals import Stamp
from session_server.schemas.record import PrivateAction, SessionRecord
from session_server.schemas.wire import Millis, Seq, Uri, Wire


class Spelling(StrEnum):
    """How session URIs are written on a connection: as they are, or with the provider as scheme."""

    PLAIN = "plain"
    PROVIDER = "provider"


class SessionOpened(ActionBase, frozen=True, kw_only=True, tag="private/sessionOpened"):
    """The first entry of a session's channel: what everything after it is replayed over.

    `trimmed`: in a recording, what came before it was forgotten, except for the decisions that are
    in `earlier`: to be read, and not replayed.
    """

    record: SessionRecord
    trimmed: bool = False
    earlier: "tuple[Logged, ...]" = ()


class SessionDisposed(ActionBase, frozen=True, kw_only=True, tag="private/sessionDisposed"):
    """In the root's channel, for other nodes: the log has forgotten a session that ended there."""

    session: Uri
    last_seq: Seq


class ClientSeen(ActionBase, frozen=True, kw_only=True, tag="private/clientSeen"):
    """A `clientId` belongs to the principal that first used it."""

    client_id: str
    principal_id: str
    version: str
    spelling: Spelling | None = None


class TokenIssued(ActionBase, frozen=True, kw_only=True, tag="private/tokenIssued"):
    """What a token proves; its text is nowhere."""

    token: IssuedToken


class TokenRevoked(ActionBase, frozen=True, kw_only=True, tag="private/tokenRevoked"):
    token_id: str


LoggedAction: TypeAlias = (
    Action
    | PrivateAction
    | SessionOpened
    | SessionDisposed
    | ClientSeen
    | TokenIssued
    | TokenRevoked
)


class Logged(Wire, frozen=True, kw_only=True):
    action: LoggedAction
    stamp: Stamp
    origin: ActionOrigin | None = None


class KnownClient(Wire, frozen=True, kw_only=True):
    """What it spoke when it was last seen: `reconnect` does not say."""

    principal_id: str
    version: str
    seen_at: Millis
    spelling: Spelling | None = None


class KnownClients(Wire, frozen=True, kw_only=True):
    clients: dict[str, KnownClient] = {}


class IssuedTokens(Wire, frozen=True, kw_only=True):
    """Those that may still be used: what was revoked is gone, what expired goes with the next."""

    tokens: dict[str, IssuedToken] = {}


CLIENTS_CHANNEL: Uri = "session-server:clients"
TOKENS_CHANNEL: Uri = "session-server:tokens"
"""Channels of the host's own; clients cannot subscribe to them."""
