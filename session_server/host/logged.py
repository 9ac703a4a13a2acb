"""What the host writes into its log: actions with the host's marks, and its own few facts."""

from typing import TypeAlias

from session_server.schemas.actions import Action, ActionBase
from session_server.schemas.codec import Decoder
from session_server.schemas.envelopes import ActionOrigin
from session_server.schemas.principals import Stamp
from session_server.schemas.record import PrivateAction, SessionRecord
from session_server.schemas.root import RootState
from session_server.schemas.tokens import IssuedToken
from session_server.schemas.wire import Millis, Uri, Wire


class SessionOpened(ActionBase, frozen=True, kw_only=True, tag="private/sessionOpened"):
    """The first entry of a session's channel: what everything after it is folded over.

    `trimmed`: in a cassette, what came before it was forgotten, except for the decisions that are
    in `earlier`: to be read, and not folded.
    """

    record: SessionRecord
    trimmed: bool = False
    earlier: "tuple[Logged, ...]" = ()


class ClientSeen(ActionBase, frozen=True, kw_only=True, tag="private/clientSeen"):
    """A `clientId` belongs to the principal that first used it."""

    client_id: str
    principal_id: str
    version: str


class TokenIssued(ActionBase, frozen=True, kw_only=True, tag="private/tokenIssued"):
    """What a token proves; its text is nowhere."""

    token: IssuedToken


class TokenRevoked(ActionBase, frozen=True, kw_only=True, tag="private/tokenRevoked"):
    token_id: str


LoggedAction: TypeAlias = (
    Action | PrivateAction | SessionOpened | ClientSeen | TokenIssued | TokenRevoked
)


class Logged(Wire, frozen=True, kw_only=True):
    action: LoggedAction
    stamp: Stamp
    origin: ActionOrigin | None = None


class KnownClient(Wire, frozen=True, kw_only=True):
    principal_id: str
    version: str
    seen_at: Millis


class KnownClients(Wire, frozen=True, kw_only=True):
    clients: dict[str, KnownClient] = {}


class IssuedTokens(Wire, frozen=True, kw_only=True):
    """Those that may still be used: what was revoked is gone, what expired goes with the next."""

    tokens: dict[str, IssuedToken] = {}


CLIENTS_CHANNEL: Uri = "session-server:clients"
TOKENS_CHANNEL: Uri = "session-server:tokens"
"""Channels of the host's own; nobody can subscribe to them."""

decode_logged: Decoder[Logged] = Decoder(Logged)
decode_root: Decoder[RootState] = Decoder(RootState)
decode_record: Decoder[SessionRecord] = Decoder(SessionRecord)
decode_clients: Decoder[KnownClients] = Decoder(KnownClients)
decode_tokens: Decoder[IssuedTokens] = Decoder(IssuedTokens)
