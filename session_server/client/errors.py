"""Everything the client raises on purpose.

ClientError
├── Disconnected          there is no connection to work with
│   ├── NotConnected      the first connection could not be made in time
│   ├── ConnectionLost    it broke while a command was under way; whether it was done is not known
│   ├── GaveUp            the host will not have us: coming back would not help
│   └── Closed            the client or the session was left by its own side
├── CommandFailed         the host answered a command with an error
│   ├── SessionNotFound
│   └── SessionExists
├── SessionGone           the session was disposed of while it was watched
├── Rejected              the host refused an action, and says why
│   └── RequestClosed     the question is no longer open; `by` is who closed it
├── Unconfirmed           it was sent, and nobody can say any more whether it was accepted
├── InvalidAnswer         a value that does not fit its question; nothing was sent
├── TooManyPending        too many actions wait to be confirmed; this one was not taken
├── Refused               the host does not do what was asked for; `code` says why
│   ├── AskRefused        this question cannot be asked, or not by us
│   └── CallRefused       this call is not made
├── CallFailed            a call of an MCP server has ended without a result
├── TooLarge              an action larger than a frame may be; it was not taken
└── NotUnderstood         the host sent something that is not AHP
"""
# ruff: noqa: N818 - an error is named after what happened

from typing import Any, ClassVar

from session_server.schemas.ahp.actions import Action
from session_server.schemas.errors import ErrorCode, RpcError
from session_server.schemas.principals import Author
from session_server.schemas.wire import Uri


class ClientError(Exception):
    """`can_retry` says whether the very same thing may work when it is tried again."""

    can_retry: ClassVar[bool] = False


class Disconnected(ClientError):
    """There is no connection to work with."""


class NotConnected(Disconnected):
    can_retry = True


class ConnectionLost(Disconnected):
    can_retry = True


class GaveUp(Disconnected):
    """`close_code` is the WebSocket's, `status` the HTTP answer to the upgrade, where known."""

    def __init__(
        self, reason: str, *, close_code: int | None = None, status: int | None = None
    ) -> None:
        super().__init__(reason)
        self.close_code = close_code
        self.status = status


class Closed(Disconnected):
    """Left by its own side: there is nobody to blame."""


class CommandFailed(ClientError):
    def __init__(self, error: RpcError) -> None:
        super().__init__(error.message)
        self.code = error.code
        self.data: Any = error.data


class SessionNotFound(CommandFailed):
    """There is no such session, or it is not for us to see."""


class SessionExists(CommandFailed):
    """The URI is taken."""


class SessionGone(ClientError):
    def __init__(self, session: Uri) -> None:
        super().__init__(f"The session {session} is gone.")
        self.session = session


class Rejected(ClientError):
    """`is_repeated`: it, or a draft that it replaced, was sent before and may have counted."""

    def __init__(self, reason: str, action: Action, *, is_repeated: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.action = action
        self.is_repeated = is_repeated


class RequestClosed(Rejected):
    """`by` is empty where the host did not say, or where the question went with its turn."""

    def __init__(
        self,
        reason: str,
        action: Action,
        *,
        by: Author | None = None,
        is_repeated: bool = False,
    ) -> None:
        super().__init__(reason, action, is_repeated=is_repeated)
        self.by = by


class Unconfirmed(ClientError):
    """Not repeated by the client, since twice would not be the same as once."""

    def __init__(self, action: Action) -> None:
        kind = action.__struct_config__.tag
        super().__init__(f"The connection broke before {kind} was confirmed; it may have counted.")
        self.action = action


class InvalidAnswer(ClientError, ValueError):
    """`question_id` is empty where there is no such question."""

    def __init__(self, words: str, question_id: str | None = None) -> None:
        super().__init__(words)
        self.question_id = question_id


class TooManyPending(ClientError):
    can_retry = True


class TooLarge(ClientError):
    """The host would close the connection over it."""


class NotUnderstood(ClientError):
    """The host sent something that is not AHP."""


_OF_CODE: dict[int, type[CommandFailed]] = {
    ErrorCode.SESSION_NOT_FOUND: SessionNotFound,
    ErrorCode.SESSION_EXISTS: SessionExists,
}


def command_failed(error: RpcError) -> CommandFailed:
    return _OF_CODE.get(error.code, CommandFailed)(error)


class Refused(ClientError):
    """`code` is stable: `badForm`, `unknownServer`, `role`, …"""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


class AskRefused(Refused):
    """Nothing was asked."""


class CallRefused(Refused):
    """Nothing was called."""


class CallFailed(ClientError):
    """`kind` is stable: `upstream`, `roundLimit`, `abandoned`, …; `data` may hold the server's."""

    def __init__(self, reason: str, kind: str, data: Any = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.data = data
