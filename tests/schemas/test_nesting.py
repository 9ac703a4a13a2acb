"""How deep JSON may be nested, and that finding out is cheap."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.schemas.ahp.actions import TurnComplete
from session_server.schemas.codec import encode, is_too_deep
from session_server.schemas.errors import DecodingError, MalformedError
from session_server.schemas.limits import JSON_DEPTH, STORED_DEPTH
from tests.schemas.decoding import (
    DECODERS,
    decode_action,
    every_decoder,
    fewer,
    refusal,
    settle,
    titled,
    with_meta,
)
from tests.sessions import AGENT, OWNER, accepted, session

OF_THE_STORE = {
    "decode_host_notification",
    "decode_issued_tokens",
    "decode_known_clients",
    "decode_logged",
    "decode_outline",
    "decode_record_action",
    "decode_root_state",
    "decode_session_record",
    "decode_session_state",
}


def nested_lists(depth: int) -> str:
    return "[" * depth + "]" * depth


def nested(depth: int) -> str:
    """An action that is nested this deep in all."""
    return with_meta(nested_lists(depth - 2))


@pytest.mark.proves("design.limits.depth")
@pytest.mark.parametrize("beyond", [1, 1000, 100_000])
@every_decoder
def test_nesting_beyond_the_limit_is_malformed(name: str, beyond: int) -> None:
    limit = STORED_DEPTH if name in OF_THE_STORE else JSON_DEPTH
    error = refusal(name, nested(limit + beyond))
    assert type(error) is MalformedError
    assert str(limit) in error.reason


@pytest.mark.proves("design.limits.depth")
def test_what_a_frame_brought_can_be_read_back_from_the_store() -> None:
    """In a record the same value stands some levels deeper."""
    deepest = nested_lists(JSON_DEPTH - 4)
    message = f'{{"text":"x","origin":{{"kind":"user"}},"_meta":{{"m":{deepest}}}}}'
    action = decode_action(f'{{"type":"session/turnStarted","turnId":"t","message":{message}}}')
    record = accepted(session(), OWNER, action)
    ended = accepted(record, AGENT, TurnComplete(turn_id="t"))
    assert DECODERS["decode_session_record"](encode(ended)) == ended


@pytest.mark.proves("design.limits.depth")
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[{" * 1000,
        '{"type":' * 130 + '"x"' + "}" * 130,
        '["[' + "]" * 1000 + '",' + "[" * 130,
        '["\\\\",' + "[" * 130,
    ],
)
def test_unfinished_or_mixed_nesting_beyond_the_limit_is_malformed(text: str) -> None:
    for name in DECODERS:
        assert type(refusal(name, text)) is MalformedError


@pytest.mark.proves("design.limits.depth")
@pytest.mark.parametrize(
    "content", ["[" * 1000, "{[" * 1000, '\\"[' * 1000, "[\\\\" * 1000, '\\\\\\"{' * 99]
)
def test_brackets_inside_strings_are_no_nesting(content: str) -> None:
    title = json.loads(f'"{content}"')
    assert decode_action(titled(f'"{content}"')).title == title
    assert decode_action(with_meta(f'{{"{content}":1}}')).meta == {"x": {title: 1}}


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
    began = time.process_time()
    assert isinstance(refusal("decode_action", text), DecodingError)
    assert time.process_time() - began < 1


def test_a_text_with_few_brackets_is_not_too_deep_and_those_in_strings_do_not_count() -> None:
    assert not is_too_deep(b"[[]]", 2)
    assert is_too_deep(b"[[[]]]", 2)
    assert not is_too_deep(b'[["[[["]]', 2)
