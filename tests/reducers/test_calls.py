"""The life of a call: rounds, retries, restarts, doubts, and exactly one sender of each leg."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.batches import Batch, batch_of
from session_server.reducers.calls import back_off
from session_server.reducers.effects import effects_after_restart, effects_of, pending
from session_server.reducers.privacy import HIDDEN, shown_arguments
from session_server.reducers.rounds import (
    after_crash,
    after_expired_state,
    failure,
    fingerprint_of,
    finish,
    next_params,
    open_round,
    progress,
    request_id_of,
)
from session_server.schemas.actions import (
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    TurnCancelled,
)
from session_server.schemas.calls import (
    Abandoned,
    Call,
    CallError,
    Failed,
    FailureKind,
    Finished,
    Sent,
    ToSend,
    Uncertain,
    Waiting,
)
from session_server.schemas.codec import decode_session_record, encode
from session_server.schemas.effects import (
    AnswerHeldCall,
    CompleteTurn,
    Effect,
    RecoverCall,
    SendCall,
    StopCall,
)
from session_server.schemas.limits import (
    BACK_OFF_FIRST_MS,
    BACK_OFF_LIMIT_MS,
    FINISHED_CALLS_KEPT,
    OPEN_REQUESTS_PER_SESSION,
    RESTARTS_PER_CALL,
    ROUNDS_PER_CALL,
)
from session_server.schemas.mcp import (
    CallMethod,
    Elicitation,
    ElicitRequest,
    EmbeddedRequest,
    InputRequired,
    RootsRequest,
    SamplingRequest,
)
from session_server.schemas.principals import HOST, Principal, Provenance, Stamp
from session_server.schemas.questions import (
    Draft,
    RequestMeta,
    ResponseKind,
    Submitted,
    TextValue,
)
from session_server.schemas.record import (
    CallAbandoned,
    CallDoubted,
    CallFailed,
    CallFinished,
    CallInputRequired,
    CallRestarted,
    CallSent,
    CallStarted,
    SessionRecord,
)
from session_server.schemas.turns import SystemNotificationPart
from tests.sessions import OWNER, PHONE, accepted, dispatch, fold, in_turn

BY_HOST = Stamp(at=100, by=HOST)
ARGUMENTS = {"city": None, "deep": {"list": [1, 2.5, "x"]}, "token": "s3cret"}
TEXT = {"type": "object", "properties": {"v": {"type": "string"}}, "required": ["v"]}


def call(**fields: Any) -> Call:
    return Call(
        **{
            "id": "c",
            "server": "cloud",
            "method": "tools/call",
            "params": {"name": "deploy", "arguments": ARGUMENTS, "_meta": {"x": 1}},
            "turn_id": "t",
            "started_at": 1,
            **fields,
        }
    )


def form(message: str, schema: dict[str, Any] | None = None) -> ElicitRequest:
    params = Elicitation(mode="form", message=message, requested_schema=schema or TEXT)
    return ElicitRequest(params=params)


def asks(state: str | None = None, **requests: EmbeddedRequest) -> InputRequired:
    return InputRequired(
        result_type="input_required", input_requests=requests or None, request_state=state
    )


def the_call(record: SessionRecord) -> Call:
    return record.private.calls["c"]


def started(**fields: Any) -> SessionRecord:
    return fold(in_turn(), CallStarted(call=call(**fields)))


def sent(record: SessionRecord) -> SessionRecord:
    phase = the_call(record).phase
    assert isinstance(phase, ToSend)
    return fold(record, CallSent(call_id="c", leg=phase.leg))


def leg(record: SessionRecord) -> int:
    phase = the_call(record).phase
    assert isinstance(phase, Sent | Waiting)
    return phase.leg


def asked(record: SessionRecord, required: InputRequired, **how: Any) -> SessionRecord:
    """The server's answer to the leg that is out."""
    batch = open_round(record, "c", leg(record), required, BY_HOST, **how)
    return fold(record, *batch)


def round_of(state: str | None = None, **requests: EmbeddedRequest) -> SessionRecord:
    """A call whose first leg brought these questions."""
    return asked(sent(started()), asks(state, **requests))


def completion(request_id: str, value: str | None = None, response: str = "accept") -> Any:
    answers = None if value is None else {"v": Submitted(value=TextValue(value=value))}
    return InputCompleted(request_id=request_id, response=ResponseKind(response), answers=answers)


def answered(
    record: SessionRecord, key: str, value: str | None = "x", response: str = "accept"
) -> SessionRecord:
    request_id = request_id_of("c", the_call(record).round, key)
    return accepted(record, OWNER, completion(request_id, value, response))


def notes(record: SessionRecord) -> list[str]:
    turn = record.public.active_turn
    assert turn is not None
    return [
        str(part.content)
        for part in turn.response_parts
        if isinstance(part, SystemNotificationPart)
    ]


def expire(record: SessionRecord) -> SessionRecord:
    return fold(record, *after_expired_state(record, "c", leg(record), BY_HOST))


def crash(record: SessionRecord) -> SessionRecord:
    return fold(record, *after_crash(record, "c", leg(record), BY_HOST))


# Rounds


@pytest.mark.proves("mcp.shape.methods")
def test_only_three_methods_are_driven() -> None:
    assert set(get_args(CallMethod)) == {"tools/call", "prompts/get", "resources/read"}


def test_a_started_call_is_to_be_sent_with_its_own_params() -> None:
    record = started()
    assert next(pending(record)) == SendCall(call_id="c", leg=0)
    assert next_params(the_call(record)) == call().params
    assert fold(record, CallStarted(call=call(server="other"))) is record


@pytest.mark.proves(
    "design.calls.one-request-each", "design.calls.request-meta", "design.calls.last-completes"
)
def test_all_questions_of_a_round_open_at_once_and_the_last_sends_the_retry() -> None:
    record = round_of("s1", city=form("City?"), size=form("Size?"))
    requests = record.public.input_requests or ()
    assert [request.message for request in requests] == ["City?", "Size?"]
    assert requests[0].meta == RequestMeta(
        call="c", round=1, key="city", server="cloud", tool="deploy"
    )
    assert isinstance(the_call(record).phase, Waiting)
    first = answered(record, "city", "Oslo")
    assert not any(isinstance(effect, SendCall) for effect in pending(first))
    second = answered(first, "size", None, "decline")
    assert SendCall(call_id="c", leg=1) in list(pending(second))


@pytest.mark.proves(
    "design.calls.responses",
    "mcp.retry.arguments",
    "mcp.retry.state",
    "mcp.form.content-on-accept",
    "mcp.shape.map-sent",
)
def test_the_retry_holds_original_params_state_and_each_response() -> None:
    record = round_of("opaque", city=form("City?"), size=form("Size?"), gone=form("Gone?"))
    record = answered(record, "size", None, "decline")
    record = answered(record, "gone", None, "cancel")
    record = answered(record, "city", "Oslo")
    assert next_params(the_call(record)) == {
        **call().params,
        "requestState": "opaque",
        "inputResponses": {
            "city": {"action": "accept", "content": {"v": "Oslo"}},
            "size": {"action": "decline"},
            "gone": {"action": "cancel"},
        },
    }


@pytest.mark.proves("mcp.retry.latest-round")
def test_a_retry_carries_the_latest_round_alone() -> None:
    record = answered(round_of("s1", city=form("City?")), "city", "Oslo")
    record = asked(sent(record), asks(None, size=form("Size?")))
    record = answered(record, "size", "3")
    params = next_params(the_call(record))
    assert params["inputResponses"] == {"size": {"action": "accept", "content": {"v": "3"}}}
    assert "requestState" not in params


@pytest.mark.proves("mcp.url.accept", "mcp.url.again")
def test_a_url_is_accepted_without_content_and_may_be_asked_again() -> None:
    url = ElicitRequest(
        params=Elicitation(mode="url", message="Sign in", url="https://x.example/go")
    )
    record = answered(round_of(login=url), "login", None)
    assert next_params(the_call(record))["inputResponses"] == {"login": {"action": "accept"}}
    again = asked(sent(record), asks(login=url))
    (request,) = again.public.input_requests or ()
    assert request.url == "https://x.example/go"
    assert request.id == "call:c/2/login"


def test_a_form_without_questions_is_a_matter_of_consent() -> None:
    consent = ElicitRequest(params=Elicitation(message="Go on?"))
    record = answered(round_of(ok=consent), "ok", None)
    assert next_params(the_call(record))["inputResponses"] == {
        "ok": {"action": "accept", "content": {}}
    }


@pytest.mark.proves("design.calls.request-id")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["c", "d"]),
            st.integers(1, 3),
            st.text(max_size=3) | st.sampled_from(["k" * 200, "k" * 201]),
        ),
        unique=True,
    )
)
def test_ids_of_requests_follow_from_call_round_and_key(
    triples: list[tuple[str, int, str]],
) -> None:
    ids = [request_id_of(*triple) for triple in triples]
    assert len(set(ids)) == len(triples)
    assert ids == [request_id_of(*triple) for triple in triples]
    assert max(map(len, ids), default=0) < 250


@pytest.mark.proves("design.calls.round-twice")
def test_recording_a_round_twice_asks_once() -> None:
    before = sent(started())
    batch = open_round(before, "c", 0, asks("s", city=form("City?")), BY_HOST)
    record = fold(before, *batch)
    drafted = accepted(
        record,
        PHONE,
        InputAnswerChanged(
            request_id="call:c/1/city", question_id="v", answer=Draft(value=TextValue(value="O"))
        ),
    )
    again = fold(drafted, *batch)
    assert again.private == drafted.private
    assert again.public.input_requests == drafted.public.input_requests


@pytest.mark.proves("mcp.shape.undeclared-kind", "mcp.form.unshowable")
@pytest.mark.parametrize(
    ("embedded", "kind", "words"),
    [
        (SamplingRequest(), FailureKind.UNSUPPORTED_REQUEST, "sampling/createMessage"),
        (RootsRequest(), FailureKind.UNSUPPORTED_REQUEST, "roots/list"),
        (
            form("?", {"type": "object", "properties": {"deep": {"type": "object"}}}),
            FailureKind.UNSHOWABLE_FORM,
            "deep",
        ),
        (
            ElicitRequest(params=Elicitation(mode="url", message="?")),
            FailureKind.UNSHOWABLE_FORM,
            "web address",
        ),
    ],
)
def test_what_nobody_can_answer_fails_the_call(
    embedded: EmbeddedRequest, kind: FailureKind, words: str
) -> None:
    record = round_of(fine=form("Fine?"), odd=embedded)
    phase = the_call(record).phase
    assert isinstance(phase, Failed)
    assert phase.error.kind is kind
    assert words in phase.error.message
    assert record.public.input_requests is None


# State-only results and the limit of rounds


@pytest.mark.proves("mcp.retry.state-only", "mcp.retry.back-off")
def test_a_server_that_wants_patience_gets_it_with_growing_pauses() -> None:
    record = sent(started())
    waits = []
    for _ in range(ROUNDS_PER_CALL):
        record = asked(record, asks("later"))
        phase = the_call(record).phase
        assert isinstance(phase, ToSend)
        assert phase.not_before is not None
        effect = SendCall(call_id="c", leg=phase.leg, not_before=phase.not_before)
        assert effect in list(pending(record))
        waits.append(phase.not_before - 100)
        assert next_params(the_call(record)) == {**call().params, "requestState": "later"}
        record = sent(record)
    assert record.public.input_requests is None
    assert waits == sorted(waits)
    assert waits[0] == BACK_OFF_FIRST_MS < waits[1]
    assert waits[-1] == BACK_OFF_LIMIT_MS == back_off(1000)


@pytest.mark.proves("mcp.retry.round-limit")
@pytest.mark.parametrize("limit", [ROUNDS_PER_CALL, 3])
def test_beyond_the_limit_of_rounds_the_call_fails_and_says_so(limit: int) -> None:
    record = sent(started(max_rounds=limit))
    for _ in range(limit - 1):
        record = sent(asked(record, asks("later")))
    record = sent(answered(asked(record, asks(city=form("City?"))), "city"))
    last = record
    record = asked(last, asks(city=form("City?")))
    phase = the_call(record).phase
    assert isinstance(phase, Failed)
    assert phase.error.kind is FailureKind.ROUND_LIMIT
    assert str(limit) in phase.error.message
    assert str(limit) in notes(record)[-1]
    over = CallInputRequired(call_id="c", leg=leg(last), asked=())
    assert fold(last, over) is last


# Expired state


@pytest.mark.proves("mcp.retry.restart", "mcp.retry.restart-answers", "mcp.retry.restart-told")
def test_after_expiry_the_call_starts_over_and_keeps_its_answers() -> None:
    record = answered(round_of("old", city=form("City?"), size=form("Size?")), "city", "Oslo")
    record = expire(sent(answered(record, "size", None, "decline")))
    assert next_params(the_call(record)) == call().params
    assert "starts over" in notes(record)[-1]
    record = asked(sent(record), asks("new", city=form("City?"), size=form("Size?")))
    assert record.public.input_requests is None
    assert SendCall(call_id="c", leg=3) in list(pending(record))
    assert next_params(the_call(record)) == {
        **call().params,
        "requestState": "new",
        "inputResponses": {
            "city": {"action": "accept", "content": {"v": "Oslo"}},
            "size": {"action": "decline"},
        },
    }
    assert "2 answer(s)" in notes(record)[-1]


@pytest.mark.proves("mcp.retry.restart-new")
def test_after_expiry_only_what_is_new_or_changed_is_asked() -> None:
    record = answered(round_of("old", city=form("City?"), size=form("Size?")), "city", "Oslo")
    record = expire(sent(answered(record, "size", "3")))
    upgraded = asks("new", city=form("City?"), size=form("What size?"), extra=form("Extra?"))
    record = asked(sent(record), upgraded)
    assert [request.message for request in record.public.input_requests or ()] == [
        "What size?",
        "Extra?",
    ]
    record = answered(answered(record, "size", "4"), "extra", "y")
    assert next_params(the_call(record))["inputResponses"] == {
        "city": {"action": "accept", "content": {"v": "Oslo"}},
        "size": {"action": "accept", "content": {"v": "4"}},
        "extra": {"action": "accept", "content": {"v": "y"}},
    }


def test_a_cancelled_question_is_asked_again_after_a_restart() -> None:
    record = expire(sent(answered(round_of("old", city=form("City?")), "city", None, "cancel")))
    record = asked(sent(record), asks("new", city=form("City?")))
    assert len(record.public.input_requests or ()) == 1


def test_without_a_restart_the_same_question_is_asked_again() -> None:
    record = sent(answered(round_of("s", city=form("City?")), "city", "Oslo"))
    record = asked(record, asks("s", city=form("City?")))
    assert len(record.public.input_requests or ()) == 1


def test_a_fingerprint_is_of_the_question_not_of_its_spelling() -> None:
    one = Elicitation(message="m", mode="form", requested_schema={"a": 1, "b": {"c": 2, "d": 3}})
    same = Elicitation(message="m", requested_schema={"b": {"d": 3, "c": 2}, "a": 1})
    other = Elicitation(message="m", requested_schema={"a": 1})
    assert fingerprint_of(one) == fingerprint_of(same) != fingerprint_of(other)


@pytest.mark.proves("mcp.retry.restart-limit")
def test_a_call_that_keeps_expiring_fails_in_the_end() -> None:
    record = sent(answered(round_of("s", city=form("City?")), "city"))
    for _ in range(RESTARTS_PER_CALL):
        record = asked(sent(expire(record)), asks("s", city=form("City?")))
        record = sent(record)
    last = record
    record = expire(last)
    phase = the_call(record).phase
    assert isinstance(phase, Failed)
    assert phase.error.kind is FailureKind.RESTART_LIMIT
    assert fold(last, CallRestarted(call_id="c", leg=leg(last))) is last


def second_round(**fields: Any) -> SessionRecord:
    record = asked(sent(started(**fields)), asks("s1", a=form("A?")))
    record = asked(sent(answered(record, "a")), asks("s2", b=form("B?")))
    return sent(answered(record, "b"))


@pytest.mark.proves("design.calls.doubt-restart")
def test_from_the_second_round_on_a_person_is_asked_before_a_restart() -> None:
    assert isinstance(the_call(expire(second_round())).phase, Uncertain)
    assert isinstance(the_call(expire(second_round(repeatable=True))).phase, ToSend)
    first_round = sent(answered(round_of("s", a=form("A?")), "a"))
    restarted = expire(first_round)
    assert isinstance(the_call(restarted).phase, ToSend)
    once_more = sent(asked(sent(restarted), asks("s", a=form("A?"))))
    assert isinstance(the_call(expire(once_more)).phase, ToSend)


# Doubt


@pytest.mark.proves("design.calls.doubt", "design.calls.doubt-answered")
def test_a_lost_leg_is_asked_about_before_it_runs_again() -> None:
    lost = sent(answered(round_of("s", a=form("A?")), "a", "x"))
    assert RecoverCall(call_id="c", leg=1) in effects_after_restart(lost)
    doubted = crash(lost)
    (request,) = doubted.public.input_requests or ()
    assert request.message == "cloud/deploy: It may already have run. Run it again?"
    assert not any(isinstance(effect, SendCall) for effect in pending(doubted))
    yes = accepted(doubted, OWNER, completion(request.id))
    assert SendCall(call_id="c", leg=2) in list(pending(yes))
    assert next_params(the_call(yes)) == call().params
    for response in ("decline", "cancel"):
        no = accepted(doubted, OWNER, completion(request.id, response=response))
        phase = the_call(no).phase
        assert isinstance(phase, Failed)
        assert phase.error.kind is FailureKind.NOT_REPEATED
    answered_before = asked(sent(yes), asks("s", a=form("A?")))
    assert answered_before.public.input_requests is None


@pytest.mark.proves("design.calls.doubt-repeatable")
def test_a_repeatable_tool_runs_again_unasked() -> None:
    record = crash(sent(started(repeatable=True)))
    assert SendCall(call_id="c", leg=1) in list(pending(record))
    assert "interrupted" in notes(record)[-1]


def test_a_call_that_keeps_being_interrupted_fails_in_the_end() -> None:
    record = sent(started(repeatable=True))
    for _ in range(RESTARTS_PER_CALL):
        record = sent(crash(record))
    phase = the_call(crash(record)).phase
    assert isinstance(phase, Failed)
    assert phase.error.kind is FailureKind.RESTART_LIMIT


# Calls that a 2025-era server holds open


@pytest.mark.proves("mcp.legacy.held")
def test_a_held_call_is_answered_on_its_connection_and_not_retried() -> None:
    record = asked(sent(started()), asks(q=form("Q?")), held=True)
    assert RecoverCall(call_id="c", leg=0) in effects_after_restart(record)
    action = completion("call:c/1/q", "x")
    after = accepted(record, OWNER, action)
    effects = effects_of(record, action, after)
    assert AnswerHeldCall(call_id="c", round=1) in effects
    assert not any(isinstance(effect, SendCall) for effect in effects)
    again = asked(after, asks(q=form("Q?")), held=True)
    assert [request.id for request in again.public.input_requests or ()] == ["call:c/2/q"]
    done = fold(again, *finish(again, "c", 0, {"content": []}, BY_HOST))
    assert isinstance(the_call(done).phase, Finished)
    assert done.public.input_requests is None
    assert done.private.outcomes[-1].via is Provenance.WITHDRAWN


def test_the_questions_of_a_lost_connection_are_taken_back() -> None:
    record = asked(sent(started()), asks(p=form("P?"), q=form("Q?")), held=True)
    record = answered(record, "p", "x")
    crashed = crash(record)
    (consent,) = crashed.public.input_requests or ()
    again = accepted(crashed, OWNER, completion(consent.id))
    again = asked(sent(again), asks(p=form("P?"), q=form("Q?")), held=True)
    assert [request.message for request in again.public.input_requests or ()] == ["Q?"]
    repeatable = asked(sent(started(repeatable=True)), asks(p=form("P?")), held=True)
    assert crash(repeatable).public.input_requests is None


# Ends


@pytest.mark.proves("design.calls.late-result", "design.calls.one-sender")
def test_what_comes_late_or_from_another_leg_changes_nothing() -> None:
    waiting = round_of("s", a=form("A?"))
    done = fold(sent(started()), CallFinished(call_id="c", leg=0, result={}))
    stale: list[Any] = [
        CallSent(call_id="c", leg=0),
        CallInputRequired(call_id="c", leg=0, asked=()),
        CallFinished(call_id="c", leg=0, result={"late": True}),
        CallRestarted(call_id="c", leg=0),
        CallDoubted(call_id="c", leg=0, request_id="r"),
        CallFailed(call_id="c", leg=0, error=CallError(kind=FailureKind.UPSTREAM, message="x")),
    ]
    for action in stale:
        assert fold(waiting, action) is waiting
        assert fold(done, action) is done
    second = sent(answered(waiting, "a"))
    for action in stale:
        assert fold(second, action) is second
    assert fold(done, CallAbandoned(call_id="c", reason="late")) is done
    for action in [*stale, CallAbandoned(call_id="c", reason="?")]:
        empty = in_turn()
        assert fold(empty, action) is empty


@pytest.mark.proves("design.calls.secret-state")
def test_an_ended_call_keeps_its_result_and_no_state() -> None:
    record = sent(answered(round_of("secret-state", a=form("A?")), "a"))
    result = {"content": [{"type": "text", "text": "done"}]}
    done = fold(record, *finish(record, "c", 1, result, BY_HOST), at=200)
    assert the_call(done).phase == Finished(result=result, at=200)
    assert b"secret-state" not in encode(done)
    assert CompleteTurn(turn_id="t") not in list(pending(done))  # the agent's turn, not the host's


def test_a_failing_call_takes_its_questions_back() -> None:
    record = round_of("s", a=form("A?"))
    held = asked(sent(started()), asks(a=form("A?")), held=True)
    after = fold(held, *failure(held, "c", 0, FailureKind.UPSTREAM, "it broke", BY_HOST))
    assert failure(record, "c", 0, FailureKind.UPSTREAM, "late", BY_HOST) == ()
    assert isinstance(the_call(after).phase, Failed)
    assert after.public.input_requests is None
    assert after.private.outcomes[0].via is Provenance.WITHDRAWN
    assert notes(after)[-1] == "cloud/deploy failed: it broke."


def test_an_abandoned_call_is_to_be_stopped() -> None:
    record = sent(started())
    action = CallAbandoned(call_id="c", reason="enough")
    after = fold(record, action)
    assert isinstance(the_call(after).phase, Abandoned)
    assert effects_of(record, action, after) == (StopCall(call_id="c"),)


def test_ended_calls_are_kept_up_to_a_number() -> None:
    record = in_turn()
    for number in range(FINISHED_CALLS_KEPT + 2):
        one = call(id=str(number))
        record = fold(record, CallStarted(call=one), CallAbandoned(call_id=one.id, reason="x"))
    assert list(record.private.calls) == [str(n) for n in range(2, FINISHED_CALLS_KEPT + 2)]


# Secrets


@pytest.mark.proves("design.calls.secret-arguments")
def test_private_arguments_are_hidden() -> None:
    shown = shown_arguments(call(private_arguments=("token",)))
    assert "s3cret" not in shown
    assert msgspec.json.decode(shown) == {**ARGUMENTS, "token": HIDDEN}
    assert shown_arguments(call(params={"name": "deploy"})) == "{}"


def test_what_is_called_has_a_name() -> None:
    assert call().target == "deploy"
    assert call(params={"uri": "x:y"}).target == "x:y"
    assert call(params={}).target == "tools/call"


@pytest.mark.proves("design.calls.secret-state", "design.calls.secret-arguments")
def test_neither_state_nor_arguments_are_public() -> None:
    before = sent(started())
    batch: Batch = open_round(before, "c", 0, asks("st4te", a=form("A?")), BY_HOST)
    record = fold(before, *batch)
    record = answered(record, "a")
    public = encode(record.public) + b"".join(
        encode(action) for action in batch if isinstance(action, InputRequested)
    )
    for secret in (b"st4te", b"s3cret"):
        assert secret in encode(record)
        assert secret not in public


# Survival, and exactly one retry


@pytest.mark.proves("design.calls.parked", "design.effects.from-record")
def test_a_parked_call_survives_being_written_down() -> None:
    record = round_of("s", a=form("A?"), b=form("B?"))
    revived = decode_session_record(encode(answered(record, "a", "x")))
    assert revived == answered(record, "a", "x")
    finished = answered(revived, "b", "y")
    assert effects_after_restart(decode_session_record(encode(finished))) == (
        effects_after_restart(finished)
    )
    assert SendCall(call_id="c", leg=1) in effects_after_restart(finished)
    assert next_params(the_call(finished))["requestState"] == "s"


KEYS = ("a", "b", "c")
attempts = st.lists(
    st.tuples(
        st.sampled_from([OWNER, PHONE]),
        st.sampled_from(KEYS),
        st.sampled_from(["accept", "decline", "cancel"]),
    ),
    max_size=20,
)


@pytest.mark.proves(
    "mcp.retry.once", "design.calls.one-winner", "design.effects.retry", "design.effects.twice"
)
@given(attempts, st.booleans())
def test_a_round_leads_to_one_retry_whatever_the_order(
    tries: list[tuple[Principal, str, str]], announced_twice: bool
) -> None:
    record = round_of("s", **{key: form(key) for key in KEYS})
    tries = [*tries, *((OWNER, key, "accept") for key in KEYS)]
    legs: list[Effect] = []
    winners: dict[str, str] = {}
    for principal, key, response in tries:
        action = completion(f"call:c/1/{key}", "x" if response == "accept" else None, response)
        after = dispatch(record, principal, action)
        if not isinstance(after, SessionRecord):
            assert key in winners
            continue
        assert key not in winners
        winners[key] = response
        effects = effects_of(record, action, after)
        assert effects_of(record, action, after) == effects
        legs += [effect for effect in effects if isinstance(effect, SendCall)]
        record = after
    assert legs == [SendCall(call_id="c", leg=1)]
    responses = next_params(the_call(record))["inputResponses"]
    assert {key: response["action"] for key, response in responses.items()} == winners
    gone_out = fold(record, CallSent(call_id="c", leg=1))
    assert gone_out is not record
    if announced_twice:
        assert fold(gone_out, CallSent(call_id="c", leg=1)) is gone_out


def test_outcomes_for_strange_calls_are_only_remembered() -> None:
    record = round_of("s", a=form("A?"))
    (request,) = record.public.input_requests or ()
    stranger = msgspec.structs.replace(
        request, id="x", meta=RequestMeta(call="nobody", key="a", round=1)
    )
    known = msgspec.structs.replace(request, id="y")
    for odd in (stranger, known):
        with_it = fold(record, InputRequested(request=odd))
        batch = batch_of(with_it, completion(odd.id, response="decline"), BY_HOST)
        after = fold(with_it, *batch)
        assert after.private.calls == record.private.calls
    done = sent(answered(record, "a"))
    late = fold(done, InputRequested(request=known))
    after = fold(late, *batch_of(late, completion("y", response="decline"), BY_HOST))
    assert after.private.calls == done.private.calls


# Whatever comes late, twice, or from nowhere


@pytest.mark.proves("design.calls.late-result", "design.effects.twice")
def test_a_batch_for_a_leg_that_is_not_out_is_empty() -> None:
    waiting = round_of("s", a=form("A?"))
    second = sent(answered(waiting, "a"))
    for record in (waiting, second, started(), in_turn()):
        assert open_round(record, "c", 0, asks("s", a=form("A?")), BY_HOST) == ()
        assert finish(record, "c", 0, {}, BY_HOST) == ()
        assert failure(record, "c", 7, FailureKind.UPSTREAM, "x", BY_HOST) == ()
        assert progress(record, "c", 0, "1 of 2") == ()
        assert after_expired_state(record, "c", 0, BY_HOST) == ()
        assert after_crash(record, "c", 0, BY_HOST) == ()
    doubted = crash(second)
    assert after_crash(doubted, "c", 1, BY_HOST) == ()
    held = asked(sent(started()), asks(q=form("Q?")), held=True)
    assert open_round(held, "c", 0, asks(r=form("R?")), BY_HOST) == ()


def test_a_call_that_ends_late_keeps_its_result() -> None:
    record = sent(started())
    for number in range(FINISHED_CALLS_KEPT + 5):
        one = call(id=f"x{number}")
        record = fold(record, CallStarted(call=one), CallAbandoned(call_id=one.id, reason="x"))
    done = fold(record, CallFinished(call_id="c", leg=0, result={"ok": True}), at=200)
    assert the_call(done).phase == Finished(result={"ok": True}, at=200)
    assert len(done.private.calls) == FINISHED_CALLS_KEPT


def test_every_abandoned_call_is_stopped_even_the_forgotten_ones() -> None:
    record = in_turn()
    many = FINISHED_CALLS_KEPT + 6
    for number in range(many):
        record = fold(record, CallStarted(call=call(id=str(number))))
    action = TurnCancelled(turn_id="t")
    after = accepted(record, OWNER, action)
    stopped = [e for e in effects_of(record, action, after) if isinstance(e, StopCall)]
    assert len(stopped) == many


def test_a_kept_answer_is_given_once_and_a_url_is_shown_again() -> None:
    url = ElicitRequest(params=Elicitation(mode="url", message="Sign in", url="https://x.example"))
    record = answered(round_of("old", a=form("A?"), login=url), "a", "x")
    record = expire(sent(answered(record, "login", None)))
    record = asked(sent(record), asks("new", a=form("A?"), login=url))
    assert [request.url for request in record.public.input_requests or ()] == ["https://x.example"]
    record = sent(answered(record, "login", None))
    record = asked(record, asks("new", a=form("A?")))
    assert [request.message for request in record.public.input_requests or ()] == ["A?"]


def test_only_the_owner_in_person_runs_a_doubtful_call_again() -> None:
    doubted = crash(sent(started()))
    (request,) = doubted.public.input_requests or ()
    assert request.id == "call:c/again/0"
    for other in (PHONE, msgspec.structs.replace(OWNER, is_policy=True)):
        refusal = dispatch(doubted, other, completion(request.id))
        assert not isinstance(refusal, SessionRecord)
        assert "the owner's to say, in person" in refusal.message
    declined = dispatch(doubted, PHONE, completion(request.id, response="decline"))
    assert isinstance(declined, SessionRecord)
    by_policy = Stamp(at=100, by=OWNER.author, via=Provenance.POLICY)
    after = fold(doubted, *batch_of(doubted, completion(request.id), by_policy))
    assert isinstance(the_call(after).phase, Failed)


def test_a_server_cannot_flood_people_or_ask_the_impossible() -> None:
    many = {str(number): form("?") for number in range(OPEN_REQUESTS_PER_SESSION + 1)}
    assert isinstance(the_call(round_of("s", **many)).phase, Failed)
    never = {"type": "integer", "minimum": 5, "maximum": 1}
    impossible = form("?", {"type": "object", "properties": {"p": never}})
    phase = the_call(round_of("s", a=impossible)).phase
    assert isinstance(phase, Failed)
    assert phase.error.kind is FailureKind.UNSHOWABLE_FORM


def test_what_a_uri_hides_in_its_query_is_not_shown() -> None:
    secret = call(method="resources/read", params={"uri": "x:/a?token=s3cret#frag"})
    assert secret.target == "x:/a"


def test_an_answered_held_call_is_recovered_and_not_answered_after_a_restart() -> None:
    record = asked(sent(started()), asks(q=form("Q?")), held=True)
    after = answered(record, "q")
    effects = effects_after_restart(after)
    assert RecoverCall(call_id="c", leg=0) in effects
    assert not any(isinstance(effect, AnswerHeldCall) for effect in effects)
