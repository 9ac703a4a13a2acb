"""Published values of AHP 1.0 that have to survive decoding and encoding, in our shapes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from session_server.client.dialects import Ahp1, action_of
from session_server.client.json_rpc import decode_delivery, decode_message
from session_server.schemas.ahp.commands import Implementation
from session_server.schemas.ahp.customizations import Customization
from session_server.schemas.ahp.questions import Question
from session_server.schemas.ahp1.methods import InitializeResult, SessionAddedParams
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.wire import Count, Extra, Text

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "ahp1" / "fixtures" / "round-trips"

DECODERS: dict[str, Callable[[bytes], Any]] = {
    "ActionEnvelope": lambda raw: Ahp1().received(decode_delivery(raw))[0],
    "StateAction": lambda raw: action_of(msgspec.json.decode(raw)),
    "Customization": Decoder(Customization),
    "SessionStatus": Decoder(Count),
    "StringOrMarkdown": Decoder(Text),
    "JsonRpcMessage": decode_message,
    "ChatInputQuestion": Decoder(Question),
    "SessionAddedParams": Decoder(SessionAddedParams),
    "Implementation": Decoder(Implementation),
    "InitializeResult": Decoder(InitializeResult),
    # Of commands that neither our host nor our client has: they have no shape of their own.
    "ChangesetOperationTarget": Decoder(Extra),
    "ChatSource": Decoder(Extra),
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the published values are not at hand")
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
@pytest.mark.proves("ahp.ahp1.round-trips")
def test_a_published_value_survives(path: Path) -> None:
    case = json.loads(path.read_text())
    decoded = DECODERS[case["type"]](json.dumps(case["input"]).encode())
    assert json.loads(encode(decoded)) in case["acceptableOutputs"]


@pytest.mark.proves("ahp.ahp1.round-trips")
def test_an_action_without_a_shape_survives() -> None:
    unknown = {"type": "future/newAction", "foo": [1, {"bar": None}]}
    assert json.loads(encode(action_of(unknown))) == unknown
