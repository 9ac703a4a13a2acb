"""Random actions on a session, aimed at ids that exist."""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from session_server.reducers.state.customizations import identity_of
from session_server.reducers.state.session import reduce_session
from session_server.reducers.state.turns import part_id
from session_server.schemas.ahp import actions
from session_server.schemas.ahp.customizations import McpServer
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.ahp.tool_calls import Running, Streaming, ToolCallBase
from session_server.schemas.ahp.turns import MarkdownPart, ReasoningPart, ToolCallPart

CANDIDATES = 3
AIM = 0.8
RARE = 0.25
"""How often an action is turned to something in the state; how often an ending is let through."""

ENDINGS = (
    actions.TurnComplete,
    actions.TurnCancelled,
    actions.TurnFailed,
    actions.Truncated,
    actions.TurnStarted,
    actions.InputCompleted,
    actions.CustomizationsChanged,
    actions.ToolCallComplete,
)
GROWTH = (actions.Delta, actions.Reasoning, actions.ToolCallDelta)
PARTS: dict[type, type] = {actions.Delta: MarkdownPart, actions.Reasoning: ReasoningPart}
CALLS: dict[type, type] = {
    actions.ToolCallDelta: Streaming,
    actions.ToolCallContentChanged: Running,
}
"""What an action needs in order to change something."""

Steps = list[tuple[Any, int]]


def walk(state: SessionState, pool: tuple[Any, ...], length: int, chance: Random) -> Steps:
    """Actions of the pool with times, of which many change something on the way from `state`."""
    steps: Steps = []
    for _ in range(length):
        at = chance.randrange(2**53)
        tries = [
            (action, reduce_session(state, action, at)) for action in _some(state, pool, chance)
        ]
        moving = [tried for tried in tries if tried[1] is not state]
        action, state = (moving or tries)[0]
        steps.append((action, at))
    return steps


def _some(state: SessionState, pool: tuple[Any, ...], chance: Random) -> Iterator[Any]:
    """Candidates for the next step; endings are rarer, or nothing would ever grow."""
    for action in chance.sample(pool, CANDIDATES):
        if not isinstance(action, ENDINGS) or chance.random() < RARE:
            yield aimed(state, action, chance) if chance.random() < AIM else action
    yield chance.choice(pool)


def aimed(state: SessionState, action: Any, chance: Random) -> Any:
    """The action about something that is there, as far as there is anything."""
    found = {
        name: chance.choice(sorted(choices))
        for name, choices in _targets(state, action).items()
        if choices and hasattr(action, name)
    }
    if isinstance(action, actions.QueuedMessagesReordered):
        order = [message.id for message in state.queued_messages or ()]
        found["order"] = tuple(chance.sample(order, len(order)))
    if isinstance(action, GROWTH):
        found["content"] = f"{action.content}x"
    return msgspec.structs.replace(action, **found) if found else action


def _targets(state: SessionState, action: Any) -> dict[str, set[str]]:
    turn = state.active_turn
    parts = () if turn is None else turn.response_parts
    calls = [part.tool_call for part in parts if isinstance(part, ToolCallPart)]
    status = CALLS.get(type(action), ToolCallBase)
    kind = PARTS.get(type(action), object)
    truncating = isinstance(action, actions.Truncated)
    return {
        "turn_id": {t.id for t in state.turns} if truncating else {turn.id} if turn else set(),
        "tool_call_id": {call.tool_call_id for call in calls if isinstance(call, status)},
        "part_id": {part_id(part) or "" for part in parts if isinstance(part, kind)},
        "request_id": {request.id for request in state.input_requests or ()},
        "queued_message_id": {message.id for message in state.queued_messages or ()},
        "id": _named(state, action),
    }


def _named(state: SessionState, action: Any) -> set[str]:
    if isinstance(action, actions.PendingMessageRemoved):
        steering = () if state.steering_message is None else (state.steering_message,)
        return {message.id for message in (*steering, *(state.queued_messages or ()))}
    entries: list[Any] = list(state.customizations or ())
    entries += [child for entry in entries for child in getattr(entry, "children", None) or ()]
    wanted = McpServer if isinstance(action, actions.McpServerStateChanged) else object
    return {identity_of(entry) or "" for entry in entries if isinstance(entry, wanted)}
