"""What a mirror shows, and what becomes of its own actions while the connection holds."""

import gc

import msgspec
import pytest

from session_server.client.errors import Rejected, RequestClosed
from session_server.client.mirror import Cause, Pending, Verdict
from session_server.client.mirror_kinds import CLOSINGS, RootMirror
from session_server.schemas.ahp.actions import (
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    ModelChanged,
    RootConfigChanged,
    TitleChanged,
    TurnCancelled,
)
from session_server.schemas.ahp.commands import ROOT_CHANNEL, Snapshot
from session_server.schemas.ahp.envelopes import ActionEnvelope, ActionOrigin
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.ahp.session import (
    ConfigSchema,
    ModelSelection,
    RootConfigState,
    RootState,
)
from session_server.schemas.codec import encode
from tests.client.model_clients import Device, asking_host, completed, draft, request, submitted
from tests.sessions import OWNER, PHONE


def test_an_own_action_shows_at_once_and_is_confirmed_later(laptop: Device) -> None:
    number = laptop.dispatch(draft("Oslo"))
    assert laptop.said() == "Oslo"
    assert (laptop.mirror.confirmed.input_requests or ())[0].answers is None
    laptop.wire.settle()
    envelope = laptop.verdict(number)
    assert isinstance(envelope, ActionEnvelope)
    assert laptop.mirror.confirmed == laptop.mirror.state == laptop.host.record.public
    assert envelope.server_seq == laptop.mirror.position == laptop.host.seq
    assert [change.cause for change in laptop.changes] == [Cause.DISPATCHED, Cause.CONFIRMED]


@pytest.mark.proves("design.wire.mirror-time")
def test_a_mirror_takes_the_time_from_the_envelope(laptop: Device) -> None:
    laptop.host.clock = 77_000
    laptop.host.act(TitleChanged(title="Later"), OWNER)
    laptop.wire.settle()
    assert laptop.mirror.confirmed.summary.modified_at == 77_001
    assert laptop.mirror.confirmed == laptop.host.record.public


def test_own_actions_stay_on_top_of_what_others_do_meanwhile(laptop: Device) -> None:
    laptop.dispatch(draft("mine"))
    laptop.host.act(draft("theirs"), PHONE)
    laptop.host.act(draft("other", "q2"), PHONE)
    laptop.wire.deliver_down()
    laptop.wire.deliver_down()
    assert (laptop.said("q1"), laptop.said("q2")) == ("mine", "other")
    laptop.wire.settle()
    assert (laptop.said("q1"), laptop.said("q2")) == ("mine", "other")
    assert laptop.mirror.state == laptop.host.record.public


def test_a_refused_action_is_undone_and_its_reason_reported(laptop: Device) -> None:
    number = laptop.dispatch(submitted("too long", "q2"))
    assert laptop.said("q2") == "too long"
    position, seen = laptop.mirror.position, laptop.protocol.channels.last_seen
    laptop.wire.settle()
    assert (laptop.mirror.position, laptop.protocol.channels.last_seen) == (position, seen)
    refused = laptop.verdict(number)
    assert isinstance(refused, Rejected)
    assert not isinstance(refused, RequestClosed)
    assert "at most 2 characters" in refused.reason
    assert refused.action == laptop.actions[number]
    assert laptop.said("q2") is None
    assert laptop.changes[-1].cause is Cause.REJECTED
    assert laptop.changes[-1].reason == refused.reason


@pytest.mark.parametrize("is_same_device", [False, True])
def test_the_second_to_complete_learns_who_was_first(laptop: Device, is_same_device: bool) -> None:
    other = laptop if is_same_device else Device(laptop.host, "phone")
    first, second = laptop.dispatch(completed()), other.dispatch(completed())
    laptop.wire.settle()
    other.wire.settle()
    assert isinstance(laptop.verdict(first), ActionEnvelope)
    late = other.verdict(second)
    assert isinstance(late, RequestClosed)
    assert late.by == OWNER.author
    assert "Ana answered" in late.reason


def test_clearing_a_draft_shows_the_answer_below_it_at_once(laptop: Device) -> None:
    laptop.dispatch(submitted("Fjords"))
    laptop.wire.settle()
    laptop.dispatch(draft("Bergen"))
    cleared = InputAnswerChanged(request_id="r1", question_id="q1")
    for shown in ("Fjords", None):
        laptop.dispatch(cleared)
        assert laptop.said() == shown
        laptop.wire.settle()
        assert laptop.said() == shown
        assert laptop.mirror.state == laptop.host.record.public


@pytest.mark.parametrize("origin_on_all", [False, True])
def test_the_notes_of_a_batch_do_not_pass_for_the_action(origin_on_all: bool) -> None:
    """A completion brings a note into the turn before it."""
    host = asking_host(origin_on_all=origin_on_all)
    laptop = Device(host)
    number = laptop.dispatch(completed())
    laptop.wire.deliver_up()
    laptop.wire.deliver_down()
    assert [r.id for r in laptop.mirror.state.input_requests or ()] == ["r2"]
    assert laptop.verdicts[number] == []
    laptop.wire.settle()
    envelope = laptop.verdict(number)
    assert isinstance(envelope, ActionEnvelope)
    assert isinstance(envelope.action, InputCompleted)


def test_two_equal_actions_are_two_actions(laptop: Device) -> None:
    first, second = laptop.dispatch(draft("x")), laptop.dispatch(draft("x"))
    laptop.wire.deliver_up()
    laptop.wire.deliver_down()
    assert len(laptop.verdicts[first]) == 1
    assert laptop.verdicts[second] == []


def test_somebody_elses_numbers_are_not_ours(laptop: Device) -> None:
    phone = Device(laptop.host, "phone")
    mine, theirs = laptop.dispatch(draft("x")), phone.dispatch(draft("x"))
    phone.wire.settle()
    laptop.wire.deliver_down()
    assert len(phone.verdicts[theirs]) == 1
    assert laptop.verdicts[mine] == []


def test_a_change_that_the_host_put_off_is_confirmed_when_it_is_made(laptop: Device) -> None:
    first = laptop.dispatch(ModelChanged(model=ModelSelection(id="m1")))
    second = laptop.dispatch(ModelChanged(model=ModelSelection(id="m2")))
    laptop.wire.settle()
    assert laptop.verdicts[first] == laptop.verdicts[second] == []
    laptop.host.act(TurnCancelled(turn_id="t"), OWNER)
    laptop.wire.settle()
    for number in (first, second):
        envelope = laptop.verdict(number)
        assert isinstance(envelope, ActionEnvelope)
        assert envelope.action == ModelChanged(model=ModelSelection(id="m2"))
    assert laptop.mirror.pending == []


def test_a_closed_question_is_remembered_with_who_closed_it(laptop: Device) -> None:
    laptop.host.act(completed("r1", ResponseKind.DECLINE), PHONE)
    laptop.host.act(TurnCancelled(turn_id="t"), OWNER)
    laptop.wire.settle()
    closings = laptop.mirror.closings
    assert closings["r1"].by == PHONE.author
    assert closings["r2"].by == OWNER.author


def test_only_so_many_closed_questions_are_remembered(laptop: Device) -> None:
    for number in range(CLOSINGS + 1):
        laptop.host.act(InputRequested(request=request(f"x{number}")))
        laptop.host.act(completed(f"x{number}"), PHONE)
    laptop.wire.settle()
    assert list(laptop.mirror.closings) == [f"x{number}" for number in range(1, CLOSINGS + 1)]


def test_the_root_has_a_mirror_too() -> None:
    schema = ConfigSchema(type="object", properties={})
    state = RootState(agents=(), config=RootConfigState(schema=schema, values={}))
    snapshot = Snapshot(resource=ROOT_CHANNEL, state=msgspec.Raw(encode(state)), from_seq=5)
    mirror = RootMirror("laptop", snapshot)
    verdicts: list[Verdict] = []
    action = RootConfigChanged(config={"a": 1})
    mirror.dispatch(Pending(1, ROOT_CHANNEL, action, 0, b"", [verdicts.append]))
    assert mirror.state.config.values == {"a": 1}
    mirror.pending[0].is_sent = True
    mirror.resume([msgspec.structs.replace(snapshot, from_seq=6)])
    assert (len(mirror.pending), verdicts) == (1, [])
    origin = ActionOrigin(client_id="laptop", client_seq=1)
    envelope = ActionEnvelope(channel=ROOT_CHANNEL, action=action, server_seq=7, origin=origin)
    mirror.receive(envelope, 0)
    assert verdicts == [envelope]
    assert mirror.confirmed == mirror.state


def test_an_observer_that_nobody_holds_is_forgotten(laptop: Device) -> None:
    class Observer:
        def changed(self, _: object) -> None:
            raise AssertionError("nobody listens")

        def ended(self, _: object) -> None: ...

    observer = Observer()
    laptop.mirror.observe(observer)
    with pytest.raises(AssertionError):
        laptop.dispatch(draft("heard"))
    del observer
    gc.collect()
    laptop.mirror.reject(1, "undone")
