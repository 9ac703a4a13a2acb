"""What each role may do, and in which sessions; the other rules look at the state."""

from typing import get_args

import msgspec

from session_server.schemas.ahp import actions
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import ClientJoined, ClientLeft, MessageDrafted, RecordAction

# An answerer answers questions. Only an owner confirms tool calls, steers the agent or changes the
# session; an observer only watches.
# An agent dispatches host actions, runs turns and reports on its tools; it does not answer
# questions, confirm tool calls or change the host's own state.
OF_AGENTS = (
    actions.TurnStarted,
    actions.TurnCancelled,
    actions.ToolCallComplete,
    actions.ToolCallContentChanged,
    actions.InputCompleted,
    actions.PendingMessageSet,
    actions.PendingMessageRemoved,
    actions.TitleChanged,
    actions.IsReadChanged,
)

OF_CHATS = (ClientJoined, ClientLeft, MessageDrafted)
"""Actions of AHP 0.9 and 1.x that 0.3.0 does not have."""

MAY: dict[Role, frozenset[type]] = {
    Role.OWNER: frozenset({*get_args(actions.ClientAction), *OF_CHATS}),
    Role.AGENT: frozenset({*get_args(actions.HostSessionAction), *OF_AGENTS}),
    Role.ANSWERER: frozenset(
        {actions.InputAnswerChanged, actions.InputCompleted, actions.IsReadChanged}
    ),
    Role.OBSERVER: frozenset(),
}

_ROLE_MESSAGES = {
    Role.AGENT: "An agent may not do that.",
    Role.OWNER: "Only this session's agent can send this.",
    Role.ANSWERER: "You may answer this session's questions, but not do that.",
    Role.OBSERVER: "You may watch this session, but not change it.",
}


def refused(code: RefusalCode, message: str) -> Refusal:
    return Refusal(code=code, message=message)


def check_length(what: str, length: int, limit: int, unit: str = "characters") -> Refusal | None:
    if length <= limit:
        return None
    return refused(RefusalCode.LIMIT, f"{what} may have at most {limit} {unit}.")


NOT_A_USERS = refused(RefusalCode.NOT_A_USER_MESSAGE, "A message from a client must be a user's.")


def as_asker(principal: Principal) -> Principal:
    """An owner may ask in a session, as its agent does."""
    if principal.role is not Role.OWNER:
        return principal
    return msgspec.structs.replace(principal, role=Role.AGENT)


def check_role(principal: Principal, action: actions.Action | RecordAction) -> Refusal | None:
    if type(action) in MAY[principal.role]:
        return None
    return refused(RefusalCode.ROLE, _ROLE_MESSAGES[principal.role])


def check_session(principal: Principal, resource: str) -> Refusal | None:
    """A share link opens one session and no other; a token may be limited too."""
    if principal.reaches(resource):
        return None
    return refused(RefusalCode.OTHER_SESSION, "Your access is to another session.")
