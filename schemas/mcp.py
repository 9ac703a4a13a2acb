"""The part of MCP that asks people: elicitation, its answers, and our ask tools."""

from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from session_server.schemas.ahp.questions import Number, OnExpiry, ResponseKind
from session_server.schemas.limits import (
    ACTIVITY_CHARS,
    ANSWER_CHARS,
    DEADLINE_SECONDS,
    ID_CHARS,
    QUESTIONS_PER_REQUEST,
)
from session_server.schemas.principals import Provenance
from session_server.schemas.wire import Count, Extra, Uri, Wire

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
"""Never decoded as a union: the request determines which of them it is."""


class PropertyBase(Wire, frozen=True, kw_only=True, tag_field="type"):
    """One property of a `requestedSchema`. A default of the wrong type is ignored."""

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


class IntegerProperty(NumberProperty, frozen=True, kw_only=True, tag="integer"):
    pass


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


FilledText: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=ANSWER_CHARS)]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARS)]

QuestionKind: TypeAlias = Literal[
    "text", "number", "integer", "boolean", "single-select", "multi-select"
]


class AskedOption(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer names the option by its `id`, or else by its label."""

    label: FilledText
    id: Name | None = None
    description: str | None = None
    recommended: bool = False


class AskedQuestion(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without a `kind` it is `single-select` if there are options, and `text` if not."""

    question: FilledText
    id: Annotated[Name, msgspec.Meta(description="Key of the answer; q1, q2… if left out.")] | (
        None
    ) = None
    title: str | None = None
    kind: QuestionKind | None = None
    options: tuple[FilledText | AskedOption, ...] = ()
    allow_freeform: Annotated[
        bool, msgspec.Meta(description="People may write another answer than the options.")
    ] = False
    required: bool = True
    default: str | bool | Number | None = None
    min: Annotated[
        Number | None, msgspec.Meta(description="Least number, characters, or options to pick.")
    ] = None
    max: Annotated[
        Number | None, msgspec.Meta(description="Largest number, characters, or options to pick.")
    ] = None
    format: Literal["email", "uri", "date", "date-time"] | None = None
    pattern: Annotated[
        str | None, msgspec.Meta(description="What a text must match (RE2 syntax).")
    ] = None


class AskQuestions(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `ask_questions`."""

    questions: Annotated[
        tuple[AskedQuestion, ...], msgspec.Meta(min_length=1, max_length=QUESTIONS_PER_REQUEST)
    ]
    message: Annotated[str, msgspec.Meta(description="What the questions are about.")] | None = None
    deadline_seconds: (
        Annotated[
            float,
            msgspec.Meta(
                gt=0, le=DEADLINE_SECONDS, description="How long people have; no limit if left out."
            ),
        ]
        | None
    ) = None
    on_deadline: (
        Annotated[
            OnExpiry, msgspec.Meta(description="What the deadline brings; `cancel` if left out.")
        ]
        | None
    ) = None


class AskOutcome(StrEnum):
    """A deadline and a person's no are never the same thing."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    TIMED_OUT = "timedOut"
    WITHDRAWN = "withdrawn"
    ABANDONED = "abandoned"


class AskResult(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Structured result of `ask_questions`. `answers` holds plain values by question."""

    outcome: AskOutcome
    answers: Content
    skipped: tuple[str, ...]
    by: str | None
    via: Provenance
    session: Uri
    request_id: str


class NotifyStatus(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `notify_status`."""

    status: Annotated[
        str,
        msgspec.Meta(
            max_length=ACTIVITY_CHARS,
            description="One line: what you are doing now. Empty when you are done.",
        ),
    ]


class StatusShown(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Structured result of `notify_status`."""

    session: Uri
