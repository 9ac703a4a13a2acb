"""Coming back: by replay, from snapshots, and to sessions that are gone."""

from typing import Any

import msgspec
import pytest

from session_server.client.client_protocol import Phase, Status
from session_server.client.errors import (
    Closed,
    Rejected,
    RequestClosed,
    SessionGone,
    SessionNotFound,
    Unconfirmed,
)
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.actions import (
    InputAnswerChanged,
    PendingKind,
    PendingMessageSet,
    TitleChanged,
)
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.frames import SessionRemoved, SessionRemovedParams
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.errors import ErrorCode
from tests.client.model_clients import (
    Device,
    actions_sent,
    asking_host,
    completed,
    draft,
    heard,
    submitted,
)
from tests.client.model_host import ModelHost
from tests.sessions import OWNER, PHONE, SESSION, user_message

# Resuming


def test_what_a_replay_holds_is_not_sent_again(laptop: Device) -> None:
    arrived, lost = laptop.dispatch(draft("a", "q1")), laptop.dispatch(draft("b", "q2"))
    laptop.wire.deliver_up()
    laptop.wire.cut()
    laptop.come_back()
    assert actions_sent(laptop) == [laptop.actions[lost]]
    assert isinstance(laptop.verdict(arrived), ActionEnvelope)
    assert isinstance(laptop.verdict(lost), ActionEnvelope)
    assert laptop.mirror.state == laptop.host.record.public


def test_an_action_keeps_its_number_on_every_connection(laptop: Device) -> None:
    laptop.dispatch(draft("a", "q1"))
    laptop.dispatch(draft("b", "q2"))
    laptop.wire.cut()
    laptop.come_back()
    sent = [f.params.client_seq for f in heard(laptop)[1:]]
    assert sent == [1, 2]


def test_a_copy_that_arrives_late_settles_nothing_twice(laptop: Device) -> None:
    number = laptop.dispatch(completed())
    laptop.wire.cut(arriving=1)
    laptop.wire.connect()
    laptop.wire.deliver_up()
    laptop.wire.deliver_down()  # nothing in the replay: it will be sent again
    laptop.wire.deliver_late()
    laptop.wire.settle()
    assert actions_sent(laptop) == [completed()]
    envelope = laptop.verdict(number)
    assert isinstance(envelope, ActionEnvelope)
    assert envelope.meta is not None
    assert laptop.mirror.state == laptop.host.record.public


def test_offline_edits_are_sent_later_in_their_order(laptop: Device) -> None:
    laptop.wire.cut()
    laptop.dispatch(TitleChanged(title="one"))
    laptop.dispatch(draft("a"))
    laptop.dispatch(TitleChanged(title="two"))
    assert laptop.protocol.status == Status(Phase.OFFLINE, 3)
    laptop.come_back()
    assert [type(action) for action in actions_sent(laptop)] == [
        TitleChanged,
        InputAnswerChanged,
        TitleChanged,
    ]
    assert laptop.host.record.public.summary.title == "two"
    assert laptop.protocol.status == Status(Phase.LIVE)


@pytest.mark.parametrize("forgets", [False, True], ids=["by replay", "from a snapshot"])
@pytest.mark.parametrize("late", [draft("mine"), submitted("mine")], ids=["draft", "submitted"])
def test_an_answer_written_offline_does_not_replace_a_newer_one(
    laptop: Device, late: InputAnswerChanged, forgets: bool
) -> None:
    laptop.wire.cut()
    number, other = laptop.dispatch(late), laptop.dispatch(draft("x", "q2"))
    laptop.host.act(draft("newer"), PHONE)
    if forgets:
        laptop.host.forget_history()
    laptop.come_back()
    assert actions_sent(laptop) == [draft("x", "q2")]
    refused = laptop.verdict(number)
    assert isinstance(refused, Rejected)
    assert "changed elsewhere while you were offline" in refused.reason
    assert isinstance(laptop.verdict(other), ActionEnvelope)
    assert laptop.said() == "newer"
    assert laptop.mirror.state == laptop.host.record.public


@pytest.mark.parametrize("forgets", [False, True], ids=["by replay", "from a snapshot"])
@pytest.mark.parametrize("arriving", [0, 1])
def test_ones_own_earlier_draft_does_not_stop_a_later_one(forgets: bool, arriving: int) -> None:
    host = asking_host()
    host.act(submitted("before"), PHONE)
    laptop = Device(host)
    laptop.dispatch(draft("O"))
    cleared = msgspec.structs.replace(draft(""), answer=None)
    laptop.wire.cut(arriving=arriving)
    laptop.wire.deliver_late()
    laptop.dispatch(cleared)
    number = laptop.dispatch(draft("Oslo"))
    if forgets:
        host.forget_history()
    laptop.come_back()
    assert isinstance(laptop.verdict(number), ActionEnvelope)
    assert laptop.said() == "Oslo"


@pytest.mark.parametrize("is_offline", [True, False])
def test_of_drafts_written_offline_or_lost_on_their_way_only_the_last_is_sent(
    laptop: Device, is_offline: bool
) -> None:
    if is_offline:
        laptop.wire.cut()
    numbers = [laptop.dispatch(draft(text)) for text in ("O", "Os", "Oslo")]
    other = laptop.dispatch(draft("x", "q2"))
    if not is_offline:
        laptop.wire.cut()
    assert laptop.protocol.status.waiting == 2
    laptop.come_back()
    assert actions_sent(laptop) == [draft("Oslo"), draft("x", "q2")]
    assert {laptop.verdict(number) for number in numbers} == {laptop.verdict(numbers[-1])}
    assert isinstance(laptop.verdict(numbers[0]), ActionEnvelope)
    assert isinstance(laptop.verdict(other), ActionEnvelope)


def test_an_answer_written_offline_is_not_replaced_by_a_draft(laptop: Device) -> None:
    laptop.wire.cut()
    laptop.dispatch(submitted("a"))
    laptop.dispatch(draft("b"))
    laptop.come_back()
    assert actions_sent(laptop) == [submitted("a"), draft("b")]


def test_a_draft_before_a_completion_is_not_moved_behind_it(laptop: Device) -> None:
    laptop.wire.cut()
    laptop.dispatch(draft("before"))
    laptop.dispatch(completed())
    late = laptop.dispatch(draft("after"))
    laptop.come_back()
    assert actions_sent(laptop) == [draft("before"), completed(), draft("after")]
    assert isinstance(laptop.verdict(late), RequestClosed)


def test_a_completion_that_lost_meanwhile_says_who_won(laptop: Device) -> None:
    laptop.wire.cut()
    number = laptop.dispatch(completed())
    laptop.host.act(completed("r1", ResponseKind.DECLINE), PHONE)
    laptop.come_back()
    lost = laptop.verdict(number)
    assert isinstance(lost, RequestClosed)
    assert lost.by == PHONE.author
    assert not lost.is_repeated


def test_the_same_person_on_another_device_is_not_us(laptop: Device) -> None:
    laptop.dispatch(draft("so that the laptop.host has told us who we are"))
    laptop.wire.settle()
    number = laptop.dispatch(completed())
    laptop.wire.cut()
    laptop.host.act(completed(), OWNER)
    laptop.come_back()
    lost = laptop.verdict(number)
    assert isinstance(lost, RequestClosed)
    assert lost.by == OWNER.author
    assert lost.is_repeated


def test_what_was_not_written_yet_does_not_come_before_the_next_handshake(laptop: Device) -> None:
    message = PendingMessageSet(kind=PendingKind.QUEUED, id="p", message=user_message("later"))
    number = laptop.dispatch(message)
    laptop.protocol.disconnected()
    laptop.host.forget_history()
    laptop.come_back()
    assert isinstance(heard(laptop)[0], frames.Reconnect)
    assert actions_sent(laptop) == [message]
    assert isinstance(laptop.verdict(number), ActionEnvelope)


# Resuming from snapshots


def away(host: ModelHost, laptop: Device, arriving: int) -> None:
    """The connection breaks, and what happened meanwhile cannot be replayed."""
    laptop.wire.cut(arriving)
    while laptop.wire.deliver_late():
        pass
    host.act(TitleChanged(title="meanwhile"), OWNER)
    host.forget_history()


@pytest.mark.parametrize("arriving", [0, 1])
def test_an_answer_that_was_sent_and_then_replaced_is_not_reported_as_never_sent(
    laptop: Device,
    arriving: int,
) -> None:
    number = laptop.dispatch(draft("mine"))
    away(laptop.host, laptop, arriving)
    laptop.host.act(draft("newer"), PHONE)
    laptop.host.forget_history()
    laptop.come_back()
    assert actions_sent(laptop) == []
    verdict = laptop.verdict(number)
    assert isinstance(verdict, Rejected)
    assert verdict.is_repeated
    assert "may have been saved" in verdict.reason


def test_an_answer_that_a_snapshot_shows_is_confirmed_without_sending_it_again(
    laptop: Device,
) -> None:
    number = laptop.dispatch(draft("there"))
    away(laptop.host, laptop, 1)
    laptop.come_back()
    assert actions_sent(laptop) == []
    envelope = laptop.verdict(number)
    assert isinstance(envelope, ActionEnvelope)
    assert envelope.meta is None
    assert envelope.origin.client_seq == number


def test_an_answer_that_a_snapshot_lacks_is_sent_again(laptop: Device) -> None:
    number = laptop.dispatch(draft("lost"))
    away(laptop.host, laptop, 0)
    laptop.come_back()
    assert actions_sent(laptop) == [draft("lost")]
    assert isinstance(laptop.verdict(number), ActionEnvelope)


def test_an_own_completion_that_counted_is_a_success_though_it_is_refused_the_second_time(
    laptop: Device,
) -> None:
    laptop.dispatch(draft("so that the laptop.host has told us who we are"))
    laptop.wire.settle()
    number = laptop.dispatch(completed())
    away(laptop.host, laptop, 1)
    laptop.come_back()
    assert actions_sent(laptop) == [completed()]
    envelope = laptop.verdict(number)
    assert isinstance(envelope, ActionEnvelope)
    assert envelope.action == completed()


@pytest.mark.parametrize("response", [ResponseKind.ACCEPT, ResponseKind.DECLINE])
def test_a_completion_of_somebody_else_is_not_taken_for_ours(
    laptop: Device, response: ResponseKind
) -> None:
    laptop.dispatch(draft("so that the laptop.host has told us who we are"))
    laptop.wire.settle()
    number = laptop.dispatch(completed())
    laptop.wire.cut()
    laptop.host.act(completed("r1", response), PHONE)
    laptop.host.forget_history()
    laptop.come_back()
    lost = laptop.verdict(number)
    assert isinstance(lost, RequestClosed)
    assert lost.is_repeated
    assert "Bo" in lost.reason


def test_what_must_not_happen_twice_is_reported_as_unconfirmed(laptop: Device) -> None:
    message = PendingMessageSet(kind=PendingKind.QUEUED, id="p", message=user_message("later"))
    number = laptop.dispatch(message)
    laptop.wire.deliver_up()
    laptop.host.record = msgspec.structs.replace(
        laptop.host.record,
        public=msgspec.structs.replace(laptop.host.record.public, queued_messages=None),
    )
    away(laptop.host, laptop, 0)
    laptop.come_back()
    assert actions_sent(laptop) == []
    unknown = laptop.verdict(number)
    assert isinstance(unknown, Unconfirmed)
    assert unknown.action == message


def test_what_was_never_sent_is_sent_after_a_snapshot_whatever_it_is(laptop: Device) -> None:
    away(laptop.host, laptop, 0)
    message = PendingMessageSet(kind=PendingKind.QUEUED, id="p", message=user_message("later"))
    number = laptop.dispatch(message)
    laptop.come_back()
    assert isinstance(laptop.verdict(number), ActionEnvelope)


def test_a_host_that_counts_from_elsewhere_is_followed(laptop: Device) -> None:
    """A restored backup: positions are lower than those that we know."""
    for text in "abcdef":
        laptop.host.act(draft(text), PHONE)
    laptop.wire.settle()
    laptop.wire.cut()
    restored = asking_host()
    restored.known.add("laptop")
    laptop.wire.host = restored
    laptop.come_back()
    assert laptop.mirror.position == laptop.protocol.channels.last_seen == restored.seq
    restored.act(draft("new"), PHONE)
    laptop.wire.settle()
    assert laptop.said() == "new"


# Leaving and losing sessions


def test_a_session_that_is_disposed_of_ends_its_mirror(laptop: Device) -> None:
    number = laptop.dispatch(draft("x"))
    assert laptop.wire.socket is not None
    params = SessionRemovedParams(channel=ROOT_CHANNEL, session=SESSION)
    laptop.wire.socket.send(SessionRemoved(params=params))
    laptop.wire.deliver_down()
    assert isinstance(laptop.verdict(number), SessionGone)
    assert [type(error) for error in laptop.ends] == [SessionGone]
    with pytest.raises(SessionGone):
        laptop.dispatch(draft("y"))


def test_a_session_that_vanished_while_we_were_away_ends_its_mirror(laptop: Device) -> None:
    laptop.wire.cut()
    number = laptop.dispatch(draft("x"))
    laptop.wire.connect()
    assert laptop.wire.socket is not None
    laptop.wire.deliver_up()
    laptop.wire.socket.out.clear()
    result = {"type": "replay", "actions": [], "missing": [SESSION]}
    laptop.wire.socket.answer(1, result)
    laptop.wire.deliver_down()
    laptop.protocol.rpc.drain()
    laptop.wire.socket.fail(2, ErrorCode.SESSION_NOT_FOUND)
    laptop.wire.settle()
    assert isinstance(laptop.verdict(number), SessionGone)
    assert laptop.protocol.is_live


def test_a_channel_without_a_snapshot_is_gone(laptop: Device) -> None:
    laptop.wire.cut()
    laptop.wire.connect()
    assert laptop.wire.socket is not None
    laptop.wire.deliver_up()
    laptop.wire.socket.out.clear()
    laptop.wire.socket.answer(1, {"type": "snapshot", "snapshots": []})
    laptop.wire.settle()
    assert [type(error) for error in laptop.ends] == [SessionGone]


def test_leaving_unsubscribes_once_the_last_one_has_left(laptop: Device) -> None:
    laptop.protocol.watch(SESSION, lambda _: None)
    laptop.protocol.unwatch(SESSION)
    laptop.wire.settle()
    assert laptop.ends == []
    laptop.protocol.unwatch(SESSION)
    laptop.wire.settle()
    assert isinstance(heard(laptop)[-1], frames.Unsubscribe)
    assert [type(error) for error in laptop.ends] == [Closed]


def test_leaving_during_a_handshake_unsubscribes_after_it(laptop: Device) -> None:
    laptop.wire.cut()
    laptop.wire.connect()
    laptop.wire.deliver_up()
    laptop.protocol.unwatch(SESSION)
    laptop.wire.settle()
    assert isinstance(heard(laptop)[-1], frames.Unsubscribe)
    assert SESSION not in laptop.wire.socket.watched


def test_leaving_before_the_answer_unsubscribes_after_it(laptop: Device) -> None:
    laptop.protocol.unwatch(SESSION)
    found: list[Any] = []
    laptop.protocol.watch(SESSION, found.append)
    laptop.protocol.unwatch(SESSION)
    laptop.wire.settle()
    assert isinstance(heard(laptop)[-1], frames.Unsubscribe)
    assert SESSION not in laptop.protocol.channels.mirrors


def test_a_subscription_that_a_broken_connection_left_open_is_asked_for_again(
    laptop: Device,
) -> None:
    laptop.protocol.unwatch(SESSION)
    found: list[Any] = []
    laptop.protocol.watch(SESSION, found.append)
    laptop.wire.cut()
    assert found == []
    laptop.come_back()
    (mirror,) = found
    assert mirror.state == laptop.host.record.public


def test_an_unknown_session_is_not_found(laptop: Device) -> None:
    found: list[Any] = []
    laptop.protocol.watch("ahp-session:/none", found.append)
    assert laptop.wire.socket is not None
    (frame,) = laptop.protocol.rpc.drain()
    laptop.wire.socket.fail(msgspec.json.decode(frame)["id"], ErrorCode.SESSION_NOT_FOUND)
    laptop.wire.settle()
    assert [type(error) for error in found] == [SessionNotFound]
