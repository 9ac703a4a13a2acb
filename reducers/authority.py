"""What each role may do, before anything else is looked at."""

from typing import get_args

from ..schemas.actions import (
    Action,
    ClientAction,
    HostSessionAction,
    InputAnswerChanged,
    InputCompleted,
    IsReadChanged,
    PendingMessageRemoved,
    PendingMessageSet,
    TitleChanged,
    ToolCallComplete,
    ToolCallContentChanged,
    TurnCancelled,
    TurnStarted,
)
from ..schemas.principals import Principal, Role
from ..schemas.refusals import Refusal, RefusalCode

# An answerer answers questions. Letting a tool run, steering the agent or changing the session are
# the owner's; an observer only looks on.
# An agent says what the host says, runs turns, and reports on its tools; it answers nobody's
# questions, confirms no tool call, and has no say in the host's own state.
OF_AGENTS = (
    TurnStarted,
    TurnCancelled,
    ToolCallComplete,
    ToolCallContentChanged,
    InputCompleted,
    PendingMessageSet,
    PendingMessageRemoved,
    TitleChanged,
    IsReadChanged,
)

MAY: dict[Role, frozenset[type]] = {
    Role.OWNER: frozenset(get_args(ClientAction)),
    Role.AGENT: frozenset({*get_args(HostSessionAction), *OF_AGENTS}),
    Role.ANSWERER: frozenset({InputAnswerChanged, InputCompleted, IsReadChanged}),
    Role.OBSERVER: frozenset(),
}

_WORDS = {
    Role.AGENT: "An agent may not do that.",
    Role.OWNER: "Only the agent of this session may say that.",
    Role.ANSWERER: "You may answer this session's questions, but not do that.",
    Role.OBSERVER: "You may watch this session, but not change it.",
}


def check_role(principal: Principal, action: Action) -> Refusal | None:
    if type(action) in MAY[principal.role]:
        return None
    return Refusal(code=RefusalCode.ROLE, message=_WORDS[principal.role])


def check_session(principal: Principal, resource: str) -> Refusal | None:
    """A share link opens one session and no other; a token may be limited too."""
    if principal.reaches(resource):
        return None
    return Refusal(code=RefusalCode.OTHER_SESSION, message="Your access is to another session.")


def check_channel(action: Action, kinds: frozenset[type]) -> Refusal | None:
    """An action belongs to one kind of channel."""
    if type(action) in kinds:
        return None
    return Refusal(code=RefusalCode.OTHER_CHANNEL, message="That is not for this channel.")
