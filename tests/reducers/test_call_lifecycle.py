"""Calls: how they start, what a round asks, and how they end."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.calls.rounds import (
    failure,
    finish,
    next_params,
    open_round,
    request_id_of,
)
from session_server.reducers.effects import CompleteTurn, SendCall, StopCall, effects_of, pending
from session_server.schemas.ahp.actions import InputAnswerChanged
from session_server.schemas.ahp.questions import Draft, RequestMeta, TextValue
from session_server.schemas.codec import encode
from session_server.schemas.limits import FINISHED_CALL_BYTES_KEPT
from session_server.schemas.mcp import (
    CallMethod,
    Elicitation,
    ElicitRequest,
    EmbeddedRequest,
    RootsRequest,
    SamplingRequest,
)
from session_server.schemas.principals import Provenance
from session_server.schemas.record import (
    Abandoned,
    CallAbandoned,
    CallDoubted,
    CallError,
    CallFailed,
    CallFinished,
    CallInputRequired,
    CallRestarted,
    CallSent,
    CallStarted,
    FailureKind,
    Finished,
    Waiting,
)
from tests.reducers.call_records import (
    BY_HOST,
    answered,
    asked,
    asks,
    call,
    failed,
    form,
    notes,
    round_of,
    sent,
    started,
    the_call,
)
from tests.sessions import PHONE, accepted, fold, in_turn

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
    ("embedded", "kind", "detail"),
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
    embedded: EmbeddedRequest, kind: FailureKind, detail: str
) -> None:
    record = round_of(fine=form("Fine?"), odd=embedded)
    error = failed(record)
    assert error.kind is kind
    assert detail in error.message
    assert record.public.input_requests is None


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
    assert failed(after).kind is FailureKind.UPSTREAM
    assert after.public.input_requests is None
    assert after.private.outcomes[0].via is Provenance.WITHDRAWN
    assert notes(after)[-1] == "cloud/deploy failed: it broke."


def test_an_abandoned_call_is_to_be_stopped() -> None:
    record = sent(started())
    action = CallAbandoned(call_id="c", reason="enough")
    after = fold(record, action)
    assert isinstance(the_call(after).phase, Abandoned)
    assert effects_of(record, (action,), after) == (StopCall(call_id="c"),)


def test_ended_calls_are_kept_up_to_a_size_but_the_latest_always() -> None:
    reason = "x" * (FINISHED_CALL_BYTES_KEPT // 2)
    record = in_turn()
    for number, text in enumerate((reason, reason, "x", 3 * reason)):
        one = call(id=str(number))
        record = fold(record, CallStarted(call=one), CallAbandoned(call_id=one.id, reason=text))
        expected = [["0"], ["1"], ["1", "2"], ["3"]][number]
        assert list(record.private.calls) == expected
