"""MCP forms as questions, and answers as the content of the form.

What a form cannot say in AHP is either carried along as `_meta` (patterns), folded into a bound
(exclusive limits), or refused with a reason. Keywords outside MCP's subset, such as `multipleOf`,
are left to the server that sent them.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from session_server.reducers.forms.answer_checks import check_value
from session_server.reducers.forms.formats import is_web_address
from session_server.reducers.forms.plain_values import content_value, value_of
from session_server.reducers.forms.review import decided, sent_for
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    Number,
    NumberQuestion,
    NumberValue,
    Option,
    Question,
    QuestionMeta,
    RequestMeta,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    TextQuestion,
    TextValue,
    Value,
)
from session_server.schemas.errors import SessionServerError
from session_server.schemas.limits import OPTIONS_PER_QUESTION, QUESTIONS_PER_REQUEST
from session_server.schemas.mcp import (
    BooleanProperty,
    ConstOption,
    Content,
    Elicitation,
    IntegerProperty,
    NumberProperty,
    Property,
    RequestedSchema,
    StringProperty,
    Unshowable,
)

LAYERS = 4
"""References and choices that may be wrapped around a property."""

EMPTY_FORM: dict[str, Any] = {"type": "object", "properties": {}}

SHOWABLE_TYPES = ("string", "number", "integer", "boolean", "array")


def request_of(
    request_id: str, elicitation: Elicitation, meta: RequestMeta | None = None
) -> InputRequest | Unshowable:
    """An `elicitation/create`, form or URL, as an input request."""
    if elicitation.mode == "url":
        if not is_web_address(elicitation.url or ""):
            return Unshowable(reason="a URL request without a web address")
        return InputRequest(
            id=request_id, message=elicitation.message, url=elicitation.url, meta=meta
        )
    questions = questions_of(elicitation.requested_schema or {"type": "object"})
    if isinstance(questions, Unshowable):
        return questions
    return InputRequest(id=request_id, message=elicitation.message, questions=questions, meta=meta)


def questions_of(schema: Mapping[str, Any]) -> tuple[Question, ...] | Unshowable:
    """The questions of a `requestedSchema`, one per property, in its order."""
    fields = fields_of(schema)
    return fields if isinstance(fields, Unshowable) else tuple(f.question for f in fields)


def content_of(schema: Mapping[str, Any], answers: Mapping[str, Answer]) -> Content:
    """The content of an accepted form.

    Only submitted answers count. An optional property that nobody answered gets its default; one
    that was skipped is left out.
    """
    fields = fields_of(schema)
    assert not isinstance(fields, Unshowable)  # such a form was never asked
    content: Content = {}
    for question, default in fields:
        answer = decided(answers.get(question.id))
        value = sent_for(answer, None if question.required else default).value
        if value is not None:
            content[question.id] = content_value(question, value)
    return content


class FormField(NamedTuple):
    question: Question
    default: Value | None


def fields_of(schema: Mapping[str, Any]) -> tuple[FormField, ...] | Unshowable:
    try:
        form = msgspec.convert(schema, RequestedSchema)
    except msgspec.ValidationError as error:
        return Unshowable(reason=f"not a flat object schema: {error}")
    if len(form.properties) > QUESTIONS_PER_REQUEST:
        return Unshowable(reason=f"more than {QUESTIONS_PER_REQUEST} properties")
    fields = []
    for name, raw in form.properties.items():
        field = _field(form, name, raw)
        if isinstance(field, Unshowable):
            return field
        fields.append(field)
    return tuple(fields)


def _field(form: RequestedSchema, name: str, raw: Mapping[str, Any]) -> FormField | Unshowable:
    try:
        shape = msgspec.convert(_plain(form, raw), Property)
        question = _question(name, shape, required=name in form.required)
    except (msgspec.ValidationError, _UnshowableError) as error:
        return Unshowable(reason=f"{name}: {error}", property=name)
    default = _default(question, shape.default)
    return FormField(_with_default(question, default), default)


class _UnshowableError(SessionServerError):
    """Leaves the builders of questions; never this module."""


def _plain(form: RequestedSchema, raw: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """The property as MCP spells it: references looked up, "or null" dropped, type made explicit.

    Generators of schemas, pydantic above all, write enumerations as `$ref` and optional fields as
    a choice with `null`; an answer that may be left out says the same.
    """
    if depth > LAYERS:
        raise _UnshowableError("is wrapped too often")
    unwrapped = _unwrapped(form, raw)
    if unwrapped is not None:
        return _plain(form, unwrapped, depth + 1)
    kind = raw.get("type")
    if isinstance(kind, list):
        kinds = [k for k in kind if k != "null"]
        raw = {**raw, "type": kinds[0] if len(kinds) == 1 else kind}
    if "const" in raw and "enum" not in raw:
        raw = {**raw, "enum": [raw["const"]]}
    if "type" not in raw and ("enum" in raw or "oneOf" in raw):
        raw = {**raw, "type": "string"}
    if "enum" in raw and raw.get("type") != "string":
        raise _UnshowableError("lists values that are not text")
    if raw.get("type") not in SHOWABLE_TYPES:
        raise _UnshowableError(f"is of type {raw.get('type')!r}, which a form cannot show")
    return raw


def _unwrapped(form: RequestedSchema, raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """One layer less: what a reference means, or the one real choice; `None` if there is none."""
    reference, choices = raw.get("$ref"), raw.get("anyOf")
    if isinstance(reference, str):
        inner = form.defs.get(reference.removeprefix("#/$defs/"))
        if inner is None:
            raise _UnshowableError(f"refers to {reference}")
    elif isinstance(choices, list):
        real = [c for c in choices if isinstance(c, dict) and c.get("type") != "null"]
        if len(real) != 1:
            raise _UnshowableError("is a choice of types")
        inner = real[0]
    else:
        return None
    return {**inner, **{key: v for key, v in raw.items() if key not in ("$ref", "anyOf")}}


def _question(name: str, shape: Property, *, required: bool) -> Question:
    common: dict[str, Any] = {
        "id": name,
        "message": shape.description or shape.title or name,
        "title": shape.title,
        "required": required or None,
    }
    match shape:
        case StringProperty(enum=None, one_of=None):
            pattern = shape.pattern
            return TextQuestion(
                **common,
                min=shape.min_length,
                max=shape.max_length,
                format=shape.format,
                meta=None if pattern is None else QuestionMeta(pattern=pattern),
            )
        case StringProperty():
            options = _options(shape.enum, shape.enum_names, shape.one_of)
            return SingleSelectQuestion(**common, options=options)
        case IntegerProperty():
            low, high = _bounds(shape, lambda n: math.floor(n) + 1, lambda n: math.ceil(n) - 1)
            return IntegerQuestion(**common, min=low, max=high)
        case NumberProperty():
            low, high = _bounds(
                shape, lambda n: math.nextafter(n, math.inf), lambda n: math.nextafter(n, -math.inf)
            )
            return NumberQuestion(**common, min=low, max=high)
        case BooleanProperty():
            return BooleanQuestion(**common)
        case _:
            options = _options(shape.items.enum, None, shape.items.any_of)
            return MultiSelectQuestion(
                **common, options=options, min=shape.min_items, max=shape.max_items
            )


def _options(
    enum: tuple[str, ...] | None,
    names: tuple[str, ...] | None,
    titled: tuple[ConstOption, ...] | None,
) -> tuple[Option, ...]:
    if titled is not None:
        labels = {option.const: option.title or option.const for option in titled}
    else:
        values = enum or ()
        labels = {value: value for value in values} | dict(zip(values, names or (), strict=False))
    if not labels:
        raise _UnshowableError("has no options to choose from")
    if len(labels) > OPTIONS_PER_QUESTION:
        raise _UnshowableError(f"has more than {OPTIONS_PER_QUESTION} options")
    return tuple(Option(id=value, label=text) for value, text in labels.items())


def _bounds(
    shape: NumberProperty,
    above: Callable[[Number], Number],
    below: Callable[[Number], Number],
) -> tuple[Number | None, Number | None]:
    """Exclusive limits become inclusive ones: the next number that is allowed."""
    lows = [shape.minimum, _maybe(above, shape.exclusive_minimum)]
    highs = [shape.maximum, _maybe(below, shape.exclusive_maximum)]
    bounds = (
        max((low for low in lows if low is not None), default=None),
        min((high for high in highs if high is not None), default=None),
    )
    if any(bound is not None and not -(2**63) <= bound < 2**63 for bound in bounds):
        raise _UnshowableError("has limits that do not fit into 64 bits")
    return bounds


def _maybe(step: Callable[[Number], Number], limit: Number | None) -> Number | None:
    if limit is not None and not math.isfinite(limit):
        raise _UnshowableError("has limits that are not numbers")
    return None if limit is None else step(limit)


def _default(question: Question, default: Any) -> Value | None:
    """The default as a value, if it would be accepted as an answer."""
    if isinstance(default, list) is not isinstance(question, MultiSelectQuestion):
        return None
    value = value_of(question, default)
    return value if value is not None and check_value(question, value) is None else None


def _with_default(question: Question, default: Value | None) -> Question:
    """Shows the default as AHP can: as a value, or by recommending options."""
    match question, default:
        case SingleSelectQuestion(), SelectedValue():
            return _recommending(question, {default.value})
        case MultiSelectQuestion(), SelectedManyValue():
            return _recommending(question, set(default.value))
        case _, TextValue() | NumberValue() | BooleanValue():
            return msgspec.structs.replace(question, default_value=default.value)
        case _:
            return question


def _recommending(
    question: SingleSelectQuestion | MultiSelectQuestion, chosen: set[str]
) -> SingleSelectQuestion | MultiSelectQuestion:
    options = tuple(
        msgspec.structs.replace(option, recommended=True) if option.id in chosen else option
        for option in question.options
    )
    return msgspec.structs.replace(question, options=options)
