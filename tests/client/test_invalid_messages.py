"""Hosts that say strange things do a client no harm."""

from typing import Any

import msgspec
import pytest

from session_server.client.dialects import dialect_of
from session_server.client.errors import NotUnderstood, SessionGone
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.ahp.commands import SubscribeResult
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.errors import ErrorCode
from tests.client.model_clients import BAD_SNAPSHOT, Device, draft, envelope, from_host, heard
from tests.sessions import OWNER, SESSION, session

SUMMARY = session().public.summary


@pytest.mark.parametrize("text", [b"nonsense", b"[]", b'{"method": 5}', b'{"method": "action"}'])
def test_a_message_that_is_not_ahp_is_reported(laptop: Device, text: bytes) -> None:
    with pytest.raises(NotUnderstood):
        laptop.protocol.receive(text)


@pytest.mark.parametrize(
    "summary", [None, 5, {}, {"resource": "a:/1", "provider": "p"}, {"provider": "p", "status": []}]
)
def test_an_announcement_of_a_later_version_that_is_not_ahp_is_reported(summary: Any) -> None:
    dialect = dialect_of("1.0.0")
    for params in ({}, {"summary": summary}):
        with pytest.raises(NotUnderstood, match="is not AHP"):
            dialect.added(msgspec.json.encode(params))
    known = {"a:/1": SUMMARY}
    for params in ({}, {"session": "a:/1"}, {"session": "a:/1", "changes": 5}):
        with pytest.raises(NotUnderstood, match="is not AHP"):
            dialect.changed(msgspec.json.encode(params), known)


def test_an_action_of_a_new_kind_is_left_out(laptop: Device) -> None:
    before = laptop.mirror.state
    from_host(laptop, envelope(laptop.host, {"type": "session/blinked"}))
    laptop.wire.settle()
    assert laptop.mirror.state == before
    assert laptop.mirror.position == laptop.protocol.channels.last_seen == laptop.host.seq
    assert not isinstance(heard(laptop)[-1], frames.DispatchAction)
    assert len(heard(laptop)) == 2


def test_after_an_action_that_makes_no_sense_the_state_is_fetched(laptop: Device) -> None:
    number = laptop.dispatch(draft("on its way"))
    laptop.host.act(TitleChanged(title="real"), OWNER)
    from_host(laptop, envelope(laptop.host, {"type": "session/titleChanged", "title": 5}))
    laptop.wire.settle()
    assert isinstance(heard(laptop)[-1], frames.Subscribe)
    assert laptop.mirror.state == laptop.host.record.public
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
    laptop: Device, answer: SubscribeResult | None, error: type[Exception] | None
) -> None:
    from_host(laptop, envelope(laptop.host, {"type": "session/titleChanged", "title": 5}))
    assert laptop.wire.socket is not None
    laptop.protocol.rpc.drain()
    if answer is None:
        laptop.wire.socket.fail(3, ErrorCode.SESSION_NOT_FOUND)
    else:
        laptop.wire.socket.answer(3, answer)
    laptop.wire.deliver_down()
    assert [type(end) for end in laptop.ends] == ([] if error is None else [error])
    assert laptop.protocol.is_live


def test_a_state_that_is_being_fetched_when_the_connection_breaks_comes_with_the_next(
    laptop: Device,
) -> None:
    from_host(laptop, envelope(laptop.host, {"type": "session/titleChanged", "title": 5}))
    laptop.host.act(TitleChanged(title="real"), OWNER)
    laptop.wire.cut()
    laptop.come_back()
    assert laptop.mirror.state == laptop.host.record.public


def test_an_action_of_another_channels_kind_changes_nothing(laptop: Device) -> None:
    before = laptop.mirror.state
    from_host(
        laptop, envelope(laptop.host, {"type": "root/activeSessionsChanged", "activeSessions": 5})
    )
    assert laptop.mirror.state == before


def test_meta_of_another_host_is_passed_over(laptop: Device) -> None:
    action = {"type": "session/titleChanged", "title": "x"}
    from_host(laptop, envelope(laptop.host, action, _meta={"at": "noon"}))
    assert laptop.mirror.state.summary.title == "x"
    assert laptop.mirror.state.summary.modified_at == laptop.host.clock


@pytest.mark.parametrize(
    ("channel", "answer"),
    [
        (SESSION, SubscribeResult(snapshot=BAD_SNAPSHOT)),
        ("ahp-presence:/1", SubscribeResult()),
    ],
    ids=["a snapshot that makes no sense", "a channel without a state"],
)
def test_what_cannot_be_mirrored_ends_nothing_else(
    laptop: Device, channel: str, answer: SubscribeResult
) -> None:
    laptop.protocol.unwatch(SESSION)
    found: list[Any] = []
    laptop.protocol.watch(channel, found.append)
    laptop.protocol.rpc.drain()
    laptop.wire.socket.answer(3, answer)
    laptop.wire.deliver_down()
    assert [type(error) for error in found] == [NotUnderstood]
    assert laptop.protocol.is_live


def test_answers_that_nobody_waits_for_and_unknown_notifications_are_passed_over(
    laptop: Device,
) -> None:
    from_host(laptop, {"jsonrpc": "2.0", "id": 99, "result": None})
    from_host(laptop, {"jsonrpc": "2.0", "id": "x", "result": None})
    from_host(laptop, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "?"}})
    from_host(laptop, {"jsonrpc": "2.0", "method": "root/whatever", "params": {}})
    from_host(
        laptop, envelope(laptop.wire.host, {"type": "session/ready"}, channel="ahp-session:/9")
    )
    assert laptop.protocol.is_live
