"""Questions and answers on the wire, with all their fields."""

from typing import Any

import pytest

from session_server.schemas.ahp.questions import Answer, InputRequest, Question, Value
from session_server.schemas.ahp.turns import ActiveTurn, Turn
from session_server.schemas.codec import Decoder, encode
from tests.schemas.decoding import plain, tags

decode_request: Decoder[Any] = Decoder(InputRequest)
decode_question: Decoder[Any] = Decoder(Question)
decode_answer: Decoder[Any] = Decoder(Answer)

BASE = {"id": "q", "message": "m", "title": "t", "required": True, "_meta": {"pattern": "^a"}}
OPTIONS = [
    {"id": "a", "label": "A", "description": "the first", "recommended": True},
    {"id": "b", "label": "B"},
]
QUESTIONS: dict[str, dict[str, Any]] = {
    "text": {"format": "email", "min": 1, "max": 9, "defaultValue": "x"},
    "number": {"min": -0.5, "max": 10, "defaultValue": 2.5},
    "integer": {"min": 1, "max": 9.0, "defaultValue": 3},
    "boolean": {"defaultValue": False},
    "single-select": {"options": OPTIONS, "allowFreeformInput": True},
    "multi-select": {"options": OPTIONS, "allowFreeformInput": False, "min": 0, "max": 2},
}
VALUES: dict[str, dict[str, Any]] = {
    "text": {"value": "x"},
    "number": {"value": 2.5},
    "boolean": {"value": False},
    "selected": {"value": "a", "freeformValues": ["own words"]},
    "selected-many": {"value": ["a", "b"], "freeformValues": []},
}
META = {"_meta": {"by": {"id": "u", "name": "Ana"}, "at": 5, "via": "person"}}


def test_every_kind_is_looked_at() -> None:
    assert tags(Question) == set(QUESTIONS)
    assert tags(Value) == set(VALUES)
    assert tags(Answer) == {"draft", "submitted", "skipped"}


@pytest.mark.proves("ahp.shapes.questions")
@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_question_keeps_all_its_fields(kind: str) -> None:
    question = {"kind": kind, **BASE, **QUESTIONS[kind]}
    decoded = decode_question(encode(question))
    assert plain(decoded) == question
    assert all(getattr(decoded, name) is not None for name in decoded.__struct_fields__)


@pytest.mark.proves("ahp.shapes.questions")
@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_question_needs_little(kind: str) -> None:
    question: dict[str, Any] = {"kind": kind, "id": "q", "message": "m"}
    if "options" in QUESTIONS[kind]:
        question["options"] = []
    assert plain(decode_question(encode(question))) == question


@pytest.mark.proves("ahp.shapes.answers")
@pytest.mark.parametrize("state", ["draft", "submitted"])
@pytest.mark.parametrize("kind", VALUES)
def test_an_answer_keeps_all_its_fields(kind: str, state: str) -> None:
    answer = {"state": state, "value": {"kind": kind, **VALUES[kind]}, **META}
    assert plain(decode_answer(encode(answer))) == answer


@pytest.mark.proves("ahp.shapes.answers")
@pytest.mark.parametrize("more", [{}, {"freeformValues": ["later"]}, META])
def test_a_skipped_answer_keeps_all_its_fields(more: dict[str, Any]) -> None:
    answer = {"state": "skipped", **more}
    assert plain(decode_answer(encode(answer))) == answer


@pytest.mark.proves("ahp.shapes.message-optional")
@pytest.mark.parametrize(
    "request_", [{"id": "r"}, {"id": "r", "message": None}, {"id": "r", "url": "u:"}]
)
def test_a_request_needs_no_message(request_: dict[str, Any]) -> None:
    assert decode_request(encode(request_)).message is None


@pytest.mark.proves("ahp.shapes.optional-turn-fields")
@pytest.mark.parametrize("usage", [{}, {"usage": None}])
def test_turns_need_no_usage(usage: dict[str, Any]) -> None:
    turn = {
        "id": "t",
        "message": {"text": "m", "origin": {"kind": "user"}},
        "responseParts": [],
        **usage,
    }
    active: Any = Decoder(ActiveTurn)(encode(turn))
    ended: Any = Decoder(Turn)(encode({**turn, "state": "complete"}))
    assert active.usage is ended.usage is None
