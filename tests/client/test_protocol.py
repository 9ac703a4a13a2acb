"""The client's side of the protocol: handshakes, resuming, and hosts that misbehave."""

from typing import Any

import msgspec
import pytest

from session_server.client.errors import (
    Closed,
    CommandFailed,
    ConnectionLost,
    GaveUp,
    NotUnderstood,
    RequestClosed,
    SessionGone,
    SessionNotFound,
    TooLarge,
    TooManyPending,
    Unconfirmed,
)
from session_server.client.mirror import Cause
from session_server.client.protocol import PENDING_LIMIT, ClientProtocol
from session_server.client.status import Phase, Status
from session_server.schemas import frames
from session_server.schemas.actions import (
    InputAnswerChanged,
    PendingKind,
    PendingMessageSet,
    TitleChanged,
)
from session_server.schemas.commands import ROOT_CHANNEL, Snapshot, SubscribeResult
from session_server.schemas.envelopes import ActionEnvelope
from session_server.schemas.errors import ErrorCode
from session_server.schemas.frames import SessionRemoved, SessionRemovedParams
from session_server.schemas.limits import FRAME_BYTES
from session_server.schemas.questions import ResponseKind
from tests.client.devices import Device, asking_host, completed, draft, submitted
from tests.client.model import ModelHost, ModelSocket
from tests.sessions import OWNER, PHONE, SESSION, user_message

BAD_SNAPSHOT = Snapshot(resource=SESSION, state=msgspec.Raw(b'{"turns": 5}'), from_seq=1)


def heard(device: Device) -> list[Any]:
    assert device.wire.socket is not None
    return device.wire.socket.heard


def actions_sent(device: Device) -> list[Any]:
    return [f.params.action for f in heard(device) if isinstance(f, frames.AgentDispatchAction)]


# The handshake


def test_a_new_client_initializes_and_subscribes() -> None:
    laptop = Device(asking_host())
    first, second = heard(laptop)
    assert isinstance(first, frames.Initialize)
    assert first.params.protocol_versions == ("0.3.0",)
    assert first.params.initial_subscriptions == (ROOT_CHANNEL,)
    assert isinstance(second, frames.Subscribe)
    assert laptop.protocol.status == Status(Phase.LIVE)


def test_a_client_that_comes_back_asks_for_what_it_has_not_seen() -> None:
    host = asking_host()
    laptop = Device(host)
    host.act(draft("seen"), PHONE)
    laptop.wire.settle()
    laptop.wire.cut()
    seen = host.seq
    host.act(draft("missed"), PHONE)
    laptop.come_back()
    (first,) = heard(laptop)
    assert isinstance(first, frames.Reconnect)
    assert first.id == 1
    assert (first.params.last_seen_server_seq, first.params.subscriptions) == (seen, (SESSION,))
    assert laptop.said() == "missed"


def test_an_unknown_client_initializes_on_the_same_socket() -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.wire.cut()
    host.forget_clients()
    host.act(draft("missed"), PHONE)
    laptop.come_back()
    first, second = heard(laptop)
    assert isinstance(first, frames.Reconnect)
    assert isinstance(second, frames.Initialize)
    assert second.params.initial_subscriptions == (ROOT_CHANNEL, SESSION)
    assert laptop.said() == "missed"
    assert laptop.protocol.is_live


@pytest.mark.parametrize(
    "code", [ErrorCode.UNSUPPORTED_PROTOCOL_VERSION, ErrorCode.PERMISSION_DENIED]
)
def test_a_handshake_that_is_refused_for_good_is_given_up(code: ErrorCode) -> None:
    protocol = ClientProtocol("laptop", lambda: 0)
    socket = ModelSocket(asking_host())
    protocol.connected()
    socket.fail(1, code)
    with pytest.raises(GaveUp, match=code.name):
        protocol.receive(socket.out.popleft())


def test_a_client_whose_id_is_somebody_elses_by_now_gives_up() -> None:
    laptop = Device(asking_host())
    laptop.wire.cut()
    laptop.wire.connect()
    assert laptop.wire.socket is not None
    laptop.protocol.take()
    laptop.wire.socket.fail(1, ErrorCode.PERMISSION_DENIED)
    with pytest.raises(GaveUp):
        laptop.wire.deliver_down()


def test_a_handshake_that_could_not_be_saved_is_tried_again() -> None:
    protocol = ClientProtocol("laptop", lambda: 0)
    socket = ModelSocket(asking_host())
    protocol.connected()
    socket.fail(1, ErrorCode.INTERNAL_ERROR)
    with pytest.raises(ConnectionLost):
        protocol.receive(socket.out.popleft())


def test_a_host_that_answers_with_another_version_is_given_up() -> None:
    protocol = ClientProtocol("laptop", lambda: 0)
    protocol.connected()
    result = {"protocolVersion": "0.9.0", "serverSeq": 1, "snapshots": []}
    with pytest.raises(GaveUp, match=r"0\.9\.0"):
        protocol.receive(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": result}))


# Resuming


def test_what_a_replay_holds_is_not_sent_again() -> None:
    host = asking_host()
    laptop = Device(host)
    arrived, lost = laptop.dispatch(draft("a", "q1")), laptop.dispatch(draft("b", "q2"))
    laptop.wire.deliver_up()
    laptop.wire.cut()
    laptop.come_back()
    assert actions_sent(laptop) == [laptop.actions[lost]]
    assert isinstance(laptop.verdict(arrived), ActionEnvelope)
    assert isinstance(laptop.verdict(lost), ActionEnvelope)
    assert laptop.mirror.state == host.record.public


def test_an_action_keeps_its_number_on_every_connection() -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.dispatch(draft("a", "q1"))
    laptop.dispatch(draft("b", "q2"))
    laptop.wire.cut()
    laptop.come_back()
    sent = [f.params.client_seq for f in heard(laptop)[1:]]
    assert sent == [1, 2]


def test_a_copy_that_arrives_late_settles_nothing_twice() -> None:
    host = asking_host()
    laptop = Device(host)
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
    assert laptop.mirror.state == host.record.public


def test_offline_edits_are_sent_later_in_their_order() -> None:
    host = asking_host()
    laptop = Device(host)
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
    assert host.record.public.summary.title == "two"
    assert laptop.protocol.status == Status(Phase.LIVE)


def test_of_drafts_written_offline_only_the_last_is_sent() -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.wire.cut()
    numbers = [laptop.dispatch(draft(text)) for text in ("O", "Os", "Oslo")]
    other = laptop.dispatch(draft("x", "q2"))
    assert laptop.protocol.status.waiting == 2
    laptop.come_back()
    assert actions_sent(laptop) == [draft("Oslo"), draft("x", "q2")]
    assert {laptop.verdict(number) for number in numbers} == {laptop.verdict(numbers[-1])}
    assert isinstance(laptop.verdict(other), ActionEnvelope)


def test_drafts_that_were_on_their_way_are_sent_again_only_in_their_last_version() -> None:
    host = asking_host()
    laptop = Device(host)
    for text in ("O", "Os", "Oslo"):
        laptop.dispatch(draft(text))
    laptop.wire.cut()
    laptop.come_back()
    assert actions_sent(laptop) == [draft("Oslo")]
    assert all(isinstance(laptop.verdict(n), ActionEnvelope) for n in (1, 2, 3))


def test_an_answer_written_offline_is_not_replaced_by_a_draft() -> None:
    laptop = Device(asking_host())
    laptop.wire.cut()
    laptop.dispatch(submitted("a"))
    laptop.dispatch(draft("b"))
    laptop.come_back()
    assert actions_sent(laptop) == [submitted("a"), draft("b")]


def test_a_draft_before_a_completion_is_not_moved_behind_it() -> None:
    laptop = Device(asking_host())
    laptop.wire.cut()
    laptop.dispatch(draft("before"))
    laptop.dispatch(completed())
    late = laptop.dispatch(draft("after"))
    laptop.come_back()
    assert actions_sent(laptop) == [draft("before"), completed(), draft("after")]
    assert isinstance(laptop.verdict(late), RequestClosed)


def test_a_completion_that_lost_meanwhile_says_who_won() -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.wire.cut()
    number = laptop.dispatch(completed())
    host.act(completed("r1", ResponseKind.DECLINE), PHONE)
    laptop.come_back()
    lost = laptop.verdict(number)
    assert isinstance(lost, RequestClosed)
    assert lost.by == PHONE.author
    assert not lost.is_repeated


def test_the_same_person_on_another_device_is_not_us() -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.dispatch(draft("so that the host has told us who we are"))
    laptop.wire.settle()
    number = laptop.dispatch(completed())
    laptop.wire.cut()
    host.act(completed(), OWNER)
    laptop.come_back()
    lost = laptop.verdict(number)
    assert isinstance(lost, RequestClosed)
    assert lost.by == OWNER.author
    assert lost.is_repeated


def test_what_was_not_written_yet_does_not_come_before_the_next_handshake() -> None:
    host = asking_host()
    laptop = Device(host)
    message = PendingMessageSet(kind=PendingKind.QUEUED, id="p", message=user_message("later"))
    number = laptop.dispatch(message)
    laptop.protocol.disconnected()
    host.forget_history()
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


def test_a_client_that_was_away_too_long_goes_on_from_a_snapshot() -> None:
    host = asking_host()
    laptop = Device(host)
    away(host, laptop, 0)
    laptop.come_back()
    assert laptop.mirror.state == host.record.public
    assert laptop.changes[-1].cause is Cause.SNAPSHOT
    assert laptop.protocol.channels.last_seen == host.seq


def test_an_answer_that_a_snapshot_shows_is_confirmed_without_sending_it_again() -> None:
    host = asking_host()
    laptop = Device(host)
    number = laptop.dispatch(draft("there"))
    away(host, laptop, 1)
    laptop.come_back()
    assert actions_sent(laptop) == []
    envelope = laptop.verdict(number)
    assert isinstance(envelope, ActionEnvelope)
    assert envelope.meta is None
    assert envelope.origin is not None
    assert envelope.origin.client_seq == number


def test_an_answer_that_a_snapshot_lacks_is_sent_again() -> None:
    host = asking_host()
    laptop = Device(host)
    number = laptop.dispatch(draft("lost"))
    away(host, laptop, 0)
    laptop.come_back()
    assert actions_sent(laptop) == [draft("lost")]
    assert isinstance(laptop.verdict(number), ActionEnvelope)


def test_an_own_completion_that_counted_is_a_success_though_it_is_refused_the_second_time() -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.dispatch(draft("so that the host has told us who we are"))
    laptop.wire.settle()
    number = laptop.dispatch(completed())
    away(host, laptop, 1)
    laptop.come_back()
    assert actions_sent(laptop) == [completed()]
    envelope = laptop.verdict(number)
    assert isinstance(envelope, ActionEnvelope)
    assert envelope.action == completed()


@pytest.mark.parametrize("response", [ResponseKind.ACCEPT, ResponseKind.DECLINE])
def test_a_completion_of_somebody_else_is_not_taken_for_ours(response: ResponseKind) -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.dispatch(draft("so that the host has told us who we are"))
    laptop.wire.settle()
    number = laptop.dispatch(completed())
    laptop.wire.cut()
    host.act(completed("r1", response), PHONE)
    host.forget_history()
    laptop.come_back()
    lost = laptop.verdict(number)
    assert isinstance(lost, RequestClosed)
    assert lost.is_repeated
    assert "Bo" in lost.reason


def test_what_must_not_happen_twice_is_reported_as_unconfirmed() -> None:
    host = asking_host()
    laptop = Device(host)
    message = PendingMessageSet(kind=PendingKind.QUEUED, id="p", message=user_message("later"))
    number = laptop.dispatch(message)
    laptop.wire.deliver_up()
    host.record = msgspec.structs.replace(
        host.record, public=msgspec.structs.replace(host.record.public, queued_messages=None)
    )
    away(host, laptop, 0)
    laptop.come_back()
    assert actions_sent(laptop) == []
    unknown = laptop.verdict(number)
    assert isinstance(unknown, Unconfirmed)
    assert unknown.action == message


def test_what_was_never_sent_is_sent_after_a_snapshot_whatever_it_is() -> None:
    host = asking_host()
    laptop = Device(host)
    away(host, laptop, 0)
    message = PendingMessageSet(kind=PendingKind.QUEUED, id="p", message=user_message("later"))
    number = laptop.dispatch(message)
    laptop.come_back()
    assert isinstance(laptop.verdict(number), ActionEnvelope)


def test_a_host_that_counts_from_elsewhere_is_followed() -> None:
    """A restored backup: positions are lower than those that we know."""
    host = asking_host()
    laptop = Device(host)
    for text in "abcdef":
        host.act(draft(text), PHONE)
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


def test_a_session_that_is_disposed_of_ends_its_mirror() -> None:
    laptop = Device(asking_host())
    number = laptop.dispatch(draft("x"))
    assert laptop.wire.socket is not None
    params = SessionRemovedParams(channel=ROOT_CHANNEL, session=SESSION)
    laptop.wire.socket.send(SessionRemoved(params=params))
    laptop.wire.deliver_down()
    assert isinstance(laptop.verdict(number), SessionGone)
    assert [type(error) for error in laptop.ends] == [SessionGone]
    with pytest.raises(SessionGone):
        laptop.dispatch(draft("y"))


def test_a_session_that_vanished_while_we_were_away_ends_its_mirror() -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.wire.cut()
    number = laptop.dispatch(draft("x"))
    laptop.wire.connect()
    assert laptop.wire.socket is not None
    laptop.wire.deliver_up()
    laptop.wire.socket.out.clear()
    result = {"type": "replay", "actions": [], "missing": [SESSION]}
    laptop.wire.socket.answer(1, result)
    laptop.wire.settle()
    assert isinstance(laptop.verdict(number), SessionGone)
    assert laptop.protocol.is_live


def test_a_channel_without_a_snapshot_is_gone() -> None:
    laptop = Device(asking_host())
    laptop.wire.cut()
    laptop.wire.connect()
    assert laptop.wire.socket is not None
    laptop.wire.deliver_up()
    laptop.wire.socket.out.clear()
    laptop.wire.socket.answer(1, {"type": "snapshot", "snapshots": []})
    laptop.wire.settle()
    assert [type(error) for error in laptop.ends] == [SessionGone]


def test_leaving_unsubscribes_once_the_last_one_has_left() -> None:
    laptop = Device(asking_host())
    laptop.protocol.watch(SESSION, lambda _: None)
    laptop.protocol.unwatch(SESSION)
    laptop.wire.settle()
    assert laptop.ends == []
    laptop.protocol.unwatch(SESSION)
    laptop.wire.settle()
    assert isinstance(heard(laptop)[-1], frames.Unsubscribe)
    assert [type(error) for error in laptop.ends] == [Closed]


def test_leaving_during_a_handshake_unsubscribes_after_it() -> None:
    laptop = Device(asking_host())
    laptop.wire.cut()
    laptop.wire.connect()
    laptop.wire.deliver_up()
    laptop.protocol.unwatch(SESSION)
    laptop.wire.settle()
    assert isinstance(heard(laptop)[-1], frames.Unsubscribe)
    assert laptop.wire.socket is not None
    assert not laptop.wire.socket.is_subscribed


def test_leaving_before_the_answer_unsubscribes_after_it() -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.protocol.unwatch(SESSION)
    found: list[Any] = []
    laptop.protocol.watch(SESSION, found.append)
    laptop.protocol.unwatch(SESSION)
    laptop.wire.settle()
    assert isinstance(heard(laptop)[-1], frames.Unsubscribe)
    assert SESSION not in laptop.protocol.channels.mirrors


def test_a_subscription_that_a_broken_connection_left_open_is_asked_for_again() -> None:
    host = asking_host()
    laptop = Device(host)
    laptop.protocol.unwatch(SESSION)
    found: list[Any] = []
    laptop.protocol.watch(SESSION, found.append)
    laptop.wire.cut()
    assert found == []
    laptop.come_back()
    (mirror,) = found
    assert mirror.state == host.record.public


def test_an_unknown_session_is_not_found() -> None:
    laptop = Device(asking_host())
    found: list[Any] = []
    laptop.protocol.watch("ahp-session:/none", found.append)
    assert laptop.wire.socket is not None
    (frame,) = laptop.protocol.take()
    laptop.wire.socket.fail(msgspec.json.decode(frame)["id"], ErrorCode.SESSION_NOT_FOUND)
    laptop.wire.settle()
    assert [type(error) for error in found] == [SessionNotFound]


# Bounds


def test_too_many_unconfirmed_actions_are_not_taken() -> None:
    laptop = Device(asking_host())
    laptop.wire.cut()
    for number in range(PENDING_LIMIT):
        laptop.dispatch(TitleChanged(title=str(number)))
    with pytest.raises(TooManyPending):
        laptop.dispatch(TitleChanged(title="one more"))
    laptop.come_back()
    laptop.dispatch(TitleChanged(title="again"))


def test_an_action_too_large_for_a_frame_is_not_taken() -> None:
    laptop = Device(asking_host())
    with pytest.raises(TooLarge):
        laptop.dispatch(draft("x" * FRAME_BYTES))
    assert laptop.mirror.pending == []
    number = laptop.dispatch(draft("smaller"))
    assert laptop.mirror.pending[0].client_seq == 1
    laptop.wire.settle()
    assert isinstance(laptop.verdict(number), ActionEnvelope)


# Hosts that say strange things


def from_host(device: Device, message: Any) -> None:
    device.protocol.receive(msgspec.json.encode(message))


def envelope(host: ModelHost, action: Any, **fields: Any) -> dict[str, Any]:
    host.seq += 1
    host.states[host.seq] = host.record.public
    params = {"channel": SESSION, "action": action, "serverSeq": host.seq, **fields}
    return {"jsonrpc": "2.0", "method": "action", "params": params}


@pytest.mark.parametrize("text", [b"nonsense", b"[]", b'{"method": 5}', b'{"method": "action"}'])
def test_what_is_not_ahp_is_said_to_be_so(text: bytes) -> None:
    laptop = Device(asking_host())
    with pytest.raises(NotUnderstood):
        laptop.protocol.receive(text)


def test_an_action_of_a_new_kind_is_left_out() -> None:
    host = asking_host()
    laptop = Device(host)
    before = laptop.mirror.state
    from_host(laptop, envelope(host, {"type": "session/blinked"}))
    laptop.wire.settle()
    assert laptop.mirror.state == before
    assert laptop.mirror.position == laptop.protocol.channels.last_seen == host.seq
    assert not isinstance(heard(laptop)[-1], frames.DispatchAction)
    assert len(heard(laptop)) == 2


def test_after_an_action_that_makes_no_sense_the_state_is_fetched() -> None:
    host = asking_host()
    laptop = Device(host)
    number = laptop.dispatch(draft("on its way"))
    host.act(TitleChanged(title="real"), OWNER)
    from_host(laptop, envelope(host, {"type": "session/titleChanged", "title": 5}))
    laptop.wire.settle()
    assert isinstance(heard(laptop)[-1], frames.Subscribe)
    assert laptop.mirror.state == host.record.public
    assert isinstance(laptop.verdict(number), ActionEnvelope)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, SessionGone),
        (SubscribeResult(snapshot=BAD_SNAPSHOT), NotUnderstood),
        (SubscribeResult(), None),
    ],
)
def test_a_state_that_cannot_be_fetched_ends_its_session(
    answer: SubscribeResult | None, error: type[Exception] | None
) -> None:
    host = asking_host()
    laptop = Device(host)
    from_host(laptop, envelope(host, {"type": "session/titleChanged", "title": 5}))
    assert laptop.wire.socket is not None
    laptop.protocol.take()
    if answer is None:
        laptop.wire.socket.fail(3, ErrorCode.SESSION_NOT_FOUND)
    else:
        laptop.wire.socket.answer(3, answer)
    laptop.wire.deliver_down()
    assert [type(end) for end in laptop.ends] == ([] if error is None else [error])
    assert laptop.protocol.is_live


def test_a_state_that_is_being_fetched_when_the_connection_breaks_comes_with_the_next() -> None:
    host = asking_host()
    laptop = Device(host)
    from_host(laptop, envelope(host, {"type": "session/titleChanged", "title": 5}))
    host.act(TitleChanged(title="real"), OWNER)
    laptop.wire.cut()
    laptop.come_back()
    assert laptop.mirror.state == host.record.public


def test_an_action_of_another_channels_kind_changes_nothing() -> None:
    host = asking_host()
    laptop = Device(host)
    before = laptop.mirror.state
    from_host(laptop, envelope(host, {"type": "root/activeSessionsChanged", "activeSessions": 5}))
    assert laptop.mirror.state == before


def test_meta_of_another_host_is_passed_over() -> None:
    host = asking_host()
    laptop = Device(host)
    action = {"type": "session/titleChanged", "title": "x"}
    from_host(laptop, envelope(host, action, _meta={"at": "noon"}))
    assert laptop.mirror.state.summary.title == "x"
    assert laptop.mirror.state.summary.modified_at == host.clock


def test_a_snapshot_that_makes_no_sense_ends_only_its_session() -> None:
    laptop = Device(asking_host())
    laptop.protocol.unwatch(SESSION)
    found: list[Any] = []
    laptop.protocol.watch(SESSION, found.append)
    laptop.wire.deliver_up()
    laptop.wire.deliver_up()
    assert laptop.wire.socket is not None
    laptop.wire.socket.out.clear()
    laptop.wire.socket.answer(3, SubscribeResult(snapshot=BAD_SNAPSHOT))
    laptop.wire.deliver_down()
    assert [type(error) for error in found] == [NotUnderstood]
    assert laptop.protocol.is_live


def test_a_stateless_channel_cannot_be_mirrored() -> None:
    laptop = Device(asking_host())
    found: list[Any] = []
    laptop.protocol.watch("ahp-presence:/1", found.append)
    laptop.protocol.take()
    assert laptop.wire.socket is not None
    laptop.wire.socket.answer(3, SubscribeResult())
    laptop.wire.settle()
    assert [type(error) for error in found] == [NotUnderstood]


def test_answers_that_nobody_waits_for_and_unknown_notifications_are_passed_over() -> None:
    laptop = Device(asking_host())
    from_host(laptop, {"jsonrpc": "2.0", "id": 99, "result": None})
    from_host(laptop, {"jsonrpc": "2.0", "id": "x", "result": None})
    from_host(laptop, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "?"}})
    from_host(laptop, {"jsonrpc": "2.0", "method": "root/whatever", "params": {}})
    from_host(
        laptop, envelope(laptop.wire.host, {"type": "session/ready"}, channel="ahp-session:/9")
    )
    assert laptop.protocol.is_live


# Commands


def test_a_command_without_a_connection_fails_now() -> None:
    laptop = Device(asking_host())
    laptop.wire.cut()
    answers: list[Any] = []
    laptop.protocol.request(frames.Ping, None, answers.append)
    assert [type(answer) for answer in answers] == [ConnectionLost]


def test_a_command_under_way_fails_with_the_connection() -> None:
    laptop = Device(asking_host())
    answers: list[Any] = []
    params = {"channel": ROOT_CHANNEL}
    laptop.protocol.request(frames.Ping, params, answers.append)
    laptop.protocol.disconnected()
    assert [type(answer) for answer in answers] == [ConnectionLost]


def test_an_error_answer_keeps_its_code_and_data() -> None:
    laptop = Device(asking_host())
    answers: list[Any] = []
    laptop.protocol.request(frames.Ping, {"channel": ROOT_CHANNEL}, answers.append)
    error = {"code": -32011, "message": "taken", "data": {"by": "Bo"}}
    from_host(laptop, {"jsonrpc": "2.0", "id": 3, "error": error})
    (failed,) = answers
    assert isinstance(failed, CommandFailed)
    assert (failed.code, str(failed), failed.data) == (-32011, "taken", {"by": "Bo"})


def test_closing_tells_everybody_who_waits() -> None:
    laptop = Device(asking_host())
    number = laptop.dispatch(draft("x"))
    answers: list[Any] = []
    laptop.protocol.request(frames.Ping, {"channel": ROOT_CHANNEL}, answers.append)
    found: list[Any] = []
    laptop.protocol.watch("ahp-session:/2", found.append)
    error = GaveUp("enough")
    laptop.protocol.close(error)
    laptop.protocol.close(GaveUp("twice"))
    assert [laptop.verdict(number), *answers, *found, *laptop.ends] == [error] * 4
    assert laptop.protocol.status == Status(Phase.CLOSED)
    late: list[Any] = []
    laptop.protocol.watch(SESSION, late.append)
    laptop.protocol.request(frames.Ping, None, late.append)
    assert late == [error, error]
    with pytest.raises(GaveUp):
        laptop.dispatch(draft("y"))


def test_the_status_says_how_many_actions_wait() -> None:
    protocol = ClientProtocol("laptop", lambda: 0)
    assert str(protocol.status) == "connecting"
    laptop = Device(asking_host())
    assert str(laptop.protocol.status) == "live"
    laptop.dispatch(draft("x"))
    assert str(laptop.protocol.status) == "syncing 1"
    laptop.wire.cut()
    assert str(laptop.protocol.status) == "offline, 1 waiting"
    laptop.come_back()
    assert str(laptop.protocol.status) == "live"
    laptop.wire.cut()
    assert str(laptop.protocol.status) == "offline"
    laptop.protocol.close(Closed("bye"))
    assert str(laptop.protocol.status) == "closed"
