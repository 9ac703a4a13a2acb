"""What a session's log reduces to: its state, its MCP calls, and the private actions of the log."""

from enum import StrEnum
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from session_server.schemas.ahp.actions import ActionBase, AgentChanged, ModelChanged, SessionAction
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.questions import Answer, InputRequest, LeaseSeconds, ResponseKind
from session_server.schemas.ahp.session import AgentSelection, ModelSelection, SessionState
from session_server.schemas.ahp1.state import ChosenMessage, ClientEntry
from session_server.schemas.limits import ROUNDS_PER_CALL
from session_server.schemas.mcp import CallMethod, ElicitResult, Root
from session_server.schemas.principals import Author, Provenance
from session_server.schemas.wire import Count, Extra, Json, Millis, Wire


class Outcome(Wire, frozen=True, kw_only=True):
    """How an input request ended. `answers` holds what was submitted or skipped, no drafts."""

    request: InputRequest
    response: ResponseKind
    via: Provenance
    at: Millis
    answers: dict[str, Answer] | None = None
    by: Author | None = None
    turn_id: str | None = None


Answerers: TypeAlias = Literal["session", "client", "both"]
"""Who is asked what a server asks: people in the session, the MCP client's own user, or both."""


class CallClient(Wire, frozen=True, kw_only=True):
    """The MCP client that made a call, and whether its own user is asked.

    `capabilities` is what is declared to the server; without it, what the host itself can do.
    `is_2025`: it speaks a revision of that era. `log_level`: from which level on it gets the log
    messages of the server; without it, none.
    """

    name: str
    answers: Answerers = "session"
    capabilities: Extra | None = None
    is_2025: bool = False
    log_level: str | None = None


class Asked(Wire, frozen=True, kw_only=True):
    """One embedded request of a round. `fingerprint` recognizes it when it is asked again.

    `roots` answers a request for them from the settings, without asking. `elicitation_id` is
    what a 2025-era server calls its URL request when it reports that the visit has ended.
    `question` is the request as the server made it, if the MCP client is asked; `given` or
    `error` is what the client answered, passed on as it is.
    """

    key: str
    request_id: str
    fingerprint: str
    schema: Extra | None = None
    response: ElicitResult | None = None
    roots: tuple[Root, ...] | None = None
    elicitation_id: str | None = None
    question: Extra | None = None
    given: Extra | None = None
    error: Extra | None = None

    @property
    def is_answered(self) -> bool:
        answers = (self.response, self.roots, self.given, self.error)
        return any(answer is not None for answer in answers)

    @property
    def waits_for_client(self) -> bool:
        return self.question is not None and not self.is_answered


class Begun(Wire, frozen=True, kw_only=True):
    """What people had written when a question was lost with its connection."""

    key: str
    fingerprint: str
    answers: dict[str, Answer]


class Remembered(Wire, frozen=True, kw_only=True):
    """An answer that outlives its round, in case the call must start over after that run."""

    run: Count
    key: str
    fingerprint: str
    response: ElicitResult | None = None
    given: Extra | None = None


class FailureKind(StrEnum):
    ROUND_LIMIT = "roundLimit"
    RESTART_LIMIT = "restartLimit"
    UNSUPPORTED_REQUEST = "unsupportedRequest"
    UNSHOWABLE_FORM = "unshowableForm"
    INVALID_RESULT = "invalidResult"
    NOT_REPEATED = "notRepeated"
    UPSTREAM = "upstream"


class CallError(Wire, frozen=True, kw_only=True):
    kind: FailureKind
    message: str
    data: Json = None


NOT_REPEATED = CallError(
    kind=FailureKind.NOT_REPEATED, message="It may have run already and was not run again."
)


class PhaseBase(Wire, frozen=True, kw_only=True, tag_field="phase"):
    """The phase of a call. A *leg* is one request to the server; legs count from 0."""


class ToSend(PhaseBase, frozen=True, kw_only=True, tag="toSend"):
    """The next leg is decided on and may go out, once."""

    leg: Count
    not_before: Millis | None = None


class Sent(PhaseBase, frozen=True, kw_only=True, tag="sent"):
    """Durable before the leg goes out: if the process dies now, it may have run.

    `held`: people have answered, and their answers are sent on the open connection.
    """

    leg: Count
    held: bool = False


class Waiting(PhaseBase, frozen=True, kw_only=True, tag="waiting"):
    """A round is open. `held`: a 2025-era server waits on the connection instead of a retry."""

    leg: Count
    held: bool = False


class Uncertain(PhaseBase, frozen=True, kw_only=True, tag="uncertain"):
    """It may have run already; a person decides whether it runs again."""

    leg: Count
    request_id: str


class Finished(PhaseBase, frozen=True, kw_only=True, tag="finished"):
    result: Extra
    at: Millis


class Failed(PhaseBase, frozen=True, kw_only=True, tag="failed"):
    error: CallError
    at: Millis


class Abandoned(PhaseBase, frozen=True, kw_only=True, tag="abandoned"):
    reason: str
    at: Millis


OpenPhase: TypeAlias = ToSend | Sent | Waiting | Uncertain
EndPhase: TypeAlias = Finished | Failed | Abandoned
Phase: TypeAlias = OpenPhase | EndPhase
OPEN_PHASES = frozenset[type](get_args(OpenPhase))


class Call(Wire, frozen=True, kw_only=True):
    """One MCP request, driven to its end through any number of rounds.

    `params` are the original ones, sent again unchanged with every leg. `repeatable` holds for
    tools marked read-only or idempotent: only these are run again without asking. `round` counts
    over the whole life of the call, so that request ids derived from it never repeat; `run_start`
    is its value when the call last started over. `fingerprint` recognizes the same request by the
    same principal; once its result was `collected`, such a request is a new call. Questions are
    open for `answer_within` milliseconds, or until someone answers; the round was `asked_at` this
    time. `unreached` counts how often in
    a row the server could not be reached, `unreached_since` says from when on. `lease` is the lease
    of its questions: its maker waits for the result, and may be away for this many seconds.
    `client` is the MCP client that made it, if one did. `node` has sent its last leg, where the
    host has several. `size`: its bytes, once it has ended.
    """

    id: str
    server: str
    method: CallMethod
    params: Extra
    turn_id: str
    started_at: Millis
    by: Author | None = None
    repeatable: bool = False
    private_arguments: tuple[str, ...] = ()
    fingerprint: str | None = None
    collected: bool = False
    answer_within: Millis | None = None
    lease: LeaseSeconds | None = None
    client: CallClient | None = None
    roots: tuple[Root, ...] | None = None
    max_rounds: Count = ROUNDS_PER_CALL
    phase: Phase = ToSend(leg=0)
    round: Count = 0
    run_start: Count = 0
    restarts: Count = 0
    request_state: str | None = None
    asked: tuple[Asked, ...] = ()
    asked_at: Millis | None = None
    remembered: tuple[Remembered, ...] = ()
    begun: tuple[Begun, ...] = ()
    unreached: Count = 0
    unreached_since: Millis | None = None
    node: str = ""
    size: Count = 0

    @property
    def is_open(self) -> bool:
        return type(self.phase) in OPEN_PHASES

    @property
    def answers(self) -> Answerers:
        return "session" if self.client is None else self.client.answers

    @property
    def rounds_of_run(self) -> int:
        """Rounds since the call last started over: what the round limit is about."""
        return self.round - self.run_start

    @property
    def target(self) -> str:
        """The tool, prompt or resource that is asked for; of a URI, without its query."""
        name = self.params.get("name") or self.params.get("uri") or self.method
        return str(name).partition("?")[0].partition("#")[0]


class ClientRound(Wire, frozen=True, kw_only=True):
    """Questions that are open for the client, by key, in a round of a run of the call.

    `again`: whether to run it again is asked, after this leg. `fingerprints` recognize questions
    that are asked again in a later run.
    """

    round: Count
    run: Count
    questions: dict[str, Extra]
    fingerprints: dict[str, str] = {}
    again: Count | None = None

    @property
    def name(self) -> tuple[int, int | None]:
        return (self.round, self.again)


class ClientAnswers(Wire, frozen=True, kw_only=True):
    """What a client brought for a round: results, or errors, by key.

    `within`: milliseconds after it was asked, if that is less than a person needs to read it.
    """

    round: ClientRound
    given: dict[str, Extra] = {}
    errors: dict[str, Extra] = {}
    within: Count | None = None


DeferredChange: TypeAlias = ModelChanged | AgentChanged


class Deferred(Wire, frozen=True, kw_only=True):
    """A change that waits, whose it is, and which dispatch of its client it was.

    With its origin its sender, and a client that comes back, recognize it when it happens.
    """

    change: DeferredChange
    by: Author | None = None
    origin: ActionOrigin | None = None


class TurnOwner(Wire, frozen=True, kw_only=True):
    turn_id: str
    node: str


class PrivateState(Wire, frozen=True, kw_only=True, dict=True):
    """`begun` names the open requests that a person has begun to answer.

    `is_recording`: the session was played back from a file. It can be watched, and that is all:
    nothing in it runs, expires, is sent or can be answered.

    `opened_with` is the name of the retry key that the session was made with, if there was one.
    `collected` names those of the remembered outcomes that their asker has. `turn_owner` is the
    node that runs a turn, or has run the last one, where the host has several.
    """

    calls: dict[str, Call] = {}
    outcomes: tuple[Outcome, ...] = ()
    deferred: tuple[Deferred, ...] = ()
    held_completion: str | None = None
    begun: tuple[str, ...] = ()
    collected: tuple[str, ...] = ()
    opened_with: str | None = None
    turn_owner: TurnOwner | None = None
    is_recording: bool = False

    @cached_property
    def open_calls(self) -> tuple[Call, ...]:
        """Those that have not ended, of many that have. Asked for several times by every change."""
        return tuple(call for call in self.calls.values() if type(call.phase) in OPEN_PHASES)


class PlacedRequest(Wire, frozen=True, kw_only=True):
    """An input request of a turn, and where it was asked: after so many parts of the response.

    While it is open, the public state has it. Then `request` is what it was at its end, with all
    answers; without a `response` it ended with its turn.
    """

    id: str
    position: Count
    request: InputRequest | None = None
    response: ResponseKind | None = None


class TurnRecord(Wire, frozen=True, kw_only=True):
    """What AHP 0.9 and 1.x show of a turn and 0.3.0 does not.

    Without `started_at` it is of a time when that was not kept. `notes` are the places of parts
    that report answers, which these versions show in the request itself. `inputs` are those of tool
    calls that were confirmed again without one: AHP 0.3.0 drops such an input, 0.9 and 1.x keep it.
    """

    started_at: Millis | None = None
    duration: Millis | None = None
    model: ModelSelection | None = None
    agent: AgentSelection | None = None
    requests: tuple[PlacedRequest, ...] = ()
    notes: tuple[Count, ...] = ()
    inputs: dict[str, str] = {}


class ChatRecord(Wire, frozen=True, kw_only=True):
    """What AHP 0.9 and 1.x show of a session and 0.3.0 does not.

    `turns` runs along the turns of the public state; what is missing at its end is not known.
    `needed` names what waits for people or clients, in the order in which it began to;
    `was_needed`: something has waited for people. `failed`: the last turn has just failed.
    """

    modified_at: Millis
    turns: tuple[TurnRecord, ...] = ()
    active: TurnRecord | None = None
    failed: bool = False
    needed: tuple[str, ...] = ()
    was_needed: bool = False
    clients: tuple[ClientEntry, ...] = ()
    draft: ChosenMessage | None = None


class SessionRecord(Wire, frozen=True, kw_only=True):
    """`public` is what snapshots of 0.3.0 show; `private` never leaves the host.

    `chat` is what other versions show besides; it is absent until the first change of a session
    whose record was written before there was one.
    """

    public: SessionState
    private: PrivateState = PrivateState()
    chat: ChatRecord | None = None


class Outline(Wire, frozen=True, kw_only=True):
    """What is kept of a session while its record is not in memory, and read at a start.

    `record` has only what lists of sessions show, and how the session came to be; `calls` are the
    ids of its calls, and `size` is that of the whole record in bytes.
    """

    record: SessionRecord
    calls: tuple[str, ...] = ()
    size: Count = 0


class OutcomeRecorded(ActionBase, frozen=True, kw_only=True, tag="private/outcomeRecorded"):
    """Shares its batch with the public action that ended the request."""

    outcome: Outcome


class OutcomeCollected(ActionBase, frozen=True, kw_only=True, tag="private/outcomeCollected"):
    """The asker has the outcome: the same questions are asked again from now on."""

    request_id: str


class ChangeDeferred(ActionBase, frozen=True, kw_only=True, tag="private/changeDeferred"):
    """A change of model or agent that waits for the turn to end."""

    deferred: Deferred


class CompletionHeld(ActionBase, frozen=True, kw_only=True, tag="private/completionHeld"):
    """The agent is done, but calls or questions of its turn are not."""

    turn_id: str


class TurnTaken(ActionBase, frozen=True, kw_only=True, tag="private/turnTaken"):
    """With several nodes: the node that runs the turn."""

    turn_id: str
    node: str


class ClientJoined(ActionBase, frozen=True, kw_only=True, tag="private/clientJoined"):
    """A client is active, next to others: 0.3.0 knows only one at a time."""

    client: ClientEntry


class ClientLeft(ActionBase, frozen=True, kw_only=True, tag="private/clientLeft"):
    client_id: str


class MessageDrafted(ActionBase, frozen=True, kw_only=True, tag="private/messageDrafted"):
    """A person's draft of the next message; 0.3.0 does not show it."""

    draft: ChosenMessage | None = None


class CallStarted(ActionBase, frozen=True, kw_only=True, tag="private/callStarted"):
    call: Call


class CallAction(ActionBase, frozen=True, kw_only=True):
    call_id: str


class LegAction(CallAction, frozen=True, kw_only=True):
    leg: Count


class CallSent(LegAction, frozen=True, kw_only=True, tag="private/callSent"):
    """Logged before the leg goes out; the process whose entry is applied sends.

    `repeatable` is what the server says of its tool, once it is known. `node` is who sends.
    """

    repeatable: bool | None = None
    node: str = ""


class CallUnsent(LegAction, frozen=True, kw_only=True, tag="private/callUnsent"):
    """The leg never left: the server could not be reached. It is tried again."""


class CallInputRequired(LegAction, frozen=True, kw_only=True, tag="private/callInputRequired"):
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


class CallRestarted(LegAction, frozen=True, kw_only=True, tag="private/callRestarted"):
    """The server no longer knows its state: start over, with the answers kept."""

    begun: tuple[Begun, ...] = ()


class CallDoubted(LegAction, frozen=True, kw_only=True, tag="private/callDoubted"):
    """The leg may have run; `request_id` asks a person whether to run it again."""

    request_id: str
    begun: tuple[Begun, ...] = ()


class CallFinished(LegAction, frozen=True, kw_only=True, tag="private/callFinished"):
    result: Extra


class CallFailed(LegAction, frozen=True, kw_only=True, tag="private/callFailed"):
    error: CallError


class CallAbandoned(CallAction, frozen=True, kw_only=True, tag="private/callAbandoned"):
    reason: str


class CallCollected(CallAction, frozen=True, kw_only=True, tag="private/callCollected"):
    """The client that made the request has its result: the next one like it is another call."""


PrivateAction: TypeAlias = (
    OutcomeRecorded
    | OutcomeCollected
    | ChangeDeferred
    | CompletionHeld
    | TurnTaken
    | ClientJoined
    | ClientLeft
    | MessageDrafted
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
