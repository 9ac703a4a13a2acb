"""Several principals, agents, calls and crashes at random: what must hold after every step.

The host below has no I/O: it judges, makes batches, folds them, and does the work that effects call
for, in any order and any number of times. Hypothesis draws the seeds of its random walks.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, TypeGuard, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.ahp1.client_actions import OF_CHATS, own_kind, plan
from session_server.reducers.batches import Batch, batch_of
from session_server.reducers.calls.client_answers import client_answered, client_round
from session_server.reducers.calls.recovery import (
    after_crash,
    after_expired_state,
    after_no_connection,
)
from session_server.reducers.calls.rounds import (
    abandon,
    failure,
    finish,
    next_params,
    open_round,
    progress,
)
from session_server.reducers.calls.starting import same_call, start
from session_server.reducers.deadlines import expired, withdrawn
from session_server.reducers.effects import (
    ApplyDeferred,
    CompleteTurn,
    Effect,
    RecoverCall,
    SendCall,
    StartQueuedTurn,
    effects_after_restart,
    effects_of,
    pending,
)
from session_server.reducers.forms.answer_checks import check_answer
from session_server.reducers.rules.input_rules import question_of
from session_server.reducers.rules.judge import judge
from session_server.reducers.state.record import PRIVATE_TRANSITIONS, reduce_record
from session_server.reducers.state.session import reduce_session
from session_server.reducers.state.status import awaits_confirmation
from session_server.schemas.ahp.actions import (
    AgentChanged,
    ClientSessionAction,
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    IsReadChanged,
    ModelChanged,
    PendingKind,
    PendingMessageRemoved,
    PendingMessageSet,
    SessionAction,
    ToolCallComplete,
    ToolCallConfirmed,
    ToolCallReady,
    ToolCallResultConfirmed,
    ToolCallStart,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    InputRequest,
    NumberValue,
    OnExpiry,
    RequestMeta,
    ResponseKind,
    TextQuestion,
    TextValue,
)
from session_server.schemas.ahp.session import ACTIVITY_BITS, ModelSelection, Status
from session_server.schemas.ahp.tool_calls import ConfirmationReason, Running, ToolResult
from session_server.schemas.ahp.turns import ToolCallPart
from session_server.schemas.codec import decode_session_record, decode_session_state, encode
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.mcp import Elicitation, ElicitRequest, EmbeddedRequest, InputRequired
from session_server.schemas.principals import HOST, Stamp
from session_server.schemas.record import (
    Call,
    CallClient,
    CallCollected,
    CallSent,
    ClientAnswers,
    FailureKind,
    OutcomeCollected,
    RecordAction,
    TurnTaken,
    Waiting,
)
from session_server.schemas.wire import ErrorInfo
from tests.reducers.ahp1.ahp1_clients import some_answer, some_later_action
from tests.reducers.shown_calls import SERVER
from tests.sessions import AGENT, OWNER, PHONE, WATCHER, session, user_message

SECRET = "s3cret"
SCHEMA = {
    "type": "object",
    "properties": {"v": {"type": "string", "minLength": 2}, "w": {"type": "boolean"}},
    "required": ["v"],
}
VALUES = (
    TextValue(value="long enough"),
    TextValue(value="very long"),
    TextValue(value="x"),
    BooleanValue(value=True),
    NumberValue(value=1),
    None,
)
FORMS = (
    (TextQuestion(id="v", message="V?", required=True, min=2),),
    (TextQuestion(id="v", message="V?"), BooleanQuestion(id="w", message="W?")),
    (BooleanQuestion(id="v", message="V?", default_value=True),),
    (),
)
DEADLINES = (None, *OnExpiry)
RESULT = ToolResult(success=True, past_tense_message="Removed")


def some_answers(dice: Random) -> dict[str, Answer] | None:
    names = dice.sample(("v", "w", "nowhere"), dice.choice((0, 1, 1, 1, 2)))
    return {name: some_answer(dice, VALUES) for name in names} or None


def some_request(dice: Random) -> InputRequest:
    on_expiry = dice.choice(DEADLINES)
    meta = None if on_expiry is None else RequestMeta(expires_at=5_000, on_expiry=on_expiry)
    return InputRequest(
        id=f"r{dice.randrange(40)}",
        message="Well?",
        questions=dice.choice(FORMS),
        meta=dice.choice((meta, RequestMeta(call="c1", key="a", round=1))),
    )


def some_round(dice: Random) -> dict[str, EmbeddedRequest]:
    def form() -> Elicitation:
        return Elicitation(message=dice.choice(("One?", "Two?")), requested_schema=SCHEMA)

    keys = dice.sample(("a", "b", "c"), dice.choice((0, 1, 1, 2, 3)))
    return {key: ElicitRequest(params=form()) for key in keys}


def some_action(dice: Random, host: "Host") -> SessionAction:
    """Anything a client or an agent might send: aimed well, badly, or at nothing."""
    turn = host.record.public.active_turn
    turn_id = turn.id if turn is not None and dice.random() < 0.9 else f"t{dice.randrange(99)}"
    requests = host.record.public.input_requests
    request_id = max(host.closed, default="call:c1/1/a")
    if requests and dice.random() < 0.9:
        request_id = dice.choice(requests).id
    tool: dict[str, Any] = {"turn_id": turn_id, "tool_call_id": dice.choice(("x", "x", "y", "c1"))}
    makers: tuple[tuple[int, Callable[[], SessionAction]], ...] = (
        (
            30,
            lambda: InputAnswerChanged(
                request_id=request_id,
                question_id=dice.choice(("v", "v", "w", "nowhere")),
                answer=dice.choice((some_answer(dice, VALUES), some_answer(dice, VALUES), None)),
            ),
        ),
        (
            20,
            lambda: InputCompleted(
                request_id=request_id,
                response=dice.choice([*ResponseKind, ResponseKind.ACCEPT]),
                answers=some_answers(dice),
            ),
        ),
        (12, lambda: InputRequested(request=some_request(dice))),
        (8, lambda: TurnStarted(turn_id=turn_id, message=user_message())),
        (8, lambda: TurnComplete(turn_id=turn_id)),
        (1, lambda: TurnCancelled(turn_id=turn_id)),
        (2, lambda: TurnFailed(turn_id=turn_id, error=ErrorInfo(error_type="x", message="!"))),
        (1, lambda: Truncated(turn_id=dice.choice((None, "t1", "t2")))),
        (6, lambda: ToolCallStart(**tool, tool_name="rm", display_name="Remove")),
        (
            10,
            lambda: ToolCallReady(
                **tool,
                invocation_message="Remove?",
                confirmed=dice.choice((None, ConfirmationReason.NOT_NEEDED)),
            ),
        ),
        (
            8,
            lambda: ToolCallConfirmed(
                **tool, approved=True, confirmed=ConfirmationReason.USER_ACTION
            ),
        ),
        (
            8,
            lambda: ToolCallComplete(
                **tool, result=RESULT, requires_result_confirmation=dice.random() < 0.5
            ),
        ),
        (8, lambda: ToolCallResultConfirmed(**tool, approved=dice.random() < 0.5)),
        (2, lambda: ModelChanged(model=ModelSelection(id=dice.choice("mn")))),
        (2, AgentChanged),
        (2, lambda: IsReadChanged(is_read=dice.random() < 0.5)),
        (
            2,
            lambda: PendingMessageSet(
                kind=dice.choice([*PendingKind]), id=dice.choice("mn"), message=user_message()
            ),
        ),
        (
            2,
            lambda: PendingMessageRemoved(kind=dice.choice([*PendingKind]), id=dice.choice("mn")),
        ),
    )
    weights, choices = zip(*makers, strict=True)
    return dice.choices(choices, weights)[0]()


CLIENTS = (
    CallClient(name="pad", answers="client", capabilities={"elicitation": {}}),
    CallClient(name="pad", answers="both"),
)
ANSWERS: tuple[dict[str, Any], ...] = (
    {"action": "accept", "content": {"v": "Oslo"}},
    {"action": "accept", "content": {"runAgain": True}},
    {"action": "decline"},
    {"action": "cancel"},
    {"action": "nonsense"},
)


class Host:
    """A host without I/O, whose world is random."""

    def __init__(self) -> None:
        self.at = 1_000
        self.first = session()
        self.record = self.first
        self.log: list[tuple[RecordAction, int]] = []
        self.sendings: Counter[tuple[str, int]] = Counter()
        self.closed: set[str] = set()
        self.seen: Counter[str] = Counter()

    # One straight line, as a host walks it

    def commit(self, batch: Batch) -> None:
        before, frozen = self.record, encode(self.record)
        for action in batch:
            after = reduce_record(self.record, action, self.at)
            assert reduce_record(self.record, action, self.at) == after
            if isinstance(action, CallSent) and after is not self.record:
                self.sendings[action.call_id, action.leg] += 1
            self.log.append((action, self.at))
            self.seen[type(action).__name__] += 1
            self.record = after
        assert encode(before) == frozen
        for action in batch[-1:]:
            effects = effects_of(before, (action,), self.record)
            assert effects_of(before, (action,), self.record) == effects
        self.closed |= {outcome.request.id for outcome in self.record.private.outcomes}

    def stamp(self) -> Stamp:
        return Stamp(at=self.at, by=HOST)

    # What may happen

    def dispatch(self, dice: Random) -> None:
        action = some_action(dice, self)
        fitting = OWNER if isinstance(action, get_args(ClientSessionAction)) else AGENT
        if isinstance(action, ToolCallComplete):
            fitting = AGENT
        principal = dice.choice((fitting, fitting, fitting, OWNER, PHONE, WATCHER, AGENT))
        frozen = encode(self.record)
        refusal = judge(principal, self.record, action)
        assert judge(principal, self.record, action) == refusal
        assert encode(self.record) == frozen
        if refusal is None:
            self.commit(batch_of(self.record, action, Stamp(at=self.at, by=principal.author)))
        else:
            assert refusal.message
            self.seen[f"refused: {refusal.code}"] += 1

    def dispatch_of_later_version(self, dice: Random) -> None:
        """A client of AHP 0.9 or 1.x acts on the same session."""
        action = some_later_action(dice, self.record)
        on_chat = type(action) in OF_CHATS if dice.random() < 0.9 else dice.random() < 0.5
        batch = plan(OWNER, self.record, action, self.stamp(), on_chat=on_chat)
        if isinstance(batch, Refusal):
            assert batch.message
        else:
            assert own_kind(action) in {type(entry) for entry in batch}
            self.commit(batch)

    def start_call(self, dice: Random) -> None:
        call_id = f"c{dice.randrange(20)}"
        if call_id in self.record.private.calls:
            return
        call = Call(
            id=call_id,
            server="cloud",
            method="tools/call",
            params={"name": "deploy", "arguments": {"token": SECRET}},
            turn_id="",
            started_at=0,
            fingerprint=call_id,
            private_arguments=("token",),
            repeatable=dice.random() < 0.5,
            answer_within=dice.choice((None, 2_000)),
            max_rounds=dice.choice((1, 2, 10)),
            client=dice.choice((None, *CLIENTS)),
        )
        batch = start(self.record, call, None, SERVER, self.stamp())
        if isinstance(batch, Refusal):
            assert batch.code is RefusalCode.DUPLICATE  # an agent's tool call has that id
            return
        self.commit(batch)
        assert same_call(self.record, call, self.at) is not None

    def caller_moves(self, dice: Random) -> None:
        """Fetches a result, answers what it is asked, or gives a call up."""
        for outcome in self.record.private.outcomes[-1:]:
            self.commit((OutcomeCollected(request_id=outcome.request.id),))
        for call_id in tuple(self.record.private.calls):
            asked = client_round(self.record, call_id)
            if asked is not None and dice.random() < 0.5:
                given = {key: dice.choice(ANSWERS) for key in asked.questions}
                answers = ClientAnswers(round=asked, given=given, within=dice.choice((None, 5)))
                batch = client_answered(self.record, call_id, answers, self.stamp())
                self.commit(batch)
                self.commit(client_answered(self.record, call_id, answers, self.stamp()))
        for call in self.record.private.calls.values():
            if not call.is_open:
                self.commit((CallCollected(call_id=call.id),))
            elif dice.random() < 0.1:
                self.commit(abandon(self.record, call.id, "enough", self.stamp()))

    def do_some_work(self, dice: Random) -> None:
        """Any pending effect, maybe twice."""
        due = [e for e in effects_after_restart(self.record) if isinstance(e, WORK)]
        if due:
            effect = dice.choice(due)
            for _ in range(dice.choice((1, 1, 2))):
                self.do(effect)

    def do(self, effect: Effect) -> None:
        match effect:
            case SendCall() if self.at % 5 == 0:
                words = f"{SECRET} unknown"
                self.commit(
                    after_no_connection(
                        self.record, effect.call_id, effect.leg, words, self.stamp()
                    )
                )
            case SendCall():
                self.commit((CallSent(call_id=effect.call_id, leg=effect.leg),))
            case CompleteTurn():
                action = TurnComplete(turn_id=effect.turn_id)
                if judge(AGENT, self.record, action) is None:
                    self.commit(batch_of(self.record, action, self.stamp()))
            case ApplyDeferred():
                self.commit(batch_of(self.record, effect.deferred.change, self.stamp()))
            case StartQueuedTurn():
                for queued in (self.record.public.queued_messages or ())[:1]:
                    if self.record.public.active_turn is None:
                        turn = TurnStarted(
                            turn_id=f"q{self.at}",
                            message=queued.message,
                            queued_message_id=queued.id,
                        )
                        self.commit((turn,))
            case _:
                pass

    def server_answers(self, dice: Random) -> None:
        out = [(e.call_id, e.leg) for e in effects_after_restart(self.record) if is_lost(e)]
        if not out:
            return
        call_id, leg = dice.choice(out)
        call = self.record.private.calls[call_id]
        how = dice.choice(
            ("ask", "ask", "ask", "hold", "finish", "fail", "expire", "crash", "report")
        )
        if how == "finish":
            said = {"type": "text", "text": f"with {SECRET}"}
            self.commit(finish(self.record, call_id, leg, {"content": [said]}, self.stamp()))
        elif how == "report":
            self.commit(progress(self.record, call_id, leg, f"with {SECRET}"))
        elif how == "fail":
            kind = FailureKind.UPSTREAM
            self.commit(failure(self.record, call_id, leg, kind, f"no {SECRET}", self.stamp()))
        elif how == "crash":
            self.commit(after_crash(self.record, call_id, leg, self.stamp()))
        elif isinstance(call.phase, Waiting):
            pass  # the server waits for its answers
        elif how == "expire":
            self.commit(after_expired_state(self.record, call_id, leg, self.stamp()))
        else:
            requests = some_round(dice)
            required = InputRequired(
                result_type="input_required",
                input_requests=requests or None,
                request_state=dice.choice((None, "", f"{SECRET}-state")) if requests else "again",
            )
            held = how == "hold" and bool(requests)
            self.commit(open_round(self.record, call_id, leg, required, self.stamp(), held=held))

    def time_passes(self, dice: Random) -> None:
        self.at += dice.choice((10, 1_000))
        for request in self.record.public.input_requests or ():
            self.commit(expired(self.record, request.id, self.at))

    def asker_withdraws(self, dice: Random) -> None:
        request_id = f"r{dice.randrange(40)}"
        self.commit(withdrawn(self.record.public, request_id, self.stamp()))

    def restart(self, _dice: Random) -> None:
        """Everything that matters is in the record. Another node goes on with the turn."""
        turn = self.record.public.active_turn
        if turn is not None:
            self.commit((TurnTaken(turn_id=turn.id, node=f"node {self.at}"),))
        revived = decode_session_record(encode(self.record))
        assert revived == self.record
        assert effects_after_restart(revived) == effects_after_restart(self.record)
        self.record = revived

    # What must hold

    def check(self) -> None:
        self.status_says_what_waits()
        self.answers_are_for_questions_that_exist_and_have_an_author()
        self.a_closed_request_stays_closed()
        self.questions_and_calls_live_in_a_turn()
        self.a_waiting_call_has_its_questions_open()
        self.no_leg_goes_out_twice()
        self.a_tool_call_runs_exactly_while_its_call_is_open()
        self.retries_keep_the_original()
        self.secrets_stay_private()
        self.work_is_derived_without_repetition()

    def status_says_what_waits(self) -> None:
        state = self.record.public
        activity = state.summary.status & ACTIVITY_BITS
        waits = bool(state.input_requests) or awaits_confirmation(state)
        assert (activity == Status.INPUT_NEEDED) == waits
        if not waits:
            busy = state.active_turn is not None
            allowed = {Status.IN_PROGRESS} if busy else {Status.IDLE, Status.ERROR}
            assert activity in allowed

    def answers_are_for_questions_that_exist_and_have_an_author(self) -> None:
        for request in self.record.public.input_requests or ():
            for question_id, answer in (request.answers or {}).items():
                question = question_of(request, question_id)
                assert question is not None
                assert check_answer(question, answer) is None
                assert answer.meta.by is not None

    def a_closed_request_stays_closed(self) -> None:
        open_now = {request.id for request in self.record.public.input_requests or ()}
        assert not open_now & self.closed
        assert self.record.public.input_requests != ()

    def questions_and_calls_live_in_a_turn(self) -> None:
        turn = self.record.public.active_turn
        open_calls = [c for c in self.record.private.calls.values() if c.is_open]
        if turn is None:
            assert self.record.public.input_requests is None
            assert open_calls == []
        else:
            assert {call.turn_id for call in open_calls} <= {turn.id}

    def a_waiting_call_has_its_questions_open(self) -> None:
        open_now = {request.id for request in self.record.public.input_requests or ()}
        for call in self.record.private.calls.values():
            if isinstance(call.phase, Waiting):
                unanswered = [a for a in call.asked if not a.is_answered]
                assert unanswered
                of_people = {a.request_id for a in unanswered if a.question is None}
                assert of_people <= open_now

    def no_leg_goes_out_twice(self) -> None:
        assert all(count == 1 for count in self.sendings.values())

    def a_tool_call_runs_exactly_while_its_call_is_open(self) -> None:
        turn = self.record.public.active_turn
        running = {
            part.tool_call.tool_call_id
            for part in (() if turn is None else turn.response_parts)
            if isinstance(part, ToolCallPart) and isinstance(part.tool_call, Running)
        }
        calls = self.record.private.calls
        assert running & set(calls) == {call.id for call in calls.values() if call.is_open}

    def retries_keep_the_original(self) -> None:
        for call in self.record.private.calls.values():
            assert next_params(call).items() >= call.params.items()

    def secrets_stay_private(self) -> None:
        assert SECRET.encode() not in encode(self.record.public)

    def work_is_derived_without_repetition(self) -> None:
        due = list(pending(self.record))
        assert all(due.count(effect) == 1 for effect in due)

    def check_replay(self) -> None:
        """A mirror that saw only the public actions agrees, and so does a replay from anywhere."""
        mirror = decode_session_state(encode(self.first.public))
        middle = len(self.log) // 2
        replayed = self.first
        for number, (action, at) in enumerate(self.log):
            if number == middle:
                replayed = decode_session_record(encode(replayed))
            replayed = reduce_record(replayed, action, at)
            if type(action) in PRIVATE_TRANSITIONS:
                public = replayed.public
                assert reduce_record(replayed, action, at).public is public
            else:
                mirror = reduce_session(mirror, action, at)
        assert mirror == self.record.public
        assert replayed == self.record
        assert encode(replayed) == encode(self.record)


def is_lost(effect: Effect) -> TypeGuard[RecoverCall]:
    return isinstance(effect, RecoverCall)


WORK = (SendCall, CompleteTurn, ApplyDeferred, StartQueuedTurn)
STEPS: dict[Callable[[Host, Random], None], int] = {
    Host.dispatch: 60,
    Host.dispatch_of_later_version: 6,
    Host.do_some_work: 15,
    Host.server_answers: 12,
    Host.start_call: 4,
    Host.caller_moves: 2,
    Host.time_passes: 2,
    Host.asker_withdraws: 1,
    Host.restart: 2,
}


def walk(seed: int, steps: int) -> Host:
    dice, host = Random(seed), Host()
    for step in dice.choices([*STEPS], [*STEPS.values()], k=steps):
        host.at += 1
        step(host, dice)
        host.check()
    host.check_replay()
    return host


@pytest.mark.proves(
    "design.reduce.deterministic",
    "design.reduce.unmutated",
    "design.reduce.mirror",
    "design.wire.answer-meta",
    "design.reduce.snapshot-tail",
    "design.rules.pure",
    "design.effects.pure",
    "design.effects.twice",
    "design.record.private-actions",
    "design.calls.secret-state",
    "mcp.retry.once",
    "ahp.status.input-needed-request",
    "ahp.status.input-needed-tool",
    "ahp.status.in-progress",
    "ahp.status.idle",
)
@given(st.integers(0, 2**64 - 1))
def test_the_invariants_hold_on_any_walk(seed: int) -> None:
    walk(seed, steps=150)


@pytest.mark.slow
def test_walks_go_everywhere() -> None:
    """A walk that never completes a round or never meets a refusal would prove little."""
    seen: Counter[str] = Counter()
    for seed in range(120):
        seen += walk(seed, steps=200).seen
    everything = {kind.__name__ for kind in (*PRIVATE_TRANSITIONS, *USED)}
    assert {name for name in everything if seen[name] < 3} == set()
    refusals = {
        RefusalCode.ROLE,
        RefusalCode.ALREADY_COMPLETED,
        RefusalCode.NO_QUESTION,
        RefusalCode.NO_VALUE,
        RefusalCode.WRONG_KIND,
        RefusalCode.TOO_SHORT,
        RefusalCode.REQUIRED,
        RefusalCode.TURN_ACTIVE,
        RefusalCode.NO_TURN,
        RefusalCode.WRONG_STATE,
        RefusalCode.NO_MESSAGE,
    }
    assert {code for code in refusals if seen[f"refused: {code}"] < 5} == set()


USED = (
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    TurnStarted,
    TurnComplete,
    TurnCancelled,
    TurnFailed,
    ToolCallConfirmed,
    ToolCallResultConfirmed,
    ModelChanged,
    AgentChanged,
)
