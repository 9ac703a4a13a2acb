"""What one action brings along in its batch: marks, outcomes, notes and the ends of turns."""

from typing import Any

import msgspec
import pytest

from session_server.reducers.batches import batch_of, host_turn, judged_batch, note, title_change
from session_server.reducers.effects import (
    ApplyDeferred,
    CompleteTurn,
    DeliverOutcome,
    RunTurn,
    effects_of,
    pending,
)
from session_server.reducers.state.record import is_decision
from session_server.schemas.ahp.actions import (
    AgentChanged,
    InputCompleted,
    InputRequested,
    MetaChanged,
    ModelChanged,
    ResponsePartAdded,
    TitleChanged,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from session_server.schemas.ahp.questions import (
    AnswerMeta,
    Draft,
    InputRequest,
    IntegerQuestion,
    RequestMeta,
    ResponseKind,
    Skipped,
    Submitted,
    TextValue,
)
from session_server.schemas.ahp.session import AgentSelection, ModelSelection
from session_server.schemas.ahp.turns import SystemNotificationPart
from session_server.schemas.limits import OUTCOME_BYTES_KEPT, OUTCOME_LIFETIME_MS, OUTCOMES_KEPT
from session_server.schemas.principals import Author, Provenance
from session_server.schemas.record import (
    Abandoned,
    CallAbandoned,
    CallStarted,
    ChangeDeferred,
    CompletionHeld,
    Deferred,
    Outcome,
    OutcomeRecorded,
    SessionRecord,
    TurnOwner,
    TurnTaken,
)
from session_server.schemas.wire import ErrorInfo
from tests.reducers.call_records import call
from tests.reducers.form_actions import FORGED, FORM, OSLO, change, complete, draft
from tests.sessions import (
    AGENT,
    OWNER,
    PHONE,
    WATCHER,
    accepted,
    asked_by,
    asking,
    fold,
    in_turn,
    refused,
    session,
    stamp,
)


def test_a_batch_is_made_only_of_an_action_that_the_rules_allow() -> None:
    record = asking(FORM)
    action = change(Draft(value=OSLO))
    assert judged_batch(PHONE, record, action, stamp(PHONE)) == batch_of(
        record, action, stamp(PHONE)
    )
    assert judged_batch(WATCHER, record, action, stamp(WATCHER)) == refused(record, WATCHER, action)


# Marks of the host


@pytest.mark.proves("design.wire.answer-meta", "design.wire.answer-meta-forged")
def test_an_answer_is_marked_by_the_host_and_a_forgery_is_overwritten() -> None:
    record = draft("Os", PHONE, asking(FORM), at=7)
    answers = (record.public.input_requests or ())[0].answers or {}
    assert answers["name"].meta == AnswerMeta(
        by=Author(id="u-bo", name="Bo"), at=7, via=Provenance.PERSON
    )
    forged = complete(name=Submitted(value=OSLO, meta=FORGED))
    (*_, completed) = batch_of(record, forged, stamp(OWNER, at=9))
    assert isinstance(completed, InputCompleted)
    assert (completed.answers or {})["name"].meta == AnswerMeta(
        by=Author(id="u-ana", name="Ana"), at=9, via=Provenance.PERSON
    )


@pytest.mark.proves("design.wire.request-meta-forged")
def test_an_agents_question_does_not_pass_for_a_calls() -> None:
    forged = RequestMeta(call="c", round=1, key="k", server="bank", tool="pay", expires_at=500)
    for meta, kept in (
        (forged, RequestMeta(by=AGENT.author, expires_at=500)),
        (RequestMeta(call="c"), RequestMeta(by=AGENT.author)),
    ):
        request = msgspec.structs.replace(FORM, meta=meta)
        (action,) = batch_of(in_turn(), InputRequested(request=request), stamp(AGENT))
        assert isinstance(action, InputRequested)
        assert action.request.meta == kept


MINE = asked_by(AGENT, FORM)


def test_a_default_that_is_no_answer_is_not_asked() -> None:
    questions = (
        IntegerQuestion(id="a", message="?", max=5, default_value=9),
        IntegerQuestion(id="b", message="?", max=5, default_value=4),
    )
    request = InputRequest(id="r", questions=questions)
    asked = accepted(in_turn(), AGENT, InputRequested(request=request))
    (shown,) = asked.public.input_requests or ()
    assert [getattr(q, "default_value", None) for q in shown.questions or ()] == [None, 4]


@pytest.mark.proves("design.wire.reserved-meta")
def test_an_agent_cannot_write_the_hosts_keys_of_a_session() -> None:
    forged = MetaChanged(meta={"recording": True, "branch": "main"})
    assert accepted(in_turn(), AGENT, forged).public.meta == {"branch": "main"}
    only = MetaChanged(meta={"recording": True})
    assert accepted(in_turn(), AGENT, only).public.meta is None
    marked = in_turn(meta={"recording": True, "branch": "old"})
    assert accepted(marked, AGENT, MetaChanged()).public.meta == {"recording": True}
    plain = MetaChanged(meta={"branch": "main"})
    assert batch_of(in_turn(), plain, stamp(AGENT)) == (plain,)


# Completion


@pytest.mark.proves(
    "design.calls.one-batch",
    "design.outcomes.complete",
    "design.provenance.person",
    "ahp.rules.complete-merges",
)
def test_completion_and_outcome_are_one_batch() -> None:
    record = draft("Bergen", PHONE, asking(FORM))
    record = accepted(record, PHONE, change(Skipped(), "size"))
    batch = batch_of(record, complete(name=Submitted(value=OSLO)), stamp(OWNER, at=9))
    assert [type(action) for action in batch] == [
        OutcomeRecorded,
        ResponsePartAdded,
        InputCompleted,
    ]
    (outcome,) = fold(record, *batch).private.outcomes
    assert outcome.request == FORM
    assert outcome.response is ResponseKind.ACCEPT
    assert (outcome.by, outcome.via, outcome.at) == (OWNER.author, Provenance.PERSON, 9)
    assert outcome.turn_id == "t"
    answers = outcome.answers or {}
    assert isinstance(answers["size"], Skipped)
    assert isinstance(answers["name"], Submitted)
    assert answers["name"].value == OSLO


@pytest.mark.proves("design.log.decisions")
def test_completions_and_outcomes_are_decisions_and_drafts_are_not() -> None:
    record = asking(FORM)
    batch = batch_of(record, complete("decline"), stamp(OWNER, 7))
    decided = [type(action) for action in batch if is_decision(action)]
    assert decided == [OutcomeRecorded, InputCompleted]
    assert not is_decision(change(None))


def test_drafts_and_answers_to_nothing_do_not_count() -> None:
    answers = {"name": Draft(value=OSLO), "gone": Submitted(value=OSLO)}
    record = asking(msgspec.structs.replace(FORM, answers=answers))
    after = accepted(record, OWNER, complete("decline"))
    assert after.private.outcomes[0].answers is None


@pytest.mark.proves("design.calls.answered-noted")
def test_a_late_joiner_reads_in_the_turn_what_was_answered() -> None:
    after = accepted(asking(FORM), OWNER, complete(name=Submitted(value=OSLO)))
    assert after.public.input_requests is None
    assert after.public.active_turn.response_parts == (
        SystemNotificationPart(content="Ana answered “Deploy”. Name?: Oslo"),
    )


def test_a_long_answer_is_shown_short() -> None:
    long = TextValue(value="x\n" * 5_000)
    after = accepted(asking(FORM), OWNER, complete(name=Submitted(value=long)))
    (part,) = after.public.active_turn.response_parts
    assert isinstance(part, SystemNotificationPart)
    assert len(str(part.content)) < 300
    assert str(part.content).endswith("…")


def test_a_question_outside_any_turn_is_completed_without_a_note() -> None:
    record = session(input_requests=(FORM,))
    batch = batch_of(record, complete("cancel"), stamp(OWNER))
    assert [type(action) for action in batch] == [OutcomeRecorded, InputCompleted]
    assert fold(record, *batch).private.outcomes[0].turn_id is None


def ended(number: int, at: int = 100, size: int = 0) -> OutcomeRecorded:
    request = InputRequest(id=str(number), message="x" * size)
    outcome = Outcome(request=request, response=ResponseKind.CANCEL, via=Provenance.PERSON, at=at)
    return OutcomeRecorded(outcome=outcome)


def outcomes_kept(record: SessionRecord) -> list[str]:
    return [outcome.request.id for outcome in record.private.outcomes]


@pytest.mark.proves("design.outcomes.bounded")
def test_outcomes_are_forgotten_by_number_and_by_age() -> None:
    record = session()
    for number in range(OUTCOMES_KEPT + 3):
        record = fold(record, ended(number, at=1000), at=1000)
    assert outcomes_kept(record) == [str(number) for number in range(3, OUTCOMES_KEPT + 3)]
    later = 1000 + OUTCOME_LIFETIME_MS
    assert len(fold(record, ended(999, later - 1), at=later - 1).private.outcomes) == OUTCOMES_KEPT
    assert outcomes_kept(fold(record, ended(999, later), at=later)) == ["999"]


def test_outcomes_are_forgotten_by_their_size_but_never_the_latest() -> None:
    third = OUTCOME_BYTES_KEPT // 3
    record = fold(session(), *(ended(number, size=third) for number in range(4)))
    assert outcomes_kept(record) == ["2", "3"]
    assert outcomes_kept(fold(record, ended(9, size=OUTCOME_BYTES_KEPT))) == ["9"]


# Turns


@pytest.mark.proves("design.calls.joins-turn", "design.calls.opens-turn")
def test_a_question_joins_the_turn_or_gets_one() -> None:
    action = InputRequested(request=FORM)
    (joined,) = batch_of(in_turn(), action, stamp(AGENT))
    opened, asked = batch_of(session(), action, stamp(AGENT))
    assert asked == joined == InputRequested(request=MINE)
    assert isinstance(opened, TurnStarted)
    assert opened.message.origin.kind == "systemNotification"
    assert opened.message.text == "Deploy"
    assert host_turn(session().public, "c", "Deploying") != ()
    assert host_turn(in_turn().public, "c", "Deploying") == ()


@pytest.mark.proves("design.calls.closes-turn")
def test_a_hosts_turn_is_closed_with_the_last_thing_in_it() -> None:
    second = InputRequest(id="s", message="And this?")
    record = session()
    for request in (FORM, second):
        action = InputRequested(request=request)
        after = accepted(record, AGENT, action)
        assert not any(isinstance(e, CompleteTurn) for e in effects_of(record, (action,), after))
        record = after
    first_done = accepted(record, OWNER, complete("decline"))
    assert not any(isinstance(effect, CompleteTurn) for effect in pending(first_done))
    last = InputCompleted(request_id="s", response=ResponseKind.ACCEPT)
    all_done = accepted(first_done, OWNER, last)
    turn = all_done.public.active_turn
    assert CompleteTurn(turn_id=turn.id) in effects_of(first_done, (last,), all_done)
    assert DeliverOutcome(request_id="s") in effects_of(first_done, (last,), all_done)
    closed = fold(all_done, *batch_of(all_done, TurnComplete(turn_id=turn.id), stamp(AGENT)))
    assert closed.public.active_turn is None
    assert list(pending(closed)) == []


@pytest.mark.proves("design.calls.held-turn")
@pytest.mark.parametrize("joined", ["question", "call"])
def test_an_agents_completion_waits_for_what_joined_the_turn(joined: str) -> None:
    record = asking(FORM) if joined == "question" else fold(in_turn(), CallStarted(call=call()))
    action = TurnComplete(turn_id="t")
    assert batch_of(record, action, stamp(AGENT)) == (CompletionHeld(turn_id="t"),)
    held = accepted(record, AGENT, action)
    assert held.public.active_turn is not None
    assert not any(isinstance(effect, CompleteTurn) for effect in pending(held))
    end = (
        batch_of(held, complete("decline"), stamp(OWNER))
        if joined == "question"
        else (CallAbandoned(call_id="c", reason="enough"),)
    )
    free = fold(held, *end)
    assert CompleteTurn(turn_id="t") in list(pending(free))
    done = accepted(free, AGENT, action)
    assert done.public.active_turn is None
    assert done.private.held_completion is None


@pytest.mark.proves("design.nodes.taken-over")
def test_the_last_node_that_takes_a_turn_owns_it() -> None:
    record = fold(in_turn(), TurnTaken(turn_id="t", node="a"))
    assert record.private.turn_owner == TurnOwner(turn_id="t", node="a")
    assert RunTurn(turn_id="t") in list(pending(record))
    assert fold(record, TurnTaken(turn_id="t", node="b")).private.turn_owner == TurnOwner(
        turn_id="t", node="b"
    )


@pytest.mark.proves(
    "design.calls.cancelled-turn", "design.calls.cancelled-noted", "design.provenance.abandoned"
)
@pytest.mark.parametrize(
    "ending",
    [
        TurnCancelled(turn_id="t"),
        TurnFailed(turn_id="t", error=ErrorInfo(error_type="x", message="broke")),
        Truncated(),
    ],
)
def test_what_joined_a_turn_is_abandoned_with_it(ending: Any) -> None:
    record = fold(asking(FORM), CallStarted(call=call()))
    batch = batch_of(record, ending, stamp(OWNER))
    assert [type(action) for action in batch] == [
        ResponsePartAdded,
        CallAbandoned,
        OutcomeRecorded,
        type(ending),
    ]
    assert batch[0] == ResponsePartAdded(
        turn_id="t",
        part=SystemNotificationPart(
            content="Abandoned as the turn was ended by Ana:"
            " the call to cloud/deploy, the question “Deploy”."
        ),
    )
    after = fold(record, *batch)
    assert isinstance(after.private.calls["c"].phase, Abandoned)
    (outcome,) = after.private.outcomes
    assert (outcome.response, outcome.via) == (ResponseKind.CANCEL, Provenance.ABANDONED)
    assert after.public.input_requests is None
    assert after.public.active_turn is None


def test_a_turn_with_nothing_in_it_just_ends() -> None:
    for action in (TurnCancelled(turn_id="t"), TurnComplete(turn_id="t")):
        assert batch_of(in_turn(), action, stamp(AGENT)) == (action,)
    assert note(session().public, "nobody reads this") == ()


# Changes that wait


@pytest.mark.proves("ahp.rules.change-deferred", "design.effects.deferred")
def test_a_change_of_model_waits_for_the_turn_to_end() -> None:
    model, newer = (ModelChanged(model=ModelSelection(id=i)) for i in ("one", "two"))
    agent = AgentChanged(agent=AgentSelection(uri="x:a"))
    record = in_turn()
    for wanted in (model, agent, newer):
        deferred = Deferred(change=wanted, by=OWNER.author)
        assert batch_of(record, wanted, stamp(OWNER)) == (ChangeDeferred(deferred=deferred),)
        record = accepted(record, OWNER, wanted)
        assert record.public == in_turn().public
    ended = accepted(record, AGENT, TurnComplete(turn_id="t"))
    due = [effect for effect in pending(ended) if isinstance(effect, ApplyDeferred)]
    assert [effect.deferred.change for effect in due] == [agent, newer]
    assert {effect.deferred.by for effect in due} == {OWNER.author}
    for effect in due:
        ended = accepted(ended, OWNER, effect.deferred.change)
    assert ended.public.summary.model == ModelSelection(id="two")
    assert ended.public.summary.agent == AgentSelection(uri="x:a")
    assert ended.private.deferred == ()


def test_without_a_turn_a_change_is_made_at_once() -> None:
    action = ModelChanged(model=ModelSelection(id="m"))
    assert batch_of(session(), action, stamp(OWNER)) == (action,)
    title = TitleChanged(title="New")
    assert batch_of(in_turn(), title, stamp(OWNER)) == (title,)


def test_only_a_title_that_is_new_is_written() -> None:
    record = session()
    known = record.public.summary.title
    assert title_change(record, None) == title_change(record, f"{known}\u202e") == ()
    assert title_change(record, "Oslo\u202e") == (TitleChanged(title="Oslo"),)
