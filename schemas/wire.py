"""The base of every wire shape, the names that all shapes share, and open unions."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

import msgspec

Uri: TypeAlias = str
Json: TypeAlias = Any
"""A JSON value that this host carries but never looks into."""

Extra: TypeAlias = dict[str, Any]
"""A `_meta` or other free-form map: carried along, never interpreted."""

SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader, JavaScript's included, keeps exact."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER)]
Millis: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER)]
Seq: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SAFE_INTEGER)]


class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A value on the wire, in state or in the log.

    `frozen`: reducers build new values, they never change one. `kw_only`: shapes grow, positions
    don't. `omit_defaults`: an optional field is `None` here and *absent* on the wire, and an
    incoming `null` becomes `None`, so the two spellings of "nothing" are one. `rename`: camelCase
    is the wire's, snake_case ours. Unknown fields are dropped, as AHP asks of receivers.

    Subclasses restate `frozen` and `kw_only`: type checkers need the first and msgspec the second.
    """


S = TypeVar("S", bound=msgspec.Struct)


def reshaped(kind: type[S], value: msgspec.Struct, **changes: Any) -> S:
    """The same value in another shape: its fields of the same names, and what differs."""
    for name in kind.__struct_fields__:
        if name not in changes:
            changes[name] = getattr(value, name)
    return kind(**changes)


class Markdown(Wire, frozen=True, kw_only=True):
    """Text that may be rendered as Markdown; a plain `str` may not."""

    markdown: str


Text: TypeAlias = str | Markdown


class ContentRef(Wire, frozen=True, kw_only=True):
    uri: Uri
    size_hint: Count | None = None
    content_type: str | None = None


class ErrorInfo(Wire, frozen=True, kw_only=True):
    error_type: str
    message: str
    stack: str | None = None


class Icon(Wire, frozen=True, kw_only=True):
    src: Uri
    content_type: str | None = None
    sizes: tuple[str, ...] | None = None
    theme: str | None = None


class TextPosition(Wire, frozen=True, kw_only=True):
    line: Count
    character: Count


class TextRange(Wire, frozen=True, kw_only=True):
    start: TextPosition
    end: TextPosition


class TextSelection(Wire, frozen=True, kw_only=True):
    range: TextRange


class Variant:
    """The root of the open families: its subclasses are families, theirs are the members.

    Members are Structs tagged with the family's discriminator, plus one `Unknown…` class. A family
    may be wider than another: then the other is one of its subclasses.
    """

    __slots__ = ()
    discriminator: ClassVar[str]


class Unknown:
    """Mixed into a family: a member this version has no shape for, with all that it carried."""

    __slots__ = ("raw",)
    raw: dict[str, Any]

    def __init__(self, raw: dict[str, Any]) -> None:
        object.__setattr__(self, "raw", raw)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown) and type(other) is type(self) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((type(self), *sorted(self.raw)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"


def _all_members(family: type) -> Iterator[type]:
    """Those of narrower families first, so that its own go over them."""
    subclasses: list[type] = family.__subclasses__()
    families = [kind for kind in subclasses if not issubclass(kind, msgspec.Struct | Unknown)]
    for narrower in families:
        yield from _all_members(narrower)
    yield from (kind for kind in subclasses if kind not in families)


def _members(family: type) -> dict[str, type[msgspec.Struct]]:
    """The known members of a family, by tag."""
    known = (kind for kind in _all_members(family) if issubclass(kind, msgspec.Struct))
    return {str(kind.__struct_config__.tag): kind for kind in known}


def _unknown_member(family: type) -> type[Unknown]:
    return [kind for kind in _all_members(family) if issubclass(kind, Unknown)][-1]


members: Callable[[type], dict[str, type[msgspec.Struct]]] = cache(_members)
unknown_member: Callable[[type], type[Unknown]] = cache(_unknown_member)


def decode_variant(expected: type, value: Any) -> Any:
    """msgspec's `dec_hook`: picks the family's member by its tag."""
    if not issubclass(expected, Variant):
        raise NotImplementedError(f"no shape for {expected.__name__}")
    if not isinstance(value, dict):
        raise ValueError(f"Expected `object`, got `{type(value).__name__}`")
    tag = value.get(expected.discriminator)
    if not isinstance(tag, str):
        raise ValueError(f"Object missing required field `{expected.discriminator}`")
    member = members(expected).get(tag)
    if member is None:
        return unknown_member(expected)(value)
    try:
        return msgspec.convert(value, member, dec_hook=decode_variant)
    except msgspec.ValidationError as error:
        # msgspec adds the outer path to a plain ValueError, and leaves its own kind alone.
        raise ValueError(str(error)) from None


def encode_variant(value: Any) -> Any:
    """msgspec's `enc_hook`: an unknown member goes out as it came in."""
    if isinstance(value, Unknown):
        return value.raw
    raise NotImplementedError(f"{type(value).__name__} has no wire form")
