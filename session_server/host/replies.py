"""What a connection says back: results, errors, and rejections of actions."""

from typing import Any

import msgspec

from session_server.host.delivery import Message, Outbox
from session_server.host.host import Host
from session_server.host.pace import Allowance
from session_server.schemas import frames
from session_server.schemas.envelopes import ActionOrigin, RejectionEnvelope, RejectionMeta
from session_server.schemas.errors import RpcError
from session_server.schemas.refusals import Refusal
from session_server.schemas.wire import Uri


class Replies:
    """`unanswered` counts the requests that are still to be answered."""

    def __init__(self, host: Host, allowance: Allowance, outbox: Outbox) -> None:
        self.unanswered = 0
        self._allowance = allowance
        self._host = host
        self._outbox = outbox

    def answer(self, request_id: frames.RequestId, result: Any) -> None:
        self.unanswered -= 1
        self.tell(request_id, result)

    def tell(self, request_id: frames.RequestId, result: Any) -> None:
        """The result of something that was not counted."""
        self._send(frames.Result(id=request_id, result=result))

    def fail(self, request_id: frames.RequestId, error: RpcError) -> None:
        self.unanswered -= 1
        self.complain(request_id, error)

    def complain(self, request_id: frames.RequestId | None, error: RpcError) -> None:
        """About something that was not counted: a frame that never became a request."""
        self._send(frames.Failure(id=request_id, error=error))

    def reject(
        self, channel: Uri, action: bytes, origin: ActionOrigin, reason: str, meta: RejectionMeta
    ) -> None:
        """To its sender alone; it takes no place in the order."""
        envelope = RejectionEnvelope(
            channel=channel,
            action=msgspec.Raw(action),
            server_seq=self._host.position,
            origin=origin,
            rejection_reason=reason,
            meta=meta,
        )
        self._send(frames.RejectionNotification(params=envelope))

    def _send(self, frame: Any) -> None:
        message = Message.of(frame)
        self._allowance.charge_answer(len(message.text))
        self._outbox.send(message)


def rejection_meta(refusal: Refusal) -> RejectionMeta:
    return RejectionMeta(
        code=refusal.code, request_id=refusal.request_id, question_id=refusal.question_id
    )
