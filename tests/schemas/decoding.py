"""Every decoder by name, its shape, and what may come out of it: a value or the one error."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import settings

from session_server.schemas import codec
from session_server.schemas.ahp.actions import Action, ClientAction
from session_server.schemas.ahp.commands import UndecodedDispatchParams
from session_server.schemas.ahp.frames import AgentFrame, ClientFrame, FrameHead, HostNotification
from session_server.schemas.ahp.session import RootState, SessionState
from session_server.schemas.ahp1.methods import ClientFrame as Ahp1Frame
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.errors import DecodingError
from session_server.schemas.log_entries import IssuedTokens, KnownClients, Logged
from session_server.schemas.record import Outline, PrivateAction, SessionRecord

SHAPES: dict[str, Any] = {
    "decode_client_frame": ClientFrame,
    "decode_agent_frame": AgentFrame,
    "decode_ahp1_frame": Ahp1Frame,
    "decode_frame_head": FrameHead,
    "decode_undecoded_dispatch": UndecodedDispatchParams,
    "decode_host_notification": HostNotification,
    "decode_client_action": ClientAction,
    "decode_action": Action,
    "decode_record_action": Action | PrivateAction,
    "decode_root_state": RootState,
    "decode_session_state": SessionState,
    "decode_session_record": SessionRecord,
    "decode_outline": Outline,
    "decode_logged": Logged,
    "decode_known_clients": KnownClients,
    "decode_issued_tokens": IssuedTokens,
}
DECODERS: dict[str, Decoder[Any]] = {
    name: value for name, value in vars(codec).items() if isinstance(value, Decoder)
}
every_decoder = pytest.mark.parametrize("name", sorted(DECODERS))
fewer = settings(max_examples=max(5, settings().max_examples // 20))
"""For tests that run once per decoder or kind: together they see as many examples as the others."""

decode_action: Decoder[Any] = codec.decode_action


def plain(value: Any) -> Any:
    return msgspec.json.decode(encode(value))


def tags(union: Any) -> set[str]:
    return {str(member.__struct_config__.tag) for member in get_args(union)}


def dispatched(action: Any) -> bytes:
    """A frame that dispatches it, whatever it is."""
    params = {"channel": "ahp-session:/1", "clientSeq": 1, "action": action}
    return encode({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})


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
