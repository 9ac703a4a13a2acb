"""Whatever happens between a client and its host, the client's copy is true, and then complete."""

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from session_server.client.conversations import after
from session_server.client.errors import Rejected, Unconfirmed
from session_server.client.mirror import Pending, Verdict
from session_server.client.mirror_kinds import predicted
from session_server.reducers.state.session import reduce_session
from session_server.schemas.ahp.actions import (
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    IsReadChanged,
    ModelChanged,
    PendingKind,
    PendingMessageSet,
    ResponsePartAdded,
    SessionAction,
    TitleChanged,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnStarted,
)
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.questions import Draft, ResponseKind, Skipped, Submitted, TextValue
from session_server.schemas.ahp.session import ModelSelection
from session_server.schemas.ahp.turns import MarkdownPart
from session_server.schemas.codec import encode
from tests.client.ahp1_model import Ahp1ModelHost
from tests.client.model_clients import REQUESTS, Device, asking_host, draft, request
from tests.sessions import OWNER, asking, user_message

CLIENTS = ("laptop", "phone")

clients = st.sampled_from(CLIENTS)
request_ids = st.sampled_from(REQUESTS)
values = st.sampled_from(("", "a", "b", "long")).map(lambda text: TextValue(value=text))
answers = st.one_of(
    st.none(),
    st.builds(Draft, value=values),
    st.builds(Draft, value=values),
    st.builds(Submitted, value=values),
    st.just(Skipped()),
)
answer_changes = st.builds(
    InputAnswerChanged,
    request_id=request_ids,
    question_id=st.sampled_from(("q1", "q2", "q3")),
    answer=answers,
)
completions = st.builds(
    InputCompleted,
    request_id=request_ids,
    response=st.sampled_from(ResponseKind),
    answers=st.one_of(
        st.none(),
        st.dictionaries(st.sampled_from(("q1", "q2")), st.builds(Submitted, value=values)),
    ),
)
turn_ids = st.sampled_from(("t", "t1", "t2", "t3"))
other_changes: st.SearchStrategy[SessionAction] = st.one_of(
    st.builds(TitleChanged, title=st.sampled_from(("one", "two"))),
    st.builds(ModelChanged, model=st.builds(ModelSelection, id=st.sampled_from(("m1", "m2")))),
    st.builds(IsReadChanged, is_read=st.booleans()),
    st.builds(TurnStarted, turn_id=turn_ids, message=st.just(user_message())),
    st.builds(TurnCancelled, turn_id=turn_ids),
    st.builds(Truncated, turn_id=st.one_of(st.none(), turn_ids)),
    st.builds(
        PendingMessageSet,
        kind=st.sampled_from(PendingKind),
        id=st.sampled_from(("p1", "p2")),
        message=st.just(user_message("later")),
    ),
)
own_actions = st.one_of(answer_changes, answer_changes, completions, other_changes)


class Conversation(RuleBasedStateMachine):
    @initialize(origin_on_all=st.booleans(), overlap=st.integers(0, 3))
    def begin(self, origin_on_all: bool, overlap: int) -> None:
        self.host = asking_host(origin_on_all=origin_on_all, overlap=overlap)
        self.devices = {client_id: Device(self.host, client_id) for client_id in CLIENTS}

    @property
    def log(self) -> list[Any]:
        return self.host.log

    # What clients and the host do

    @rule(client=clients, actions=st.lists(own_actions, min_size=1, max_size=4))
    def dispatch(self, client: str, actions: list[SessionAction]) -> None:
        for action in actions:
            self.devices[client].dispatch(action)

    @rule(client=clients, question=st.sampled_from(("q1", "q2")), typed=st.text("ab", max_size=4))
    def type(self, client: str, question: str, typed: str) -> None:
        for end in range(len(typed) + 1):
            self.devices[client].dispatch(draft(typed[:end], question))

    @rule(request_id=st.sampled_from((*REQUESTS, "r3", "r4")))
    def ask(self, request_id: str) -> None:
        self.host.act(InputRequested(request=request(request_id)))

    @rule(text=st.sampled_from(("x", None)))
    def go_on(self, text: str | None) -> None:
        """The agent says something, or is done."""
        turn = self.host.record.public.active_turn
        if turn is not None and text is not None:
            part = MarkdownPart(id=f"p{self.host.seq}", content=text)
            self.host.act(ResponsePartAdded(turn_id=turn.id, part=part))
        elif turn is not None:
            self.host.act(TurnComplete(turn_id=turn.id))

    # What the network does

    @rule(client=clients, up=st.integers(0, 5), down=st.integers(0, 8))
    def deliver(self, client: str, up: int, down: int) -> None:
        wire = self.devices[client].wire
        for _ in range(up):
            wire.deliver_up()
        for _ in range(down):
            wire.deliver_down()

    @rule(client=clients)
    def deliver_all(self, client: str) -> None:
        self.devices[client].wire.settle()

    @rule(client=clients, arriving=st.integers(0, 3))
    def cut(self, client: str, arriving: int) -> None:
        wire = self.devices[client].wire
        if wire.socket is not None:
            wire.cut(arriving)

    @rule(client=clients, late=st.integers(0, 3))
    def come_back(self, client: str, late: int) -> None:
        wire = self.devices[client].wire
        if wire.socket is None:
            wire.connect()
        for _ in range(late):
            wire.deliver_late()

    @rule(clients_too=st.booleans())
    def forget(self, clients_too: bool) -> None:
        self.host.forget_history()
        if clients_too:
            self.host.forget_clients()

    # What must hold, always

    @invariant()
    def the_confirmed_state_is_the_hosts_at_that_position(self) -> None:
        for device in self.devices.values():
            assert self.host.is_shown(device.mirror)

    @invariant()
    def the_shown_state_is_the_confirmed_one_with_own_actions_on_top(self) -> None:
        for device in self.devices.values():
            state = device.mirror.confirmed
            for pending in device.mirror.pending:
                action = pending.action
                if isinstance(action, InputAnswerChanged):
                    action = predicted(state, action)
                state = self._after(state, pending, action)
            assert device.mirror.state == state

    def _after(self, state: Any, pending: Pending, action: Any) -> Any:
        return reduce_session(state, action, pending.at)

    @invariant()
    def nobody_is_told_twice(self) -> None:
        for device in self.devices.values():
            assert all(len(verdicts) <= 1 for verdicts in device.verdicts.values())

    # What must hold in the end

    def teardown(self) -> None:
        if not hasattr(self, "devices"):
            return
        self._calm_down()
        for device in self.devices.values():
            assert self.host.is_complete(device.mirror.confirmed)
            assert self.host.is_complete(device.mirror.state)
            assert device.mirror.pending == []
            for number, verdicts in device.verdicts.items():
                (verdict,) = verdicts
                self._check(device, number, verdict)

    def _calm_down(self) -> None:
        for device in self.devices.values():
            while device.wire.deliver_late():
                pass
            device.wire.forget_late()
            if device.wire.socket is None:
                device.wire.connect()
        for _ in range(3):
            for device in self.devices.values():
                device.wire.settle()
            turn = self.host.record.public.active_turn
            if turn is not None:
                self.host.act(TurnCancelled(turn_id=turn.id), OWNER)

    def _check(self, device: Device, number: int, verdict: Verdict) -> None:
        accepted = self._accepted(device, number)
        if isinstance(verdict, Rejected) and not verdict.is_repeated:
            assert not accepted
        elif isinstance(verdict, ActionEnvelope):
            assert isinstance(verdict.action, type(device.actions[number]))
            replaced = verdict.origin is not None and verdict.origin.client_seq != number
            deferred = isinstance(verdict.action, ModelChanged)
            was_seen = verdict.meta is None  # in a snapshot, without an envelope of the host's
            assert accepted or replaced or deferred or was_seen
        else:
            assert isinstance(verdict, Rejected | Unconfirmed)

    def _accepted(self, device: Device, number: int) -> bool:
        origins = {
            (e.origin.client_id, e.origin.client_seq)
            for e in self.log
            if e.origin is not None and isinstance(e.action, type(device.actions[number]))
        }
        return (device.protocol.client_id, number) in origins


class Ahp1Conversation(Conversation):
    """The same with a host that speaks AHP 1.0, which has no change of the model."""

    @initialize(origin_on_all=st.just(value=False), overlap=st.integers(0, 3))
    def begin(self, origin_on_all: bool, overlap: int) -> None:  # noqa: ARG002
        record = asking(*(request(request_id) for request_id in REQUESTS))
        self.host: Any = Ahp1ModelHost(record, overlap=overlap)
        self.devices = {client_id: Device(self.host, client_id) for client_id in CLIENTS}

    @property
    def log(self) -> list[Any]:
        log: list[Any] = self.host.wire_log
        return log

    @rule(client=clients, actions=st.lists(own_actions, min_size=1, max_size=4))
    def dispatch(self, client: str, actions: list[SessionAction]) -> None:
        super().dispatch(client, [a for a in actions if not isinstance(a, ModelChanged)])

    @rule()
    def unload(self) -> None:
        self.host.unloads = not self.host.unloads

    def _after(self, state: Any, pending: Pending, action: Any) -> Any:
        return after(state, pending.channel, json.loads(encode(action)))


def test_snapshots_that_did_not_all_arrive_count_as_not_seen() -> None:
    """The host had unloaded the session; the client got one of its two channels."""
    state = Ahp1Conversation()
    state.begin(origin_on_all=False, overlap=0)
    state.unload()
    state.ask(request_id="r4")
    state.cut(client="phone", arriving=0)
    state.come_back(client="phone", late=0)
    state.deliver(client="phone", up=2, down=1)
    state.unload()
    state.deliver(client="phone", up=5, down=3)
    state.cut(client="phone", arriving=0)
    state.teardown()


for machine in (Conversation, Ahp1Conversation):
    machine.TestCase.settings = settings(stateful_step_count=40)
ConvergenceTest = Conversation.TestCase
Ahp1ConvergenceTest = Ahp1Conversation.TestCase
