"""From the questions that an agent writes to those that people see, and back to its result."""

from collections.abc import Container
from typing import Any

from session_server.reducers.forms.review import plain_answers
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    OnExpiry,
    Option,
    Question,
    QuestionMeta,
    RequestMeta,
    ResponseKind,
    SingleSelectQuestion,
    Skipped,
    TextQuestion,
)
from session_server.schemas.errors import SessionServerError
from session_server.schemas.limits import UNCOLLECTED_LIFETIME_MS
from session_server.schemas.mcp import (
    AskedOption,
    AskedQuestion,
    AskOutcome,
    AskQuestions,
    AskResult,
)
from session_server.schemas.principals import Provenance
from session_server.schemas.record import Outcome, SessionRecord
from session_server.schemas.wire import Uri

_ENDINGS = {
    Provenance.TIMEOUT: AskOutcome.TIMED_OUT,
    Provenance.WITHDRAWN: AskOutcome.WITHDRAWN,
    Provenance.ABANDONED: AskOutcome.ABANDONED,
}


class UnaskableError(SessionServerError, ValueError):
    """A question that cannot be put to people; the message is for its author."""

    code = "badForm"


def asked_request(
    asked: AskQuestions, request_id: str, now: int, lease: float | None = None
) -> InputRequest:
    return InputRequest(
        id=request_id,
        message=asked.message,
        questions=tuple(asked_question(n, q) for n, q in enumerate(asked.questions, 1)),
        meta=_meta(asked, now, lease),
    )


def same_ask(
    record: SessionRecord, stem: str, at: int, connected: Container[str] = ()
) -> str | None:
    """The request that already asks these questions: open, or with an outcome not yet fetched.

    `stem` is how the ids of all requests with these questions begin. Those in
    `connected` have a client that is connected for them, so other requests asked them.
    """
    private = record.private
    asked = [request.id for request in record.public.input_requests or ()]
    asked += [
        outcome.request.id
        for outcome in reversed(private.outcomes)
        if at - outcome.at < UNCOLLECTED_LIFETIME_MS
    ]
    return next(
        (
            name
            for name in asked
            if name.startswith(stem) and name not in connected and name not in private.collected
        ),
        None,
    )


def ask_result(outcome: Outcome, session: Uri) -> AskResult:
    request = outcome.request
    answers = outcome.answers or {}
    return AskResult(
        outcome=_ending(outcome),
        answers=plain_answers(outcome),
        skipped=tuple(name for name, answer in answers.items() if isinstance(answer, Skipped)),
        by=None if outcome.by is None else str(outcome.by),
        via=outcome.via,
        session=session,
        request_id=request.id,
    )


def _ending(outcome: Outcome) -> AskOutcome:
    if outcome.response is ResponseKind.ACCEPT:
        return AskOutcome.ACCEPTED
    if outcome.response is ResponseKind.DECLINE:
        return AskOutcome.DECLINED
    return _ENDINGS.get(outcome.via, AskOutcome.CANCELLED)


def _meta(asked: AskQuestions, now: int, lease: float | None) -> RequestMeta:
    if asked.deadline_seconds is None:
        if asked.on_deadline is not None:
            raise UnaskableError("`onDeadline` needs `deadlineSeconds`.")
        return RequestMeta(lease=lease)
    at = now + round(asked.deadline_seconds * 1000)
    on_expiry = asked.on_deadline or OnExpiry.CANCEL
    return RequestMeta(expires_at=at, on_expiry=on_expiry, lease=lease)


def asked_question(number: int, asked: AskedQuestion) -> Question:
    kind = asked.kind or ("single-select" if asked.options else "text")
    if asked.options and kind not in ("single-select", "multi-select"):
        raise UnaskableError(f"{asked.question}: a {kind} question has no options.")
    common: dict[str, Any] = {
        "id": asked.id or f"q{number}",
        "message": asked.question,
        "title": asked.title,
        "required": asked.required,
    }
    match kind:
        case "text":
            meta = None if asked.pattern is None else QuestionMeta(pattern=asked.pattern)
            low, high = _count(asked, asked.min), _count(asked, asked.max)
            default = _default(asked, str)
            return TextQuestion(
                **common, format=asked.format, min=low, max=high, default_value=default, meta=meta
            )
        case "boolean":
            return BooleanQuestion(**common, default_value=_default(asked, bool))
        case "number":
            default = _default(asked, int, float)
            return NumberQuestion(**common, min=asked.min, max=asked.max, default_value=default)
        case "integer":
            default = _default(asked, int)
            return IntegerQuestion(**common, min=asked.min, max=asked.max, default_value=default)
        case "single-select":
            return SingleSelectQuestion(**common, **_choice(asked))
        case _:
            low, high = _count(asked, asked.min), _count(asked, asked.max)
            return MultiSelectQuestion(**common, **_choice(asked), min=low, max=high)


def _choice(asked: AskedQuestion) -> dict[str, Any]:
    options = tuple(_option(asked, option) for option in asked.options)
    names = {option.id for option in options}
    if asked.default is not None and asked.default not in names:
        raise UnaskableError(f"{asked.question}: the default is none of the options.")
    return {"options": options, "allow_freeform_input": asked.allow_freeform or None}


def _option(asked: AskedQuestion, given: str | AskedOption) -> Option:
    option = AskedOption(label=given) if isinstance(given, str) else given
    name = option.id or option.label
    return Option(
        id=name,
        label=option.label,
        description=option.description,
        recommended=option.recommended or name == asked.default or None,
    )


def _default(asked: AskedQuestion, *kinds: type) -> Any:
    if asked.default is not None and type(asked.default) not in kinds:
        raise UnaskableError(f"{asked.question}: the default is of another kind than the answer.")
    return asked.default


def _count(asked: AskedQuestion, limit: float | None) -> int | None:
    if limit is None or (limit == int(limit) and limit >= 0):
        return None if limit is None else int(limit)
    raise UnaskableError(f"{asked.question}: `min` and `max` are whole numbers from 0.")
