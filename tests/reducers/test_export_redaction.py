"""What leaves the host with a recording: everything but the secrets of calls."""

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from session_server.reducers.calls.export_redaction import (
    digest,
    redacted,
    redacted_call,
    redacted_record,
)
from session_server.reducers.calls.redaction import HIDDEN
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.codec import encode
from session_server.schemas.record import (
    Asked,
    Call,
    CallError,
    CallFailed,
    CallFinished,
    CallInputRequired,
    CallStarted,
    Failed,
    FailureKind,
    Finished,
    RecordAction,
    SessionRecord,
    Waiting,
)
from tests.reducers import call_records
from tests.sessions import in_turn

SECRET, STATE = "canary-s3cret", "canary-state"
ERROR = CallError(kind=FailureKind.UPSTREAM, message=f"no {SECRET}", data={"at": [SECRET]})
SCHEMA = {"type": "object", "properties": {"v": {"type": "string", "default": SECRET}}}
ASKED = (Asked(key="k", request_id="call:c/0/k", fingerprint="f", schema=SCHEMA),)


ARGUMENTS = {"to": "eu", "token": SECRET, "note": f"as {SECRET}"}
SECRETS: dict[str, Any] = {
    "params": {"name": "deploy", "arguments": ARGUMENTS},
    "private_arguments": ("token",),
    "request_state": STATE,
    "fingerprint": "f",
    "asked": ASKED,
}


def call(**fields: Any) -> Call:
    return call_records.call(**{**SECRETS, **fields})


CALLS = {"c": call()}


@pytest.mark.parametrize(
    "action",
    [
        CallStarted(call=call()),
        CallStarted(call=call(phase=Finished(result={"said": SECRET}, at=1))),
        CallStarted(call=call(phase=Failed(error=ERROR, at=1))),
        CallInputRequired(call_id="c", leg=0, asked=ASKED, request_state=STATE),
        CallFinished(call_id="c", leg=0, result={"content": [{"text": f"used {SECRET}"}]}),
        CallFailed(call_id="c", leg=0, error=ERROR),
    ],
)
def test_no_secret_of_a_call_is_left(action: RecordAction) -> None:
    said = encode(redacted(action, CALLS)).decode()
    assert "canary" in encode(action).decode()
    assert "canary" not in said


def test_everything_else_stays() -> None:
    shown = redacted_call(call(phase=Waiting(leg=0)))
    assert shown.params["arguments"] == {"to": "eu", "token": HIDDEN, "note": f"as {HIDDEN}"}
    assert (shown.phase, shown.asked[0].key) == (Waiting(leg=0), "k")
    renamed = TitleChanged(title=SECRET)
    assert redacted(renamed, CALLS) is renamed
    plain = call(private_arguments=(), params={"name": "now"}, request_state=None, asked=())
    assert redacted_call(plain) == msgspec.structs.replace(plain, fingerprint=None)


def test_a_state_is_recognized_by_its_digest() -> None:
    assert digest(STATE) == digest(STATE) != digest("another")
    assert digest(None) is None
    unknown = CallInputRequired(call_id="gone", leg=0, asked=ASKED, request_state=STATE)
    after = redacted(unknown, {})
    assert isinstance(after, CallInputRequired)
    assert after.request_state == digest(STATE)


def test_the_query_of_a_resource_is_hidden() -> None:
    reading = call(method="resources/read", params={"uri": f"x:/a?token={SECRET}"})
    assert redacted_call(reading).params == {"uri": f"x:/a?{HIDDEN}"}
    open_one = call(method="resources/read", params={"uri": "x:/a"})
    assert redacted_call(open_one).params == {"uri": "x:/a"}


def test_a_whole_record_is_opened_without_secrets() -> None:
    record = in_turn()
    private = msgspec.structs.replace(record.private, calls=CALLS, opened_with="canary-key")
    opened = redacted_record(msgspec.structs.replace(record, private=private))
    assert "canary" not in encode(opened).decode()
    assert opened.public is record.public


def test_every_place_for_a_secret_is_known() -> None:
    """A new field that holds one has to be looked after here first."""
    places = {
        f"{struct.__name__}.{name}"
        for struct in structs_in(RecordAction, set()) | structs_in(SessionRecord, set())
        for name in struct.__struct_fields__
        if any(word in name for word in ("state", "token", "secret", "params", "key"))
    }
    assert places == {
        "Call.params",
        "Call.request_state",
        "CallInputRequired.request_state",
        "Turn.state",  # how it ended
        "McpServerStateChanged.state",
        "Asked.key",  # a name within a round
        "Begun.key",
        "Remembered.key",
        "RequestMeta.key",
        "UsageInfo.input_tokens",  # numbers
        "UsageInfo.output_tokens",
        "UsageInfo.cache_read_tokens",
    }


def structs_in(shape: Any, known: set[Any]) -> set[Any]:
    for part in parts_of(shape):
        if isinstance(part, type) and issubclass(part, msgspec.Struct) and part not in known:
            known.add(part)
            for hint in get_type_hints(part).values():
                structs_in(hint, known)
            for kind in part.__subclasses__():
                if kind.__module__.startswith("session_server.schemas."):
                    structs_in(kind, known)
    return known


def parts_of(shape: Any) -> Iterator[Any]:
    if get_origin(shape) in (Union, types.UnionType, tuple, list, dict):
        for part in get_args(shape):
            yield from parts_of(part)
    else:
        yield shape
