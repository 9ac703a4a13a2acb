"""Tokens that this host issues: signed, listed in its log, invalid as soon as they are revoked.

The text of a token holds only its id and expiry; the principal it proves is in the log.
"""

import logging
import secrets
from collections.abc import Iterator
from typing import Any

import jwt
import msgspec

from session_server.host.async_api import write
from session_server.host.host import Host
from session_server.identity.signing_key import SigningKey
from session_server.schemas.errors import (
    BadCredentialError,
    CredentialFailure,
    NotSavedError,
    Refusal,
    RefusalCode,
)
from session_server.schemas.http import IssuedToken, TokenKind
from session_server.schemas.limits import TOKENS_KEPT
from session_server.schemas.log_entries import (
    TOKENS_CHANNEL,
    IssuedTokens,
    TokenIssued,
    TokenRevoked,
)
from session_server.schemas.principals import Author, Principal, Stamp
from session_server.schemas.wire import Uri

logger = logging.getLogger("session_server.identity")

ALGORITHM = "HS256"
ID_BYTES = 12
CREDENTIAL_CHARS = 4_096
"""A longer text is not even looked at."""

UNKNOWN = "That token isn't valid here. Ask the owner for a new link."
EXPIRED = "This token has expired; ask the host's owner for a new one."
REVOKED = "This token was revoked; ask the host's owner for a new one."
LOST_KEY = (
    "The key that signs tokens is missing (secret.key in the data folder): the %d tokens and share"
    " links that were issued before are no longer valid. Put the file back from a backup and"
    " restart, or issue new ones."
)
TOO_MANY = f"There are {TOKENS_KEPT} tokens already; revoke some first."


class Tokens:
    def __init__(self, host: Host, key: SigningKey) -> None:
        self._host = host
        self._key = key
        host.on_disposed.append(self._close_session)

    # Proving

    def principal(self, text: str) -> Principal:
        key = self._key.known()
        if key is None or len(text) > CREDENTIAL_CHARS:
            raise BadCredentialError(UNKNOWN)
        try:
            claims = jwt.decode(text, key, algorithms=[ALGORITHM], options={"require": ["jti"]})
        except jwt.ExpiredSignatureError:
            raise BadCredentialError(EXPIRED, CredentialFailure.EXPIRED) from None
        except jwt.InvalidTokenError:
            raise BadCredentialError(UNKNOWN) from None
        token = self._all().get(claims["jti"])
        if token is None:
            raise BadCredentialError(REVOKED, CredentialFailure.REVOKED)
        if not self._is_current(token):
            raise BadCredentialError(EXPIRED, CredentialFailure.EXPIRED)
        return Principal(
            id=token.principal_id,
            role=token.role,
            name=token.name,
            sessions=token.sessions,
            credential=token.id,
            expires_at=token.expires_at,
            is_policy=token.policy,
        )

    def _is_current(self, token: IssuedToken) -> bool:
        return token.expires_at is None or token.expires_at > self._host.now()

    # Keeping

    def _all(self) -> dict[str, IssuedToken]:
        issued = self._host.tokens.committed
        return {} if issued is None else issued.tokens

    def listed(self, kind: TokenKind) -> Iterator[IssuedToken]:
        """The valid ones, oldest first."""
        return (t for t in self._all().values() if t.kind is kind and self._is_current(t))

    def find(self, token_id: str) -> IssuedToken | None:
        return self._all().get(token_id)

    async def issue(self, token: IssuedToken) -> str:
        """Saves the token; returns its text, which is shown only once."""
        try:
            self._key.made()
        except OSError as error:
            raise NotSavedError(f"The signing key could not be written: {error.strerror}") from None

        def plan(issued: IssuedTokens, _: Stamp) -> Any:
            if len(issued.tokens) >= TOKENS_KEPT:
                return Refusal(code=RefusalCode.LIMIT, message=TOO_MANY)
            return (TokenIssued(token=token),)

        await write(self._host, TOKENS_CHANNEL, plan, token.created_by)
        return self.text_of(token)

    def text_of(self, token: IssuedToken) -> str:
        """The same text every time."""
        claims: dict[str, Any] = {"jti": token.id}
        if token.expires_at is not None:
            claims["exp"] = -(-token.expires_at // 1000)
        return jwt.encode(claims, self._key.made(), algorithm=ALGORITHM)

    async def revoke(self, token_id: str, by: Author) -> bool:
        """Disconnects everyone who uses the token; returns whether there was one."""
        if token_id not in self._all():
            return False
        revoked = TokenRevoked(token_id=token_id)
        await write(self._host, TOKENS_CHANNEL, lambda *_: (revoked,), by)
        self._host.connections.revoke(token_id)
        return True

    # Sessions that go

    def restarted(self) -> None:
        """Revokes tokens of deleted sessions, which a crash may have left."""
        if self._key.known() is None and self._all():
            logger.warning(LOST_KEY, len(self._all()))
        for uri in {uri for token in self._all().values() for uri in token.sessions or ()}:
            if uri not in self._host.sessions and uri not in self._host.unreadable:
                self._close_session(uri)

    def _close_session(self, uri: Uri) -> None:
        """A token for a session must not open a later session of the same name."""
        touched = [token for token in self._all().values() if uri in (token.sessions or ())]
        if not touched:
            return

        def plan(issued: IssuedTokens, _: Stamp) -> Any:
            tokens = issued.tokens.values()
            return tuple(_without(uri, t) for t in tokens if uri in (t.sessions or ()))

        self._host.write(self._host.tokens, plan)
        for token in touched:
            self._host.connections.revoke(token.id)


def new_id() -> str:
    return secrets.token_urlsafe(ID_BYTES)


def _without(uri: Uri, token: IssuedToken) -> TokenIssued | TokenRevoked:
    rest = tuple(session for session in token.sessions or () if session != uri)
    if not rest:
        return TokenRevoked(token_id=token.id)
    return TokenIssued(token=msgspec.structs.replace(token, sessions=rest))
