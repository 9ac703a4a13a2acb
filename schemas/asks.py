"""What the ask tools take and give: questions as an agent writes them, and how they ended."""

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

import msgspec

from .limits import ACTIVITY_CHARS, ANSWER_CHARS, DEADLINE_SECONDS, ID_CHARS, QUESTIONS_PER_REQUEST
from .mcp import Content
from .principals import Provenance
from .questions import Number, OnExpiry
from .wire import Uri, Wire

Words: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=ANSWER_CHARS)]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARS)]

QuestionKind: TypeAlias = Literal[
    "text", "number", "integer", "boolean", "single-select", "multi-select"
]


class AskedOption(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer names the option by its `id`, or else by its label."""

    label: Words
    id: Name | None = None
    description: str | None = None
    recommended: bool = False


class AskedQuestion(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without a `kind` it is `single-select` if there are options, and `text` if not."""

    question: Words
    id: Annotated[Name, msgspec.Meta(description="Key of the answer; q1, q2… if left out.")] | (
        None
    ) = None
    title: str | None = None
    kind: QuestionKind | None = None
    options: tuple[Words | AskedOption, ...] = ()
    allow_freeform: Annotated[
        bool, msgspec.Meta(description="People may answer in their own words, beside the options.")
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
