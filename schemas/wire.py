"""The base of every shape and the few names that all shapes share.

Below it sits msgspec alone; every other module of `schemas` stands on it.
"""

from typing import Annotated, Any, TypeAlias

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
