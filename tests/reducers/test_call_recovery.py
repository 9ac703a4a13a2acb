"""Calls whose state expired, whose fate is in doubt, or that a server holds open."""

from collections.abc import Callable
from typing import Any

import pytest

from session_server.reducers.calls.lifecycle import back_off
from session_server.reducers.calls.recovery import in_other_revision
from session_server.reducers.calls.rounds import elicitation_fingerprint, finish, next_params
from session_server.reducers.effects import (
    RecoverCall,
    SendCall,
    effects_after_restart,
    effects_of,
    pending,
)
from session_server.schemas.limits import (
    BACK_OFF_FIRST_MS,
    BACK_OFF_LIMIT_MS,
    RESTARTS_PER_CALL,
    ROUNDS_PER_CALL,
)
from session_server.schemas.mcp import Elicitation
from session_server.schemas.principals import Provenance
from session_server.schemas.record import (
    CallInputRequired,
    CallRestarted,
    FailureKind,
    Finished,
    SessionRecord,
    ToSend,
    Uncertain,
)
from tests.reducers.call_records import (
    BY_HOST,
    answered,
    asked,
    asks,
    call,
    completion,
    crash,
    expire,
    failed,
    form,
    leg,
    notes,
    round_of,
    run_again,
    sent,
    started,
    the_call,
)
from tests.sessions import OWNER, accepted, fold

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
    assert failed(record).kind is FailureKind.ROUND_LIMIT
    assert str(limit) in failed(record).message
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
    assert "2 earlier answers were" in notes(record)[-1]


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
    assert (
        elicitation_fingerprint(one)
        == elicitation_fingerprint(same)
        != elicitation_fingerprint(other)
    )


@pytest.mark.proves("mcp.retry.restart-limit")
def test_a_call_that_keeps_expiring_fails_in_the_end() -> None:
    record = sent(answered(round_of("s", city=form("City?")), "city"))
    for _ in range(RESTARTS_PER_CALL):
        record = asked(sent(expire(record)), asks("s", city=form("City?")))
        record = sent(record)
    assert failed(expire(record)).kind is FailureKind.RESTART_LIMIT
    assert fold(record, CallRestarted(call_id="c", leg=leg(record))) is record


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
    yes = run_again(doubted)
    assert SendCall(call_id="c", leg=2) in list(pending(yes))
    assert next_params(the_call(yes)) == call().params
    for response in ("decline", "cancel"):
        assert failed(run_again(doubted, response)).kind is FailureKind.NOT_REPEATED
    answered_before = asked(sent(yes), asks("s", a=form("A?")))
    assert answered_before.public.input_requests is None


@pytest.mark.proves("design.calls.doubt-repeatable")
def test_a_repeatable_tool_runs_again_unasked() -> None:
    record = crash(sent(started(repeatable=True)))
    assert SendCall(call_id="c", leg=1) in list(pending(record))
    assert "interrupted" in notes(record)[-1]


# Calls that a 2025-era server holds open


@pytest.mark.proves("mcp.legacy.held")
def test_a_held_call_is_answered_on_its_connection_and_not_retried() -> None:
    record = asked(sent(started()), asks(q=form("Q?")), held=True)
    assert RecoverCall(call_id="c", leg=0) in effects_after_restart(record)
    action = completion("call:c/1/q", "x")
    after = accepted(record, OWNER, action)
    assert RecoverCall(call_id="c", leg=0) in effects_after_restart(after)
    effects = effects_of(record, (action,), after)
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
    again = run_again(crash(record))
    again = asked(sent(again), asks(p=form("P?"), q=form("Q?")), held=True)
    assert [request.message for request in again.public.input_requests or ()] == ["Q?"]
    repeatable = asked(sent(started(repeatable=True)), asks(p=form("P?")), held=True)
    assert crash(repeatable).public.input_requests is None


# Tools that can ask in another revision of MCP alone


def elsewhere(record: SessionRecord, *, has_only_asked: bool = False) -> SessionRecord:
    batch = in_other_revision(
        record, "c", leg(record), "2025-11-25", BY_HOST, has_only_asked=has_only_asked
    )
    return fold(record, *batch)


@pytest.mark.proves("mcp.servers.revision")
def test_a_tool_that_cannot_ask_here_runs_again_only_when_somebody_agrees() -> None:
    doubted = elsewhere(sent(started()))
    assert isinstance(the_call(doubted).phase, Uncertain)
    (request,) = doubted.public.input_requests or ()
    assert request.message is not None
    assert "Anything it did before that has already taken effect." in request.message
    assert "it can ask only over MCP 2025-11-25." in request.message
    assert isinstance(the_call(run_again(doubted)).phase, ToSend)


@pytest.mark.parametrize(("repeatable", "has_only_asked"), [(True, False), (False, True)])
def test_a_harmless_tool_runs_again_in_the_other_revision(
    repeatable: bool,
    has_only_asked: bool,
) -> None:
    record = elsewhere(sent(started(repeatable=repeatable)), has_only_asked=has_only_asked)
    assert isinstance(the_call(record).phase, ToSend)
    assert any("runs again over MCP 2025-11-25" in note for note in notes(record))


@pytest.mark.parametrize(
    ("interrupt", "reason"),
    [(crash, "it was interrupted"), (elsewhere, "in either revision of MCP")],
)
def test_a_harmless_tool_that_never_gets_through_is_given_up(
    interrupt: Callable[[SessionRecord], SessionRecord], reason: str
) -> None:
    record = sent(started(repeatable=True))
    for _ in range(RESTARTS_PER_CALL):
        record = sent(interrupt(record))
    error = failed(interrupt(record))
    assert error.kind is FailureKind.RESTART_LIMIT
    assert reason in error.message


def test_a_call_that_has_ended_does_not_run_again_in_another_revision() -> None:
    record = sent(started())
    ended = fold(record, *finish(record, "c", 0, {"content": []}, BY_HOST))
    assert in_other_revision(ended, "c", 0, "2025-11-25", BY_HOST, has_only_asked=True) == ()
