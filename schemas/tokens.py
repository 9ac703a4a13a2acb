"""Tokens that the host issues: what it remembers of each, and what is asked for and given back.

The text of a token is in none of these but `TokenGiven` and `ShareGiven`, which are said once.
"""

from enum import StrEnum
from typing import Annotated, TypeAlias

from msgspec import Meta

from .limits import (
    ID_CHARS,
    NAME_CHARS,
    SESSIONS_PER_TOKEN,
    SHARE_LIFETIME_LIMIT_SECONDS,
    SHARE_LIFETIME_SECONDS,
    TOKEN_LIFETIME_LIMIT_SECONDS,
)
from .principals import Author, Role
from .wire import Millis, Uri, Wire

Sessions: TypeAlias = Annotated[tuple[Uri, ...], Meta(min_length=1, max_length=SESSIONS_PER_TOKEN)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS)]


class TokenKind(StrEnum):
    TOKEN = "token"  # noqa: S105
    SHARE = "share"


class IssuedToken(Wire, frozen=True, kw_only=True):
    """`sessions` limits it to these; without them it opens all. Without `expires_at` it stays.

    `policy`: no person stands behind it.
    """

    id: str
    kind: TokenKind
    principal_id: str
    role: Role
    created_at: Millis
    created_by: Author
    name: str | None = None
    policy: bool = False
    sessions: tuple[Uri, ...] | None = None
    expires_at: Millis | None = None


class TokenWanted(Wire, frozen=True, kw_only=True):
    """`expires_in` is in seconds; without it the token stays until it is revoked.

    `id` is whom it proves, for someone who has another token already; otherwise somebody new.
    """

    name: Name
    role: Role = Role.ANSWERER
    policy: bool = False
    sessions: Sessions | None = None
    expires_in: Annotated[int, Meta(ge=1, le=TOKEN_LIFETIME_LIMIT_SECONDS)] | None = None
    id: Annotated[str, Meta(min_length=1, max_length=ID_CHARS)] | None = None


class TokenGiven(Wire, frozen=True, kw_only=True):
    """`url` is a link that opens the page with it; `warning` says why it may not work elsewhere."""

    token: str
    issued: IssuedToken
    url: str
    warning: str | None = None


class TokenList(Wire, frozen=True, kw_only=True):
    items: tuple[IssuedToken, ...]


class ShareWanted(Wire, frozen=True, kw_only=True):
    """All of it may be left out: a link for answering, for a day. Agents have no use for one."""

    role: Role = Role.ANSWERER
    name: Name | None = None
    expires_in: Annotated[int, Meta(ge=1, le=SHARE_LIFETIME_LIMIT_SECONDS)] = SHARE_LIFETIME_SECONDS


class ShareGiven(Wire, frozen=True, kw_only=True):
    """`qr` is the link as an SVG picture; `warning` says why the link may not work elsewhere."""

    id: str
    url: str
    token: str
    role: Role
    expires_at: Millis
    qr: str
    warning: str | None = None
