"""What can go wrong with a command, and how a client is told.

CommandError            answered with its code, its words and maybe data
└── UnreadableSessionError   the session's stored data is damaged
StartError              the host cannot start; its text says what to do
CloseCode               why a connection ends, and whether coming back helps
"""

from enum import IntEnum
from typing import Any

from session_server.schemas.errors import ErrorCode, RpcError


class CommandError(Exception):
    """A command that cannot be carried out; it has changed nothing.

    `closing`: the connection ends with this code once it is answered.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        data: Any = None,
        *,
        closing: "CloseCode | None" = None,
    ) -> None:
        super().__init__(message)
        self.error = RpcError(code=code, message=message, data=data)
        self.closing = closing


class UnreadableSessionError(CommandError):
    """A session is in the log but cannot be read from it. Its data is left as it is."""

    def __init__(self, uri: str, reason: str) -> None:
        message = (
            f"The session {uri} is damaged and cannot be opened: {reason}. Its data is kept. The"
            " owner of the host can export what is readable, restore a backup, or dispose of it."
        )
        super().__init__(ErrorCode.SESSION_NOT_FOUND, message, {"reason": "unreadable"})


class StartError(Exception):
    """The host cannot start with what its log holds."""


class CloseCode(IntEnum):
    """4000–4499: come back and resume. 4500–4999: coming back will not help."""

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


def no_session(uri: str) -> CommandError:
    return CommandError(ErrorCode.SESSION_NOT_FOUND, f"There is no session {uri}.")


def not_permitted(message: str) -> CommandError:
    return CommandError(ErrorCode.PERMISSION_DENIED, message)


def tokens_unreadable(reason: str) -> StartError:
    return StartError(
        f"The list of issued tokens is damaged: {reason}. The host does not start without it,"
        " because tokens that were revoked could work again. Restore a backup, or remove the list"
        " with `session-server doctor --remove session-server:tokens`: then no token or share link"
        " that was issued works any more."
    )
