"""Deadlines, defaults, withdrawal, and what of an answer is kept."""

from typing import Any

import msgspec
import pytest

from session_server.reducers.batches import withdrawal
from session_server.reducers.deadlines import expired, leased, marked_as_left, released, withdrawn
from session_server.reducers.effects import ExpireRequest, PublishSummary, effects_of, pending
from session_server.reducers.forms.defaults import proposed_answers
from session_server.reducers.rules.input_rules import left_request
from session_server.reducers.state.status import listed
from session_server.schemas.ahp.actions import (
    ActiveClientChanged,
    InputRequested,
    ModelChanged,
    ToolCallComplete,
    TurnCancelled,
)
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    BooleanQuestion,
    BooleanValue,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberValue,
    OnExpiry,
    Option,
    RequestMeta,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
)
from session_server.schemas.ahp.session import ActiveClient, ModelSelection, Status, SummaryMeta
from session_server.schemas.ahp.tool_calls import PendingConfirmation
from session_server.schemas.ahp.turns import ActiveTurn, ToolCallPart
from session_server.schemas.codec import encode
from session_server.schemas.principals import HOST, Provenance
from session_server.schemas.record import ChangeDeferred, Deferred, SessionRecord
from tests.reducers.form_actions import (
    FORM,
    OSLO,
    change,
    complete,
    draft,
    due,
    recording,
    with_client_tool,
)
from tests.sessions import (
    AGENT,
    OWNER,
    PHONE,
    accepted,
    asked_by,
    asking,
    fold,
    session,
    stamp,
    user_message,
)

# Deadlines and withdrawal

PROPOSING = InputRequest(
    id="r",
    message="Deploy",
    questions=(
        TextQuestion(id="name", message="?", required=True, default_value="Oslo"),
        IntegerQuestion(id="size", message="?", default_value=3),
        IntegerQuestion(id="none", message="?"),
        BooleanQuestion(id="sure", message="?", default_value=False),
        SingleSelectQuestion(
            id="one", message="?", options=(Option(id="a", label="A", recommended=True),)
        ),
        MultiSelectQuestion(
            id="many",
            message="?",
            options=(Option(id="a", label="A", recommended=True), Option(id="b", label="B")),
        ),
        SingleSelectQuestion(id="free", message="?", options=(Option(id="a", label="A"),)),
        MultiSelectQuestion(id="any", message="?", options=(Option(id="a", label="A"),)),
        TextQuestion(id="plain", message="?"),
        TextQuestion(id="bad", message="?", default_value="x", min=3),
    ),
)


@pytest.mark.proves("design.wire.expires-at", "design.provenance.timeout", "mcp.form.nobody")
@pytest.mark.parametrize("on_expiry", [None, OnExpiry.CANCEL])
def test_a_hard_deadline_cancels_and_is_no_decline(on_expiry: OnExpiry | None) -> None:
    record = draft("Os", PHONE, due(FORM, on_expiry))
    assert ExpireRequest(request_id="r", at=500) in list(pending(record))
    assert b'"_meta":{"expiresAt":500' in encode(record.public)
    assert expired(record, "r", 499) == ()
    after = fold(record, *expired(record, "r", 500))
    (outcome,) = after.private.outcomes
    assert (outcome.response, outcome.via, outcome.by) == (
        ResponseKind.CANCEL,
        Provenance.TIMEOUT,
        HOST,
    )
    assert expired(after, "r", 501) == ()


@pytest.mark.proves("design.provenance.default")
def test_defaults_are_used_and_recorded_as_such() -> None:
    record = due(PROPOSING, OnExpiry.DEFAULTS)
    after = fold(record, *expired(record, "r", 500))
    (outcome,) = after.private.outcomes
    assert (outcome.response, outcome.via) == (ResponseKind.ACCEPT, Provenance.DEFAULT)
    answers = {
        name: answer.value
        for name, answer in (outcome.answers or {}).items()
        if isinstance(answer, Submitted)
    }
    assert answers == {
        "name": OSLO,
        "size": NumberValue(value=3),
        "sure": BooleanValue(value=False),
        "one": SelectedValue(value="a"),
        "many": SelectedManyValue(value=("a",)),
    }
    assert all(
        answer.meta is not None and answer.meta.via is Provenance.DEFAULT
        for answer in (outcome.answers or {}).values()
    )


def test_defaults_that_do_not_satisfy_the_form_are_a_timeout() -> None:
    assert proposed_answers(FORM) is None
    record = due(FORM, OnExpiry.DEFAULTS)
    after = fold(record, *expired(record, "r", 500))
    assert after.private.outcomes[0].via is Provenance.TIMEOUT


@pytest.mark.parametrize("answer", [Draft(value=OSLO), Submitted(value=OSLO), Skipped(), None])
@pytest.mark.parametrize("message", [PROPOSING.message, "Deploy to the moon"])
def test_a_deadline_added_later_does_not_replace_answers_by_defaults(
    answer: Answer | None, message: str
) -> None:
    begun = accepted(session(), AGENT, InputRequested(request=PROPOSING))
    for given in (Draft(value=OSLO), answer):
        begun = accepted(begun, PHONE, change(given, "plain"))
    late = RequestMeta(expires_at=500, on_expiry=OnExpiry.DEFAULTS)
    again = msgspec.structs.replace(PROPOSING, meta=late, message=message)
    record = accepted(begun, AGENT, InputRequested(request=again))
    assert expired(record, "r", 500) == ()
    assert not any(isinstance(effect, ExpireRequest) for effect in pending(record))


def test_answers_kept_from_an_earlier_request_stop_the_use_of_defaults() -> None:
    record = due(PROPOSING, OnExpiry.DEFAULTS, answers={"size": Skipped()})
    assert expired(record, "r", 500) == ()
    filled_in = Draft(value=OSLO, meta=AnswerMeta(by=HOST, at=1, via=Provenance.PROPOSED))
    record = due(PROPOSING, OnExpiry.DEFAULTS, answers={"name": filled_in})
    assert expired(record, "r", 500) != ()


def test_a_question_may_wait_for_ever() -> None:
    record = due(FORM, OnExpiry.WAIT)
    assert expired(record, "r", 10**9) == ()
    assert not any(isinstance(effect, ExpireRequest) for effect in pending(record))
    assert expired(asking(FORM), "r", 10**9) == ()


@pytest.mark.proves("design.provenance.withdrawn")
def test_an_asker_can_take_its_question_back() -> None:
    record = asking(FORM)
    after = fold(record, *withdrawn(record.public, "r", stamp(AGENT)))
    (outcome,) = after.private.outcomes
    assert (outcome.response, outcome.via, outcome.by) == (
        ResponseKind.CANCEL,
        Provenance.WITHDRAWN,
        AGENT.author,
    )
    assert withdrawn(after.public, "r", stamp(AGENT)) == ()


def test_only_the_questions_of_a_call_are_withdrawn_with_it() -> None:
    mine = InputRequest(id="c/1/a", meta=RequestMeta(call="c"))
    other = InputRequest(id="d/1/a", meta=RequestMeta(call="d"))
    record = asking(mine, other, FORM)
    after = fold(record, *withdrawal(record, "c", stamp(AGENT)))
    assert after.public.input_requests == (other, FORM)


def test_beginning_to_answer_stops_the_use_of_defaults_even_if_it_is_cleared_again() -> None:
    begun = draft("Os", PHONE, due(PROPOSING, OnExpiry.DEFAULTS))
    cleared = accepted(begun, PHONE, change(None))
    again = draft("Os", PHONE, cleared)
    for state in (begun, cleared, again):
        assert expired(state, "r", 500) == ()
        assert not any(isinstance(effect, ExpireRequest) for effect in pending(state))
    assert cleared.private.begun == again.private.begun == ("r",)
    closed = accepted(again, OWNER, complete("decline"))
    assert closed.private.begun == ()
    late = fold(closed, change(Draft(value=OSLO)))
    assert late.private.begun == ()  # nobody can begin what is not open


def test_what_was_answered_before_a_turn_was_cancelled_is_kept_in_the_outcome() -> None:
    answered = msgspec.structs.replace(FORM, answers={"name": Submitted(value=OSLO)})
    after = accepted(asking(answered), OWNER, TurnCancelled(turn_id="t"))
    (outcome,) = after.private.outcomes
    assert outcome.answers == {"name": Submitted(value=OSLO)}
    assert (outcome.by, outcome.turn_id) == (OWNER.author, "t")


def test_a_deferred_change_that_changes_nothing_is_done_all_the_same() -> None:
    model = ModelChanged(model=ModelSelection(id="m"))
    record = accepted(session(), OWNER, model, at=100)
    deferred = Deferred(change=model)
    waiting = fold(record, ChangeDeferred(deferred=deferred))
    assert waiting.private.deferred == (deferred,)
    done = fold(waiting, model, at=100)
    assert done.public is waiting.public
    assert done.private.deferred == ()


# Askers that have left


def held(request: InputRequest, **meta: Any) -> InputRequest:
    return msgspec.structs.replace(request, meta=RequestMeta(lease=30, **meta))


def since(record: SessionRecord) -> list[int | None]:
    requests = record.public.input_requests or ()
    return [request.meta and request.meta.asker_gone_since for request in requests]


@pytest.mark.proves("design.requests.asker-left")
def test_a_mark_says_since_when_the_asker_is_gone_and_goes_when_it_is_back() -> None:
    record = draft("Os", PHONE, asking(held(FORM), InputRequest(id="other")))
    marked = fold(record, *marked_as_left(record, "r", 70))
    assert since(marked) == [70, None]
    assert marked_as_left(marked, "r", 80) == ()
    back = fold(marked, *marked_as_left(marked, "r", None))
    assert back.public.input_requests == record.public.input_requests
    assert marked_as_left(back, "r", None) == marked_as_left(back, "other", 80) == ()


def test_all_questions_of_a_call_are_left_with_it() -> None:
    mine = [held(InputRequest(id=f"c/1/{key}"), call="c") for key in "ab"]
    record = asking(*mine, held(FORM))
    assert since(fold(record, *marked_as_left(record, "c", 70))) == [70, 70, None]


def test_a_mark_does_not_make_a_session_unread() -> None:
    unread = asking(held(FORM))
    summary = msgspec.structs.replace(unread.public.summary, status=Status.IS_READ | 24)
    public = msgspec.structs.replace(unread.public, summary=summary)
    read = msgspec.structs.replace(unread, public=public)
    for record in (read, unread):
        after = fold(record, *marked_as_left(record, "r", 70))
        assert after.public.summary.status & Status.IS_READ == (
            record.public.summary.status & Status.IS_READ
        )


def test_a_recording_and_a_question_without_lease_have_no_asker_to_wait_for() -> None:
    assert list(leased(recording(asking(held(FORM))))) == []
    assert list(leased(asking(FORM))) == list(leased(session())) == []


def test_only_the_host_says_that_an_asker_is_gone() -> None:
    forged = held(FORM, asker_gone_since=70)
    record = accepted(asking(), AGENT, InputRequested(request=forged))
    assert since(record) == [None]
    marked = fold(record, *marked_as_left(record, "r", 70))
    assert since(accepted(marked, AGENT, InputRequested(request=held(FORM)))) == [None]


def test_only_the_same_question_of_the_same_asker_is_taken_up_once_it_was_left() -> None:
    there = asking(asked_by(OWNER, held(FORM)), asked_by(OWNER, InputRequest(id="x")))
    left = fold(there, *marked_as_left(there, "r", 70))
    again = msgspec.structs.replace(FORM, id="new")
    found = left_request(OWNER, left, again)
    assert found.id == "r"
    assert left_request(OWNER, there, again) is left_request(AGENT, left, again) is None
    other = msgspec.structs.replace(again, message="Destroy")
    assert left_request(OWNER, left, other) is left_request(OWNER, session(), other) is None


def test_a_list_says_when_nobody_waits_for_any_of_the_answers() -> None:
    gone, there = held(FORM, asker_gone_since=70), InputRequest(id="there")
    left = asking(gone)
    assert listed(left.public).meta == SummaryMeta(askers_gone=True)
    for record in (asking(gone, there), asking(there), session()):
        assert listed(record.public) is record.public.summary
    call = PendingConfirmation(
        tool_call_id="c", tool_name="run", display_name="Run", invocation_message="Run it"
    )
    turn = ActiveTurn(
        id="t", message=user_message(), response_parts=(ToolCallPart(tool_call=call),)
    )
    confirming = asking(gone, active_turn=turn)
    assert listed(confirming.public) is confirming.public.summary


def test_a_mark_is_published_in_the_list_even_within_the_same_millisecond() -> None:
    before = fold(asking(), InputRequested(request=held(FORM)), at=100)
    batch = marked_as_left(before, "r", 70)
    after = fold(before, *batch, at=100)
    assert before.public.summary == after.public.summary
    (published,) = effects_of(before, batch, after)
    assert isinstance(published, PublishSummary)
    assert (published.before.meta, published.after.meta) == (None, SummaryMeta(askers_gone=True))


# Clients that stay away


def test_a_client_that_stays_away_loses_its_role_and_its_running_tool_calls() -> None:
    failed, role = released(with_client_tool(), "laptop")
    assert isinstance(failed, ToolCallComplete)
    assert not failed.result.success
    assert role == ActiveClientChanged(active_client=None)
    assert released(with_client_tool("another"), "laptop") == (role,)
    idle = session(active_client=ActiveClient(client_id="laptop", tools=()))
    assert released(idle, "laptop") == (role,)
    assert released(idle, "phone") == ()
    assert released(session(), "laptop") == ()
    assert released(recording(idle), "laptop") == ()
