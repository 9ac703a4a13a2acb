"""Hypothesis strategies for MCP forms: schemas as servers send them, and answers of all kinds."""

from typing import Any

from hypothesis import strategies as st

from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    Draft,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextValue,
    Value,
)

words = st.text(max_size=12)
names = st.text(min_size=1, max_size=8)
numbers = st.one_of(
    st.integers(-1000, 1000), st.floats(-1000, 1000, allow_nan=False), st.just(10**30)
)
GOOD_TEXTS = [
    "ana@example.com",
    "bo+list@sub.example.org",
    "https://example.com/a?b=c#d",
    "urn:isbn:0451450523",
    "http://[::1]:8080/",
    "2026-07-28",
    "2026-07-28T14:00:00Z",
    "2026-07-28T14:00:00.5+02:00",
    "",
    "abc",
    "x1",
]
texts = st.one_of(words, st.sampled_from(GOOD_TEXTS))
PATTERNS = ["^[a-z]+$", "[0-9]", "^x", "a|b", r"^\w{2,4}$"]  # that RE2 runs and Python agrees on


def keywords(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={"title": words, "description": words, **optional})


def _ordered(low: str, high: str, values: st.SearchStrategy[Any]) -> Any:
    """A lower and an upper bound, either of which may be missing."""
    return st.lists(values, max_size=2).map(
        lambda pair: (
            dict(zip(([low], [low, high])[len(pair) - 1], sorted(pair), strict=True))
            if pair
            else {}
        )
    )


options = st.lists(words, min_size=1, max_size=5, unique=True)


@st.composite
def string_properties(draw: st.DrawFn) -> dict[str, Any]:
    extras = draw(
        keywords(
            format=st.sampled_from(["email", "uri", "date", "date-time", "phone"]),
            pattern=st.sampled_from(PATTERNS),
            default=texts,
        )
    )
    bounds = draw(_ordered("minLength", "maxLength", st.integers(0, 12)))
    return {"type": "string", **extras, **bounds}


@st.composite
def number_properties(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["number", "integer"]))
    bounds = draw(_ordered("minimum", "maximum", st.integers(-50, 50)))
    exclusive = draw(
        keywords(
            default=numbers,
            exclusiveMinimum=st.integers(-60, -40),
            exclusiveMaximum=st.integers(40, 60),
        )
    )
    return {"type": kind, **bounds, **exclusive}


@st.composite
def single_properties(draw: st.DrawFn) -> dict[str, Any]:
    values = draw(options)
    shape = draw(
        st.sampled_from(
            [
                {"type": "string", "enum": values},
                {"enum": values},
                {"type": "string", "enum": values, "enumNames": [v.upper() for v in values]},
                {"type": "string", "oneOf": [{"const": v, "title": v * 2} for v in values]},
            ]
        )
    )
    return {**shape, **draw(keywords(default=st.sampled_from([*values, "nothing like it"])))}


@st.composite
def multi_properties(draw: st.DrawFn) -> dict[str, Any]:
    values = draw(options)
    titled_items = {"anyOf": [{"const": v, "title": v * 2} for v in values]}
    items = draw(st.sampled_from([{"type": "string", "enum": values}, titled_items]))
    extras = draw(keywords(default=st.lists(st.sampled_from(values), max_size=3)))
    bounds = draw(_ordered("minItems", "maxItems", st.integers(0, 4)))
    return {"type": "array", "items": items, **extras, **bounds}


properties = st.one_of(
    string_properties(),
    number_properties(),
    keywords(default=st.booleans()).map(lambda extras: {"type": "boolean", **extras}),
    single_properties(),
    multi_properties(),
)


@st.composite
def nullable(draw: st.DrawFn) -> dict[str, Any]:
    """As pydantic writes an optional field."""
    return {"anyOf": [draw(properties), {"type": "null"}], "default": None}


@st.composite
def requested_schemas(draw: st.DrawFn) -> dict[str, Any]:
    shapes = draw(st.dictionaries(names, st.one_of(properties, nullable()), max_size=5))
    required = draw(st.lists(st.sampled_from(sorted(shapes)), unique=True)) if shapes else []
    schema: dict[str, Any] = {"type": "object", "properties": shapes}
    return {**schema, "required": required} if required or draw(st.booleans()) else schema


def values_for(question: Question) -> st.SearchStrategy[Value]:
    """Values of the right kind, good and bad."""
    match question:
        case NumberQuestion() | IntegerQuestion():
            edges = [edge for edge in (question.min, question.max) if edge is not None]
            return st.one_of(numbers, *map(st.just, edges)).map(lambda n: NumberValue(value=n))
        case BooleanQuestion():
            return st.booleans().map(lambda b: BooleanValue(value=b))
        case SingleSelectQuestion():
            ids = st.one_of(st.sampled_from([o.id for o in question.options]), words)
            return st.builds(
                SelectedValue, value=ids, freeform_values=st.none() | st.just(("own",))
            )
        case MultiSelectQuestion():
            ids = st.one_of(st.sampled_from([o.id for o in question.options]), words)
            return st.builds(
                SelectedManyValue,
                value=st.lists(ids, max_size=5).map(tuple),
                freeform_values=st.none() | st.just(("own",)),
            )
        case _:
            return texts.map(lambda text: TextValue(value=text))


@st.composite
def answers_for(draw: st.DrawFn, question: Question) -> Answer:
    kind = draw(st.sampled_from([Submitted, Submitted, Submitted, Draft, Skipped]))
    return Skipped() if kind is Skipped else kind(value=draw(values_for(question)))
