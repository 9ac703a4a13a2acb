"""Private arguments that a server repeats: recognized in every encoding, and hidden from people."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session_server.reducers.calls.export_redaction import redacted, redacted_call
from session_server.reducers.calls.redaction import (
    END_CHARS,
    HIDDEN,
    SHORTEST_SECRET,
    masked,
    masked_names,
)
from session_server.reducers.calls.rounds import input_responses, open_round
from session_server.schemas.ahp.actions import InputCompleted
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
from session_server.schemas.limits import REDACTIONS_PER_VALUE
from session_server.schemas.mcp import Elicitation, ElicitRequest, ElicitResult, EmbeddedRequest
from session_server.schemas.record import (
    Asked,
    Begun,
    Call,
    CallInputRequired,
    FailureKind,
    Remembered,
    SessionRecord,
)
from tests.reducers.call_records import (
    BY_HOST,
    asked,
    asks,
    call,
    failed,
    form,
    leg,
    sent,
    started,
    the_call,
)
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


def hiding(**arguments: Any) -> Call:
    """A call all of whose arguments are private."""
    params = {"name": "deploy", "arguments": arguments}
    return call(params=params, private_arguments=tuple(arguments))


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


def test_the_server_gets_answers_under_its_own_names() -> None:
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


def test_the_names_of_requests_are_hidden_and_stay_distinct() -> None:
    record = opened(**{SECRET: form("One?"), OTHER: form("Two?"), "plain": form("Three?")})
    assert "canary" not in encode(record.public).decode()
    ids = [request.id for request in record.public.input_requests or ()]
    assert len(set(ids)) == 3
    assert [a.key for a in the_call(record).asked] == [SECRET, OTHER, "plain"]


def test_names_without_secrets_stay_as_they_are() -> None:
    assert masked_names(call(), ["a", "a", SECRET]) == ["a", "a", SECRET]
    assert masked_names(call(**PRIVATE), [HIDDEN, SECRET, "b"]) == [HIDDEN, f"{HIDDEN} 2", "b"]


@pytest.mark.parametrize("where", [SECRET, "%63anary%2D1", "a+canary-1"])
def test_an_address_that_holds_a_private_argument_is_not_shown(where: str) -> None:
    url = Elicitation(mode="url", message="Sign in", url=f"https://example.com/?key={where}")
    record = opened(k=ElicitRequest(params=url))
    assert failed(record).kind is FailureKind.UNSHOWABLE_FORM
    assert "holds a private argument" in failed(record).message
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


# Recognizing secrets


def percent(text: str, **more: Any) -> str:
    return quote(text, errors="surrogatepass", **more)


def in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def units(text: str) -> list[str]:
    return [
        f"{unit:04x}" for unit in memoryview(text.encode("utf-16", "surrogatepass")[2:]).cast("H")
    ]


def all_escaped(text: str) -> str:
    return "".join(f"\\u{unit}" for unit in units(text))


def all_percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def mixed(encode: Callable[[str], str], usual: Callable[[str], str]) -> Callable[[str], str]:
    """Every third character as usual, the others escaped, in capitals and not."""

    def encoded(text: str) -> str:
        def one(at: int, character: str) -> str:
            escaped = encode(character)
            return (usual(character), escaped.lower(), escaped.upper().replace("U", "u"))[at % 3]

        return "".join(one(at, character) for at, character in enumerate(text))

    return encoded


ENCODERS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": in_json,
    "JSON with other letters": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON of PHP": lambda text: in_json(text).replace("/", "\\/"),
    "JSON in JSON": lambda text: in_json(in_json(text)),
    "a part of a URL": lambda text: percent(text, safe=""),
    "a path": percent,
    "a form": lambda text: quote_plus(text, errors="surrogatepass"),
    "encodeURIComponent": lambda text: percent(text, safe="!'()*"),
    "lower case": lambda text: re.sub("%..", lambda it: it[0].lower(), percent(text, safe="")),
    "JSON with every character escaped": all_escaped,
    "JSON with some characters escaped": mixed(all_escaped, in_json),
    "JSON in JSON with some characters escaped": lambda text: in_json(
        mixed(all_escaped, in_json)(text)
    ),
    "every byte of a URL": all_percent,
    "some bytes of a URL": mixed(all_percent, lambda text: percent(text, safe="")),
    "a URL in JSON": lambda text: all_escaped(percent(text, safe="")),
    "all of JSON in a URL": lambda text: all_percent(all_escaped(text)),
    "JSON in a URL": lambda text: percent(in_json(text), safe=""),
}


@pytest.mark.parametrize("how", ENCODERS)
@example(secret='s3 crét/+"\\\n🚀')
@example(secret='s3cr"et/päss&word+x<1')
@given(secret=st.text(min_size=SHORTEST_SECRET, max_size=200))
def test_private_arguments_are_hidden_in_every_common_encoding(how: str, secret: str) -> None:
    of = hiding(token=secret)
    encoded = ENCODERS[how](secret)
    assert masked(of, encoded) == HIDDEN
    assert secret not in masked(of, f"before {encoded} after").removeprefix("before ")


def test_a_long_private_argument_is_hidden_in_json_too() -> None:
    letter = 'Dear "friend",\n' * 2_048
    of = hiding(letter=letter)
    assert masked(of, in_json(letter)) == HIDDEN
    assert masked(of, [letter, 5]) == [HIDDEN, 5]


def test_a_long_private_argument_is_hidden_up_to_its_end() -> None:
    letter = "".join(chr(0x4E00 + at) for at in range(500))
    of = hiding(letter=letter)
    begin, end = letter[:END_CHARS], letter[-END_CHARS:]
    shown = {
        f"a {letter} b {all_percent(letter)} c": f"a {HIDDEN} b {HIDDEN} c",
        f"a {begin} b": f"a {HIDDEN} b",
        f"a {end} b": f"a {end} b",
        f"{end} {begin}{end}": f"{end} {HIDDEN}{end}",
    }
    assert {text: masked(of, text) for text in shown} == shown


def test_many_private_arguments_are_looked_for() -> None:
    values = [f"value-{number:05}-{'x' * 20}" for number in range(100)]
    assert masked(hiding(all=values), [*values, "another"]) == [HIDDEN] * 100 + ["another"]


def test_texts_that_repeat_secrets_too_often_are_hidden_as_a_whole() -> None:
    of = hiding(token="s3cr3t")
    few = "is %733cr3t " * (REDACTIONS_PER_VALUE - 1)
    assert masked(of, few) == few.replace("%733cr3t", HIDDEN)
    many = "is %733cr3t " * REDACTIONS_PER_VALUE
    value = {"first s3cr3t": many, "second": ["a s3cr3t", "another", 5]}
    expected = {f"first {HIDDEN}": HIDDEN, "second": [HIDDEN, "another", 5]}
    assert masked(of, value) == expected


def test_only_what_decodes_to_a_secret_is_hidden() -> None:
    of = hiding(user="abcd", token="abcd/efgh", note="h äh")
    shown = {
        r"ä\n abcd\/efgh \n100%": rf"ä\n {HIDDEN} \n100%",
        r"\t%61bcd%2fefgh%20%C3%A4h%20": rf"\t{HIDDEN}%20",
        "1+1 h+%c3%a4h+abc": f"1+1 {HIDDEN}+abc",
        "abcdabcd": HIDDEN * 2,
        r"\u0061bc %zz \u00e": r"\u0061bc %zz \u00e",
    }
    assert {text: masked(of, text) for text in shown} == shown


def test_a_private_number_is_hidden_as_a_fraction_too() -> None:
    of = hiding(pin=471_147, limit=99_999.0)
    assert masked(of, [471_147, 471_147.0, 99_999, "99999", 1.5]) == [HIDDEN] * 4 + [1.5]
