"""Values of everything that goes over the wire, made from the shapes themselves.

Together the variants of a shape hold every optional field and every member of every union in it.
"""

from functools import cache
from typing import Any, get_args

import msgspec
from msgspec import inspect as shape

from docs.wire_documents import CLIENT_FRAMES as CLIENT_FRAME_KINDS
from docs.wire_documents import HOST_FRAMES as HOST_FRAME_KINDS
from session_server.schemas.ahp import actions, frames
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.session import RootState, SessionState
from session_server.schemas.codec import encode
from session_server.schemas.documents import RESULTS as RESULT_KINDS
from session_server.schemas.wire import Variant, Wire, members, unknown_member

BY_NAME: dict[str, Any] = {
    "channel": "ahp-session:/s1",
    "input_schema": {"type": "object"},
    "output_schema": {"type": "object"},
    "theme": "light",
    "url": "https://example.org",
}
"""What is held to more than its type, by AHP or by a rule."""


@cache
def variants(kind: Any) -> tuple[Any, ...]:
    return _variants(shape.type_info(kind), "", ())


@cache
def bare(kind: type[Wire]) -> Any:
    """With nothing but what is required."""
    return _built(kind, {f.name: f for f in _fields(kind) if f.required}, ())[0]


def _variants(info: shape.Type, name: str, inside: tuple[type, ...]) -> tuple[Any, ...]:  # noqa: C901, PLR0912
    if name in BY_NAME and isinstance(info, shape.StrType | shape.DictType):
        return (BY_NAME[name],)
    match info:
        case shape.Metadata():
            return _variants(info.type, name, inside)
        case shape.StructType():
            return _of_struct(info.cls, inside)
        case shape.CustomType():
            return _of_family(info.cls, inside)
        case shape.UnionType():
            kinds = [kind for kind in info.types if not isinstance(kind, shape.NoneType)]
            return tuple(value for kind in kinds for value in _variants(kind, name, inside))
        case shape.VarTupleType():
            return (_variants(info.item_type, name, inside),)
        case shape.ListType():
            return ([*_variants(info.item_type, name, inside)],)
        case shape.DictType():
            values = _variants(info.value_type, name, inside)
            return ({f"key{number}": value for number, value in enumerate(values)},)
        case shape.LiteralType():
            return info.values
        case shape.EnumType():
            return (next(iter(info.cls)),)
        case shape.StrType():
            return ("text",)
        case shape.IntType():
            return (max(info.ge or 0, 1),)
        case shape.FloatType():
            return (1.5,)
        case shape.BoolType():
            return (True,)
        case shape.RawType():
            return (msgspec.Raw(encode(bare(SessionState))),)
        case shape.AnyType():
            return ({"anything": [1]},)
        case shape.NoneType() | shape.UnsetType():
            return (None,)
        case _:
            raise NotImplementedError(f"no example of {info}")


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[shape.Field, ...]:
    info = shape.type_info(kind)
    assert isinstance(info, shape.StructType)
    return info.fields


def _of_struct(kind: type[msgspec.Struct], inside: tuple[type, ...]) -> tuple[Any, ...]:
    """A shape that holds itself does so once."""
    if kind in inside:
        return _built(kind, {f.name: f for f in _fields(kind) if f.required}, inside)
    if kind not in MADE:
        MADE[kind] = _built(kind, {f.name: f for f in _fields(kind)}, (*inside, kind))
    return MADE[kind]


MADE: dict[type[msgspec.Struct], tuple[Any, ...]] = {}


def _built(
    kind: type[msgspec.Struct], fields: dict[str, shape.Field], inside: tuple[type, ...]
) -> tuple[Any, ...]:
    values = {name: _variants(field.type, name, inside) for name, field in fields.items()}
    most = max((len(choices) for choices in values.values()), default=1)
    return tuple(
        kind(**{name: choices[n % len(choices)] for name, choices in values.items()})
        for n in range(most)
    )


def _of_family(family: type[Variant], inside: tuple[type, ...]) -> tuple[Any, ...]:
    known = [value for kind in members(family).values() for value in _of_struct(kind, inside)]
    stranger = {family.discriminator: "unheardOf", "id": "x"}
    return (*known, unknown_member(family)(stranger))


def _examples(*kinds: Any) -> tuple[Any, ...]:
    return tuple(value for kind in kinds for value in (*variants(kind), bare(kind)))


def _ends(*kinds: Any) -> tuple[Any, ...]:
    """Frames that carry any action need not do so with all of them."""
    return tuple(value for kind in kinds for value in (variants(kind)[0], variants(kind)[-1]))


CLIENT_ACTIONS: tuple[Wire, ...] = _examples(*get_args(actions.ClientAction))
HOST_ACTIONS: tuple[Wire, ...] = _examples(*get_args(actions.HostAction))
ROOT_STATE, SESSION_STATE = variants(RootState)[0], variants(SessionState)[0]
FRESH_STATE = bare(SessionState)
STATES: tuple[Wire, ...] = (ROOT_STATE, SESSION_STATE, FRESH_STATE)
ENVELOPE, HOST_ENVELOPE = variants(ActionEnvelope)[0], bare(ActionEnvelope)
CLIENT_FRAMES: tuple[Wire, ...] = _ends(*CLIENT_FRAME_KINDS)
HOST_FRAMES: tuple[Wire, ...] = _ends(*HOST_FRAME_KINDS)
RESULTS: dict[type[frames.RequestBase], tuple[Any, ...]] = {
    request: variants(result) for request, result in RESULT_KINDS.items()
}
