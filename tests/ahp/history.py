"""What clients recorded, judged afterwards against the log and against what really ran.

A `History` holds every frame that one client sent and received. `check` plays all of them back into
new mirrors, which the oracle judges: order, content, nothing missing, nothing twice. What became of
the clients' own actions, of requests and of calls is judged here. No server is asked about itself.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import msgspec

from session_server.schemas.ahp.actions import InputCompleted, InputRequested
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.questions import Submitted
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.log_entries import Logged
from session_server.schemas.wire import Seq, Uri
from tests.ahp.mirror import Frame, Mirror, Rejection, understood
from tests.ahp.oracle import LogOracle, expect

Origin = tuple[str, int, str]
"""Which action: the client, its `clientSeq`, and the type of the action."""


class Line(NamedTuple):
    kind: Literal["connected", "sent", "received"]
    frame: bytes = b""


class History:
    """`lines` is everything in order, over all connections of the client that this mirror is of."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.lines: list[Line] = []

    @property
    def client_id(self) -> str:
        return self._mirror.client_id

    def connected(self) -> None:
        self.lines.append(Line("connected"))

    def sent(self, frame: bytes) -> None:
        self.lines.append(Line("sent", frame))

    def received(self, frame: bytes) -> None:
        self.lines.append(Line("received", frame))

    def edited(self, lines: Iterable[Line]) -> "History":
        other = History(self._mirror)
        other.lines = list(lines)
        return other

    def played_back(self, seen: dict[Seq, ActionEnvelope]) -> Mirror:
        """A new mirror to which the same has happened."""
        mirror = self._mirror.fresh(seen)
        for line in self.lines:
            if line.kind == "connected":
                mirror.greet()
            elif line.kind == "received":
                mirror.take(line.frame)
            else:
                _say_again(mirror, msgspec.json.decode(line.frame))
        return mirror


def _say_again(mirror: Mirror, frame: Frame) -> None:
    """Handshakes are left out: the mirror makes them by itself when it is connected."""
    method, params = frame["method"], dict(frame["params"])
    channel = params.pop("channel")
    if method == "dispatchAction":
        mirror.dispatch(channel, params["action"])
    elif method == "unsubscribe":
        mirror.unsubscribe(channel)
    elif method not in ("initialize", "reconnect"):
        mirror.request(method, channel, **params)


# What became of the clients' own actions


class Answer(StrEnum):
    ECHOED = "echoed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The connection ended before the answer came, or the answer was that it is not known yet."""


IN_DOUBT = "It is not known yet whether this was saved"


def answers(history: History) -> dict[Origin, Answer]:
    """By what this client received while the connection was open that it sent the action on."""
    found: dict[Origin, Answer] = {}
    waiting: dict[int, Origin] = {}
    for line in history.lines:
        if line.kind == "connected":
            waiting.clear()
        elif line.kind == "sent":
            frame = msgspec.json.decode(line.frame)
            if frame["method"] == "dispatchAction":
                seq, kind = frame["params"]["clientSeq"], frame["params"]["action"]["type"]
                waiting[seq] = (history.client_id, seq, kind)
                found[waiting[seq]] = Answer.UNKNOWN
        else:
            answered = _answered(history.client_id, line.frame)
            if answered is not None and answered[0] in waiting:
                found[waiting[answered[0]]] = answered[1]
    return found


def _answered(client_id: str, frame: bytes) -> tuple[int, Answer] | None:
    match understood(frame):
        case Rejection(client_seq=seq, reason=reason) if reason.startswith(IN_DOUBT):
            return seq, Answer.UNKNOWN
        case Rejection(client_seq=seq):
            return seq, Answer.REFUSED
        case ActionEnvelope(origin=origin) if origin and origin.client_id == client_id:
            return origin.client_seq, Answer.ECHOED
        case _:
            return None


def check_answers(oracle: LogOracle, histories: Sequence[History]) -> Counter[Answer]:
    """What was echoed is in the log once, what was refused is not, and nothing there is made up."""
    stored = Counter(filter(None, map(_origin, oracle.logged.values())))
    names = {history.client_id for history in histories}
    own = {origin: answer for history in histories for origin, answer in answers(history).items()}
    is_whole = not any(oracle.floors.values())
    for origin, answer in own.items():
        times = stored[origin]
        expect(times <= 1, f"{origin} is in the log {times} times")
        expect(times == 0 or answer != Answer.REFUSED, f"{origin} was refused and is in the log")
        expect(
            times == 1 or answer != Answer.ECHOED or not is_whole,
            f"{origin} was acknowledged and is not in the log",
        )
    sent = {origin[:2] for origin in own}
    for origin in stored:
        made_up = origin[0] in names and origin[:2] not in sent
        expect(not made_up, f"{origin} is in the log and was never sent")
    return Counter(own.values())


def _origin(logged: Logged) -> Origin | None:
    origin, tag = logged.origin, type(logged.action).__struct_config__.tag
    return None if origin is None else (origin.client_id, origin.client_seq, str(tag))


# What became of requests and calls


class Asked(NamedTuple):
    """A request whose id was handed out; `answer` is what the asker was told in the end."""

    session: Uri
    id: str
    answer: str | None = None


class Called(NamedTuple):
    """A call whose id was handed out, under the name that its effect writes down."""

    name: str
    is_finished: bool


def check_asked(oracle: LogOracle, asked: Iterable[Asked]) -> None:
    """Each is there once, and is open still or has the one end that the asker was told of."""
    opened: Counter[tuple[Uri, str]] = Counter()
    ends: defaultdict[tuple[Uri, str], list[str | None]] = defaultdict(list)
    for seq, logged in oracle.logged.items():
        channel, action = oracle.entries[seq].channel, logged.action
        if isinstance(action, InputRequested):
            opened[channel, action.request.id] += 1
        elif isinstance(action, InputCompleted):
            ends[channel, action.request_id].append(_text(action))
    for request in asked:
        place = (request.session, request.id)
        is_kept = not oracle.floors.get(request.session)
        expect(opened[place] == 1 or not is_kept, f"{request} is in the log {opened[place]} times")
        told = [] if request.answer is None else [request.answer]
        expect(len(ends[place]) <= 1, f"{request} ended {len(ends[place])} times")
        if not told and not ends[place]:
            expect(_is_open(oracle, request), f"{request} is neither open nor ended")
        expect(not told or ends[place] == told or not is_kept, f"{request} ended as {ends[place]}")


def _text(completed: InputCompleted) -> str | None:
    """The answer to the only question."""
    for answer in (completed.answers or {}).values():
        if isinstance(answer, Submitted):
            return str(getattr(answer.value, "value", None))
    return None


def _is_open(oracle: LogOracle, request: Asked) -> bool:
    state = oracle.state(request.session)
    assert isinstance(state, SessionState)
    return any(r.id == request.id for r in state.input_requests or ())


def check_effects(called: Iterable[Called], effects: Iterable[str]) -> None:
    """`effects` are the names that the MCP server itself wrote down, one for each time it ran."""
    ran = Counter(effects)
    for call in called:
        expect(ran[call.name] <= 1, f"{call.name} ran {ran[call.name]} times")
        expect(ran[call.name] == 1 or not call.is_finished, f"{call.name} finished and did not run")


class Evidence(NamedTuple):
    histories: Sequence[History]
    asked: Sequence[Asked] = ()
    called: Sequence[Called] = ()
    effects: Sequence[str] = ()


def check(oracle: LogOracle, evidence: Evidence) -> dict[str, Any]:
    """Raises `Diverged` if anything is wrong; returns what there was to judge.

    All clients are connected and have received everything when their histories end.
    """
    seen: dict[Seq, ActionEnvelope] = {}
    mirrors = [history.played_back(seen) for history in evidence.histories]
    for mirror in mirrors:
        oracle.check_mirror(mirror)
        expect(not mirror.unanswered, f"{mirror.client_id}: {mirror.unanswered} without an answer")
    oracle.check_seen(seen)
    counts = check_answers(oracle, evidence.histories)
    check_asked(oracle, evidence.asked)
    check_effects(evidence.called, evidence.effects)
    return {
        "clients": len(mirrors),
        "envelopes": len(seen),
        "actions": {answer.value: counts[answer] for answer in Answer},
        "resumptions": dict(Counter(r for mirror in mirrors for r in mirror.resumptions)),
        "requests": len(evidence.asked),
        "calls": len(evidence.called),
    }
