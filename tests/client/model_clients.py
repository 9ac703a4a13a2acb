"""Clients without sockets, joined to a model host, and the actions that tests have them do."""

from typing import Any

import msgspec

from session_server.client.client_protocol import ClientProtocol
from session_server.client.mirror import Change, Verdict
from session_server.client.mirror_kinds import SessionMirror
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.actions import InputAnswerChanged, InputCompleted, SessionAction
from session_server.schemas.ahp.commands import Snapshot
from session_server.schemas.ahp.questions import (
    Draft,
    InputRequest,
    ResponseKind,
    Submitted,
    TextQuestion,
    TextValue,
)
from tests.client.model_host import ModelHost, Wire
from tests.sessions import OWNER, PHONE, SESSION, asking

REQUESTS = ("r1", "r2")
QUESTIONS = (TextQuestion(id="q1", message="One?"), TextQuestion(id="q2", message="Two?", max=2))


def request(request_id: str) -> InputRequest:
    return InputRequest(id=request_id, message=f"About {request_id}", questions=QUESTIONS)


def asking_host(**options: Any) -> ModelHost:
    return ModelHost(asking(*(request(request_id) for request_id in REQUESTS)), **options)


def draft(text: str, question_id: str = "q1", request_id: str = "r1") -> InputAnswerChanged:
    answer = Draft(value=TextValue(value=text))
    return InputAnswerChanged(request_id=request_id, question_id=question_id, answer=answer)


def submitted(text: str, question_id: str = "q1", request_id: str = "r1") -> InputAnswerChanged:
    answer = Submitted(value=TextValue(value=text))
    return InputAnswerChanged(request_id=request_id, question_id=question_id, answer=answer)


def completed(
    request_id: str = "r1", response: ResponseKind = ResponseKind.ACCEPT
) -> InputCompleted:
    return InputCompleted(request_id=request_id, response=response)


class Device:
    """One client of the model, and what it was told."""

    def __init__(self, host: ModelHost, client_id: str = "laptop") -> None:
        self.host = host
        self.protocol = ClientProtocol(client_id, lambda: host.clock)
        principal = OWNER if client_id == "laptop" else PHONE
        self.wire = Wire(host, self.protocol, principal)
        self.actions: dict[int, SessionAction] = {}
        self.verdicts: dict[int, list[Verdict]] = {}
        self.changes: list[Change[Any]] = []
        self.ends: list[Exception] = []
        self.protocol.watch(SESSION, self._found)
        self.wire.connect()
        self.wire.settle()

    def _found(self, mirror: Any) -> None:
        assert isinstance(mirror, SessionMirror)
        self.mirror = mirror
        mirror.observe(self)

    # Observer

    def changed(self, change: Change[Any]) -> None:
        self.changes.append(change)

    def ended(self, error: Exception) -> None:
        self.ends.append(error)

    # Doing something

    def dispatch(self, action: SessionAction) -> int:
        """Its number, under which the verdict will be found."""
        number = len(self.actions) + 1
        self.actions[number] = action
        verdicts = self.verdicts[number] = []
        self.protocol.dispatch(self.mirror, action, verdicts.append)
        return number

    def verdict(self, number: int) -> Verdict:
        (verdict,) = self.verdicts[number]
        return verdict

    def come_back(self) -> None:
        self.wire.connect()
        self.wire.settle()

    def said(self, question_id: str = "q1") -> Any:
        """The text that this device shows as the answer to a question of `r1`."""
        (first, *_) = self.mirror.state.input_requests or ()
        answer: Any = (first.answers or {}).get(question_id)
        return None if answer is None else answer.value.value


BAD_SNAPSHOT = Snapshot(resource=SESSION, state=msgspec.Raw(b'{"turns": 5}'), from_seq=1)


def heard(device: Device) -> list[Any]:
    return device.wire.socket.heard


def actions_sent(device: Device) -> list[Any]:
    return [f.params.action for f in heard(device) if isinstance(f, frames.AgentDispatchAction)]


def from_host(device: Device, message: Any) -> None:
    device.protocol.receive(msgspec.json.encode(message))


def envelope(host: ModelHost, action: Any, **fields: Any) -> dict[str, Any]:
    host.seq += 1
    host.states[host.seq] = host.record.public
    params = {"channel": SESSION, "action": action, "serverSeq": host.seq, **fields}
    return {"jsonrpc": "2.0", "method": "action", "params": params}
