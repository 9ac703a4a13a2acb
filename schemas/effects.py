"""Work that a change calls for. Effects name the work; the host's drivers do it.

Everything an effect needs is in the record, and deriving one twice is harmless.
"""

from typing import TypeAlias

from session_server.schemas.ahp.session import SessionSummary
from session_server.schemas.record import Deferred
from session_server.schemas.wire import Count, Millis, Wire


class EffectBase(Wire, frozen=True, kw_only=True, tag_field="effect"):
    """Equal effects are the same work."""


class SendCall(EffectBase, frozen=True, kw_only=True, tag="sendCall"):
    """Send this leg, once, after its `CallSent` is durable."""

    call_id: str
    leg: Count
    not_before: Millis | None = None


class AnswerHeldCall(EffectBase, frozen=True, kw_only=True, tag="answerHeldCall"):
    """Give the round's responses to the connection that a 2025-era server holds open."""

    call_id: str
    round: Count


class RecoverCall(EffectBase, frozen=True, kw_only=True, tag="recoverCall"):
    """The process died while this leg was out: see `after_crash`."""

    call_id: str
    leg: Count


class StopCall(EffectBase, frozen=True, kw_only=True, tag="stopCall"):
    call_id: str


class RunTurn(EffectBase, frozen=True, kw_only=True, tag="runTurn"):
    """Wake the agent behind the session."""

    turn_id: str


class StopTurn(EffectBase, frozen=True, kw_only=True, tag="stopTurn"):
    turn_id: str


class CompleteTurn(EffectBase, frozen=True, kw_only=True, tag="completeTurn"):
    """Everything that joined the turn has ended, and nothing else keeps it open."""

    turn_id: str


class StartQueuedTurn(EffectBase, frozen=True, kw_only=True, tag="startQueuedTurn"):
    message_id: str


class ApplyDeferred(EffectBase, frozen=True, kw_only=True, tag="applyDeferred"):
    deferred: Deferred


class DeliverOutcome(EffectBase, frozen=True, kw_only=True, tag="deliverOutcome"):
    """Tell whoever asked, other than a call, how its request ended."""

    request_id: str


class ExpireRequest(EffectBase, frozen=True, kw_only=True, tag="expireRequest"):
    request_id: str
    at: Millis


class ExpireCall(EffectBase, frozen=True, kw_only=True, tag="expireCall"):
    """Its client has not answered what nobody else can."""

    call_id: str
    at: Millis


class SendNotice(EffectBase, frozen=True, kw_only=True, tag="sendNotice"):
    """Someone may want to know that this question is open."""

    request_id: str


class PublishSummary(EffectBase, frozen=True, kw_only=True, tag="publishSummary"):
    before: SessionSummary
    after: SessionSummary


Effect: TypeAlias = (
    SendCall
    | AnswerHeldCall
    | RecoverCall
    | StopCall
    | RunTurn
    | StopTurn
    | CompleteTurn
    | StartQueuedTurn
    | ApplyDeferred
    | DeliverOutcome
    | ExpireRequest
    | ExpireCall
    | SendNotice
    | PublishSummary
)
