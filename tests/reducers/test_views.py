"""Authors of tools read responses by kind, and as their own models."""

from dataclasses import dataclass

import msgspec
import pydantic
import pytest

from session_server.reducers.views import (
    Accepted,
    Cancelled,
    Declined,
    Missing,
    OtherKind,
    accepted_content,
    input_response,
)
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.mcp import ElicitResult

RESPONSES = {
    "city": {"action": "accept", "content": {"name": "Oslo", "size": 3}},
    "login": {"action": "accept"},
    "no": {"action": "decline"},
    "gone": {"action": "cancel"},
    "model": {"role": "assistant", "content": {"type": "text", "text": "hi"}},
    "odd": {"action": "shrug"},
}


def test_each_kind_of_response_is_told_apart() -> None:
    assert input_response(RESPONSES, "city") == Accepted(content={"name": "Oslo", "size": 3})
    assert input_response(RESPONSES, "login") == Accepted()
    assert input_response(RESPONSES, "no") == Declined()
    assert input_response(RESPONSES, "gone") == Cancelled()
    assert input_response(RESPONSES, "nothing") == Missing()
    assert input_response(None, "city") == Missing()
    assert input_response(RESPONSES, "model") == OtherKind(raw=RESPONSES["model"])
    assert input_response(RESPONSES, "odd") == OtherKind(raw=RESPONSES["odd"])


def test_a_struct_is_read_like_its_json() -> None:
    result = ElicitResult(action=ResponseKind.ACCEPT, content={"name": "Oslo"})
    assert input_response({"city": result}, "city") == Accepted(content={"name": "Oslo"})


class CityStruct(msgspec.Struct):
    name: str
    size: int


@dataclass
class CityDataclass:
    name: str
    size: int


class CityModel(pydantic.BaseModel):
    name: str
    size: int


@pytest.mark.parametrize("model", [CityStruct, CityDataclass, CityModel])
def test_accepted_content_comes_as_the_authors_model(model: type) -> None:
    city = accepted_content(RESPONSES, "city", model)
    assert isinstance(city, model)
    assert (city.name, city.size) == ("Oslo", 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", ["login", "no", "gone", "model", "nothing"])
def test_there_is_no_content_without_acceptance(key: str) -> None:
    assert accepted_content(RESPONSES, key, dict) is None


def test_content_of_another_shape_raises_the_models_error() -> None:
    responses = {"city": {"action": "accept", "content": {"name": 5}}}
    with pytest.raises(msgspec.ValidationError):
        accepted_content(responses, "city", CityStruct)
    with pytest.raises(pydantic.ValidationError):
        accepted_content(responses, "city", CityModel)
