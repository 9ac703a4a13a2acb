"""Why somebody is not let in. None of these ever holds a credential.

TurnedAwayError             `status` is HTTP's; at a WebSocket upgrade every one is 403
├── NoCredentialError       401  a token is needed and none came
├── BadCredentialError      401  what came is no token of this host, or no longer one
├── ForeignOriginError      403  a page of another origin, or by another name
├── ProxiedError            403  through a proxy, to a host where that would make anyone an owner
├── AmbiguousRequestError   400  two values where a request has one, or none that can be read
└── NotAllowedError         403  known, but not for this
"""

from enum import StrEnum


class TurnedAwayError(Exception):
    """The words say what to do next."""

    status = 403
    code = "turnedAway"


class NoCredentialError(TurnedAwayError):
    status = 401
    code = "noCredential"


class CredentialFailure(StrEnum):
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    REVOKED = "revoked"


class BadCredentialError(TurnedAwayError):
    status = 401
    code = "badCredential"

    def __init__(
        self, message: str, failure: CredentialFailure = CredentialFailure.UNKNOWN
    ) -> None:
        super().__init__(message)
        self.failure = failure


class ForeignOriginError(TurnedAwayError):
    code = "foreignOrigin"


class ProxiedError(TurnedAwayError):
    code = "proxyWithoutToken"


class AmbiguousRequestError(TurnedAwayError):
    status = 400
    code = "ambiguousRequest"


class NotAllowedError(TurnedAwayError):
    code = "permissionDenied"
