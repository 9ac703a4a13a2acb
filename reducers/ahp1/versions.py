"""Which version of the protocol a connection speaks, and what differs between versions."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import msgspec

from session_server.schemas.ahp.commands import PROTOCOL_VERSION
from session_server.schemas.errors import (
    CloseCode,
    CommandError,
    ErrorCode,
    UnsupportedVersionData,
)
from session_server.schemas.wire import Seq

S = TypeVar("S", bound=msgspec.Struct)

_NUMBER = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")

Number = tuple[int, ...]


class Family(StrEnum):
    """Versions of one family share channels, shapes and the numbering of envelopes."""

    V0_3 = "0.3"
    V1 = "1"


class Supported(NamedTuple):
    """Versions from `first` up to, but not including, `end`."""

    first: Number
    end: Number
    family: Family

    @property
    def name(self) -> str:
        return ".".join(map(str, self.first))


SUPPORTED = (
    Supported((1, 0, 0), (2, 0, 0), Family.V1),
    Supported((0, 9, 0), (0, 10, 0), Family.V1),
    Supported((0, 3, 0), (0, 3, 1), Family.V0_3),
)

SUPPORTED_VERSIONS = tuple(supported.name for supported in SUPPORTED)


class Version(NamedTuple):
    """The version that was agreed on, exactly as the client wrote it.

    `has_chat_marks`: chats have read and archived marks, and summaries of sessions list chats.
    """

    text: str
    family: Family
    has_chat_marks: bool


V0_3 = Version(PROTOCOL_VERSION, Family.V0_3, has_chat_marks=False)


def negotiated(offered: Sequence[str]) -> Version:
    """The highest of the offered versions that this host supports, in any order.

    Raises `CommandError` if there is none, or if one of them is not a version at all.
    """
    for number, text in sorted(((_parsed(text), text) for text in offered), reverse=True):
        for supported in SUPPORTED:
            if supported.first <= number < supported.end:
                return Version(text, supported.family, has_chat_marks=number >= (1, 0, 0))
    raise CommandError(
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        f"This host speaks AHP {', '.join(SUPPORTED_VERSIONS)}.",
        UnsupportedVersionData(supported_versions=SUPPORTED_VERSIONS),
        closing=CloseCode.UNSUPPORTED_VERSION,
    )


def _parsed(text: str) -> Number:
    found = _NUMBER.fullmatch(text)
    if found is None:
        message = f"protocolVersions: {text!r} is not a version such as 1.0.0."
        raise CommandError(ErrorCode.INVALID_PARAMS, message)
    return tuple(map(int, found.groups()))


# Numbers of envelopes

ENVELOPES_PER_ENTRY = 1_024
"""The numbers of envelopes leave room for so many between one entry and the next."""


def number(seq: Seq, place: int) -> Seq:
    """The wire number of the envelope in that place of an entry."""
    return seq * ENVELOPES_PER_ENTRY + min(place, ENVELOPES_PER_ENTRY - 1)


def number_after(seq: Seq) -> Seq:
    """The wire number of a position: beyond all envelopes of its entry."""
    return number(seq, ENVELOPES_PER_ENTRY - 1)


class Position(NamedTuple):
    """What a client has seen: all before this entry, and of it up to this place."""

    seq: Seq
    place: int


def position(wire_number: Seq) -> Position:
    return Position(*divmod(wire_number, ENVELOPES_PER_ENTRY))


# Shapes


def renamed(kind: type[S], value: msgspec.Struct, **changes: Any) -> S:
    """The same in the shape of another version: fields of the same names, and what differs."""
    names = (name for name in kind.__struct_fields__ if name not in changes)
    return kind(**{name: getattr(value, name) for name in names}, **changes)
