"""One draft, from the bytes of a frame to the bytes of its envelope, done in three ways.

The same steps each time: decode the frame, check that request, question and kind fit, build the new
state without touching the old, encode the envelope. Ours does more: roles, authorship, effects.
"""

import gc
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from benchmarks.results import Results
from session_server.reducers.batches import batch_of
from session_server.reducers.effects import effects_of
from session_server.reducers.rules.judge import judge
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp.actions import InputAnswerChanged
from session_server.schemas.ahp.envelopes import ActionEnvelope, ActionOrigin, EnvelopeMeta
from session_server.schemas.ahp.frames import ActionNotification, DispatchAction
from session_server.schemas.codec import decode_client_frame, decode_session_state, encode
from session_server.schemas.principals import Principal, Role, Stamp
from session_server.schemas.record import SessionRecord

DRAFT = "draft"
"""The table that is filled: processor time, µs."""
ROUNDS = 9
SECONDS_PER_ROUND = 0.05
Work = Callable[[], object]
K = TypeVar("K")
CHANNEL = "ahp-session:/bench"
FRAME = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "method": "dispatchAction",
        "params": {
            "channel": CHANNEL,
            "clientSeq": 7,
            "action": {
                "type": "session/inputAnswerChanged",
                "requestId": "r",
                "questionId": "q5",
                "answer": {"state": "draft", "value": {"kind": "text", "value": "Oslo or Ber"}},
            },
        },
    }
)
AT = 1_800_000_000_000


def session(turns: int) -> dict[str, Any]:
    """A session with ten questions open and some history behind it."""
    message = {"text": "Deploy it", "origin": {"kind": "user"}}
    parts = [{"kind": "markdown", "id": f"m{n}", "content": "Some text. " * 20} for n in range(3)]
    questions = [{"id": f"q{n}", "kind": "text", "message": f"Question {n}?"} for n in range(10)]
    answer = {"state": "draft", "value": {"kind": "text", "value": "Os"}}
    return {
        "summary": {
            "resource": CHANNEL,
            "provider": "demo",
            "title": "Bench",
            "status": 24,
            "createdAt": AT,
            "modifiedAt": AT,
        },
        "lifecycle": "ready",
        "turns": [
            {"id": f"t{n}", "message": message, "responseParts": parts, "state": "complete"}
            for n in range(turns)
        ],
        "activeTurn": {"id": "t", "message": message, "responseParts": parts},
        "inputRequests": [
            {
                "id": "r",
                "message": "A few things",
                "questions": questions,
                "answers": {f"q{n}": answer for n in range(0, 10, 2)},
            }
        ],
    }


def ours(state: dict[str, Any]) -> Work:
    record = SessionRecord(public=decode_session_state(orjson.dumps(state)))
    principal = Principal(id="u", name="Ana", role=Role.OWNER, client_id="laptop")

    def work() -> bytes:
        frame = decode_client_frame(FRAME)
        assert isinstance(frame, DispatchAction)
        action, stamp = frame.params.action, Stamp(at=AT, by=principal.author)
        assert isinstance(action, InputAnswerChanged)
        assert judge(principal, record, action) is None
        (stamped,) = batch_of(record, action, stamp)
        after = reduce_record(record, stamped, AT)
        effects_of(record, (action,), after)
        envelope = ActionEnvelope(
            channel=CHANNEL,
            action=stamped,  # type: ignore[arg-type]
            server_seq=1,
            origin=ActionOrigin(client_id="laptop", client_seq=frame.params.client_seq),
            meta=EnvelopeMeta(at=AT, by=principal.author),
        )
        return encode(ActionNotification(params=envelope))

    return work


class Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class TextValueModel(Model):
    kind: str
    value: str


class AnswerModel(Model):
    state: str
    value: TextValueModel | None = None


class ActionModel(Model):
    type: str
    request_id: str
    question_id: str
    answer: AnswerModel | None = None


class ParamsModel(Model):
    channel: str
    client_seq: int
    action: ActionModel


class FrameModel(Model):
    jsonrpc: str
    method: str
    params: ParamsModel


class OriginModel(Model):
    client_id: str
    client_seq: int


class EnvelopeModel(Model):
    channel: str
    action: ActionModel
    server_seq: int
    origin: OriginModel


class NotificationModel(Model):
    jsonrpc: str = "2.0"
    method: str = "action"
    params: EnvelopeModel


class QuestionModel(Model):
    id: str
    kind: str
    message: str


class RequestModel(Model):
    id: str
    message: str
    questions: list[QuestionModel]
    answers: dict[str, AnswerModel] | None = None


class SummaryModel(Model):
    resource: str
    provider: str
    title: str
    status: int
    created_at: int
    modified_at: int


class SessionModel(Model):
    summary: SummaryModel
    lifecycle: str
    turns: list[dict[str, Any]]
    active_turn: dict[str, Any]
    input_requests: list[RequestModel]


def with_pydantic(state: dict[str, Any]) -> Work:
    session_model = SessionModel.model_validate(state)
    read_frame = TypeAdapter(FrameModel).validate_json

    def work() -> str:
        params = read_frame(FRAME).params
        action = params.action
        request = next(r for r in session_model.input_requests if r.id == action.request_id)
        question = next(q for q in request.questions if q.id == action.question_id)
        assert action.answer is not None
        assert action.answer.value is not None
        assert action.answer.value.kind == question.kind
        answers = {**(request.answers or {}), action.question_id: action.answer}
        answered = request.model_copy(update={"answers": answers})
        session_model.model_copy(
            update={
                "input_requests": [
                    answered if r is request else r for r in session_model.input_requests
                ],
                "summary": session_model.summary.model_copy(update={"modified_at": AT}),
            }
        )
        envelope = EnvelopeModel(
            channel=CHANNEL,
            action=action,
            server_seq=1,
            origin=OriginModel(client_id="laptop", client_seq=params.client_seq),
        )
        return NotificationModel(params=envelope).model_dump_json(by_alias=True, exclude_none=True)

    return work


def with_dicts(state: dict[str, Any]) -> Work:
    def work() -> bytes:
        params = orjson.loads(FRAME)["params"]
        action = params["action"]
        request = next(r for r in state["inputRequests"] if r["id"] == action["requestId"])
        question = next(q for q in request["questions"] if q["id"] == action["questionId"])
        assert action["answer"]["value"]["kind"] == question["kind"]
        answers = {**(request.get("answers") or {}), action["questionId"]: action["answer"]}
        answered = {**request, "answers": answers}
        requests = [answered if r is request else r for r in state["inputRequests"]]
        {**state, "inputRequests": requests, "summary": {**state["summary"], "modifiedAt": AT}}
        origin = {"clientId": "laptop", "clientSeq": params["clientSeq"]}
        envelope = {"channel": CHANNEL, "action": action, "serverSeq": 1, "origin": origin}
        return orjson.dumps({"jsonrpc": "2.0", "method": "action", "params": envelope})

    return work


def run(results: Results, lengths: Sequence[int] = (0, 500)) -> None:
    works = {}
    for turns in lengths:
        state = session(turns)
        works[("session-server", turns)] = ours(state)
        works[("pydantic models", turns)] = with_pydantic(state)
        works[("dicts and orjson", turns)] = with_dicts(state)
    for (row, turns), samples in microseconds(works).items():
        for sample in samples:
            results.add(DRAFT, row, f"{turns} turns before it", sample)


def microseconds(works: dict[K, Work]) -> dict[K, list[float]]:
    """Times of one run of each. They take turns, so that noise hits all alike."""
    counts = {name: calibrated(work) for name, work in works.items()}
    samples: dict[K, list[float]] = {name: [] for name in works}
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for name, work in works.items():
                samples[name].append(timed(work, counts[name]) * 1e6)
            gc.collect()
    finally:
        gc.enable()
    return samples


def calibrated(work: Work) -> int:
    """How many runs fill a round."""
    count = 1
    while timed(work, count) * count < SECONDS_PER_ROUND:
        count *= 2
    return count


def timed(work: Work, count: int) -> float:
    started = process_time()
    for _ in range(count):
        work()
    return (process_time() - started) / count
