"""What can go wrong with a command, and how a client is told.

CommandError            answered with its code, its words and maybe data
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
