"""Accepted and refused actions on their way to clients."""

import msgspec

from session_server.schemas.ahp.actions import Action
from session_server.schemas.principals import Author
from session_server.schemas.wire import Count, Millis, Seq, Uri, Wire


class ActionOrigin(Wire, frozen=True, kw_only=True):
    """The client that dispatched the action; host actions have none."""

    client_id: str
    client_seq: Count


class EnvelopeMeta(Wire, frozen=True, kw_only=True):
    """Host extension: when the action was accepted, and whose it really was."""

    at: Millis
    by: Author | None = None


class ActionEnvelope(Wire, frozen=True, kw_only=True):
    channel: Uri
    action: Action
    server_seq: Seq
    origin: ActionOrigin | None = None
    meta: EnvelopeMeta | None = msgspec.field(default=None, name="_meta")


class RejectionMeta(Wire, frozen=True, kw_only=True):
    """Host extension: why, for programs, and which question it is about."""

    code: str
    request_id: str | None = None
    question_id: str | None = None


class RejectionEnvelope(Wire, frozen=True, kw_only=True):
    """A refused action, echoed to its sender alone; it consumes no `serverSeq`.

    The action is raw because even one that could not be decoded is answered.
    """

    channel: Uri
    action: msgspec.Raw
    server_seq: Seq
    origin: ActionOrigin
    rejection_reason: str
    meta: RejectionMeta | None = msgspec.field(default=None, name="_meta")
