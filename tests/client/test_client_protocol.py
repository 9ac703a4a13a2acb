"""The client's protocol without a socket: the handshake, its bounds, and its commands."""

from typing import Any

import msgspec
import pytest

from session_server.client.client_protocol import PENDING_LIMIT, ClientProtocol, Phase, Status
from session_server.client.errors import (
    Closed,
    CommandFailed,
    ConnectionLost,
    GaveUp,
    TooLarge,
    TooManyPending,
)
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.errors import ErrorCode
from session_server.schemas.limits import FRAME_BYTES
from tests.client.model_clients import Device, asking_host, draft, from_host, heard
from tests.client.model_host import ModelSocket
from tests.sessions import PHONE, SESSION

# The handshake


def test_a_new_client_initializes_and_subscribes(laptop: Device) -> None:
    first, second = heard(laptop)
    assert isinstance(first, frames.Initialize)
    assert first.params.protocol_versions == ("1.0.0", "0.9.0", "0.3.0")
    assert first.params.initial_subscriptions == (ROOT_CHANNEL,)
    assert isinstance(second, frames.Subscribe)
    assert laptop.protocol.status == Status(Phase.LIVE)


def test_a_client_that_comes_back_asks_for_what_it_has_not_seen(laptop: Device) -> None:
    laptop.host.act(draft("seen"), PHONE)
    laptop.wire.settle()
    laptop.wire.cut()
    seen = laptop.host.seq
    laptop.host.act(draft("missed"), PHONE)
    laptop.come_back()
    (first,) = heard(laptop)
    assert isinstance(first, frames.Reconnect)
    assert first.id == 1
    assert (first.params.last_seen_server_seq, first.params.subscriptions) == (seen, (SESSION,))
    assert laptop.said() == "missed"


def test_an_unknown_client_initializes_on_the_same_socket(laptop: Device) -> None:
    laptop.wire.cut()
    laptop.host.forget_clients()
    laptop.host.act(draft("missed"), PHONE)
    laptop.come_back()
    first, second = heard(laptop)
    assert isinstance(first, frames.Reconnect)
    assert isinstance(second, frames.Initialize)
    assert second.params.initial_subscriptions == (ROOT_CHANNEL, SESSION)
    assert laptop.said() == "missed"
    assert laptop.protocol.is_live


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.UNSUPPORTED_PROTOCOL_VERSION, GaveUp),
        (ErrorCode.PERMISSION_DENIED, GaveUp),
        (ErrorCode.INTERNAL_ERROR, ConnectionLost),
    ],
)
def test_a_handshake_that_is_refused_is_given_up_unless_it_could_not_be_saved(
    code: ErrorCode, error: type[Exception]
) -> None:
    protocol = ClientProtocol("laptop", lambda: 0)
    socket = ModelSocket(asking_host())
    protocol.connected()
    socket.fail(1, code)
    with pytest.raises(error, match=code.name):
        protocol.receive(socket.out.popleft())


def test_a_client_whose_id_is_somebody_elses_by_now_gives_up(laptop: Device) -> None:
    laptop.wire.cut()
    laptop.wire.connect()
    assert laptop.wire.socket is not None
    laptop.protocol.rpc.drain()
    laptop.wire.socket.fail(1, ErrorCode.PERMISSION_DENIED)
    with pytest.raises(GaveUp, match="Connect with another client_id"):
        laptop.wire.deliver_down()


def test_a_host_that_answers_with_another_version_is_given_up() -> None:
    protocol = ClientProtocol("laptop", lambda: 0)
    protocol.connected()
    result = {"protocolVersion": "0.8.0", "serverSeq": 1, "snapshots": []}
    with pytest.raises(GaveUp, match=r"0\.8\.0"):
        protocol.receive(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": result}))


# Bounds


@pytest.mark.slow
def test_too_many_unconfirmed_actions_are_not_taken(laptop: Device) -> None:
    laptop.wire.cut()
    for number in range(PENDING_LIMIT):
        laptop.dispatch(TitleChanged(title=str(number)))
    with pytest.raises(TooManyPending):
        laptop.dispatch(TitleChanged(title="one more"))
    laptop.come_back()
    laptop.dispatch(TitleChanged(title="again"))


def test_an_action_too_large_for_a_frame_is_not_taken(laptop: Device) -> None:
    with pytest.raises(TooLarge):
        laptop.dispatch(draft("x" * FRAME_BYTES))
    assert laptop.mirror.pending == []
    number = laptop.dispatch(draft("smaller"))
    assert laptop.mirror.pending[0].client_seq == 1
    laptop.wire.settle()
    assert isinstance(laptop.verdict(number), ActionEnvelope)


# Commands


def test_a_command_fails_with_the_connection_and_at_once_without_one(laptop: Device) -> None:
    answers: list[Any] = []
    laptop.protocol.request(frames.Ping, {"channel": ROOT_CHANNEL}, answers.append)
    assert answers == []
    laptop.protocol.disconnected()
    assert [type(answer) for answer in answers] == [ConnectionLost]
    laptop.protocol.request(frames.Ping, None, answers.append)
    assert [type(answer) for answer in answers] == [ConnectionLost, ConnectionLost]


def test_an_error_answer_keeps_its_code_and_data(laptop: Device) -> None:
    answers: list[Any] = []
    laptop.protocol.request(frames.Ping, {"channel": ROOT_CHANNEL}, answers.append)
    error = {"code": -32011, "message": "taken", "data": {"by": "Bo"}}
    from_host(laptop, {"jsonrpc": "2.0", "id": 3, "error": error})
    (failed,) = answers
    assert isinstance(failed, CommandFailed)
    assert (failed.rpc_code, str(failed), failed.data) == (-32011, "taken", {"by": "Bo"})


def test_closing_tells_everybody_who_waits(laptop: Device) -> None:
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
