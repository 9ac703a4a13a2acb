"""Hypothesis strategies for all that `schemas` holds, built from the shapes themselves.

`shapes(T)` gives any value of a shape. Ids come from a small pool, so that independent draws of a
state and an action often speak of the same turn, call or request. Below it stand values that fit
together by more than their types: questions with sensible limits, and answers that satisfy them.
"""

from functools import cache
from typing import Any, TypeAlias

import msgspec
from hypothesis import strategies as st
from msgspec import inspect as shape

from session_server.schemas.ahp.actions import (
    HostAction,
    RootAction,
    SessionAction,
)
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
    Value,
)
from session_server.schemas.ahp.session import RootState, SessionState
from session_server.schemas.record import PrivateAction
from session_server.schemas.wire import Variant, members, unknown_member

Strategy: TypeAlias = st.SearchStrategy[Any]

IDS = ("a", "b", "c")
FEW = 2
"""How many elements a collection has at most; `OPTIONALS`: how many optional fields are set."""
OPTIONALS = 5

ids = st.sampled_from(IDS)
texts = st.text(max_size=8)
whole_numbers = st.one_of(st.integers(-3, 3), st.integers(-(2**70), 2**70))
fractions = st.floats(allow_nan=False, allow_infinity=False)
times = st.integers(0, 2**53 - 1)
json_values: Strategy = st.recursive(
    st.one_of(st.none(), st.booleans(), whole_numbers, fractions, texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=FEW), st.dictionaries(texts, inner, max_size=FEW)
    ),
    max_leaves=4,
)
extras = st.dictionaries(texts, json_values, max_size=FEW)


# Any value of a shape


@cache
def shapes(annotation: Any) -> Strategy:
    """Any value that the annotation allows: a Struct, a union of them, a family of variants…"""
    return _of(shape.type_info(annotation))


def _of(info: shape.Type) -> Strategy:  # noqa: C901, PLR0912
    match info:
        case shape.Metadata():
            return _of(info.type)
        case shape.StructType():
            return _struct(info.cls)
        case shape.CustomType():
            return _family(info.cls)
        case shape.UnionType():
            return st.one_of(*(_of(member) for member in info.types))
        case shape.VarTupleType():
            return _several(info).map(tuple)
        case shape.ListType():
            return _several(info)
        case shape.DictType():
            return st.dictionaries(st.one_of(ids, texts), _of(info.value_type), max_size=FEW)
        case shape.LiteralType():
            return st.sampled_from(info.values)
        case shape.EnumType():
            return st.sampled_from(list(info.cls))
        case shape.IntType():
            return _integers(info)
        case shape.RawType():
            return json_values.map(lambda value: msgspec.Raw(msgspec.json.encode(value)))
        case shape.AnyType():
            return json_values
        case shape.StrType():
            return texts.filter(bool) if info.min_length else texts
        case shape.FloatType():
            return fractions if info.gt is None else st.floats(info.gt, info.le, exclude_min=True)
        case shape.BoolType():
            return st.booleans()
        case shape.NoneType():
            return st.none()
        case _:
            raise NotImplementedError(f"no strategy for {info}")


def _several(info: shape.VarTupleType | shape.ListType) -> Strategy:
    return st.lists(_of(info.item_type), min_size=info.min_length or 0, max_size=FEW)


def _integers(info: shape.IntType) -> Strategy:
    if info.ge is None:
        return whole_numbers
    least = max(info.ge, -3)
    return st.one_of(st.integers(least, least + 6), st.integers(info.ge, info.le))


@cache
def _struct(cls: type[msgspec.Struct]) -> Strategy:
    """Deferred, since shapes may hold themselves."""
    return st.deferred(lambda: _built(cls))


def _built(cls: type[msgspec.Struct]) -> Strategy:
    info = shape.type_info(cls)
    assert isinstance(info, shape.StructType)
    required = {field.name: _field(field) for field in info.fields if field.required}
    optional = {field.name: _field(field) for field in info.fields if not field.required}
    if not optional:
        return st.builds(cls, **required)

    @st.composite
    def built(draw: st.DrawFn) -> msgspec.Struct:
        chosen = draw(st.sets(st.sampled_from(sorted(optional)), max_size=OPTIONALS))
        fields = {**required, **{name: optional[name] for name in sorted(chosen)}}
        return cls(**{name: draw(strategy) for name, strategy in fields.items()})

    return built()


def _field(field: shape.Field) -> Strategy:
    is_id = field.name == "id" or field.name.endswith("_id")
    return ids if is_id and isinstance(field.type, shape.StrType) else _of(field.type)


@cache
def _family(cls: type[Variant]) -> Strategy:
    unknown = unknown_member(cls)
    known = members(cls)
    strangers = texts.filter(lambda tag: tag not in known)
    raw = st.builds(
        lambda extra, id_, tag: {**extra, "id": id_, cls.discriminator: tag},
        extras,
        ids,
        strangers,
    )
    return st.one_of(*(_struct(member) for member in known.values()), raw.map(unknown))


session_states: st.SearchStrategy[SessionState] = shapes(SessionState)
root_states: st.SearchStrategy[RootState] = shapes(RootState)
session_actions: st.SearchStrategy[SessionAction] = shapes(SessionAction)
root_actions: st.SearchStrategy[RootAction] = shapes(RootAction)
host_actions: st.SearchStrategy[HostAction] = shapes(HostAction)
private_actions: st.SearchStrategy[PrivateAction] = shapes(PrivateAction)


# Questions, and answers that fit them

FORMATTED = {
    "email": ("ana@example.org", "bo+beds@example.org"),
    "uri": ("https://example.org/a?b=c", "urn:isbn:0451450523"),
    "date": ("2026-07-28", "2024-02-29"),
    "date-time": ("2026-07-28T14:00:00Z", "2026-07-28T14:00:00.5+02:00"),
}
small = st.integers(0, 6)
lengths = st.tuples(small, small).map(sorted)
bounds = st.tuples(st.integers(-50, 50), st.integers(-50, 50)).map(sorted)


def maybe(strategy: Strategy) -> Strategy:
    return st.one_of(st.none(), strategy)


@st.composite
def questions(draw: st.DrawFn, identity: str = "q") -> Question:
    """A question that can be answered: its limits leave room, its options have ids of their own."""
    base: dict[str, Any] = {
        "id": identity,
        "message": draw(texts),
        "title": draw(maybe(texts)),
        "required": draw(maybe(st.booleans())),
    }
    low, high = draw(bounds)
    match draw(st.sampled_from(["text", "format", "number", "integer", "boolean", "one", "many"])):
        case "text":
            shortest, longest = draw(lengths)
            return TextQuestion(**base, min=draw(maybe(st.just(shortest))), max=longest)
        case "format":
            return TextQuestion(**base, format=draw(st.sampled_from(sorted(FORMATTED))))
        case "number":
            return NumberQuestion(**base, min=low, max=draw(maybe(st.just(high))))
        case "integer":
            return IntegerQuestion(**base, min=draw(maybe(st.just(low))), max=high)
        case "boolean":
            return BooleanQuestion(**base, default_value=draw(maybe(st.booleans())))
        case choice:
            options = draw(st.lists(ids, min_size=1, unique=True))
            shown = tuple(Option(id=option, label=draw(texts)) for option in options)
            freeform = draw(maybe(st.booleans()))
            if choice == "one":
                return SingleSelectQuestion(**base, options=shown, allow_freeform_input=freeform)
            most = draw(st.integers(1, len(shown)))
            least = draw(maybe(st.integers(0, most)))
            return MultiSelectQuestion(
                **base, options=shown, allow_freeform_input=freeform, min=least, max=most
            )


def fitting_values(question: Question) -> st.SearchStrategy[Value]:
    """Values that may be submitted as the answer to a question of `questions`."""
    match question:
        case TextQuestion():
            free = st.text(min_size=question.min or 0, max_size=question.max)
            text = st.sampled_from(FORMATTED[question.format]) if question.format else free
            return st.builds(TextValue, value=text)
        case NumberQuestion():
            low, high = _range(question)
            number = st.one_of(st.integers(low, high), st.floats(low, high))
            return st.builds(NumberValue, value=number)
        case IntegerQuestion():
            whole = st.integers(*_range(question))
            return st.builds(NumberValue, value=st.one_of(whole, whole.map(float)))
        case BooleanQuestion():
            return st.builds(BooleanValue, value=st.booleans())
        case SingleSelectQuestion():
            choice = st.sampled_from([option.id for option in question.options])
            return st.builds(SelectedValue, value=choice)
        case MultiSelectQuestion():
            choices = st.lists(
                st.sampled_from([option.id for option in question.options]),
                unique=True,
                min_size=question.min or 0,
                max_size=question.max,
            )
            return st.builds(SelectedManyValue, value=choices.map(tuple))


def _range(question: NumberQuestion | IntegerQuestion) -> tuple[int, int]:
    low = -1000 if question.min is None else int(question.min)
    return low, 1000 if question.max is None else int(question.max)


def fitting_answers(question: Question) -> st.SearchStrategy[Answer]:
    """Drafts, submitted answers and skips that the host would accept."""
    values = fitting_values(question)
    return st.one_of(
        st.builds(Draft, value=values), st.builds(Submitted, value=values), st.builds(Skipped)
    )


@st.composite
def input_requests(draw: st.DrawFn, identity: str | None = None) -> InputRequest:
    """A request with some questions, and fitting answers to some of them."""
    asked = tuple(draw(questions(name)) for name in draw(st.sets(ids)))
    answers = {
        question.id: draw(fitting_answers(question)) for question in asked if draw(st.booleans())
    }
    return InputRequest(
        id=identity or draw(ids),
        message=draw(maybe(texts)),
        questions=asked or None,
        answers=answers or None,
    )
