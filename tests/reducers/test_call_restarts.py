"""Calls keep their secrets, survive a restart, are retried once and take no late news."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.batches import Batch, batch_of
from session_server.reducers.calls.recovery import after_crash, after_expired_state
from session_server.reducers.calls.redaction import HIDDEN, shown_arguments
from session_server.reducers.calls.rounds import failure, finish, next_params, open_round, progress
from session_server.reducers.effects import (
    Effect,
    SendCall,
    StopCall,
    effects_after_restart,
    effects_of,
)
from session_server.schemas.ahp.actions import InputRequested, TurnCancelled
from session_server.schemas.ahp.questions import RequestMeta
from session_server.schemas.codec import decode_session_record, encode
from session_server.schemas.limits import FINISHED_CALLS_KEPT, OPEN_REQUESTS_PER_SESSION
from session_server.schemas.mcp import Elicitation, ElicitRequest
from session_server.schemas.principals import Principal, Provenance
from session_server.schemas.record import (
    CallAbandoned,
    CallFinished,
    CallSent,
    CallStarted,
    FailureKind,
    Finished,
    SessionRecord,
)
from tests.reducers.call_records import (
    ARGUMENTS,
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
    round_of,
    sent,
    started,
    the_call,
)
from tests.sessions import OWNER, PHONE, accepted, dispatch, fold, in_turn, stamp

# Secrets


@pytest.mark.proves("design.calls.secret-arguments")
def test_private_arguments_are_hidden() -> None:
    shown = shown_arguments(call(private_arguments=("token",)))
    assert "s3cret" not in shown
    assert msgspec.json.decode(shown) == {**ARGUMENTS, "token": HIDDEN}
    assert shown_arguments(call(params={"name": "deploy"})) == "{}"


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
        effects = effects_of(record, (action,), after)
        assert effects_of(record, (action,), after) == effects
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
    latest = (f"x{number}" for number in range(6, FINISHED_CALLS_KEPT + 5))
    assert set(done.private.calls) == {"c", *latest}


def test_every_abandoned_call_is_stopped_even_the_forgotten_ones() -> None:
    record = in_turn()
    many = FINISHED_CALLS_KEPT + 6
    for number in range(many):
        record = fold(record, CallStarted(call=call(id=str(number))))
    action = TurnCancelled(turn_id="t")
    after = accepted(record, OWNER, action)
    stopped = [e for e in effects_of(record, (action,), after) if isinstance(e, StopCall)]
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
        assert "Only an owner can approve running it again" in refusal.message
    declined = dispatch(doubted, PHONE, completion(request.id, response="decline"))
    assert isinstance(declined, SessionRecord)
    by_policy = stamp(OWNER, via=Provenance.POLICY)
    after = fold(doubted, *batch_of(doubted, completion(request.id), by_policy))
    assert failed(after).kind is FailureKind.NOT_REPEATED


def test_a_server_cannot_flood_people_or_ask_the_impossible() -> None:
    many = {str(number): form("?") for number in range(OPEN_REQUESTS_PER_SESSION + 1)}
    assert failed(round_of("s", **many)).kind is FailureKind.UNSHOWABLE_FORM
    never = {"type": "integer", "minimum": 5, "maximum": 1}
    impossible = form("?", {"type": "object", "properties": {"p": never}})
    assert failed(round_of("s", a=impossible)).kind is FailureKind.UNSHOWABLE_FORM
