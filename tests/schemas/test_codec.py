"""Decoders take any input and give a value or the one error; what they give, encodes again."""

import json
import time
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from session_server.schemas import codec
from session_server.schemas.actions import Action, ClientAction, HostAction
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.commands import UndecodedDispatchParams
from session_server.schemas.errors import (
    DecodingError,
    MalformedError,
    MismatchError,
    UnknownKindError,
)
from session_server.schemas.frames import AgentFrame, ClientFrame, FrameHead, HostNotification
from session_server.schemas.limits import JSON_DEPTH
from session_server.schemas.record import PrivateAction, SessionRecord
from session_server.schemas.root import RootState
from session_server.schemas.session import SessionState
from session_server.schemas.variants import Unknown
from tests.strategies import host_actions, json_values, private_actions, shapes, texts

SHAPES: dict[str, Any] = {
    "decode_client_frame": ClientFrame,
    "decode_agent_frame": AgentFrame,
    "decode_frame_head": FrameHead,
    "decode_undecoded_dispatch": UndecodedDispatchParams,
    "decode_host_notification": HostNotification,
    "decode_client_action": ClientAction,
    "decode_action": Action,
    "decode_record_action": Action | PrivateAction,
    "decode_root_state": RootState,
    "decode_session_state": SessionState,
    "decode_session_record": SessionRecord,
}
DECODERS: dict[str, Decoder[Any]] = {
    name: value for name, value in vars(codec).items() if isinstance(value, Decoder)
}
every_decoder = pytest.mark.parametrize("name", sorted(DECODERS))
fewer = settings(max_examples=max(10, settings().max_examples // 20))
"""For tests that run once per decoder or kind: together they see as many examples as the others."""

decode_action: Decoder[Any] = codec.decode_action


def plain(value: Any) -> Any:
    return msgspec.json.decode(encode(value))


def attempt(name: str, data: bytes | str) -> Any:
    try:
        return DECODERS[name](data)
    except DecodingError as error:
        return error


def settle(name: str, data: bytes | str) -> Any:
    """What the decoder makes of the data. Anything but a value or the one error fails the test."""
    value = attempt(name, data)
    if isinstance(value, DecodingError):
        assert value.reason
        assert value.path.startswith("$")
        assert str(value)
        return value
    again = encode(value)
    assert DECODERS[name](again) == value
    assert encode(DECODERS[name](again)) == again
    return value


def refusal(name: str, data: bytes | str) -> DecodingError:
    error = settle(name, data)
    assert isinstance(error, DecodingError), f"{data!r} was taken for {error!r}"
    return error


def titled(title: str) -> str:
    return f'{{"type":"session/titleChanged","title":{title}}}'


def with_meta(value: str) -> str:
    return f'{{"type":"session/metaChanged","_meta":{{"x":{value}}}}}'


def number_answer(number: str) -> str:
    value = f'{{"kind":"number","value":{number}}}'
    return (
        '{"type":"session/inputAnswerChanged","requestId":"r","questionId":"q",'
        f'"answer":{{"state":"draft","value":{value}}}}}'
    )


def test_every_decoder_is_looked_at() -> None:
    assert set(DECODERS) == set(SHAPES)


# What is encoded decodes to the same


@pytest.mark.proves("design.decode.round-trip")
@every_decoder
@fewer
@given(data=st.data())
def test_what_is_encoded_decodes_to_an_equal_value(name: str, data: st.DataObject) -> None:
    value = data.draw(shapes(SHAPES[name]))
    encoded = encode(value)
    decoded = DECODERS[name](encoded)
    assert decoded == value
    assert encode(decoded) == encoded
    assert DECODERS[name](encoded.decode()) == value


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


@pytest.mark.proves("ahp.frames.null-is-absent")
@every_decoder
@fewer
@given(data=st.data())
def test_unknown_fields_and_nulls_make_no_difference(name: str, data: st.DataObject) -> None:
    value = data.draw(shapes(SHAPES[name]))
    assert DECODERS[name](encode(noisy(value))) == value


@pytest.mark.proves("ahp.frames.null-is-absent", "ahp.envelope.clear-draft")
def test_a_cleared_draft_is_echoed_without_the_key() -> None:
    text = '{"type":"session/inputAnswerChanged","requestId":"r","questionId":"q"'
    assert encode(decode_action(text + ',"answer":null}')).decode() == text + "}"


@given(value=json_values)
def test_numbers_stay_what_they_were(value: Any) -> None:
    text = with_meta(encode(value).decode())
    assert encode(decode_action(text)).decode() == text


@pytest.mark.parametrize("number", ["7", "7.0", "-7", "0.1", "-0.0", "1e22", "9007199254740993"])
def test_a_number_that_is_answered_stays_what_it_was(number: str) -> None:
    assert encode(decode_action(number_answer(number))).decode() == number_answer(number)


# Garbage


@pytest.mark.proves("design.decode.one-error")
@given(data=st.binary(max_size=64))
def test_any_bytes_decode_or_raise_the_one_error(data: bytes) -> None:
    for name in DECODERS:
        settle(name, data)


@pytest.mark.proves("design.decode.one-error")
@given(data=st.text(st.characters(), max_size=64))
def test_any_text_decodes_or_raises_the_one_error(data: str) -> None:
    for name in DECODERS:
        settle(name, data)


@pytest.mark.proves("design.decode.one-error")
@given(value=json_values)
def test_any_json_decodes_or_raises_the_one_error(value: Any) -> None:
    for name in DECODERS:
        settle(name, encode(value))


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


@pytest.mark.parametrize("number", [str(2**63 - 1), str(-(2**63)), "1e300"])
def test_a_large_number_may_be_answered(number: str) -> None:
    assert encode(decode_action(number_answer(number))).decode() == number_answer(number)


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


# Nesting


def nested_lists(depth: int) -> str:
    return "[" * depth + "]" * depth


def nested(depth: int) -> str:
    """An action that is nested this deep in all."""
    return with_meta(nested_lists(depth - 2))


@pytest.mark.proves("design.limits.depth")
def test_nesting_up_to_the_limit_is_taken() -> None:
    assert not isinstance(settle("decode_action", nested(JSON_DEPTH)), DecodingError)


@pytest.mark.proves("design.limits.depth")
@pytest.mark.parametrize("depth", [JSON_DEPTH + 1, 1000, 100_000])
@every_decoder
def test_nesting_beyond_the_limit_is_malformed(name: str, depth: int) -> None:
    error = refusal(name, nested(depth))
    assert type(error) is MalformedError
    assert str(JSON_DEPTH) in error.reason


@pytest.mark.proves("design.limits.depth")
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[{" * 1000,
        '{"type":' * 70 + '"x"' + "}" * 70,
        '["[' + "]" * 1000 + '",' + "[" * 70,
        '["\\\\",' + "[" * 70,
    ],
)
def test_unfinished_or_mixed_nesting_beyond_the_limit_is_malformed(text: str) -> None:
    for name in DECODERS:
        assert type(refusal(name, text)) is MalformedError


@pytest.mark.proves("design.limits.depth")
@pytest.mark.parametrize(
    "words", ["[" * 1000, "{[" * 1000, '\\"[' * 1000, "[\\\\" * 1000, '\\\\\\"{' * 99]
)
def test_brackets_inside_strings_are_no_nesting(words: str) -> None:
    title = json.loads(f'"{words}"')
    assert decode_action(titled(f'"{words}"')).title == title
    assert decode_action(with_meta(f'{{"{words}":1}}')).meta == {"x": {title: 1}}


@pytest.mark.proves("design.limits.depth")
def test_many_brackets_side_by_side_are_no_nesting() -> None:
    side_by_side = ",".join(['{"a":[]}'] * 500)
    assert len(decode_action(with_meta(f"[{side_by_side}]")).meta["x"]) == 500


@pytest.mark.proves("design.limits.depth")
def test_shallow_neighbours_do_not_make_up_for_nesting() -> None:
    neighbours = "[]," * 500
    at_limit = with_meta("[" + neighbours + nested_lists(JSON_DEPTH - 3) + "]")
    beyond = with_meta("[" + neighbours + nested_lists(JSON_DEPTH - 2) + "]")
    assert not isinstance(settle("decode_action", at_limit), DecodingError)
    assert type(refusal("decode_action", beyond)) is MalformedError


@pytest.mark.proves("design.limits.depth")
@pytest.mark.parametrize("depth", range(JSON_DEPTH - 2, JSON_DEPTH + 3))
@fewer
@given(data=st.data())
def test_the_limit_counts_what_json_counts(depth: int, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.booleans(), min_size=depth - 2, max_size=depth - 2))
    key = encode(data.draw(st.text('[]{}\\"a', max_size=5))).decode()
    text = "".join(f"{{{key}:" if is_object else f"[{key}," for is_object in kinds)
    text += key + "".join("}" if is_object else "]" for is_object in reversed(kinds))
    refused = isinstance(settle("decode_action", with_meta(text)), DecodingError)
    assert refused is (depth > JSON_DEPTH)


@pytest.mark.proves("design.limits.depth")
@pytest.mark.parametrize("tail", ['"' + '\\"' * 16_000, '"' * 32_001, '"\\' * 16_000])
def test_looking_for_nesting_takes_no_time(tail: str) -> None:
    """A frame of a megabyte has no more than a few hundredths of a second to waste."""
    text = "[" + "[]," * 100 + tail
    began = time.perf_counter()
    assert isinstance(refusal("decode_action", text), DecodingError)
    assert time.perf_counter() - began < 1


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
"""msgspec tells what is wrong in words, and these might be taken for some of them."""
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


# Who may say what


def dispatched(action: Any) -> bytes:
    params = {"channel": "ahp-session:/1", "clientSeq": 1, "action": action}
    return encode({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})


@pytest.mark.proves("design.decode.client")
@pytest.mark.parametrize("kind", get_args(ClientAction), ids=lambda kind: kind.__name__)
@fewer
@given(data=st.data())
def test_clients_and_agents_may_say_client_actions(kind: Any, data: st.DataObject) -> None:
    action = data.draw(shapes(kind))
    for decode in (codec.decode_client_frame, codec.decode_agent_frame):
        frame: Any = decode(dispatched(action))
        assert frame.params.action == action
    assert codec.decode_client_action(encode(action)) == action


@pytest.mark.proves("design.decode.client", "design.decode.agent")
@pytest.mark.parametrize("kind", get_args(HostAction), ids=lambda kind: kind.__name__)
@fewer
@given(data=st.data())
def test_only_agents_may_say_host_actions(kind: Any, data: st.DataObject) -> None:
    action = data.draw(shapes(kind))
    frame: Any = codec.decode_agent_frame(dispatched(action))
    assert frame.params.action == action
    error = refusal("decode_client_frame", dispatched(action))
    assert isinstance(error, UnknownKindError)
    assert (error.kind, error.path) == (kind.__struct_config__.tag, "$.params.action.type")
    assert isinstance(refusal("decode_client_action", encode(action)), UnknownKindError)


@pytest.mark.proves("design.record.not-decoded")
@given(action=private_actions)
def test_nobody_may_say_private_actions(action: Any) -> None:
    assert codec.decode_record_action(encode(action)) == action
    for name in ("decode_client_frame", "decode_agent_frame"):
        assert isinstance(refusal(name, dispatched(action)), UnknownKindError)
    for name in ("decode_client_action", "decode_action"):
        assert isinstance(refusal(name, encode(action)), UnknownKindError)


# Where only the host writes

ANSWER = {"state": "draft", "value": {"kind": "text", "value": "x"}}
QUESTION = {"kind": "text", "id": "q", "message": "m"}
CHANGE = {"type": "session/inputAnswerChanged", "requestId": "r", "questionId": "q"}
COMPLETION = {"type": "session/inputCompleted", "requestId": "r", "response": "accept"}


def marked_actions(meta: Any) -> list[dict[str, Any]]:
    """Actions that have this `_meta` in a place of the host's: the first two are a client's."""
    answer, question = {**ANSWER, "_meta": meta}, {**QUESTION, "_meta": meta}
    requests = [
        {"id": "r", "_meta": meta},
        {"id": "r", "questions": [QUESTION, question]},
        {"id": "r", "answers": {"q": answer}},
    ]
    return [
        {**CHANGE, "answer": answer},
        {**COMPLETION, "answers": {"p": ANSWER, "q": answer}},
        *({"type": "session/inputRequested", "request": request} for request in requests),
    ]


@pytest.mark.proves("design.wire.answer-meta-forged", "design.wire.request-meta-forged")
@example(meta=5)
@example(meta={"by": "me"})
@example(meta={"via": "magic"})
@example(meta={"pattern": 1})
@example(meta={"round": -1})
@given(meta=json_values)
def test_anything_may_stand_where_only_the_host_writes(meta: Any) -> None:
    actions = zip(marked_actions(meta), marked_actions(None), strict=True)
    for index, (action, unmarked) in enumerate(actions):
        decoders: list[Decoder[Any]] = [codec.decode_agent_frame]
        if index < 2:
            decoders.append(codec.decode_client_frame)
        for decode in decoders:
            decoded = decode(dispatched(action)).params.action
            said = plain(decoded)
            assert without_host_fields(said) == without_host_fields(unmarked)


def without_host_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_host_fields(item) for key, item in value.items() if key != "_meta"}
    return [without_host_fields(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("meta", [5, {"by": "me"}, {"at": -1}, {"via": "magic"}])
def test_what_has_the_wrong_shape_there_is_dropped(meta: Any) -> None:
    frame: Any = codec.decode_client_frame(dispatched(marked_actions(meta)[0]))
    assert frame.params.action.answer.meta is None


def test_what_has_the_right_shape_there_is_left_to_the_host_to_overwrite() -> None:
    frame: Any = codec.decode_client_frame(dispatched(marked_actions({"at": 3})[0]))
    assert frame.params.action.answer.meta.at == 3


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ({**CHANGE, "answer": {**ANSWER, "value": 5, "_meta": 5}}, "$.params.action.answer.value"),
        (
            {**COMPLETION, "answers": {"p": {**ANSWER, "_meta": 5}, "q": 5}},
            "$.params.action.answers[...]",
        ),
        (
            {
                "type": "session/turnStarted",
                "turnId": "t",
                "message": {"text": "m", "origin": {"kind": "user"}, "_meta": 5},
                "request": 5,
                "answer": [],
                "answers": 5,
            },
            "$.params.action.message._meta",
        ),
        (
            {
                "type": "session/toolCallComplete",
                "turnId": "t",
                "toolCallId": "c",
                "result": {"success": True, "pastTenseMessage": "p"},
                "_meta": [],
                "request": {"questions": {}, "answers": []},
            },
            "$.params.action._meta",
        ),
    ],
)
def test_what_is_wrong_elsewhere_is_refused_all_the_same(action: Any, path: str) -> None:
    error = refusal("decode_client_frame", dispatched(action))
    assert type(error) is MismatchError
    assert error.path == path


@given(action=st.one_of(host_actions, private_actions, json_values))
def test_an_action_that_is_not_understood_is_kept_to_be_refused(action: Any) -> None:
    raw = encode(action)
    frame = codec.decode_frame_head(dispatched(msgspec.Raw(raw)))
    assert frame.method == "dispatchAction"
    assert isinstance(frame.params, msgspec.Raw)
    dispatch = codec.decode_undecoded_dispatch(bytes(frame.params))
    assert (dispatch.channel, dispatch.client_seq) == ("ahp-session:/1", 1)
    assert bytes(dispatch.action) == raw
