"""Effects: the work that a change calls for, derived from records and nothing else."""

from typing import Any

import pytest

from session_server.reducers.effects import (
    DeliverOutcome,
    Effect,
    PublishSummary,
    RunTurn,
    StartQueuedTurn,
    StopTurn,
    effects_after_restart,
    effects_of,
    pending,
)
from session_server.schemas.ahp.actions import (
    ActivityChanged,
    IsReadChanged,
    PendingKind,
    PendingMessageSet,
    QueuedMessagesReordered,
    Ready,
    ServerToolsChanged,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnStarted,
)
from session_server.schemas.ahp.questions import Draft
from session_server.schemas.ahp.session import Lifecycle
from session_server.schemas.ahp.turn_messages import Message, MessageOrigin, PendingMessage
from session_server.schemas.codec import decode_session_record, encode
from session_server.schemas.record import SessionRecord
from tests.reducers.form_actions import FORM, OSLO, change, complete, recording
from tests.sessions import (
    AGENT,
    OWNER,
    PHONE,
    accepted,
    asking,
    fold,
    in_turn,
    session,
    user_message,
)

DRAFT = change(Draft(value=OSLO))


def brought(record: SessionRecord, principal: Any, action: Any) -> tuple[Effect, ...]:
    return effects_of(record, (action,), accepted(record, principal, action))


def work(effects: tuple[Effect, ...]) -> list[Effect]:
    return [effect for effect in effects if not isinstance(effect, PublishSummary)]


@pytest.mark.proves("design.effects.agent")
def test_a_turn_wakes_its_agent_and_a_cancelled_one_stops_it() -> None:
    start = TurnStarted(turn_id="t", message=user_message())
    assert work(brought(session(), OWNER, start)) == [RunTurn(turn_id="t")]
    assert work(brought(in_turn(), OWNER, TurnCancelled(turn_id="t"))) == [StopTurn(turn_id="t")]
    assert work(brought(in_turn(), OWNER, Truncated())) == [StopTurn(turn_id="t")]
    assert work(brought(in_turn(), AGENT, TurnComplete(turn_id="t"))) == []
    assert work(brought(session(), OWNER, Truncated())) == []


def test_an_agent_is_woken_once() -> None:
    action = ServerToolsChanged(tools=())
    assert brought(in_turn(), AGENT, action) == ()
    assert list(pending(in_turn())) == [RunTurn(turn_id="t")]


@pytest.mark.proves("design.effects.summary")
def test_a_changed_summary_is_published_and_nothing_else_is() -> None:
    before = session()
    after = accepted(before, OWNER, IsReadChanged(is_read=True))
    assert effects_of(before, (IsReadChanged(is_read=True),), after) == (
        PublishSummary(before=before.public.summary, after=after.public.summary),
    )
    assert brought(session(), AGENT, ServerToolsChanged(tools=())) == ()
    assert brought(session(), OWNER, IsReadChanged(is_read=False)) == ()
    published = brought(in_turn(), AGENT, ActivityChanged(activity="Thinking"))
    assert [type(effect) for effect in published] == [PublishSummary]


def test_a_draft_is_news_and_never_work() -> None:
    effects = brought(asking(FORM), PHONE, DRAFT)
    assert [type(effect) for effect in effects] == [PublishSummary]
    record = accepted(asking(FORM), PHONE, DRAFT)
    assert effects_of(record, (DRAFT,), record) == ()


@pytest.mark.proves("ahp.queue.next", "ahp.queue.idle")
def test_a_queued_message_starts_the_next_turn_or_one_at_once() -> None:
    queue = tuple(PendingMessage(id=i, message=user_message()) for i in "ab")
    busy = in_turn(queued_messages=queue)
    assert StartQueuedTurn(message_id="a") not in list(pending(busy))
    ended = brought(busy, AGENT, TurnComplete(turn_id="t"))
    assert work(ended) == [StartQueuedTurn(message_id="a")]
    waits = PendingMessageSet(kind=PendingKind.QUEUED, id="m", message=user_message())
    assert work(brought(session(), OWNER, waits)) == [StartQueuedTurn(message_id="m")]
    reordered = QueuedMessagesReordered(order=("b",))
    idle = session(queued_messages=queue)
    assert work(brought(idle, OWNER, reordered)) == [StartQueuedTurn(message_id="b")]


def test_a_session_that_is_being_created_starts_nothing_until_it_is_ready() -> None:
    queue = (PendingMessage(id="a", message=user_message()),)
    creating = session(lifecycle=Lifecycle.CREATING, queued_messages=queue)
    assert list(pending(creating)) == []
    assert work(brought(creating, AGENT, Ready())) == [StartQueuedTurn(message_id="a")]
    busy = in_turn(lifecycle=Lifecycle.CREATING)
    assert list(pending(busy)) == []
    assert RunTurn(turn_id="t") in brought(busy, AGENT, Ready())


@pytest.mark.proves("design.effects.pure", "design.effects.from-record")
def test_effects_follow_from_records_alone() -> None:
    before = asking(FORM)
    action = TurnCancelled(turn_id="t")
    after = accepted(before, OWNER, action)
    frozen = encode(before), encode(after)
    effects = effects_of(before, (action,), after)
    assert effects_of(before, (action,), after) == effects
    assert (encode(before), encode(after)) == frozen
    revived = decode_session_record(frozen[0]), decode_session_record(frozen[1])
    assert effects_of(revived[0], (action,), revived[1]) == effects
    assert effects_after_restart(revived[0]) == effects_after_restart(before)


def test_an_agent_that_is_done_is_not_run_again() -> None:
    record = asking(FORM)
    held = accepted(record, AGENT, TurnComplete(turn_id="t"))
    assert RunTurn(turn_id="t") in effects_after_restart(record)
    assert RunTurn(turn_id="t") not in effects_after_restart(held)


def test_the_asker_learns_that_the_question_was_abandoned() -> None:
    cancelled = brought(asking(FORM), OWNER, TurnCancelled(turn_id="t"))
    assert DeliverOutcome(request_id="r") in cancelled
    assert cancelled.count(DeliverOutcome(request_id="r")) == 1


def test_an_outcome_is_delivered_once_and_to_its_own_turn_after_a_restart() -> None:
    done = complete("decline")
    effects = brought(asking(FORM), OWNER, done)
    assert effects.count(DeliverOutcome(request_id="r")) == 1
    after = accepted(asking(FORM), OWNER, done)
    assert DeliverOutcome(request_id="r") in effects_after_restart(after)
    assert DeliverOutcome(request_id="r") not in brought(after, OWNER, IsReadChanged(is_read=True))
    later = accepted(after, AGENT, TurnComplete(turn_id="t"))
    other = accepted(later, OWNER, TurnStarted(turn_id="u", message=user_message()))
    assert DeliverOutcome(request_id="r") not in effects_after_restart(other)


def test_an_agents_own_system_turn_is_not_the_hosts_to_end() -> None:
    message = Message(text="x", origin=MessageOrigin(kind="systemNotification"))
    started = accepted(session(), AGENT, TurnStarted(turn_id="mine", message=message))
    assert list(pending(started)) == [RunTurn(turn_id="mine")]


def test_nothing_is_done_for_a_recording_but_to_tell_of_it() -> None:
    before = recording(session())
    started = TurnStarted(turn_id="t", message=user_message())
    after = fold(before, started)
    assert work(effects_of(session(), (started,), fold(session(), started))) == [
        RunTurn(turn_id="t")
    ]
    effects = effects_of(before, (started,), after)
    assert [type(effect) for effect in effects] == [PublishSummary]
    assert effects_after_restart(after) == ()
