"""Error codes of JSON-RPC and AHP, errors of decoders, and refusals of actions."""

from enum import IntEnum, StrEnum

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


class DecodingError(ValueError):
    """The input was refused whole and changed nothing; `path` says where, as in `$.params.id`."""

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(reason if path == "$" else f"{reason} (at {path})")
        self.reason = reason
        self.path = path


class MalformedError(DecodingError):
    """Not JSON text: bad syntax, bad UTF-8, or nested too deep."""


class MismatchError(DecodingError):
    """JSON, but not of the expected shape."""


class UnknownKindError(DecodingError):
    """The discriminator holds a value that this version has no shape for."""

    def __init__(self, kind: str, path: str) -> None:
        super().__init__(f"unknown {path.rpartition('.')[2]} {kind!r}", path)
        self.kind = kind


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
