"""Error codes of the wire, refusals of actions, and the one tree of errors.

SessionServerError               code, data, and whether trying again helps
├── DecodingError                input that does not fit its decoder
│   ├── MalformedError           not JSON
│   ├── MismatchError            JSON of another shape
│   └── UnknownKindError         a discriminator that this version does not know
├── CommandError                 a command that cannot be carried out
│   └── UnreadableSessionError   the session's stored data is damaged
├── RefusedError                 an action that the rules do not allow
├── NotSavedError                the log took nothing; nothing has changed
│   └── InDoubtError             not known yet whether the log stored it
├── AccessError                  the sender is not let in, or not for this
│   ├── NoCredentialError
│   ├── BadCredentialError
│   ├── ForeignOriginError
│   ├── ProxiedError
│   ├── AmbiguousRequestError
│   └── NotAllowedError
├── RateLimitError               too many requests, connections or failures
├── InvalidCallError             an MCP call that cannot be started or found
│   ├── UnknownServerError
│   └── UnknownCallError
├── UnreachableError             an MCP server that cannot be reached now
│   └── UnauthorizedError
└── StartError                   the host cannot start; the message says what to do
    ├── UnreadableTokensError
    └── ConfigError              the settings or `mcp.json` cannot be used

Errors of one package derive from these and live there: `LogError` in log/protocol.py,
`ClientError` in client/errors.py, `CliError` in cli/failures.py, and some more. All of them, with
what each protocol makes of them, are listed in docs/reference/errors.md. The core raises none of
HTTP or MCP: http/problems.py, gateway/mcp_errors.py, host/connection/peer.py and
cli/error_mapping.py map them, one module per protocol.
"""

from enum import IntEnum, StrEnum
from math import ceil
from typing import Any

from session_server.schemas.ahp.customizations import ProtectedResource
from session_server.schemas.wire import Extra, Json, Wire


class ErrorCode(IntEnum):
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SESSION_NOT_FOUND = -32001
    PROVIDER_NOT_FOUND = -32002
    SESSION_EXISTS = -32003
    TURN_IN_PROGRESS = -32004
    UNSUPPORTED_PROTOCOL_VERSION = -32005
    CONTENT_NOT_FOUND = -32006
    AUTH_REQUIRED = -32007
    NOT_FOUND = -32008
    PERMISSION_DENIED = -32009
    ALREADY_EXISTS = -32010
    CONFLICT = -32011


class CloseCode(IntEnum):
    """Why a WebSocket is closed. 4000–4499: reconnect and resume. 4500–4999: do not reconnect."""

    GOING_AWAY = 1001
    UNSUPPORTED_DATA = 1003
    INVALID_DATA = 1007
    TOO_BIG = 1009
    INTERNAL_ERROR = 1011
    RESTARTING = 1012
    TOO_SLOW = 4000
    TOO_MANY_REQUESTS = 4001
    TOO_MANY_CONNECTIONS = 4002
    NOT_ALLOWED = 4500
    UNSUPPORTED_VERSION = 4501


class RpcError(Wire, frozen=True, kw_only=True):
    code: int
    message: str
    data: Json = None


class AuthRequiredData(Wire, frozen=True, kw_only=True):
    resources: tuple[ProtectedResource, ...]


class PermissionDeniedData(Wire, frozen=True, kw_only=True):
    request: Extra | None = None


class UnsupportedVersionData(Wire, frozen=True, kw_only=True):
    supported_versions: tuple[str, ...]


class RefusalCode(StrEnum):
    ROLE = "role"
    OTHER_SESSION = "otherSession"
    OTHER_CHANNEL = "otherChannel"
    LIMIT = "limit"
    NO_REQUEST = "noRequest"
    ALREADY_COMPLETED = "alreadyCompleted"
    NO_QUESTION = "noQuestion"
    NO_VALUE = "noValue"
    WRONG_KIND = "wrongKind"
    NOT_AN_OPTION = "notAnOption"
    NO_FREEFORM = "noFreeform"
    DUPLICATE = "duplicate"
    TOO_SHORT = "tooShort"
    TOO_LONG = "tooLong"
    TOO_SMALL = "tooSmall"
    TOO_LARGE = "tooLarge"
    TOO_FEW = "tooFew"
    TOO_MANY = "tooMany"
    NOT_AN_INTEGER = "notAnInteger"
    BAD_FORMAT = "badFormat"
    BAD_PATTERN = "badPattern"
    REQUIRED = "required"
    REVIEW_CHANGED = "reviewChanged"
    BAD_FORM = "badForm"
    TURN_ACTIVE = "turnActive"
    NO_TURN = "noTurn"
    PASSIVE_SESSION = "passiveSession"
    NOT_A_USER_MESSAGE = "notAUserMessage"
    WRONG_STATE = "wrongState"
    NOT_YOURS = "notYours"
    NO_OPTION = "noOption"
    NOT_EDITABLE = "notEditable"
    NO_MESSAGE = "noMessage"
    NO_CUSTOMIZATION = "noCustomization"
    NOT_CONFIGURABLE = "notConfigurable"
    SUPERSEDED = "superseded"


class Refusal(Wire, frozen=True, kw_only=True):
    code: RefusalCode
    message: str
    request_id: str | None = None
    question_id: str | None = None


class SessionServerError(Exception):
    """Base of all errors that are raised on purpose. The message is for people and may change.

    `code` is stable, for programs. `can_retry`: the same request may succeed later, unchanged.
    `data` is what else a program can use, as JSON.
    """

    code: str = "internal"
    can_retry: bool = False
    data: Json = None


class DecodingError(SessionServerError, ValueError):
    """The input was refused whole and changed nothing; `path` says where, as in `$.params.id`."""

    code = "mismatch"

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(reason if path == "$" else f"{reason} (at {path})")
        self.reason = reason
        self.path = path


class MalformedError(DecodingError):
    """Not JSON text: bad syntax, bad UTF-8, or nested too deep."""

    code = "malformed"


class MismatchError(DecodingError):
    """JSON, but not of the expected shape."""


class UnknownKindError(DecodingError):
    """The discriminator holds a value that this version has no shape for."""

    code = "unknownKind"

    def __init__(self, kind: str, path: str) -> None:
        super().__init__(f"unknown {path.rpartition('.')[2]} {kind!r}", path)
        self.kind = kind


class CommandError(SessionServerError):
    """A command that cannot be carried out; it has changed nothing.

    `closing`: the connection is closed with this code after the answer.
    """

    def __init__(
        self,
        rpc_code: ErrorCode,
        message: str,
        data: Any = None,
        *,
        closing: CloseCode | None = None,
    ) -> None:
        super().__init__(message)
        self.code = rpc_code_name(rpc_code)
        self.can_retry = rpc_code in {ErrorCode.CONFLICT, ErrorCode.INTERNAL_ERROR}
        self.data = data
        self.rpc_code = rpc_code
        self.closing = closing


class UnreadableSessionError(CommandError):
    """A session is in the log but cannot be read from it. Its data is left as it is."""

    code = "sessionUnreadable"

    def __init__(self, uri: str, reason: str) -> None:
        message = (
            f"The session {uri} is damaged and cannot be opened: {reason}. Its data is kept. The"
            " owner of the host can export what is readable, restore a backup, or dispose of it."
        )
        super().__init__(ErrorCode.SESSION_NOT_FOUND, message, {"reason": "unreadable"})
        self.code = type(self).code


class RefusedError(SessionServerError):
    """An action that the rules do not allow; `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.code = refusal.code.value
        self.refusal = refusal


class NotSavedError(SessionServerError):
    """The log did not store it, and nothing has changed."""

    code = "notSaved"
    can_retry = True
    text = "This could not be saved, and nothing has changed; try again. {}"

    def __init__(self, reason: str) -> None:
        super().__init__(self.text.format(reason))


class InDoubtError(NotSavedError):
    """The log has not answered: it may or may not have been saved, so look before repeating it."""

    code = "inDoubt"
    can_retry = False
    text = (
        "It is not known yet whether this was saved. If it was, it will appear. Check before you"
        " repeat it. {}"
    )


class AccessError(SessionServerError):
    """The sender is not let in, or not for this. Never holds a credential."""

    code = "permissionDenied"


class NoCredentialError(AccessError):
    """A token is required and none was sent."""

    code = "noCredential"


class CredentialFailure(StrEnum):
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    REVOKED = "revoked"


class BadCredentialError(AccessError):
    """The token is not one of this host's, or not valid any more."""

    code = "badCredential"

    def __init__(
        self, message: str, failure: CredentialFailure = CredentialFailure.UNKNOWN
    ) -> None:
        super().__init__(message)
        self.failure = failure


class ForeignOriginError(AccessError):
    """The request comes from a page of another origin, or names another host."""

    code = "foreignOrigin"


class ProxiedError(AccessError):
    """The request came through a proxy to a host without tokens: anyone would be an owner."""

    code = "proxyWithoutToken"


class AmbiguousRequestError(AccessError):
    """A header has several values where one is expected, or one that cannot be read."""

    code = "ambiguousRequest"


class NotAllowedError(AccessError):
    """The sender is known, and its role does not allow this."""


class RateLimitError(SessionServerError):
    """Too many requests or connections; trying again after `retry_after` seconds helps."""

    code = "tooManyRequests"
    can_retry = True

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = ceil(retry_after)


class InvalidCallError(SessionServerError):
    """An MCP call that cannot be started or found."""

    code = "invalidCall"


class UnknownServerError(InvalidCallError):
    """No MCP server of that name is configured."""

    code = "unknownServer"

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        choice = f"Configured are: {', '.join(known)}." if known else "None are configured."
        super().__init__(f"There is no MCP server {name!r}. {choice}")
        self.name = name


class UnknownCallError(InvalidCallError):
    """There is no such call, or it ended too long ago."""

    code = "unknownCall"

    def __init__(self, call_id: str) -> None:
        super().__init__(f"There is no call {call_id!r}, or it ended too long ago.")
        self.call_id = call_id


class UnreachableError(SessionServerError):
    """The MCP server cannot be reached now; nothing was done with what was sent to it."""

    code = "unreachable"
    can_retry = True


class UnauthorizedError(UnreachableError):
    """The MCP server wants credentials, or others. `scopes` are the ones that it names."""

    code = "unauthorized"
    can_retry = False

    def __init__(self, message: str, status: int, scopes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.scopes = scopes


class StartError(SessionServerError):
    """The host cannot start; the message says what to do."""

    code = "notStarted"


class UnreadableTokensError(StartError):
    """The list of issued tokens is damaged: without it, revoked tokens would work again."""

    code = "tokensUnreadable"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The list of issued tokens is damaged: {reason}. The host does not start without it,"
            " because tokens that were revoked could work again. Restore a backup, or remove the"
            " list with `session-server doctor --remove session-server:tokens`: then no token or"
            " share link that was issued works any more."
        )


class ConfigError(StartError):
    """The settings or `mcp.json` cannot be used. The message shows no values: secrets."""

    code = "badConfig"


def no_session(uri: str) -> CommandError:
    return CommandError(ErrorCode.SESSION_NOT_FOUND, f"There is no session {uri}.")


def not_permitted(message: str) -> CommandError:
    return CommandError(ErrorCode.PERMISSION_DENIED, message)


def rpc_code_name(code: int) -> str:
    """The stable name of a JSON-RPC error code, as in `sessionNotFound`."""
    return camel(ErrorCode(code).name) if code in set(ErrorCode) else "unknownError"


def camel(name: str) -> str:
    first, *rest = name.lower().split("_")
    return first + "".join(word.capitalize() for word in rest)
