"""Negotiation of the protocol's version: the highest offered one that this host supports."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from session_server.schemas.ahp.commands import PROTOCOL_VERSION
from session_server.schemas.errors import (
    CloseCode,
    CommandError,
    ErrorCode,
    UnsupportedVersionData,
)

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


SUPPORTED = (
    Supported((1, 0, 0), (2, 0, 0), Family.V1),
    Supported((0, 9, 0), (0, 10, 0), Family.V1),
    Supported((0, 3, 0), (0, 3, 1), Family.V0_3),
)

SUPPORTED_VERSIONS = tuple(".".join(map(str, supported.first)) for supported in SUPPORTED)


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
