"""The other end of a connection: who it is, what it watches, and how it is answered."""

from collections.abc import Callable
from typing import Any

import msgspec

from session_server.host.channels.channel import Channel
from session_server.host.channels.messages import Message, Outbox
from session_server.host.clients.presence import session_of
from session_server.host.connection.ahp1_client import Ahp1Client
from session_server.host.connection.rate_limit import Allowance
from session_server.host.connection.subscriptions import Subscriptions
from session_server.host.host import Host
from session_server.reducers.ahp1.numbering import number_after
from session_server.reducers.texts import visible_name
from session_server.reducers.version_negotiation import Family, Version
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.envelopes import ActionOrigin, RejectionEnvelope, RejectionMeta
from session_server.schemas.errors import (
    CommandError,
    DecodingError,
    ErrorCode,
    MalformedError,
    NotSavedError,
    RateLimitError,
    Refusal,
    RpcError,
    SessionServerError,
    UnknownKindError,
)
from session_server.schemas.limits import ID_CHARS, NAME_CHARS
from session_server.schemas.log_entries import Spelling
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Seq, Uri


def _same(seq: Seq) -> Seq:
    return seq


class Replies:
    """`unanswered` counts the requests that are still to be answered."""

    def __init__(self, host: Host, allowance: Allowance, outbox: Outbox) -> None:
        self.unanswered = 0
        self.number: Callable[[Seq], Seq] = _same
        """How positions are written: AHP 0.9 and 1.x count envelopes and not entries."""
        self._allowance = allowance
        self._host = host
        self._outbox = outbox

    def answer(self, request_id: frames.RequestId, result: Any) -> None:
        self.unanswered -= 1
        self.respond(request_id, result)

    def respond(self, request_id: frames.RequestId, result: Any) -> None:
        """The result of something that was not counted."""
        self.send(frames.Result(id=request_id, result=result))

    def fail(self, request_id: frames.RequestId, error: RpcError) -> None:
        self.unanswered -= 1
        self.respond_with_error(request_id, error)

    def respond_with_error(self, request_id: frames.RequestId | None, error: RpcError) -> None:
        """About something that was not counted: a frame that never became a request."""
        self.send(frames.Failure(id=request_id, error=error))

    def reject(
        self, channel: Uri, action: bytes, origin: ActionOrigin, reason: str, meta: RejectionMeta
    ) -> None:
        """To its sender alone; it takes no place in the order."""
        envelope = RejectionEnvelope(
            channel=channel,
            action=msgspec.Raw(action),
            server_seq=self.number(self._host.position),
            origin=origin,
            rejection_reason=reason,
            meta=meta,
        )
        self.send(frames.RejectionNotification(params=envelope))

    def send(self, frame: Any) -> None:
        message = Message.of(frame)
        self._allowance.charge_answer(len(message.text))
        self._outbox.send(message)


RPC_CODES: dict[type[SessionServerError], ErrorCode] = {
    MalformedError: ErrorCode.PARSE_ERROR,
    DecodingError: ErrorCode.INVALID_PARAMS,
    RateLimitError: ErrorCode.CONFLICT,
    NotSavedError: ErrorCode.INTERNAL_ERROR,
}
"""By the nearest class; otherwise an internal error. A `CommandError` has a code of its own."""


def rpc_error(error: SessionServerError) -> RpcError:
    """The one mapping of errors to AHP, for requests; refused actions are rejected instead."""
    match error:
        case CommandError(rpc_code=code):
            pass
        case UnknownKindError(path="$.method"):
            code = ErrorCode.METHOD_NOT_FOUND
        case _:
            known = (RPC_CODES[kind] for kind in type(error).__mro__ if kind in RPC_CODES)
            code = next(known, ErrorCode.INTERNAL_ERROR)
    return RpcError(code=code, message=str(error), data=error.data)


def rejection_meta(refusal: Refusal) -> RejectionMeta:
    return RejectionMeta(
        code=refusal.code, request_id=refusal.request_id, question_id=refusal.question_id
    )


class Peer:
    """`is_known` from the handshake on; before it, there is no `client_id`."""

    def __init__(self, host: Host, principal: Principal, outbox: Outbox) -> None:
        self.host = host
        self.principal = principal
        self.outbox = outbox
        self.replies = Replies(host, host.allowances.of(principal.id), outbox)
        self.subscriptions = Subscriptions(host, outbox)
        self.ahp1: Ahp1Client | None = None
        self.is_known = False
        self.author = principal.author
        self.client_id = ""
        self._may_choose_name = principal.name is None

    def bind(self, client_id: str) -> None:
        if not client_id or len(client_id) > ID_CHARS:
            reason = f"A clientId has between 1 and {ID_CHARS} characters."
            raise CommandError(ErrorCode.INVALID_PARAMS, reason)
        self.client_id = client_id
        self.principal = msgspec.structs.replace(self.principal, client_id=client_id)

    def speak(self, version: Version, spelling: Spelling) -> None:
        """A version of the protocol, from the handshake on."""
        is_ahp1 = version.family is Family.V1
        self.ahp1 = Ahp1Client(self.host, self.outbox, version, spelling) if is_ahp1 else None
        self.replies.number = number_after if is_ahp1 else _same

    def session_uri(self, uri: Uri) -> Uri:
        """The session, or the root, that a channel belongs to, by the host's own name."""
        if self.ahp1 is not None:
            return self.ahp1.target(uri).uri
        return session_of(uri) or uri

    def arrive(self) -> None:
        self.is_known = True
        self.host.clients.arrived(self.client_id, self.principal.id)
        self.host.active_clients.arrived(self.client_id)

    def leave(self) -> None:
        if self.is_known:
            self.host.clients.left(self.client_id, self.principal.id)
            self.host.active_clients.left(self.client_id)
        self.subscriptions.remove_all()
        if self.ahp1 is not None:
            self.ahp1.leave()

    def choose_name(self, name: str) -> None:
        """Also shown with the answers that follow, unless a credential brings a name."""
        shown = visible_name(name[:NAME_CHARS])
        if shown and self._may_choose_name:
            self.principal = msgspec.structs.replace(self.principal, name=shown)
            self.author = self.principal.author

    def is_opening(self, uri: Uri) -> bool:
        """Whether there may soon be a channel that it may look at."""
        return self.host.lifecycle.is_opening(uri) and self.principal.reaches(uri)

    def channel(self, uri: Uri) -> Channel[Any] | None:
        """A channel that it may look at."""
        return self.host.channel(self.principal, uri)
