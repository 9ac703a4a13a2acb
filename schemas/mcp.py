"""The part of MCP that asks people: embedded requests of a round, and the answers to them.

Shapes of revision 2026-07-28; `elicitation/create` is the same in 2025-11-25.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from .questions import Number, ResponseKind
from .wire import Count, Extra, Uri, Wire

ContentValue: TypeAlias = str | int | float | bool | list[str]
Content: TypeAlias = dict[str, ContentValue]

CallMethod: TypeAlias = Literal["tools/call", "prompts/get", "resources/read"]


class Elicitation(Wire, frozen=True, kw_only=True):
    """`mode` absent means a form."""

    message: str
    mode: Literal["form", "url"] | None = None
    requested_schema: Extra | None = None
    url: Uri | None = None
    elicitation_id: str | None = None


class ElicitRequest(Wire, frozen=True, kw_only=True, tag_field="method", tag="elicitation/create"):
    params: Elicitation


class SamplingRequest(
    Wire, frozen=True, kw_only=True, tag_field="method", tag="sampling/createMessage"
):
    params: Extra | None = None


class RootsRequest(Wire, frozen=True, kw_only=True, tag_field="method", tag="roots/list"):
    params: Extra | None = None


EmbeddedRequest: TypeAlias = ElicitRequest | SamplingRequest | RootsRequest


class InputRequired(Wire, frozen=True, kw_only=True):
    """A result that asks for more. Without requests it means "try again with this state"."""

    result_type: Literal["input_required"]
    input_requests: dict[str, EmbeddedRequest] | None = None
    request_state: str | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class InvalidResult(Wire, frozen=True, kw_only=True):
    """A result that breaks the protocol, or belongs to an extension that is not spoken here."""

    reason: str


class ElicitResult(Wire, frozen=True, kw_only=True):
    """`content` only with `accept`, and not for URL requests."""

    action: ResponseKind
    content: Content | None = None


class Root(Wire, frozen=True, kw_only=True):
    uri: Uri
    name: str | None = None


class RootsResult(Wire, frozen=True, kw_only=True):
    roots: tuple[Root, ...]


EmbeddedResponse: TypeAlias = ElicitResult | RootsResult | Extra
"""Never decoded as a union: which of them it is, the request says."""


class TextBlock(Wire, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class CallToolResult(Wire, frozen=True, kw_only=True):
    content: tuple[TextBlock, ...]
    structured_content: dict[str, Any] | None = None
    is_error: bool | None = None


class PropertyBase(Wire, frozen=True, kw_only=True, tag_field="type"):
    """One property of a `requestedSchema`. A default of the wrong type is no default."""

    title: str | None = None
    description: str | None = None
    default: Any = None


class ConstOption(Wire, frozen=True, kw_only=True):
    const: str
    title: str | None = None


class StringProperty(PropertyBase, frozen=True, kw_only=True, tag="string"):
    min_length: Count | None = None
    max_length: Count | None = None
    format: str | None = None
    pattern: str | None = None
    enum: tuple[str, ...] | None = None
    enum_names: tuple[str, ...] | None = None
    one_of: tuple[ConstOption, ...] | None = None


class NumberProperty(PropertyBase, frozen=True, kw_only=True, tag="number"):
    minimum: Number | None = None
    maximum: Number | None = None
    exclusive_minimum: Number | None = None
    exclusive_maximum: Number | None = None


class IntegerProperty(PropertyBase, frozen=True, kw_only=True, tag="integer"):
    minimum: Number | None = None
    maximum: Number | None = None
    exclusive_minimum: Number | None = None
    exclusive_maximum: Number | None = None


class BooleanProperty(PropertyBase, frozen=True, kw_only=True, tag="boolean"):
    pass


class ItemsSchema(Wire, frozen=True, kw_only=True):
    enum: tuple[str, ...] | None = None
    any_of: tuple[ConstOption, ...] | None = None


class ArrayProperty(PropertyBase, frozen=True, kw_only=True, tag="array"):
    items: ItemsSchema
    min_items: Count | None = None
    max_items: Count | None = None


Property: TypeAlias = (
    StringProperty | NumberProperty | IntegerProperty | BooleanProperty | ArrayProperty
)


class RequestedSchema(Wire, frozen=True, kw_only=True):
    """A flat object; each property is looked at on its own, so that errors can name it."""

    type: Literal["object"]
    properties: dict[str, Extra] = {}
    required: tuple[str, ...] = ()
    defs: dict[str, Extra] = msgspec.field(default_factory=dict, name="$defs")


class Unshowable(Wire, frozen=True, kw_only=True):
    """Why a form cannot be asked."""

    reason: str
    property: str | None = None
