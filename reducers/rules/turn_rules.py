"""Rules of turns and the tool calls in them."""

from session_server.reducers.rules.roles import NOT_A_USERS, check_length, refused
from session_server.reducers.state.chat import chat_of
from session_server.reducers.state.turns import active_turn, part_id, tool_call
from session_server.schemas.ahp import actions
from session_server.schemas.ahp.questions import RequestMeta
from session_server.schemas.ahp.session import Lifecycle
from session_server.schemas.ahp.tool_calls import (
    CancellationReason,
    Cancelled,
    ClientContributor,
    Completed,
    ConfirmationOptionKind,
    PendingConfirmation,
    PendingResultConfirmation,
    Running,
    Streaming,
)
from session_server.schemas.ahp.turn_messages import HOST_TURN_PREFIX, USER
from session_server.schemas.ahp.turns import ToolCallPart
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.limits import ID_CHARS, NEEDED_PER_SESSION
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import SessionRecord

PASSIVE_PROVIDER = "people"
"""Its sessions are made by programs that ask; no agent waits in them for a message."""

ENDINGS = (actions.TurnCancelled, actions.TurnComplete, actions.TurnFailed)
DROPPING = (actions.TurnCancelled, actions.TurnFailed)
ENDED_CALLS = (Completed, Cancelled)


def turn_started(
    principal: Principal, record: SessionRecord, action: actions.TurnStarted
) -> Refusal | None:
    state = record.public
    if principal.role is not Role.AGENT:
        if state.summary.provider == PASSIVE_PROVIDER:
            message = "No agent listens in this session; it only asks questions."
            return refused(RefusalCode.PASSIVE_SESSION, message)
        if action.message.origin.kind != USER:
            return NOT_A_USERS
    if state.active_turn is not None:
        return refused(RefusalCode.TURN_ACTIVE, "A turn is still in progress.")
    if state.lifecycle is Lifecycle.CREATION_FAILED:
        return refused(RefusalCode.WRONG_STATE, "This session could not be created.")
    if len(action.turn_id) > ID_CHARS:
        return check_length("An id", len(action.turn_id), ID_CHARS)
    if action.turn_id.startswith(HOST_TURN_PREFIX):
        message = f"Ids that begin with {HOST_TURN_PREFIX} belong to the host."
        return refused(RefusalCode.NOT_YOURS, message)
    if any(turn.id == action.turn_id for turn in reversed(state.turns)):
        return refused(RefusalCode.DUPLICATE, "There is a turn with this id already.")
    return None


def of_active_turn(
    principal: Principal, record: SessionRecord, action: actions.TurnAction
) -> Refusal | None:
    if active_turn(record.public, action.turn_id) is None:
        return refused(RefusalCode.NO_TURN, "That turn is not in progress.")
    is_hosts = action.turn_id.startswith(HOST_TURN_PREFIX)
    if is_hosts and principal.role is Role.AGENT and isinstance(action, ENDINGS):
        return refused(RefusalCode.NOT_YOURS, "The host ends its own turns.")
    is_dropped = principal.role is Role.AGENT and isinstance(action, DROPPING)
    if is_dropped and _asks_for_others(principal, record):
        message = "Somebody else has asked a question in this turn, and it would be abandoned."
        return refused(RefusalCode.NOT_YOURS, message)
    return None


def _asks_for_others(principal: Principal, record: SessionRecord) -> bool:
    """Whether a request or call of another principal is open."""
    for request in record.public.input_requests or ():
        meta = request.meta or RequestMeta()
        call = record.private.calls.get(meta.call or "")
        by = meta.by if call is None else call.by
        if by is not None and by.id != principal.id:
            return True
    return False


def response_part_added(
    principal: Principal, record: SessionRecord, action: actions.ResponsePartAdded
) -> Refusal | None:
    turn = active_turn(record.public, action.turn_id)
    if turn is None:
        return refused(RefusalCode.NO_TURN, "That turn is not in progress.")
    if isinstance(action.part, ToolCallPart) and not isinstance(action.part.tool_call, ENDED_CALLS):
        # Not every client would see that the turn waits for a person.
        message = "A tool call that has not ended begins with toolCallStart."
        return refused(RefusalCode.WRONG_STATE, message)
    new = part_id(action.part)
    if new is not None and any(part_id(part) == new for part in turn.response_parts):
        return refused(RefusalCode.DUPLICATE, "There is a part with this id already.")
    return None


def truncated(
    principal: Principal, record: SessionRecord, action: actions.Truncated
) -> Refusal | None:
    if action.turn_id is None or any(t.id == action.turn_id for t in record.public.turns):
        return None
    return refused(RefusalCode.NO_TURN, "There is no such turn to go back to.")


def tool_call_start(
    principal: Principal, record: SessionRecord, action: actions.ToolCallStart
) -> Refusal | None:
    if active_turn(record.public, action.turn_id) is None:
        return refused(RefusalCode.NO_TURN, "That turn is not in progress.")
    if tool_call(record.public, action.turn_id, action.tool_call_id) is not None:
        return refused(RefusalCode.DUPLICATE, "There is a tool call with this id already.")
    return None


def tool_call_delta(
    principal: Principal, record: SessionRecord, action: actions.ToolCallDelta
) -> Refusal | None:
    return _in_state(record, action, (Streaming,), "is not being prepared")


def tool_call_ready(
    principal: Principal, record: SessionRecord, action: actions.ToolCallReady
) -> Refusal | None:
    refusal = _in_state(record, action, (Streaming, Running), "is neither prepared nor running")
    if refusal is None and len(chat_of(record).needed) >= NEEDED_PER_SESSION:
        message = f"At most {NEEDED_PER_SESSION} questions and tool calls can wait at once."
        return refused(RefusalCode.LIMIT, message)
    return refusal


def tool_call_confirmed(
    principal: Principal, record: SessionRecord, action: actions.ToolCallConfirmed
) -> Refusal | None:
    refusal = _in_state(record, action, (PendingConfirmation,), "does not wait for confirmation")
    if refusal is not None:
        return refusal
    if action.approved and action.confirmed is None:
        return refused(RefusalCode.NO_VALUE, "An approval must say how it was confirmed.")
    if not action.approved and action.reason not in _DENIALS:
        return refused(RefusalCode.NO_VALUE, "A denial must say why: denied or skipped.")
    call = tool_call(record.public, action.turn_id, action.tool_call_id)
    assert isinstance(call, PendingConfirmation)
    return _check_choice(call, action) or _check_edit(call, action)


def tool_call_result_confirmed(
    principal: Principal, record: SessionRecord, action: actions.ToolCallResultConfirmed
) -> Refusal | None:
    return _in_state(
        record, action, (PendingResultConfirmation,), "has no result that waits for confirmation"
    )


def tool_call_complete(
    principal: Principal, record: SessionRecord, action: actions.ToolCallComplete
) -> Refusal | None:
    return _of_owner(principal, record, action) or _in_state(
        record, action, (Running, PendingConfirmation), "is not running"
    )


def tool_call_content_changed(
    principal: Principal, record: SessionRecord, action: actions.ToolCallContentChanged
) -> Refusal | None:
    return _of_owner(principal, record, action) or _in_state(
        record, action, (Running,), "is not running"
    )


_DENIALS = (CancellationReason.DENIED, CancellationReason.SKIPPED)


def _in_state(
    record: SessionRecord,
    action: actions.ToolCallAction,
    states: tuple[type, ...],
    otherwise: str,
) -> Refusal | None:
    if action.tool_call_id in record.private.calls:
        return refused(RefusalCode.NOT_YOURS, "That is a call of the host's own.")
    call = tool_call(record.public, action.turn_id, action.tool_call_id)
    if isinstance(call, states):
        return None
    name = "That tool call" if call is None else f"The tool call “{call.display_name}”"
    return refused(RefusalCode.WRONG_STATE, f"{name} {otherwise}.")


def _of_owner(
    principal: Principal, record: SessionRecord, action: actions.ToolCallAction
) -> Refusal | None:
    """The agent reports on its own tools, a client only on those it contributed."""
    call = tool_call(record.public, action.turn_id, action.tool_call_id)
    owner = None if call is None else call.contributor
    if isinstance(owner, ClientContributor):
        mine = owner.client_id == principal.client_id
    else:
        mine = principal.role is Role.AGENT
    if mine:
        return None
    return refused(RefusalCode.NOT_YOURS, "That tool does not belong to this client.")


def _check_choice(call: PendingConfirmation, action: actions.ToolCallConfirmed) -> Refusal | None:
    if action.selected_option_id is None:
        return None
    for option in call.options or ():
        if option.id == action.selected_option_id:
            if (option.kind is ConfirmationOptionKind.APPROVE) == action.approved:
                return None
            message = f"The option “{option.label}” says the opposite."
            return refused(RefusalCode.NO_OPTION, message)
    return refused(RefusalCode.NO_OPTION, "There is no such option.")


def _check_edit(call: PendingConfirmation, action: actions.ToolCallConfirmed) -> Refusal | None:
    if action.edited_tool_input is None or call.editable:
        return None
    return refused(RefusalCode.NOT_EDITABLE, "The input of this tool call cannot be edited.")
