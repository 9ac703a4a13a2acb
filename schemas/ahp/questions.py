"""Input requests: typed questions, and the answers people draft, submit or skip."""

from enum import StrEnum
from typing import Annotated, TypeAlias

import msgspec

from session_server.schemas.limits import LEASE_LIMIT_SECONDS
from session_server.schemas.principals import Author, Provenance
from session_server.schemas.wire import Count, Extra, Millis, Uri, Wire

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | float
"""A whole number that is written as one stays one; beyond 64 bits, write it as a float."""


class Option(Wire, frozen=True, kw_only=True):
    id: str
    label: str
    description: str | None = None
    recommended: bool | None = None


class QuestionMeta(Wire, frozen=True, kw_only=True):
    """Host extension: a pattern that a text answer must match (RE2 syntax, searched)."""

    pattern: str | None = None


class QuestionBase(Wire, frozen=True, kw_only=True, tag_field="kind"):
    id: str
    message: str
    title: str | None = None
    required: bool | None = None
    meta: QuestionMeta | None = msgspec.field(default=None, name="_meta")


class TextQuestion(QuestionBase, frozen=True, kw_only=True, tag="text"):
    format: str | None = None
    min: Count | None = None
    max: Count | None = None
    default_value: str | None = None


class NumberQuestion(QuestionBase, frozen=True, kw_only=True, tag="number"):
    min: Number | None = None
    max: Number | None = None
    default_value: Number | None = None


class IntegerQuestion(QuestionBase, frozen=True, kw_only=True, tag="integer"):
    min: Number | None = None
    max: Number | None = None
    default_value: Number | None = None


class BooleanQuestion(QuestionBase, frozen=True, kw_only=True, tag="boolean"):
    default_value: bool | None = None


class SingleSelectQuestion(QuestionBase, frozen=True, kw_only=True, tag="single-select"):
    options: tuple[Option, ...]
    allow_freeform_input: bool | None = None


class MultiSelectQuestion(QuestionBase, frozen=True, kw_only=True, tag="multi-select"):
    options: tuple[Option, ...]
    allow_freeform_input: bool | None = None
    min: Count | None = None
    max: Count | None = None


Question: TypeAlias = (
    TextQuestion
    | NumberQuestion
    | IntegerQuestion
    | BooleanQuestion
    | SingleSelectQuestion
    | MultiSelectQuestion
)


class ValueBase(Wire, frozen=True, kw_only=True, tag_field="kind"):
    """A value in the kind of its question."""


class TextValue(ValueBase, frozen=True, kw_only=True, tag="text"):
    value: str


class NumberValue(ValueBase, frozen=True, kw_only=True, tag="number"):
    value: Number


class BooleanValue(ValueBase, frozen=True, kw_only=True, tag="boolean"):
    value: bool


class SelectedValue(ValueBase, frozen=True, kw_only=True, tag="selected"):
    value: str
    freeform_values: tuple[str, ...] | None = None


class SelectedManyValue(ValueBase, frozen=True, kw_only=True, tag="selected-many"):
    value: tuple[str, ...]
    freeform_values: tuple[str, ...] | None = None


Value: TypeAlias = TextValue | NumberValue | BooleanValue | SelectedValue | SelectedManyValue


class AnswerMeta(Wire, frozen=True, kw_only=True):
    """Host extension: who wrote this answer, when and how. Only the host sets it.

    `covers` is the answer that a draft was written over. If it was submitted or skipped, it still
    counts until the draft is submitted, and it comes back when the draft is cleared.
    `before_change`: it was written before the question changed, and must be submitted again.
    """

    by: Author | None = None
    at: Millis | None = None
    via: Provenance | None = None
    covers: "Answer | None" = None
    before_change: bool | None = None


class AnswerBase(Wire, frozen=True, kw_only=True, tag_field="state"):
    meta: AnswerMeta | None = msgspec.field(default=None, name="_meta")


class Draft(AnswerBase, frozen=True, kw_only=True, tag="draft"):
    """Shared as it is typed; it never counts as an answer. The rules refuse one without value."""

    value: Value | None = None


class Submitted(AnswerBase, frozen=True, kw_only=True, tag="submitted"):
    value: Value | None = None


class Skipped(AnswerBase, frozen=True, kw_only=True, tag="skipped"):
    freeform_values: tuple[str, ...] | None = None


Answer: TypeAlias = Draft | Submitted | Skipped


class ResponseKind(StrEnum):
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


class OnExpiry(StrEnum):
    """What happens at a deadline: `cancel` is hard; `defaults` is off after the first draft."""

    CANCEL = "cancel"
    DEFAULTS = "defaults"
    WAIT = "wait"


LeaseSeconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=LEASE_LIMIT_SECONDS)]


class RequestMeta(Wire, frozen=True, kw_only=True):
    """Host extension: who asks. A page shows one form per (call, round).

    `revision` counts how often the text or the questions were changed; absent is 0. With a `lease`
    the asker promises to wait for the answer: if it has been away for this many seconds,
    `asker_gone_since` says since when, until it comes back.
    """

    by: Author | None = None
    revision: Count | None = None
    call: str | None = None
    round: Count | None = None
    key: str | None = None
    server: str | None = None
    tool: str | None = None
    expires_at: Millis | None = None
    on_expiry: OnExpiry | None = None
    lease: LeaseSeconds | None = None
    asker_gone_since: Millis | None = None


class InputRequest(Wire, frozen=True, kw_only=True):
    id: str
    message: str | None = None
    url: Uri | None = None
    questions: tuple[Question, ...] | None = None
    answers: dict[str, Answer] | None = None
    meta: RequestMeta | None = msgspec.field(default=None, name="_meta")


class Source(StrEnum):
    """Where the value that is sent for a question comes from; the last two send none."""

    SUBMITTED = "submitted"
    DEFAULT = "default"
    SKIPPED = "skipped"
    UNANSWERED = "unanswered"


class Reviewed(Wire, frozen=True, kw_only=True):
    """What an accepting person was shown: the questions by their revision, and the whole content.

    `content` holds plain values by question, exactly as they are expected to be sent.
    """

    content: Extra
    revision: Count | None = None


class CompletionMeta(Wire, frozen=True, kw_only=True):
    """Host extension, written by clients: with it, a completion of anything else is refused."""

    reviewed: Reviewed | None = None
