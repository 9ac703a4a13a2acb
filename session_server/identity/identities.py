"""From a credential to a principal, for every request and every upgrade."""

import secrets

from session_server.identity.access import Access
from session_server.identity.errors import BadCredentialError, NoCredentialError
from session_server.identity.failures import FailedCredentials
from session_server.identity.tokens import Tokens
from session_server.schemas.principals import (
    AGENT_PREFIX,
    HOST,
    LOCAL_ID,
    OWNER_ID,
    SHARE_PREFIX,
    Principal,
    Role,
)

LOCAL = Principal(id=LOCAL_ID, role=Role.OWNER)
"""Whoever comes without a credential, where none is needed."""

OWNER = Principal(id=OWNER_ID, role=Role.OWNER)
"""Whoever has the connection token."""

RESERVED = frozenset({HOST.id, LOCAL.id, OWNER.id})
RESERVED_PREFIXES = (AGENT_PREFIX, "call:", SHARE_PREFIX, "token:")
"""Names that nobody can be given, because the host gives them itself."""

NO_CREDENTIAL = "A token is required: as `Authorization: Bearer …`, or as `?tkn=…` in the URL."


class Identities:
    def __init__(self, access: Access, tokens: Tokens) -> None:
        self.tokens = tokens
        self.failures = FailedCredentials()
        self._connection_token = access.connection_token

    def principal(self, credential: str | None, address: str | None = None) -> Principal:
        """Whom it proves; a failure is counted, and throttled by the address that it came from."""
        if credential is None:
            if self._connection_token is not None:
                raise NoCredentialError(NO_CREDENTIAL)
            return LOCAL
        if self._is_connection_token(credential):
            return OWNER
        try:
            return self.tokens.principal(credential)
        except BadCredentialError as error:
            raise self.failures.failed(error, address) from None

    def _is_connection_token(self, credential: str) -> bool:
        """In a time that says nothing about how much of it was right."""
        known = self._connection_token
        return known is not None and secrets.compare_digest(credential.encode(), known.encode())


def is_reserved(principal_id: str) -> bool:
    return principal_id in RESERVED or principal_id.startswith(RESERVED_PREFIXES)
