"""Everything the client raises on purpose.

ClientError
├── Disconnected          there is no connection to work with
│   ├── NotConnected      the first connection could not be made in time
│   ├── ConnectionLost    it broke while a command was under way, which may have been carried out
│   ├── GaveUp            the host does not let us in: trying again would not help
│   └── Closed            the client or the session was closed on this side
├── CommandFailed         the host answered a command with an error
│   ├── SessionNotFound
│   └── SessionExists
├── SessionGone           the session was disposed of while it was watched
├── Rejected              the host refused an action, and says why
│   └── RequestClosed     the question is no longer open; `by` is who closed it
├── Unconfirmed           it was sent, and nobody can say any more whether it was accepted
├── InvalidAnswer         a value that does not fit its question; nothing was sent
├── Unsupported           the version of AHP that is spoken has no such thing; nothing was sent
├── TooManyPending        too many actions wait to be confirmed; this one was not sent
├── TooLarge              an action larger than a frame may be; it was not sent
├── Refused               the host does not do what was asked for; `code` says why
│   ├── AskRefused        this question cannot be asked, or not by us
│   └── CallRefused       this call is not made
├── CallFailed            a call of an MCP server has ended without a result
└── NotUnderstood         the host sent something that is not AHP
"""
# ruff: noqa: N818 - an error is named after what happened

from typing import Any

from session_server.schemas.ahp.actions import Action
from session_server.schemas.errors import ErrorCode, RpcError, SessionServerError, rpc_code_name
from session_server.schemas.principals import Author
from session_server.schemas.wire import Uri


class ClientError(SessionServerError):
    """Base of everything that the client raises on purpose."""

    code = "clientError"


class Disconnected(ClientError):
    """There is no connection to work with."""

    code = "disconnected"


class NotConnected(Disconnected):
    """The first connection could not be made in time."""

    code = "notConnected"
    can_retry = True


class ConnectionLost(Disconnected):
    """The connection broke while a command was under way, which may have been carried out."""

    code = "connectionLost"
    can_retry = True


class GaveUp(Disconnected):
    """The host does not let us in, and trying again would not help.

    `close_code` is the WebSocket's, `status` the HTTP answer to the upgrade, where known.
    """

    code = "gaveUp"

    def __init__(
        self, reason: str, *, close_code: int | None = None, status: int | None = None
    ) -> None:
        super().__init__(reason)
        self.close_code = close_code
        self.status = status


class Closed(Disconnected):
    """The client or the session was closed on this side."""

    code = "closed"


class CommandFailed(ClientError):
    """The host answered a command with an error; `rpc_code` is its JSON-RPC code."""

    code = "commandFailed"

    def __init__(self, error: RpcError) -> None:
        super().__init__(error.message)
        self.code = rpc_code_name(error.code)
        self.rpc_code = error.code
        self.data: Any = error.data


class SessionNotFound(CommandFailed):
    """There is no such session, or we may not see it."""

    code = "sessionNotFound"


class SessionExists(CommandFailed):
    """There is a session with this URI already."""

    code = "sessionExists"


class SessionGone(ClientError):
    """The session was disposed of while it was watched."""

    code = "sessionGone"

    def __init__(self, session: Uri) -> None:
        super().__init__(f"The session {session} is gone.")
        self.session = session


class Rejected(ClientError):
    """The host refused an action; `reason` says why.

    `is_repeated`: it, or a draft that it replaced, was sent before and may have counted.
    """

    code = "rejected"

    def __init__(self, reason: str, action: Action, *, is_repeated: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.action = action
        self.is_repeated = is_repeated


class RequestClosed(Rejected):
    """The question is no longer open; `by` is who closed it, where the host says so."""

    code = "requestClosed"

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
    """The connection broke before the action was confirmed; it may have counted.

    The client does not send it again, since twice would not be the same as once.
    """

    code = "unconfirmed"

    def __init__(self, action: Action) -> None:
        kind = action.__struct_config__.tag
        super().__init__(f"The connection broke before {kind} was confirmed; it may have counted.")
        self.action = action


class InvalidAnswer(ClientError, ValueError):
    """A value does not fit its question, or there is no such question; nothing was sent."""

    code = "invalidAnswer"

    def __init__(self, message: str, question_id: str | None = None) -> None:
        super().__init__(message)
        self.question_id = question_id


class Unsupported(ClientError):
    """The version of AHP that is spoken with this host has no such thing; nothing was sent."""

    code = "unsupported"


class TooManyPending(ClientError):
    """Too many actions wait to be confirmed; this one was not sent."""

    code = "tooManyPending"
    can_retry = True


class TooLarge(ClientError):
    """The action is larger than a frame may be; it was not sent."""

    code = "tooLarge"


class NotUnderstood(ClientError):
    """The host sent something that is not AHP."""

    code = "notUnderstood"


class Refused(ClientError):
    """The host does not do what was asked for; `code` says why: `badForm`, `unknownServer`, …"""

    code = "refused"

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


class AskRefused(Refused):
    """The question cannot be asked, or not by us. Nothing was asked."""


class CallRefused(Refused):
    """The call is not made. Nothing was called."""


class CallFailed(ClientError):
    """A call of an MCP server has ended without a result.

    `kind` is stable: `upstream`, `roundLimit`, `abandoned`, …; `data` may hold the server's.
    """

    code = "callFailed"

    def __init__(self, reason: str, kind: str, data: Any = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.data = data


_OF_CODE: dict[int, type[CommandFailed]] = {
    ErrorCode.SESSION_NOT_FOUND: SessionNotFound,
    ErrorCode.SESSION_EXISTS: SessionExists,
}


def command_failed(error: RpcError) -> CommandFailed:
    return _OF_CODE.get(error.code, CommandFailed)(error)
