"""Private arguments that a server repeats in what it asks: hidden from people, known to it."""

from typing import Any

import pytest

from session_server.reducers.calls.export_redaction import redacted, redacted_call
from session_server.reducers.calls.redaction import HIDDEN, masked, stand_ins
from session_server.reducers.calls.rounds import input_responses, open_round
from session_server.schemas.ahp.actions import InputCompleted, InputRequested
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanValue,
    InputRequest,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    Skipped,
    Submitted,
    TextValue,
    Value,
)
from session_server.schemas.codec import encode
from session_server.schemas.mcp import Elicitation, ElicitRequest, ElicitResult, EmbeddedRequest
from session_server.schemas.record import (
    Asked,
    Begun,
    CallInputRequired,
    Failed,
    FailureKind,
    Remembered,
    SessionRecord,
)
from tests.reducers.calling import BY_HOST, asked, asks, call, form, leg, sent, started, the_call
from tests.sessions import OWNER, accepted, fold

SECRET, OTHER = "canary-1", "canary-2"
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "title": SECRET, "description": SECRET, "default": SECRET},
        "code": {"type": "string", "pattern": f"^{SECRET}", "format": SECRET},
        "free": {"type": "string", "pattern": "^a", "default": "aha"},
        "one": {"type": "string", "enum": [SECRET, OTHER, "c"], "enumNames": [f"is {SECRET}"]},
        "many": {
            "type": "array",
            "items": {"type": "string", "enum": [SECRET, OTHER, "c"]},
            "default": [OTHER],
        },
        SECRET: {"type": "boolean"},
        f"{HIDDEN} 2": {"type": "boolean"},
        OTHER: {"type": "boolean"},
    },
}
PRIVATE: dict[str, Any] = {
    "params": {"name": "deploy", "arguments": {"token": [SECRET, OTHER]}},
    "private_arguments": ("token",),
}


def opened(**requests: EmbeddedRequest) -> SessionRecord:
    return asked(sent(started(**PRIVATE)), asks("state", **requests))


def the_request(record: SessionRecord) -> InputRequest:
    requests = record.public.input_requests or ()
    assert len(requests) == 1
    return requests[0]


def finished(record: SessionRecord, **values: Value | None) -> dict[str, Any]:
    """What the server is told, by its keys."""
    request = the_request(record)
    answers: dict[str, Answer] = {
        name: Skipped() if value is None else Submitted(value=value)
        for name, value in values.items()
    }
    completed = InputCompleted(
        request_id=request.id, response=ResponseKind.ACCEPT, answers=answers or None
    )
    after = accepted(record, OWNER, completed)
    assert "canary" not in encode(after.public).decode()
    return {
        key: response.content
        for key, response in input_responses(the_call(after)).items()
        if isinstance(response, ElicitResult)
    }


def test_no_part_of_a_question_shows_a_private_argument() -> None:
    record = opened(k=form(f"Use {SECRET}?", FORM))
    assert "canary" not in encode(record.public).decode()
    questions = {q.id: q for q in the_request(record).questions or ()}
    assert list(questions) == [
        "text",
        "code",
        "free",
        "one",
        "many",
        HIDDEN,
        f"{HIDDEN} 2",
        f"{HIDDEN} 3",
    ]
    assert questions["text"].title == questions["text"].message == HIDDEN
    assert questions["code"].meta is None
    assert getattr(questions["code"], "format", "") is None
    assert questions["free"].meta is not None
    assert [getattr(questions[name], "default_value", "") for name in ("text", "free")] == [
        None,
        "aha",
    ]
    options = getattr(questions["one"], "options", ())
    assert [(o.id, o.label) for o in options] == [
        (HIDDEN, f"is {HIDDEN}"),
        (f"{HIDDEN} 2", f"{HIDDEN} 2"),
        ("c", "c"),
    ]


def test_the_server_is_told_what_it_knows_by_its_own_names() -> None:
    yes = BooleanValue(value=True)
    record = opened(k=form("Use it?", FORM))
    said = finished(
        record,
        one=SelectedValue(value=f"{HIDDEN} 2"),
        many=SelectedManyValue(value=(HIDDEN, "c")),
        free=None,
        **{HIDDEN: yes, f"{HIDDEN} 3": yes},
    )
    assert said["k"] == {
        "text": SECRET,
        "one": OTHER,
        "many": [SECRET, "c"],
        SECRET: True,
        OTHER: True,
    }


def test_private_numbers_are_hidden_too() -> None:
    private = {**PRIVATE, "params": {"name": "deploy", "arguments": {"token": [471_147, True]}}}
    pin = {"type": "integer", "default": 471_147, "maximum": 471_147, "minimum": 1}
    shapes = {"pin": pin, "on": {"type": "boolean"}}
    schema = {"type": "object", "properties": shapes, "required": []}
    record = asked(sent(started(**private)), asks(k=form("Use 471147?", schema)))
    assert "471147" not in encode(record.public).decode()
    assert finished(record) == {"k": {"pin": 471_147}}
    assert masked(the_call(record), {"pin": 471_147, "on": True, "n": 1.5}) == {
        "pin": HIDDEN,
        "on": True,
        "n": 1.5,
    }


def test_a_choice_that_was_skipped_stays_skipped() -> None:
    assert finished(opened(k=form("Use it?", FORM)), many=None)["k"] == {
        "text": SECRET,
        "free": "aha",
    }


def test_the_names_of_requests_are_hidden_and_told_apart() -> None:
    record = opened(**{SECRET: form("One?"), OTHER: form("Two?"), "plain": form("Three?")})
    assert "canary" not in encode(record.public).decode()
    ids = [request.id for request in record.public.input_requests or ()]
    assert len(set(ids)) == 3
    assert [a.key for a in the_call(record).asked] == [SECRET, OTHER, "plain"]


def test_names_without_secrets_stay_as_they_are() -> None:
    assert stand_ins(call(), ["a", "a", SECRET]) == ["a", "a", SECRET]
    assert stand_ins(call(**PRIVATE), [HIDDEN, SECRET, "b"]) == [HIDDEN, f"{HIDDEN} 2", "b"]


@pytest.mark.parametrize("where", [SECRET, "%63anary%2D1", "a+canary-1"])
def test_an_address_that_holds_a_private_argument_is_not_shown(where: str) -> None:
    url = Elicitation(mode="url", message="Sign in", url=f"https://example.com/?key={where}")
    record = opened(k=ElicitRequest(params=url))
    phase = the_call(record).phase
    assert isinstance(phase, Failed)
    assert phase.error.kind is FailureKind.UNSHOWABLE_FORM
    assert "holds a private argument" in phase.error.message
    assert "canary" not in encode(record.public).decode()


def test_another_address_is_shown() -> None:
    url = Elicitation(mode="url", message="Sign in", url="https://example.com/?key=1")
    assert the_request(opened(k=ElicitRequest(params=url))).url == url.url


@pytest.mark.parametrize("secret", [SECRET, "string", "properties"])
def test_a_recording_of_it_can_be_played(secret: str) -> None:
    """Also where the secret is a word that schemas are made of."""
    private = {**PRIVATE, "params": {"name": "deploy", "arguments": {"token": secret}}}
    before = sent(started(**private))
    schema = {"type": "object", "properties": {"v": {"type": "string", "default": secret}}}
    batch = open_round(before, "c", leg(before), asks("state", k=form("Use it?", schema)), BY_HOST)
    calls = before.private.calls
    played = fold(before, *(redacted(action, calls) for action in batch))
    completed = InputCompleted(request_id=the_request(played).id, response=ResponseKind.ACCEPT)
    after = accepted(played, OWNER, completed)
    (response,) = input_responses(the_call(after)).values()
    assert secret not in encode(response).decode()


def test_what_a_call_remembers_is_hidden_in_a_recording() -> None:
    response = ElicitResult(action=ResponseKind.ACCEPT, content={"v": SECRET})
    answers: dict[str, Answer] = {"v": Submitted(value=TextValue(value="x"))}
    named: dict[str, Any] = {"key": SECRET, "fingerprint": "f"}
    entry = Asked(**named, request_id="r", response=response, elicitation_id=SECRET)
    whole = call(
        **PRIVATE,
        asked=(entry,),
        remembered=(Remembered(**named, run=0, response=response),),
        begun=(Begun(**named, answers=answers),),
    )
    assert "canary" not in encode(redacted_call(whole)).decode()
    action = CallInputRequired(call_id="c", leg=0, asked=(entry,))
    assert "canary" not in encode(redacted(action, {"c": whole})).decode()


def test_the_fingerprint_of_a_question_tells_nothing_of_a_secret() -> None:
    found = []
    for secret in (SECRET, OTHER):
        private = {**PRIVATE, "params": {"name": "deploy", "arguments": {"token": secret}}}
        schema = {"type": "object", "properties": {"v": {"type": "string", "default": secret}}}
        record = asked(sent(started(**private)), asks(k=form(f"Use {secret}?", schema)))
        found.append(the_call(record).asked[0].fingerprint)
    assert found[0] == found[1]


def test_other_calls_are_asked_as_ever() -> None:
    batch = open_round(sent(started()), "c", 0, asks(k=form("Use it?", FORM)), BY_HOST)
    (request,) = [a.request for a in batch if isinstance(a, InputRequested)]
    assert SECRET in encode(request).decode()
