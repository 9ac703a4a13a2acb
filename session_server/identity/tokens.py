"""Tokens that this host issues: signed, listed in its log, and gone as soon as they are revoked.

A token's text says only which one it is and until when; what it proves stands in the log.
"""

import asyncio
import secrets
from typing import Any

import jwt

from session_server.host.channel import Submission
from session_server.host.host import Host
from session_server.host.logged import IssuedTokens, TokenIssued, TokenRevoked
from session_server.host.performing import NotSavedError, RefusedError
from session_server.identity.errors import BadCredentialError
from session_server.identity.keys import SigningKey
from session_server.schemas.limits import TOKENS_KEPT
from session_server.schemas.principals import Principal
from session_server.schemas.refusals import Refusal, RefusalCode
from session_server.schemas.tokens import IssuedToken

ALGORITHM = "HS256"
ID_BYTES = 12
CREDENTIAL_CHARS = 4_096
"""Longer texts are not even looked at."""

UNKNOWN = "This token is not one of this host's; ask its owner for one."
EXPIRED = "This token has expired; ask the host's owner for a new one."
REVOKED = "This token was revoked; ask the host's owner for a new one."


class Tokens:
    def __init__(self, host: Host, key: SigningKey) -> None:
        self._host = host
        self._key = key

    # Proving

    def principal(self, text: str) -> Principal:
        token = self._found(text)
        if token.expires_at is not None and token.expires_at <= self._host.now():
            raise BadCredentialError(EXPIRED)
        return Principal(
            id=token.principal_id,
            role=token.role,
            name=token.name,
            sessions=token.sessions,
            credential=token.id,
            expires_at=token.expires_at,
            is_policy=token.policy,
        )

    def _found(self, text: str) -> IssuedToken:
        key = self._key.known()
        if key is None or len(text) > CREDENTIAL_CHARS:
            raise BadCredentialError(UNKNOWN)
        try:
            claims = jwt.decode(text, key, algorithms=[ALGORITHM], options={"require": ["jti"]})
        except jwt.ExpiredSignatureError:
            raise BadCredentialError(EXPIRED) from None
        except jwt.InvalidTokenError:
            raise BadCredentialError(UNKNOWN) from None
        token = self._all().get(claims["jti"])
        if token is None:
            raise BadCredentialError(REVOKED)
        return token

    # Keeping

    def _all(self) -> dict[str, IssuedToken]:
        issued = self._host.tokens.committed
        return {} if issued is None else issued.tokens

    def listed(self) -> tuple[IssuedToken, ...]:
        """Those that are good for something, oldest first."""
        now = self._host.now()
        return tuple(t for t in self._all().values() if t.expires_at is None or t.expires_at > now)

    def new_id(self) -> str:
        return secrets.token_urlsafe(ID_BYTES)

    async def issue(self, token: IssuedToken) -> str:
        """The text of the token, which is said this once."""
        await self._write(TokenIssued(token=token), token.created_by)
        claims: dict[str, Any] = {"jti": token.id}
        if token.expires_at is not None:
            claims["exp"] = token.expires_at // 1000
        return jwt.encode(claims, self._key.made(), algorithm=ALGORITHM)
