"""The AsyncAPI document: every message, in the direction it goes."""

import json
import re
from typing import Any

import pytest

from docs.wire_documents import CLIENT_FRAMES, HOST_FRAMES
from session_server.schemas.ahp import frames
from session_server.schemas.documents import RESULTS
from session_server.schemas.wire import Wire
from tests.schemas import wire_examples as examples
from tests.schemas.document_parts import (
    ASYNCAPI,
    DEFS,
    REQUESTS,
    by_payload,
    leaves,
    name_of,
    on_the_wire,
    refs,
    resolved,
    without,
)

# AsyncAPI

MESSAGES: dict[str, Any] = ASYNCAPI["components"]["messages"]
OPERATIONS: dict[str, Any] = ASYNCAPI["operations"]
CHANNEL: dict[str, Any] = ASYNCAPI["channels"]["ahp"]


def spoken(operation: dict[str, Any]) -> list[str]:
    """The messages of an operation or a reply, which AsyncAPI wants to be the channel's."""
    assert operation["channel"] == {"$ref": "#/channels/ahp"}
    prefix = "#/channels/ahp/messages/"
    assert all(message["$ref"].startswith(prefix) for message in operation["messages"])
    return [message["$ref"].removeprefix(prefix) for message in operation["messages"]]


def test_asyncapi_is_of_version_3_and_about_the_one_endpoint() -> None:
    assert ASYNCAPI["asyncapi"] == "3.0.0"
    assert ASYNCAPI["info"].keys() >= {"title", "version"}
    assert [channel["address"] for channel in ASYNCAPI["channels"].values()] == ["/ahp"]


def test_every_reference_of_asyncapi_resolves() -> None:
    assert all(resolved(ASYNCAPI, ref) for ref in refs(ASYNCAPI))


def test_asyncapi_has_the_same_shapes() -> None:
    assert ASYNCAPI["components"]["schemas"].keys() == DEFS.keys()
    assert "$defs" not in json.dumps(ASYNCAPI)


def test_keys_are_of_the_form_that_asyncapi_allows() -> None:
    maps = [*ASYNCAPI["components"].values(), OPERATIONS, CHANNEL["messages"]]
    keys = [key for entries in maps for key in entries]
    assert [key for key in keys if not re.fullmatch(r"[A-Za-z0-9._-]+", key)] == []


@pytest.mark.parametrize("frame", [*CLIENT_FRAMES, *HOST_FRAMES], ids=lambda frame: frame.__name__)
def test_every_frame_has_a_message_on_the_channel(frame: type[Wire]) -> None:
    message = MESSAGES[frame.__name__]
    assert CHANNEL["messages"][frame.__name__] == {
        "$ref": f"#/components/messages/{frame.__name__}"
    }
    assert message["payload"] == {"$ref": f"#/components/schemas/{frame.__name__}"}
    assert message["title"] == (frame.__struct_config__.tag or frame.__name__)
    assert ("correlationId" in message) is ("id" in frame.__struct_fields__)


def test_every_frame_is_in_a_message() -> None:
    bases = (frames.FrameBase, frames.RequestBase, frames.ClientNotificationBase)
    every = {f for base in bases for f in leaves(base)}
    every -= {frames.Result}
    assert every == {*CLIENT_FRAMES, *HOST_FRAMES}


def test_the_host_receives_what_clients_send_and_sends_the_rest() -> None:
    said = {
        action: [name for o in OPERATIONS.values() if o["action"] == action for name in spoken(o)]
        for action in ("receive", "send")
    }
    assert said["receive"] == [frame.__name__ for frame in CLIENT_FRAMES]
    assert said["send"] == [frame.__name__ for frame in HOST_FRAMES]


def test_every_request_and_nothing_else_has_a_reply() -> None:
    replies = {
        spoken(operation)[0]: spoken(operation["reply"])
        for operation in OPERATIONS.values()
        if "reply" in operation
    }
    assert set(REQUESTS) == set(RESULTS)
    assert replies == {f.__name__: [f"{f.__name__}Result", "Failure"] for f in REQUESTS}


def test_every_message_is_used() -> None:
    used = [name for o in OPERATIONS.values() for name in spoken(o)]
    used += [name for o in OPERATIONS.values() if "reply" in o for name in spoken(o["reply"])]
    assert set(used) == set(MESSAGES) == set(CHANNEL["messages"])


@pytest.mark.parametrize("example", [*examples.CLIENT_FRAMES, *examples.HOST_FRAMES], ids=name_of)
def test_a_frame_is_accepted_by_its_message(example: Wire) -> None:
    by_payload(type(example).__name__).validate(on_the_wire(example))
    assert not by_payload(type(example).__name__).is_valid({})


@pytest.mark.parametrize("request_", examples.RESULTS, ids=lambda frame: frame.__name__)
def test_a_result_is_accepted_by_its_message(request_: type[frames.RequestBase]) -> None:
    payload = by_payload(f"{request_.__name__}Result")
    for result in examples.RESULTS[request_]:
        answer = on_the_wire(frames.Result(id=1, result=result))
        payload.validate(answer)
        assert not payload.is_valid({**answer, "result": "something else"})
        assert not payload.is_valid(without(answer, "result"))
        assert not payload.is_valid(without(answer, "id"))
