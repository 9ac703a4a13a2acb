"""The other way round: a host's questions as an MCP result, and an outcome as a tool's result."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from session_server.reducers.forms.answer_checks import label
from session_server.reducers.forms.formats import FORMATS
from session_server.reducers.forms.plain_values import content_value
from session_server.reducers.texts import outcome_note
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    Option,
    Question,
    SingleSelectQuestion,
    Submitted,
    TextQuestion,
)
from session_server.schemas.mcp import (
    CallToolResult,
    Elicitation,
    ElicitRequest,
    InputRequired,
    TextBlock,
)
from session_server.schemas.record import Outcome


class Offer(NamedTuple):
    """A result that asks, and what of the questions it could not express."""

    result: InputRequired
    losses: tuple[str, ...]


def input_required_of(requests: Mapping[str, InputRequest], state: str | None = None) -> Offer:
    embedded: dict[str, ElicitRequest] = {}
    losses: list[str] = []
    for key, request in requests.items():
        elicitation, lost = elicitation_of(request)
        embedded[key] = ElicitRequest(params=elicitation)
        losses += lost
    result = InputRequired(
        result_type="input_required", input_requests=dict(embedded), request_state=state
    )
    return Offer(result, tuple(losses))


def elicitation_of(request: InputRequest) -> tuple[Elicitation, tuple[str, ...]]:
    """What is lost is returned, and said in the message, since a person should know it too."""
    message = request.message or "Your input is needed."
    if request.url is not None:
        return Elicitation(message=message, mode="url", url=request.url), ()
    schema, losses = requested_schema(request.questions or ())
    if losses:
        message = f"{message}\n\n({'; '.join(losses)})"
    return Elicitation(message=message, mode="form", requested_schema=schema), losses


def requested_schema(questions: tuple[Question, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    properties: dict[str, Any] = {}
    losses: list[str] = []
    for question in questions:
        properties[question.id], lost = _property(question)
        losses += [f"{label(question)}: {words}" for words in lost]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [question.id for question in questions if question.required]
    if required:
        schema["required"] = required
    return schema, tuple(losses)


def call_tool_result(outcome: Outcome) -> CallToolResult:
    """An outcome as the result of the tool that asked. That people decline is not an error."""
    questions = {question.id: question for question in outcome.request.questions or ()}
    answers = {
        question_id: content_value(questions[question_id], answer.value)
        for question_id, answer in (outcome.answers or {}).items()
        if isinstance(answer, Submitted) and answer.value is not None
    }
    structured: dict[str, Any] = {"response": outcome.response, "via": outcome.via}
    if outcome.by is not None:
        structured["by"] = msgspec.to_builtins(outcome.by)
    if outcome.response == "accept":
        structured["answers"] = answers
    return CallToolResult(
        content=(TextBlock(text=outcome_note(outcome)),),
        structured_content=msgspec.to_builtins(structured),
    )


def _property(question: Question) -> tuple[dict[str, Any], list[str]]:
    match question:
        case TextQuestion():
            return _text_property(question)
        case NumberQuestion() | IntegerQuestion():
            kind = "integer" if isinstance(question, IntegerQuestion) else "number"
            return _described(
                question,
                type=kind,
                minimum=question.min,
                maximum=question.max,
                default=question.default_value,
            ), []
        case BooleanQuestion():
            return _described(question, type="boolean", default=question.default_value), []
        case SingleSelectQuestion():
            one_of = _titled(question.options)
            return _described(question, type="string", oneOf=one_of), _select_losses(question)
        case _:
            shape = _described(
                question,
                type="array",
                items={"anyOf": _titled(question.options)},
                minItems=question.min,
                maxItems=question.max,
            )
            return shape, _select_losses(question)


def _text_property(question: TextQuestion) -> tuple[dict[str, Any], list[str]]:
    known = question.format in FORMATS
    shape = _described(
        question,
        type="string",
        minLength=question.min,
        maxLength=question.max,
        format=question.format if known else None,
        pattern=question.meta.pattern if question.meta is not None else None,
        default=question.default_value,
    )
    lost = question.format is not None and not known
    return shape, [f"the format {question.format!r} is not checked"] if lost else []


def _select_losses(question: SingleSelectQuestion | MultiSelectQuestion) -> list[str]:
    losses = []
    if question.allow_freeform_input:
        losses.append("answers of your own cannot be given here")
    advised = [option.label for option in question.options if option.recommended]
    if advised:
        losses.append(f"recommended: {', '.join(advised)}")
    return losses


def _titled(options: tuple[Option, ...]) -> list[dict[str, str]]:
    return [
        {
            "const": option.id,
            "title": f"{option.label} – {option.description}"
            if option.description
            else option.label,
        }
        for option in options
    ]


def _described(question: Question, **keywords: Any) -> dict[str, Any]:
    everything = {"title": question.title, "description": question.message, **keywords}
    return {key: value for key, value in everything.items() if value is not None}
