"""What the record keeps for AHP 0.9 and 1.x: positions of requests, times of turns, active clients.

`reduce_chat` runs after the public state was reduced and never changes it. `reducers.ahp1` makes
what clients of those versions see from both.
"""

from collections.abc import Callable
from typing import Any

from session_server.reducers.state.client_entries import (
    active_client,
    client_entry,
    with_client,
    without_client,
)
from session_server.reducers.state.frozen_values import updated
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.state.turns import tool_call
from session_server.reducers.texts import outcome_note
from session_server.schemas.ahp.actions import (
    ActiveClientChanged,
    ActiveClientToolsChanged,
    InputCompleted,
    InputRequested,
    ResponsePartAdded,
    SessionAction,
    ToolCallComplete,
    ToolCallConfirmed,
    ToolCallReady,
    ToolCallResultConfirmed,
    ToolCallStart,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from session_server.schemas.ahp.questions import InputRequest, ResponseKind
from session_server.schemas.ahp.session import ACTIVITY_BITS, SessionState, Status
from session_server.schemas.ahp.tool_calls import (
    ClientContributor,
    PendingConfirmation,
    PendingResultConfirmation,
    Running,
    ToolCall,
)
from session_server.schemas.ahp.turns import SystemNotificationPart, ToolCallPart
from session_server.schemas.record import (
    ChatRecord,
    ClientJoined,
    ClientLeft,
    MessageDrafted,
    Outcome,
    OutcomeRecorded,
    PlacedRequest,
    RecordAction,
    SessionRecord,
    TurnRecord,
)

RUNS = "run:"
"""Prefix of the ids of tool calls that wait for a client to run them, and not for a person."""


def chat_of(record: SessionRecord) -> ChatRecord:
    """The chat, or an approximation for a record that was stored before chats were kept."""
    if record.chat is not None:
        return record.chat
    public = record.public
    at = public.summary.modified_at
    is_failed = public.summary.status & ACTIVITY_BITS == Status.ERROR
    clients = () if public.active_client is None else (client_entry(public.active_client),)
    chat = ChatRecord(
        modified_at=at, active=_guessed_turn(public), failed=is_failed, clients=clients
    )
    return _with_needed(chat, public)


def _guessed_turn(public: SessionState) -> TurnRecord | None:
    """The active turn: began when the session last changed, its requests at the end."""
    turn = public.active_turn
    if turn is None:
        return None
    end = len(turn.response_parts)
    open_now = public.input_requests or ()
    requests = tuple(PlacedRequest(id=request.id, position=end) for request in open_now)
    return TurnRecord(started_at=public.summary.modified_at, requests=requests)


def reduce_chat(
    record: SessionRecord, after: SessionState, action: RecordAction, at: int
) -> ChatRecord | None:
    """The chat once the public state is `after`; the same object if nothing of it changes."""
    if record.chat is None and after is record.public:
        return None
    if isinstance(action, ResponsePartAdded):
        return _part_added(record, after, action)
    transition = TRANSITIONS.get(type(action))
    if transition is None:
        return record.chat or chat_of(record)
    chat = transition(chat_of(record), record.public, after, action, at)
    return _with_needed(chat, after)


# Turns


def _turn_started(
    chat: ChatRecord, before: SessionState, after: SessionState, action: TurnStarted, at: int
) -> ChatRecord:
    summary = after.summary
    turn = TurnRecord(started_at=at, model=summary.model, agent=summary.agent)
    return updated(chat, active=turn, modified_at=at, failed=False)


def _turn_ended(
    chat: ChatRecord,
    before: SessionState,
    after: SessionState,
    action: TurnComplete | TurnCancelled | TurnFailed,
    at: int,
) -> ChatRecord:
    """Clocks of nodes differ: a turn that began after its end has the duration 0."""
    if len(after.turns) == len(before.turns):
        return chat
    turn = chat.active or TurnRecord()
    started_at = before.summary.modified_at if turn.started_at is None else turn.started_at
    ended = updated(
        turn,
        started_at=started_at,
        duration=max(0, at - started_at),
        requests=tuple(_left(before, placed) for placed in turn.requests),
    )
    unknown = (TurnRecord(),) * (len(before.turns) - len(chat.turns))
    return updated(
        chat,
        turns=(*chat.turns, *unknown, ended),
        active=None,
        modified_at=max(at, started_at),
        failed=isinstance(action, TurnFailed),
    )


def _left(before: SessionState, placed: PlacedRequest) -> PlacedRequest:
    """A request that is open when its turn ends keeps its drafts."""
    return placed if placed.request else updated(placed, request=open_request(before, placed.id))


def _truncated(
    chat: ChatRecord, before: SessionState, after: SessionState, action: Truncated, at: int
) -> ChatRecord:
    if action.turn_id is not None and all(turn.id != action.turn_id for turn in before.turns):
        return chat
    return updated(chat, turns=chat.turns[: len(after.turns)], active=None, failed=False)


# Input requests


def _input_requested(
    chat: ChatRecord, before: SessionState, after: SessionState, action: InputRequested, at: int
) -> ChatRecord:
    turn, identity = chat.active, action.request.id
    if turn is None or after.active_turn is None or open_place(turn, identity) is not None:
        return chat
    placed = PlacedRequest(id=identity, position=len(after.active_turn.response_parts))
    return updated(chat, active=updated(turn, requests=(*turn.requests, placed)))


def _input_completed(
    chat: ChatRecord, before: SessionState, after: SessionState, action: InputCompleted, at: int
) -> ChatRecord:
    turn = chat.active
    place = None if turn is None else open_place(turn, action.request_id)
    request = open_request(before, action.request_id)
    if turn is None or place is None or request is None:
        return chat
    answers = {**(request.answers or {}), **(action.answers or {})}
    closed = updated(
        place, request=updated(request, answers=answers or None), response=action.response
    )
    requests = tuple(closed if placed is place else placed for placed in turn.requests)
    return updated(chat, active=updated(turn, requests=requests))


def open_place(turn: TurnRecord, request_id: str) -> PlacedRequest | None:
    """The open request of that id; a completed one may have the same id."""
    for placed in turn.requests:
        if placed.id == request_id and placed.request is None:
            return placed
    return None


def _part_added(
    record: SessionRecord, after: SessionState, action: ResponsePartAdded
) -> ChatRecord | None:
    chat, turn = chat_of(record), after.active_turn
    if chat.active is None or turn is None or not is_note(record, action.part):
        return chat
    return _noted(chat, chat.active, len(turn.response_parts) - 1)


def is_note(record: SessionRecord, part: object) -> bool:
    """Whether a part is only the notification of the request that is completed in the same batch.

    The outcome of the request is recorded just before the part.
    """
    if not isinstance(part, SystemNotificationPart) or not record.private.outcomes:
        return False
    return _is_note_of(part, record.private.outcomes[-1])


def outcome_noted(record: SessionRecord, action: OutcomeRecorded) -> ChatRecord | None:
    """In logs of earlier versions the outcome comes after its notification."""
    turn = record.public.active_turn
    last = turn.response_parts[-1] if turn is not None and turn.response_parts else None
    if turn is None or not isinstance(last, SystemNotificationPart):
        return record.chat
    chat = chat_of(record)
    if chat.active is None or not _is_note_of(last, action.outcome):
        return record.chat
    return _noted(chat, chat.active, len(turn.response_parts) - 1)


def _is_note_of(part: SystemNotificationPart, outcome: Outcome) -> bool:
    """Whether it lists answers, which AHP 0.9 and 1.x show in the request itself."""
    if outcome.response is not ResponseKind.ACCEPT or not outcome.answers:
        return False
    return part.content == outcome_note(outcome)


def _noted(chat: ChatRecord, turn: TurnRecord, position: int) -> ChatRecord:
    notes = tuple(dict.fromkeys((*turn.notes, position)))
    return updated(chat, active=updated(turn, notes=notes))


# Tool calls


def _tool_call_changed(
    chat: ChatRecord, before: SessionState, after: SessionState, action: SessionAction, at: int
) -> ChatRecord:
    """Changes only `needed`, which `reduce_chat` derives after every transition."""
    return chat


def _tool_call_ready(
    chat: ChatRecord, before: SessionState, after: SessionState, action: ToolCallReady, at: int
) -> ChatRecord:
    call = tool_call(before, action.turn_id, action.tool_call_id)
    if chat.active is None or action.tool_input is not None or not isinstance(call, Running):
        return chat
    if call.tool_input is None:
        return chat
    inputs = {**chat.active.inputs, call.tool_call_id: call.tool_input}
    return updated(chat, active=updated(chat.active, inputs=inputs))


# Clients


def _active_client_changed(
    chat: ChatRecord,
    before: SessionState,
    after: SessionState,
    action: ActiveClientChanged | ActiveClientToolsChanged,
    at: int,
) -> ChatRecord:
    old, new = before.active_client, after.active_client
    clients = chat.clients
    if old is not None and (new is None or new.client_id != old.client_id):
        clients = without_client(clients, old.client_id)
    # An entry that shows it already is kept: a client of AHP 1.x may have put more into it.
    if new is not None and all(active_client(entry) != new for entry in clients):
        clients = with_client(clients, client_entry(new))
    return updated(chat, clients=clients)


def client_joined(record: SessionRecord, action: ClientJoined) -> ChatRecord:
    chat = chat_of(record)
    return updated(chat, clients=with_client(chat.clients, action.client))


def client_left(record: SessionRecord, action: ClientLeft) -> ChatRecord:
    chat = chat_of(record)
    return updated(chat, clients=without_client(chat.clients, action.client_id))


def message_drafted(record: SessionRecord, action: MessageDrafted) -> ChatRecord:
    return updated(chat_of(record), draft=action.draft)


# What waits for a person or a client


def waiting(public: SessionState, turn: TurnRecord | None) -> dict[str, InputRequest | ToolCall]:
    """Open requests, and tool calls that wait for a person or a client, by id."""
    found: dict[str, InputRequest | ToolCall] = {}
    if public.active_turn is None or turn is None:
        return found
    for request in public.input_requests or ():
        if open_place(turn, request.id) is not None:
            found[f"input:{request.id}"] = request
    for part in public.active_turn.response_parts:
        call = part.tool_call if isinstance(part, ToolCallPart) else None
        if isinstance(call, PendingConfirmation | PendingResultConfirmation):
            found[f"confirm:{call.tool_call_id}"] = call
        elif isinstance(call, Running) and isinstance(call.contributor, ClientContributor):
            found[f"{RUNS}{call.tool_call_id}"] = call
    return found


def waits_for_people(needed: tuple[str, ...]) -> bool:
    return any(not name.startswith(RUNS) for name in needed)


def _with_needed(chat: ChatRecord, public: SessionState) -> ChatRecord:
    now = waiting(public, chat.active)
    if not (now or chat.needed):
        return chat
    kept = [name for name in chat.needed if name in now]
    needed = tuple(dict.fromkeys((*kept, *now)))
    was_needed = chat.was_needed or waits_for_people(needed)
    return updated(chat, needed=needed, was_needed=was_needed)


ChatTransition = Callable[[ChatRecord, SessionState, SessionState, Any, int], ChatRecord]

TRANSITIONS: dict[type, ChatTransition] = {
    TurnStarted: _turn_started,
    TurnComplete: _turn_ended,
    TurnCancelled: _turn_ended,
    TurnFailed: _turn_ended,
    Truncated: _truncated,
    InputRequested: _input_requested,
    InputCompleted: _input_completed,
    ToolCallStart: _tool_call_changed,
    ToolCallReady: _tool_call_ready,
    ToolCallConfirmed: _tool_call_changed,
    ToolCallComplete: _tool_call_changed,
    ToolCallResultConfirmed: _tool_call_changed,
    ActiveClientChanged: _active_client_changed,
    ActiveClientToolsChanged: _active_client_changed,
}

PRIVATE_TRANSITIONS: dict[type, Callable[[SessionRecord, Any], ChatRecord | None]] = {
    OutcomeRecorded: outcome_noted,
    ClientJoined: client_joined,
    ClientLeft: client_left,
    MessageDrafted: message_drafted,
}
