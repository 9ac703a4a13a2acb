"""A record as AHP 0.9 and 1.x show it: the states of its session and chat, and its summary."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from session_server.reducers.ahp1.uris import chat_uri, spelled_uri
from session_server.reducers.state.chat import chat_of, waiting, waits_for_people
from session_server.reducers.state.client_entries import enablement
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.state.status import listed
from session_server.schemas.ahp.customizations import (
    ChildCustomization,
    ChildEntry,
    Customization,
    Directory,
    McpServer,
    Plugin,
    UnknownChildCustomization,
)
from session_server.schemas.ahp.questions import InputRequest, Question
from session_server.schemas.ahp.session import ACTIVITY_BITS, Lifecycle, Status
from session_server.schemas.ahp.tool_calls import (
    ClientContributor,
    PendingResultConfirmation,
    Running,
    Streaming,
    ToolCall,
)
from session_server.schemas.ahp.turn_messages import Message
from session_server.schemas.ahp.turns import ChatPart, ResponsePart, ToolCallPart, Turn, UnknownPart
from session_server.schemas.ahp1 import state as shown
from session_server.schemas.log_entries import Spelling
from session_server.schemas.record import ChatRecord, PlacedRequest, SessionRecord, TurnRecord
from session_server.schemas.wire import Millis, Uri, reshaped

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MOMENT = 253_402_300_799_999
"""The end of the year 9999: what ISO 8601 and every client can still write."""

LIFECYCLES = {
    Lifecycle.CREATING: shown.Lifecycle.CREATING,
    Lifecycle.READY: shown.Lifecycle.READY,
    Lifecycle.CREATION_FAILED: shown.Lifecycle.FAILED,
}


class Variant(NamedTuple):
    """What the bytes for a connection depend on. `has_chat_marks`: see `Version`."""

    has_chat_marks: bool
    spelling: Spelling


def moment(at: Millis) -> shown.Moment:
    """As JavaScript's `toISOString` writes it."""
    time = EPOCH + timedelta(milliseconds=min(at, LAST_MOMENT))
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Requests and tool calls


def shown_request(request: InputRequest) -> InputRequest:
    """Without an empty map of answers; selects always say whether they accept freeform text.

    Some clients treat a missing flag as yes.
    """
    questions = request.questions and tuple(_explicit(question) for question in request.questions)
    return msgspec.structs.replace(request, questions=questions, answers=request.answers or None)


def _explicit(question: Question) -> Question:
    if getattr(question, "allow_freeform_input", False) is not None:
        return question
    return msgspec.structs.replace(question, allow_freeform_input=False)


def shown_call(call: ToolCall, turn: TurnRecord) -> ToolCall:
    """With the input that 0.3.0 dropped when the call was confirmed again."""
    kept = turn.inputs.get(call.tool_call_id)
    if kept is None or isinstance(call, Streaming) or call.tool_input is not None:
        return call
    return msgspec.structs.replace(call, tool_input=kept)


# Turns


def shown_parts(
    record: SessionRecord, parts: tuple[ResponsePart, ...], turn: TurnRecord
) -> tuple[ChatPart, ...]:
    """The parts of a response, with the questions where they were asked."""
    made: list[ChatPart] = []
    rest = list(turn.requests)
    for position, part in enumerate(parts):
        while rest and rest[0].position <= position:
            made += _request_part(record, rest.pop(0))
        if position not in turn.notes and is_shown(part):
            made.append(_shown_part(part, turn))
    for placed in rest:
        made += _request_part(record, placed)
    return tuple(made)


def is_shown(part: ResponsePart) -> bool:
    """An unknown part of 0.3.0 is left out: its kind may mean something else here."""
    return not isinstance(part, UnknownPart)


def _shown_part(part: ResponsePart, turn: TurnRecord) -> ResponsePart:
    if not turn.inputs or not isinstance(part, ToolCallPart):
        return part
    return ToolCallPart(tool_call=shown_call(part.tool_call, turn))


def _request_part(record: SessionRecord, placed: PlacedRequest) -> list[ChatPart]:
    request = placed.request or open_request(record.public, placed.id)
    if request is None:
        return []
    return [shown.InputRequestPart(request=shown_request(request), response=placed.response)]


def shown_message(message: Message, turn: TurnRecord) -> Message:
    """With the model and the agent that the session used when the turn began."""
    if turn.model is None and turn.agent is None:
        return message
    return reshaped(shown.ChosenMessage, message, model=turn.model, agent=turn.agent)


def _active_turn(record: SessionRecord, chat: ChatRecord) -> shown.ActiveChatTurn | None:
    turn = record.public.active_turn
    if turn is None:
        return None
    kept = chat.active or TurnRecord()
    return shown.ActiveChatTurn(
        id=turn.id,
        started_at=moment(chat.modified_at if kept.started_at is None else kept.started_at),
        message=shown_message(turn.message, kept),
        response_parts=shown_parts(record, turn.response_parts, kept),
        usage=turn.usage,
    )


def _turn(record: SessionRecord, turn: Turn, kept: TurnRecord) -> shown.ChatTurn:
    parts = shown_parts(record, turn.response_parts, kept)
    if turn.error is not None:
        parts = (*parts, shown.ErrorPart(error=turn.error))
    return shown.ChatTurn(
        id=turn.id,
        message=shown_message(turn.message, kept),
        response_parts=parts,
        state=turn.state,
        started_at=None if kept.started_at is None else moment(kept.started_at),
        duration=None if kept.duration is None else duration(kept),
        usage=turn.usage,
    )


def duration(turn: TurnRecord) -> Millis:
    """Limited so that start plus duration is a valid time, even in the year 9999."""
    start = min(turn.started_at or 0, LAST_MOMENT)
    return min(start + (turn.duration or 0), LAST_MOMENT) - start


# Chats


def chat_activity(record: SessionRecord, chat: ChatRecord) -> int:
    if chat.failed:
        return Status.ERROR
    if waits_for_people(chat.needed):
        return Status.INPUT_NEEDED
    return Status.IDLE if record.public.active_turn is None else Status.IN_PROGRESS


def chat_status(record: SessionRecord, variant: Variant) -> int:
    """A session has one chat, so both have the same read and archived marks."""
    marks = record.public.summary.status & ~ACTIVITY_BITS if variant.has_chat_marks else 0
    return int(marks | chat_activity(record, chat_of(record)))


def chat_name(record: SessionRecord, variant: Variant) -> Uri:
    return chat_uri(spelled_uri(record.public.summary, variant.spelling))


def _directories(record: SessionRecord) -> tuple[Uri, ...] | None:
    directory = record.public.summary.working_directory
    return None if directory is None else (directory,)


def chat_summary(record: SessionRecord, variant: Variant) -> shown.ChatSummary:
    """Its title stays empty: no action could change it, and clients show the session's instead."""
    return shown.ChatSummary(
        resource=chat_name(record, variant),
        title="",
        status=chat_status(record, variant),
        modified_at=moment(chat_of(record).modified_at),
        working_directories=_directories(record),
    )


def chat_state(record: SessionRecord, variant: Variant) -> shown.ChatState:
    public, chat = record.public, chat_of(record)
    unknown = (TurnRecord(),) * (len(public.turns) - len(chat.turns))
    kept = (*chat.turns, *unknown)
    return reshaped(
        shown.ChatState,
        chat_summary(record, variant),
        turns=tuple(_turn(record, *turn) for turn in zip(public.turns, kept, strict=False)),
        activity=public.summary.activity,
        active_turn=_active_turn(record, chat),
        steering_message=public.steering_message,
        queued_messages=public.queued_messages or None,
        draft=chat.draft,
    )


# Customizations


def shown_entries(entries: tuple[Customization, ...] | None) -> tuple[shown.Entry, ...] | None:
    """Kinds that 0.3.0 does not know are left out."""
    if entries is None:
        return None
    made = (_entry(entry) for entry in entries)
    return tuple(entry for entry in made if entry is not None)


def _entry(entry: Customization) -> shown.Entry | None:
    match entry:
        case Plugin():
            switch, children = enablement(enabled=entry.enabled), _children(entry.children)
            return reshaped(shown.PluginEntry, entry, children=children, enablement=switch)
        case Directory():
            return reshaped(shown.DirectoryEntry, entry, children=_children(entry.children))
        case McpServer():
            return _server(entry)
        case _:
            return None


def _server(server: McpServer) -> shown.McpServerEntry:
    return reshaped(shown.McpServerEntry, server, enablement=enablement(enabled=server.enabled))


def _children(children: tuple[ChildCustomization, ...] | None) -> tuple[ChildEntry, ...] | None:
    return children and tuple(
        _server(child) if isinstance(child, McpServer) else child
        for child in children
        if not isinstance(child, UnknownChildCustomization)
    )


# Sessions


def needed_entries(record: SessionRecord, variant: Variant) -> dict[str, shown.Needed]:
    """What waits for people or clients, in the order in which it began to."""
    chat = chat_of(record)
    turn = record.public.active_turn
    if not chat.needed or turn is None or chat.active is None:
        return {}
    found, uri = waiting(record.public, chat.active), chat_name(record, variant)
    return {
        name: _needed(name, uri, turn.id, found[name], chat.active)
        for name in chat.needed
        if name in found
    }


def _needed(
    name: str, chat: Uri, turn_id: str, what: InputRequest | ToolCall, turn: TurnRecord
) -> shown.Needed:
    """A copy without what changes often: drafts, and partial results of tools."""
    if isinstance(what, InputRequest):
        request = shown_request(msgspec.structs.replace(what, answers=None))
        return shown.ChatInput(id=name, chat=chat, request=request)
    call = shown_call(what, turn)
    if isinstance(call, Running | PendingResultConfirmation):
        call = msgspec.structs.replace(call, content=None)
    owner = call.contributor
    if isinstance(call, Running) and isinstance(owner, ClientContributor):
        return shown.ToolClientExecution(
            id=name, chat=chat, turn_id=turn_id, client_id=owner.client_id, tool_call=call
        )
    return shown.ToolConfirmation(id=name, chat=chat, turn_id=turn_id, tool_call=call)


def session_status(record: SessionRecord) -> int:
    """As clients' reducers leave it: a session that has needed input never becomes idle again."""
    chat = chat_of(record)
    marks = record.public.summary.status & ~ACTIVITY_BITS
    if waits_for_people(chat.needed):
        return int(marks | Status.INPUT_NEEDED)
    return int(marks | (Status.IN_PROGRESS if chat.was_needed else Status.IDLE))


def session_state(record: SessionRecord, variant: Variant) -> shown.SessionState:
    public = record.public
    return shown.SessionState(
        provider=public.summary.provider,
        title=public.summary.title,
        status=session_status(record),
        lifecycle=LIFECYCLES[public.lifecycle],
        active_clients=chat_of(record).clients,
        chats=(chat_summary(record, variant),),
        default_chat=chat_name(record, variant),
        activity=public.summary.activity,
        project=public.summary.project,
        working_directories=_directories(record),
        creation_error=public.creation_error,
        server_tools=public.server_tools,
        config=public.config,
        customizations=shown_entries(public.customizations),
        changesets=public.changesets,
        input_needed=tuple(needed_entries(record, variant).values()) or None,
        meta=public.meta,
    )


def session_summary(record: SessionRecord, variant: Variant) -> shown.SessionSummary:
    """As lists show it. Its status is the true one: what the chat does, and the session's marks."""
    summary, chat = listed(record.public), chat_of(record)
    name = chat_name(record, variant)
    status = summary.status & ~ACTIVITY_BITS | chat_activity(record, chat)
    listed_chat = shown.ListedChat(resource=name, title="", status=chat_status(record, variant))
    return shown.SessionSummary(
        resource=spelled_uri(summary, variant.spelling),
        provider=summary.provider,
        title=summary.title,
        status=int(status),
        created_at=moment(summary.created_at),
        modified_at=moment(chat.modified_at),
        activity=summary.activity,
        project=summary.project,
        working_directories=_directories(record),
        changes=summary.changes,
        chats=(listed_chat,) if variant.has_chat_marks else None,
        default_chat=name if variant.has_chat_marks else None,
        meta=summary.meta,
    )
