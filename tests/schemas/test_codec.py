"""Decoders take any input and give a value or the one error; what they give, encodes again."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.schemas.codec import encode, outline
from session_server.schemas.errors import (
    DecodingError,
    MalformedError,
    MismatchError,
    UnknownKindError,
)
from session_server.schemas.wire import Unknown
from tests.schemas.decoding import (
    DECODERS,
    SHAPES,
    decode_action,
    every_decoder,
    fewer,
    number_answer,
    plain,
    refusal,
    settle,
    titled,
    with_meta,
)
from tests.strategies import json_values, shapes, texts


def test_every_decoder_is_looked_at() -> None:
    assert set(DECODERS) == set(SHAPES)


# What is encoded decodes to the same


def noisy(value: Any) -> Any:
    """The value as a careless peer of a later version sends it: every absent optional field is
    `null`, and every shape has a field that nobody here knows."""
    match value:
        case Unknown():
            return value.raw
        case msgspec.Raw():
            return msgspec.json.decode(value)
        case tuple() | list():
            return [noisy(item) for item in value]
        case dict():
            return {key: noisy(item) for key, item in value.items()}
        case msgspec.Struct():
            fields = msgspec.structs.fields(value)
            told = {field.encode_name: noisy(getattr(value, field.name)) for field in fields}
            config = value.__struct_config__
            tag = {config.tag_field: config.tag} if config.tag_field else {}
            known = {key: item for key, item in told.items() if item is not msgspec.UNSET}
            return {"unheardOf": {"kind": [1]}, **tag, **known}
        case _:
            return value


@pytest.mark.proves("design.decode.round-trip", "ahp.frames.null-is-absent")
@every_decoder
@fewer
@given(data=st.data())
def test_what_is_encoded_decodes_to_an_equal_value_unknown_fields_and_nulls_or_not(
    name: str, data: st.DataObject
) -> None:
    value = data.draw(shapes(SHAPES[name]))
    encoded = encode(value)
    for text in (encoded, encoded.decode()):
        decoded = DECODERS[name](text)
        assert decoded == value
        assert encode(decoded) == encoded
    assert DECODERS[name](encode(noisy(value))) == value


@pytest.mark.proves("ahp.frames.null-is-absent", "ahp.envelope.clear-draft")
def test_a_cleared_draft_is_echoed_without_the_key() -> None:
    text = '{"type":"session/inputAnswerChanged","requestId":"r","questionId":"q"'
    assert encode(decode_action(text + ',"answer":null}')).decode() == text + "}"


@given(value=json_values)
def test_numbers_stay_what_they_were(value: Any) -> None:
    text = with_meta(encode(value).decode())
    assert encode(decode_action(text)).decode() == text


@pytest.mark.parametrize(
    "number",
    [
        *("7", "7.0", "-7", "0.1", "-0.0", "1e22", "9007199254740993"),
        *(str(2**63 - 1), str(-(2**63)), "1e300"),
    ],
)
def test_a_number_that_is_answered_stays_what_it_was(number: str) -> None:
    assert encode(decode_action(number_answer(number))).decode() == number_answer(number)


# Garbage


@pytest.mark.proves("design.decode.one-error")
@given(
    data=st.one_of(
        st.binary(max_size=64), st.text(st.characters(), max_size=64), json_values.map(encode)
    )
)
def test_any_bytes_text_or_json_decode_or_raise_the_one_error(data: bytes | str) -> None:
    for name in DECODERS:
        settle(name, data)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) inside a JSON value."""
    here: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        here = [(value, key) for key in value]
    elif isinstance(value, list):
        here = [(value, index) for index in range(len(value))]
    return here + [place for container, key in here for place in places(container[key])]


@pytest.mark.proves("design.decode.one-error")
@every_decoder
@fewer
@given(data=st.data())
def test_a_value_with_one_place_changed_decodes_or_raises_the_one_error(
    name: str, data: st.DataObject
) -> None:
    value = plain(data.draw(shapes(SHAPES[name])))
    if found := places(value):
        container, key = data.draw(st.sampled_from(found))
        if data.draw(st.booleans()):
            container[key] = data.draw(json_values)
        else:
            del container[key]
    settle(name, encode(value))


@pytest.mark.proves("design.decode.one-error")
@every_decoder
@fewer
@given(data=st.data())
def test_a_value_with_some_bytes_changed_decodes_or_raises_the_one_error(
    name: str, data: st.DataObject
) -> None:
    encoded = encode(data.draw(shapes(SHAPES[name])))
    at = data.draw(st.integers(0, len(encoded)))
    cut = data.draw(st.integers(0, 3))
    settle(name, encoded[:at] + data.draw(st.binary(max_size=3)) + encoded[at + cut :])


NOT_JSON: dict[str, bytes | str] = {
    "nothing": "",
    "a space": " ",
    "an open object": '{"type":"session/ready"',
    "text after it": '{"type":"session/ready"} x',
    "two values": '{"type":"session/ready"}{"type":"session/ready"}',
    "a byte order mark": b'\xef\xbb\xbf{"type":"session/ready"}',
    "NaN": with_meta("NaN"),
    "Infinity": with_meta("-Infinity"),
    "a leading zero": with_meta("01"),
    "a bare word": with_meta("yes"),
    "a comment": with_meta("1 /* one */"),
    "single quotes": with_meta("'x'"),
    "a trailing comma": with_meta("[1,]"),
    "a control character": with_meta('"\x01"'),
    "an unknown escape": with_meta('"\\x"'),
    "a lone surrogate, escaped": titled('"\\ud800"'),
    "a lone low surrogate, escaped": titled('"\\udc00 "'),
    "a lone surrogate in a key": with_meta('{"\\ud800":1}'),
    "a lone surrogate in an unknown field": '{"type":"session/ready","x":"\\ud800"}',
    "a lone surrogate": titled('"\ud800"'),
    "bad UTF-8": titled('"').encode() + b'\xff"}',
    "bad UTF-8 in free-form data": b'{"type":"session/metaChanged","_meta":{"x":"\xc3("}}',
    "bad UTF-8 in a key": b'{"type":"session/metaChanged","_meta":{"\xff":1}}',
    "bad UTF-8 in an unknown field": b'{"type":"session/ready","x":"\xff"}',
    "bad UTF-8 in an unknown key": b'{"type":"session/ready","\xff":1}',
    "an overlong encoding": b'{"type":"session/metaChanged","_meta":{"x":"\xc0\xaf"}}',
    "UTF-16": titled('"x"').encode("utf-16"),
    "too large a fraction": with_meta("1e400"),
    "too large a negative fraction": with_meta("-1e400"),
    "a whole number of ten thousand digits": with_meta("9" * 10_000),
    "a wrong type before a mistake": '{"type":"unheardOf",]',
    "a wrong value before bad UTF-8": b'{"type":"session/titleChanged","title":1,"x":"\xff"}',
}


@pytest.mark.proves("ahp.errors.malformed", "design.decode.one-error")
@pytest.mark.parametrize("text", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_not_json_is_malformed(text: bytes | str) -> None:
    error = refusal("decode_action", text)
    assert type(error) is MalformedError
    assert error.path == "$"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("half \\ud83d of it", "half \ufffd of it"),
        ("\\udf31", "\ufffd"),
        ("\\uD83D\\uD83C\\uDF31", "\ufffd🌱"),
        ("\\\\ud83d \\ud83d", "\\ud83d \ufffd"),
        ("\\ud83d\\n", "\ufffd\n"),
    ],
)
@pytest.mark.parametrize("name", ["decode_client_frame", "decode_agent_frame"])
def test_a_lone_surrogate_in_a_frame_becomes_the_replacement_character(
    name: str, text: str, title: str
) -> None:
    action = f'{{"type":"session/titleChanged","title":"{text}"}}'
    params = f'{{"channel":"ahp-session:/1","clientSeq":1,"action":{action}}}'
    frame = f'{{"jsonrpc":"2.0","method":"dispatchAction","params":{params}}}'
    assert settle(name, frame).params.action.title == title


@pytest.mark.parametrize("text", ["\\ud800", "\\udc00", "a\\ud83d\\n"])
def test_a_lone_surrogate_outside_of_frames_is_named_in_the_error(text: str) -> None:
    error = refusal("decode_action", titled(f'"{text}"'))
    assert "half of a surrogate pair" in str(error)
    assert "surrogate" not in str(refusal("decode_action", titled('"\\ud83c\\udf31')))


def test_a_lone_surrogate_does_not_repair_a_frame_that_is_broken_elsewhere() -> None:
    assert type(refusal("decode_client_frame", '{"a":"\\ud83d",}')) is MalformedError
    assert type(refusal("decode_client_frame", '{"a":"\\ud83d\\ud83c\\udf31"')) is MalformedError


def test_the_outline_of_a_text_leaves_out_what_is_nested_deeper_than_an_action() -> None:
    assert outline(b'{"id":1,"params":{"action":{"a":[{"b":[1]}],"c":"[{","d":{}}}}') == (
        b'{"id":1,"params":{"action":{"a":null,"c":"[{","d":null}}}'
    )
    assert outline(b"[[[[[") == b"[[["
    assert outline(b"]]x") == b"]]x"


def test_a_surrogate_pair_is_one_character() -> None:
    assert decode_action(titled('"\\ud83c\\udf31"')).title == "🌱"


def test_space_around_the_text_is_no_mistake() -> None:
    assert decode_action(" \r\n\t" + titled('"x"') + " \n").title == "x"


# Numbers


@pytest.mark.parametrize("number", [str(2**63), "1" + "0" * 400, "-" + "9" * 4000])
def test_a_whole_number_of_more_than_64_bits_is_no_answer(number: str) -> None:
    error = refusal("decode_action", number_answer(number))
    assert type(error) is MismatchError
    assert error.path == "$.answer.value.value"


def test_a_whole_number_of_any_size_is_carried_along() -> None:
    text = with_meta("9" * 400)
    assert encode(decode_action(text)).decode() == text


@pytest.mark.proves("ahp.frames.integers")
@pytest.mark.parametrize(
    "number", ["-1", "1.5", "1.0", "1e2", '"1"', "true", "null", "9007199254740992", "1" * 30]
)
def test_a_count_is_a_whole_number_that_every_reader_keeps_exact(number: str) -> None:
    text = f'{{"type":"root/activeSessionsChanged","activeSessions":{number}}}'
    error = refusal("decode_action", text)
    assert type(error) is MismatchError
    assert error.path == "$.activeSessions"


@pytest.mark.proves("ahp.frames.integers")
@pytest.mark.parametrize("number", ["0", "9007199254740991"])
def test_a_count_leaves_as_it_came(number: str) -> None:
    text = f'{{"type":"root/activeSessionsChanged","activeSessions":{number}}}'
    assert encode(decode_action(text)).decode() == text


# Repeated keys


def test_of_a_repeated_key_the_last_counts() -> None:
    assert decode_action('{"type":"session/titleChanged","title":"x","title":"y"}').title == "y"
    assert decode_action(with_meta('{"a":1,"a":2}')).meta == {"x": {"a": 2}}


def test_a_repeated_type_is_taken_once_or_refused() -> None:
    twice = '{"type":"session/ready","type":"session/ready"}'
    assert encode(decode_action(twice)) == b'{"type":"session/ready"}'
    other = '{"type":"session/ready","type":"session/truncated"}'
    assert isinstance(refusal("decode_action", other), DecodingError)


# What the error tells

PART = '{"type":"session/responsePart","turnId":"t","part":%s}'
TOOL_PART = PART % (
    '{"kind":"toolCall","toolCall":{"status":"completed","toolCallId":"c","toolName":"n",'
    '"displayName":"d","invocationMessage":"m","confirmed":"setting","success":true,'
    '"pastTenseMessage":"p","content":[{"type":"text","text":"a"},%s]}}'
)
tricky_words = st.lists(
    st.one_of(st.sampled_from(["'", "`", "\n", " - at `", "$.x", "`' - at `$", "(at $)"]), texts)
).map("".join)
"""msgspec reports errors as text only, and these might be taken for some of them."""
COMPLETED = '{"type":"session/inputCompleted","requestId":"r","response":%s}'


@pytest.mark.proves("ahp.errors.malformed")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[]", "$"),
        ("null", "$"),
        ('"session/ready"', "$"),
        ("{}", "$"),
        ('{"type":null}', "$.type"),
        ('{"type":5}', "$.type"),
        ('{"type":"session/titleChanged"}', "$"),
        ('{"type":"session/titleChanged","title":5}', "$.title"),
        ('{"type":"session/titleChanged","title":null}', "$.title"),
        ('{"title":5,"type":"session/titleChanged"}', "$.title"),
        ('{"type":"session/isReadChanged","isRead":1}', "$.isRead"),
        ('{"type":"session/metaChanged","_meta":[]}', "$._meta"),
        ('{"type":"session/queuedMessagesReordered","order":["a",1]}', "$.order[1]"),
        (COMPLETED % '"perhaps"', "$.response"),
        (COMPLETED % '"accept","answers":{"q":{}}', "$.answers[...]"),
        (PART % "5", "$.part"),
        (PART % "null", "$.part"),
        (PART % "{}", "$.part"),
        (PART % '{"kind":5}', "$.part"),
        (PART % '{"kind":"markdown","id":5,"content":""}', "$.part.id"),
        (PART % '{"kind":"markdown","id":"m"}', "$.part"),
        (
            PART % '{"kind":"systemNotification","content":{"markdown":1}}',
            "$.part.content.markdown",
        ),
        (PART % '{"kind":"toolCall","toolCall":{"status":"running"}}', "$.part.toolCall"),
        (TOOL_PART % '{"type":"text","text":3}', "$.part.toolCall.content[1].text"),
        (TOOL_PART % "{}", "$.part.toolCall.content[1]"),
    ],
)
def test_another_shape_is_a_mismatch_and_says_where(text: str, path: str) -> None:
    error = refusal("decode_action", text)
    assert type(error) is MismatchError
    assert error.path == path
    assert "`" not in error.path
    assert " - at " not in error.reason
    assert str(error) == (error.reason if path == "$" else f"{error.reason} (at {path})")


@pytest.mark.proves("ahp.errors.malformed")
@pytest.mark.parametrize(
    ("text", "kind", "path"),
    [
        ('{"type":"session/unheardOf"}', "session/unheardOf", "$.type"),
        ('{"type":""}', "", "$.type"),
        (COMPLETED % '"accept","answers":{"q":{"state":"lost"}}', "lost", "$.answers[...].state"),
        (number_answer('1,"kind":"text"').replace('"number"', '"colour"'), "colour", "$.answer"),
        (PART % '{"kind":"toolCall","toolCall":{"status":"melting"}}', "melting", "$.part"),
    ],
)
def test_an_unheard_of_kind_is_named(text: str, kind: str, path: str) -> None:
    error = refusal("decode_action", text)
    assert isinstance(error, UnknownKindError)
    assert error.kind == kind
    assert error.path.startswith(path)
    assert kind in str(error)


@pytest.mark.proves("ahp.errors.malformed")
@given(kind=tricky_words)
def test_a_kind_of_any_spelling_is_named(kind: str) -> None:
    error = refusal("decode_action", encode({"type": kind}))
    assert isinstance(error, UnknownKindError)
    assert (error.kind, error.path) == (kind, "$.type")


@pytest.mark.proves("ahp.errors.malformed")
@given(kind=tricky_words)
def test_a_value_of_any_spelling_is_a_mismatch_in_its_place(kind: str) -> None:
    error = refusal("decode_action", COMPLETED % encode(kind).decode())
    assert type(error) is MismatchError
    assert error.path == "$.response"
