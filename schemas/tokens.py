"""Tokens that the host issues: what it remembers of each, and what is asked for and given back.

The text of a token is in none of these but `TokenGiven` and `ShareGiven`, which are said once.
"""

from enum import StrEnum

from .principals import Author, Role
from .wire import Count, Millis, Uri, Wire


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
    """`id` is for whoever already is someone here, and gets another token; `expires_in` seconds."""

    name: str
    role: Role = Role.ANSWERER
    policy: bool = False
    sessions: tuple[Uri, ...] | None = None
    expires_in: Count | None = None
    id: str | None = None


class TokenGiven(Wire, frozen=True, kw_only=True):
    token: str
    issued: IssuedToken


class TokenList(Wire, frozen=True, kw_only=True):
    items: tuple[IssuedToken, ...]


class ShareWanted(Wire, frozen=True, kw_only=True):
    role: Role = Role.ANSWERER
    name: str | None = None
    expires_in: Count | None = None


class ShareGiven(Wire, frozen=True, kw_only=True):
    """`qr` is the link as an SVG picture; `warning` says why the link may not work elsewhere."""

    url: str
    token: str
    id: str
    role: Role
    expires_at: Millis
    qr: str
    warning: str | None = None
