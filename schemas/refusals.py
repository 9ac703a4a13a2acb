"""Why an action was refused: a stable code, words for a person, and what it concerns."""

from enum import StrEnum

from .wire import Wire


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
