"""Open families: what a later version adds passes through unharmed."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_server.schemas.ahp.customizations import (
    ChildCustomization,
    Customization,
    McpServer,
    UnknownChildCustomization,
    UnknownCustomization,
)
from session_server.schemas.ahp.tool_calls import ToolContent, UnknownContent
from session_server.schemas.ahp.turn_messages import Attachment, UnknownAttachment
from session_server.schemas.ahp.turns import MarkdownPart, ResponsePart, UnknownPart
from session_server.schemas.codec import decode_action, encode
from session_server.schemas.wire import (
    Unknown,
    Variant,
    decode_variant,
    encode_variant,
    members,
    unknown_member,
)
from tests.effort import tries
from tests.schemas.document_parts import families
from tests.strategies import extras, texts

MESSAGE = '{"type":"session/turnStarted","turnId":"t","message":{"text":"m","origin":{"kind":"u"},'
PLUGIN = '{"type":"plugin","id":"p","uri":"u:","name":"P",'
FAMILIES: dict[type[Variant], tuple[type[Unknown], str]] = {
    ResponsePart: (UnknownPart, '{"type":"session/responsePart","turnId":"t","part":%s}'),
    Attachment: (UnknownAttachment, MESSAGE + '"attachments":[%s]}}'),
    ToolContent: (
        UnknownContent,
        '{"type":"session/toolCallContentChanged","turnId":"t","toolCallId":"c","content":[%s]}',
    ),
    Customization: (
        UnknownCustomization,
        '{"type":"session/customizationUpdated","customization":%s}',
    ),
    ChildCustomization: (
        UnknownChildCustomization,
        '{"type":"session/customizationUpdated","customization":'
        + PLUGIN
        + '"enabled":true,"children":[%s]}}',
    ),
}
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)


def test_every_family_is_looked_at() -> None:
    assert set(FAMILIES) == set(families())


@every_family
@settings(max_examples=tries(in_ci=100, at_hand=10))
@given(data=st.data())
def test_an_unknown_member_leaves_as_it_came(family: Any, data: st.DataObject) -> None:
    tag = data.draw(texts.filter(lambda tag: tag not in members(family)))
    raw = {**data.draw(extras), family.discriminator: tag}
    text = FAMILIES[family][1] % encode(raw).decode()
    assert encode(decode_action(text)).decode() == text


@every_family
def test_an_unknown_member_keeps_order_nulls_and_numbers(family: Any) -> None:
    raw = f'{{"z":1.50,"{family.discriminator}":"unheardOf","a":[null,1,{{"kind":"markdown"}}]}}'
    text = FAMILIES[family][1] % raw
    assert encode(decode_action(text)).decode() == text.replace("1.50", "1.5")


@every_family
def test_a_known_member_is_its_shape_and_an_unknown_one_is_kept_whole(family: Any) -> None:
    assert unknown_member(family) is FAMILIES[family][0]
    stranger = decode_variant(family, {family.discriminator: "unheardOf", "x": 1})
    assert type(stranger) is FAMILIES[family][0]
    assert stranger.raw == {family.discriminator: "unheardOf", "x": 1}
    assert all(
        kind.__struct_config__.tag_field == family.discriminator
        for kind in members(family).values()
    )


def test_an_mcp_server_is_at_home_in_both_families() -> None:
    assert (
        members(Customization)["mcpServer"] is members(ChildCustomization)["mcpServer"] is McpServer
    )


def test_members_of_one_family_are_unknown_in_another() -> None:
    assert set(members(Customization)) == {"plugin", "directory", "mcpServer"}
    assert isinstance(
        decode_variant(ChildCustomization, {"type": "plugin"}), UnknownChildCustomization
    )


def test_an_unknown_member_is_immutable() -> None:
    part = UnknownPart({"kind": "x"})
    with pytest.raises(AttributeError, match="UnknownPart is immutable"):
        part.raw = {}
    with pytest.raises(AttributeError):
        part.other = 1


def test_unknown_members_are_equal_by_family_and_content() -> None:
    part = UnknownPart({"kind": "x", "a": [1]})
    same = UnknownPart({"a": [1], "kind": "x"})
    assert part == same
    assert hash(part) == hash(same)
    assert part != UnknownPart({"kind": "x", "a": [2]})
    assert part != UnknownContent({"kind": "x", "a": [1]})
    assert part != {"kind": "x", "a": [1]}
    assert part != MarkdownPart(id="x", content="")


def test_an_unknown_member_shows_its_content() -> None:
    assert repr(UnknownPart({"kind": "x"})) == "UnknownPart({'kind': 'x'})"


def test_other_types_have_no_wire_form() -> None:
    with pytest.raises(NotImplementedError, match="no shape for complex"):
        decode_variant(complex, {})
    with pytest.raises(NotImplementedError, match="object has no wire form"):
        encode_variant(object())
    with pytest.raises(NotImplementedError):
        encode({"at": object()})
