"""What a session's log folds into, and the private actions that only the log ever sees."""

from typing import TypeAlias

from .actions import ActionBase, AgentChanged, ModelChanged, SessionAction
from .calls import Asked, Begun, Call, CallError, Outcome, Remembered
from .envelopes import ActionOrigin
from .principals import Author
from .session import SessionState
from .wire import Count, Extra, Wire

DeferredChange: TypeAlias = ModelChanged | AgentChanged


class Deferred(Wire, frozen=True, kw_only=True):
    """A change that waits, whose it is, and which dispatch of its client it was.

    With its origin its sender, and a client that comes back, recognise it when it happens.
    """

    change: DeferredChange
    by: Author | None = None
    origin: ActionOrigin | None = None


class PrivateState(Wire, frozen=True, kw_only=True):
    """`begun` names the open requests that somebody has begun to answer.

    `is_recording`: the session was played back from a cassette. It can be watched, and that is all:
    nothing in it runs, expires, is sent or can be answered.

    `opened_with` is the name of the retry key that the session was made with, if there was one.
    `collected` names those of the remembered outcomes that their asker has.
    """

    calls: dict[str, Call] = {}
    outcomes: tuple[Outcome, ...] = ()
    deferred: tuple[Deferred, ...] = ()
    held_completion: str | None = None
    begun: tuple[str, ...] = ()
    collected: tuple[str, ...] = ()
    opened_with: str | None = None
    is_recording: bool = False


class SessionRecord(Wire, frozen=True, kw_only=True):
    """`public` is what snapshots show; `private` never leaves the host."""

    public: SessionState
    private: PrivateState = PrivateState()


class OutcomeRecorded(ActionBase, frozen=True, kw_only=True, tag="private/outcomeRecorded"):
    """Shares its batch with the public action that ended the request."""

    outcome: Outcome


class OutcomeCollected(ActionBase, frozen=True, kw_only=True, tag="private/outcomeCollected"):
    """Whoever asked has the outcome: the same questions from now on are asked anew."""

    request_id: str


class ChangeDeferred(ActionBase, frozen=True, kw_only=True, tag="private/changeDeferred"):
    """A change of model or agent that waits for the turn to end."""

    deferred: Deferred


class CompletionHeld(ActionBase, frozen=True, kw_only=True, tag="private/completionHeld"):
    """The agent is done, but calls or questions of its turn are not."""

    turn_id: str


class CallStarted(ActionBase, frozen=True, kw_only=True, tag="private/callStarted"):
    call: Call


class CallAction(ActionBase, frozen=True, kw_only=True):
    call_id: str


class CallSent(CallAction, frozen=True, kw_only=True, tag="private/callSent"):
    """Logged before the leg goes out; whoever's entry takes effect is the one who sends.

    `repeatable` is what the server says of its tool, once it is known.
    """

    leg: Count
    repeatable: bool | None = None


class CallUnsent(CallAction, frozen=True, kw_only=True, tag="private/callUnsent"):
    """The leg never left: the server could not be reached. It is tried again."""

    leg: Count


class CallInputRequired(CallAction, frozen=True, kw_only=True, tag="private/callInputRequired"):
    leg: Count
    asked: tuple[Asked, ...]
    request_state: str | None = None
    held: bool = False


class CallAnswered(CallAction, frozen=True, kw_only=True, tag="private/callAnswered"):
    """What the MCP client that made the call answered in this round, by the server's keys.

    `remembered` are answers to questions of an earlier run, which may be asked again in this one.
    """

    round: Count
    given: dict[str, Extra] = {}
    errors: dict[str, Extra] = {}
    remembered: tuple[Remembered, ...] = ()


class CallRestarted(CallAction, frozen=True, kw_only=True, tag="private/callRestarted"):
    """The server no longer knows its state: start over, with the answers kept."""

    leg: Count
    begun: tuple[Begun, ...] = ()


class CallDoubted(CallAction, frozen=True, kw_only=True, tag="private/callDoubted"):
    """The leg may have run; `request_id` asks a person whether to run it again."""

    leg: Count
    request_id: str
    begun: tuple[Begun, ...] = ()


class CallFinished(CallAction, frozen=True, kw_only=True, tag="private/callFinished"):
    leg: Count
    result: Extra


class CallFailed(CallAction, frozen=True, kw_only=True, tag="private/callFailed"):
    leg: Count
    error: CallError


class CallAbandoned(CallAction, frozen=True, kw_only=True, tag="private/callAbandoned"):
    reason: str


class CallCollected(CallAction, frozen=True, kw_only=True, tag="private/callCollected"):
    """Whoever made the request has its result: the next one like it is another call."""


PrivateAction: TypeAlias = (
    OutcomeRecorded
    | OutcomeCollected
    | ChangeDeferred
    | CompletionHeld
    | CallStarted
    | CallSent
    | CallUnsent
    | CallInputRequired
    | CallAnswered
    | CallRestarted
    | CallDoubted
    | CallFinished
    | CallFailed
    | CallAbandoned
    | CallCollected
)
RecordAction: TypeAlias = SessionAction | PrivateAction
"""Everything a session's log may hold."""
