"""What a client writes where only the host writes does not get its action refused."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from session_server.schemas.ahp.envelopes import EnvelopeMeta
from session_server.schemas.ahp.questions import AnswerMeta, QuestionMeta, RequestMeta
from session_server.schemas.ahp.session import SummaryMeta
from session_server.schemas.codec import decode_agent_frame, decode_client_frame
from session_server.schemas.errors import MismatchError
from session_server.schemas.principals import HOST_KEYS
from tests.schemas.decoding import dispatched

RUBBISH = ["x", 5, [], {"at": "yesterday"}, {"by": 7}, {"pattern": []}, {"expiresAt": "soon"}]
VALUE = {"kind": "text", "value": "x"}
QUESTION = {"id": "q", "kind": "text", "message": "?"}


def change(**answer: Any) -> dict[str, Any]:
    answer = {"state": "draft", "value": VALUE, **answer}
    return {
        "type": "session/inputAnswerChanged",
        "requestId": "r",
        "questionId": "q",
        "answer": answer,
    }


def completion(**answer: Any) -> dict[str, Any]:
    answer = {"state": "submitted", "value": VALUE, **answer}
    return {
        "type": "session/inputCompleted",
        "requestId": "r",
        "response": "accept",
        "answers": {"q": answer},
    }


def request(*, in_question: Any = None, in_answer: Any = None, **fields: Any) -> dict[str, Any]:
    question = {**QUESTION, "_meta": in_question}
    answer = {"state": "draft", "value": VALUE, "_meta": in_answer}
    asked = {"id": "r", "questions": [question], "answers": {"q": answer}, **fields}
    return {"type": "session/inputRequested", "request": asked}


@pytest.mark.proves("design.wire.answer-meta-forged")
@pytest.mark.parametrize("action", [change, completion])
@pytest.mark.parametrize("meta", RUBBISH)
def test_invalid_answer_meta_is_ignored(
    action: Callable[..., dict[str, Any]], meta: object
) -> None:
    clean = [decode_client_frame(dispatched(made)) for made in (action(), action(_meta={}))]
    assert decode_client_frame(dispatched(action(_meta=meta))) in clean


def test_an_agent_gets_an_error_for_invalid_metadata() -> None:
    decode_agent_frame(dispatched(request()))
    for wrong in (
        request(_meta={"expiresAt": "soon"}),
        request(_meta={"onExpiry": "Cancel"}),
        request(in_question={"pattern": []}),
        request(in_answer={"at": "x"}),
    ):
        with pytest.raises(MismatchError):
            decode_agent_frame(dispatched(wrong))


@pytest.mark.parametrize(
    "action",
    [
        change(_meta={"at": "x"}, value=5),
        completion(_meta={"at": "x"}, value=5),
        {**completion(_meta={"at": "x"}), "answers": [5]},
        {**change(_meta={"at": "x"}), "requestId": 5},
    ],
)
def test_whatever_else_is_wrong_is_still_wrong(action: Any) -> None:
    with pytest.raises(MismatchError):
        decode_client_frame(dispatched(action))


def test_metadata_elsewhere_is_checked() -> None:
    on_call = {"type": "session/toolCallResultConfirmed", "turnId": "t", "toolCallId": "c"}
    with pytest.raises(MismatchError, match="_meta"):
        decode_client_frame(dispatched({**on_call, "approved": True, "_meta": 5}))


SHAPES: dict[str, type[msgspec.Struct]] = {
    "summary": SummaryMeta,
    "request": RequestMeta,
    "question": QuestionMeta,
    "answer": AnswerMeta,
    "envelope": EnvelopeMeta,
}


ASKERS: dict[str, frozenset[str]] = {
    "request": frozenset({"expiresAt", "onExpiry", "lease"}),
    "question": frozenset({"pattern"}),
}


@pytest.mark.proves("design.wire.reserved-meta")
def test_every_key_of_a_meta_is_the_hosts_or_the_askers() -> None:
    for place, shape in SHAPES.items():
        keys = {field.encode_name for field in msgspec.structs.fields(shape)}
        host, asker = HOST_KEYS[place], ASKERS.get(place, frozenset())
        assert host | asker == keys
        assert not host & asker
    assert set(HOST_KEYS) == {*SHAPES, "session"}
