"""Who may say what is decided by the decoder of a connection."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.schemas import codec
from session_server.schemas.codec import encode
from session_server.schemas.errors import UnknownKindError
from tests.schemas.decoding import dispatched, refusal
from tests.schemas.wire_examples import CLIENT_ACTIONS, HOST_ACTIONS
from tests.strategies import host_actions, json_values, private_actions


@pytest.mark.proves("design.decode.client")
def test_clients_and_agents_may_say_client_actions() -> None:
    for action in CLIENT_ACTIONS:
        for decode in (codec.decode_client_frame, codec.decode_agent_frame):
            frame: Any = decode(dispatched(action))
            assert frame.params.action == action
        assert codec.decode_client_action(encode(action)) == action


@pytest.mark.proves("design.decode.client", "design.decode.agent")
def test_only_agents_may_say_host_actions() -> None:
    for action in HOST_ACTIONS:
        frame: Any = codec.decode_agent_frame(dispatched(action))
        assert frame.params.action == action
        error = refusal("decode_client_frame", dispatched(action))
        assert isinstance(error, UnknownKindError)
        assert (error.kind, error.path) == (
            action.__struct_config__.tag,
            "$.params.action.type",
        )
        assert isinstance(refusal("decode_client_action", encode(action)), UnknownKindError)


@pytest.mark.proves("design.record.not-decoded")
@given(action=private_actions)
def test_nobody_may_say_private_actions(action: Any) -> None:
    assert codec.decode_record_action(encode(action)) == action
    for name in ("decode_client_frame", "decode_agent_frame"):
        assert isinstance(refusal(name, dispatched(action)), UnknownKindError)
    for name in ("decode_client_action", "decode_action"):
        assert isinstance(refusal(name, encode(action)), UnknownKindError)


@given(action=st.one_of(host_actions, private_actions, json_values))
def test_an_action_that_is_not_understood_is_kept_to_be_refused(action: Any) -> None:
    raw = encode(action)
    frame = codec.decode_frame_head(dispatched(msgspec.Raw(raw)))
    assert frame.method == "dispatchAction"
    assert isinstance(frame.params, msgspec.Raw)
    dispatch = codec.decode_undecoded_dispatch(bytes(frame.params))
    assert (dispatch.channel, dispatch.client_seq) == ("ahp-session:/1", 1)
    assert bytes(dispatch.action) == raw
