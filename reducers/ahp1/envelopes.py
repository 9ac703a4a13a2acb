"""Entries of a session's log as the envelopes of AHP 0.9 and 1.x.

One entry makes any number of envelopes, on the chat and on the session. Folding them over an
earlier snapshot with the reducers of these versions yields the later snapshot, on both channels.
They are a pure function of the record before and the entries: a number always means the same bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from session_server.reducers.ahp1.numbering import number
from session_server.reducers.ahp1.root import enablement, shown_entries
from session_server.reducers.ahp1.snapshots import (
    Variant,
    chat_name,
    chat_summary,
    duration,
    is_shown,
    moment,
    needed_entries,
    shown_message,
    shown_request,
)
from session_server.reducers.ahp1.uris import session_uri
from session_server.reducers.state.chat import chat_of, is_note, open_place
from session_server.reducers.state.customizations import identity_of
from session_server.reducers.state.frozen_values import is_same
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp.customizations import ContainerBase
from session_server.schemas.ahp.envelopes import ActionOrigin, EnvelopeMeta
from session_server.schemas.ahp.session import Status
from session_server.schemas.ahp1 import actions as shown
from session_server.schemas.ahp1.methods import Envelope, SummaryChanges
from session_server.schemas.ahp1.state import ErrorPart, SessionSummary
from session_server.schemas.principals import Author
from session_server.schemas.record import (
    ClientJoined,
    ClientLeft,
    MessageDrafted,
    RecordAction,
    SessionRecord,
)
from session_server.schemas.wire import Millis, Seq, reshaped


class Committed(NamedTuple):
    """An entry of a session's log."""

    seq: Seq
    action: RecordAction
    at: Millis
    by: Author | None = None
    origin: ActionOrigin | None = None


class Shown(NamedTuple):
    """An action to deliver. `is_own`: the envelope carries the origin of the client's action."""

    action: shown.ChatAction | shown.SessionAction
    on_chat: bool
    is_own: bool


def _on_chat(action: shown.ChatAction, *, is_own: bool = False) -> Shown:
    return Shown(action, on_chat=True, is_own=is_own)


def _on_session(action: shown.SessionAction, *, is_own: bool = False) -> Shown:
    return Shown(action, on_chat=False, is_own=is_own)


def envelopes(
    record: SessionRecord, entries: Sequence[Committed], variant: Variant
) -> Iterator[Envelope]:
    """The envelopes of consecutive entries after this record."""
    session = session_uri(record.public.summary, variant.spelling)
    chat = chat_name(record, variant)
    for entry in entries:
        after = reduce_record(record, entry.action, entry.at)
        meta = EnvelopeMeta(at=entry.at, by=entry.by)
        for place, made in enumerate(shown_actions(record, entry.action, after, variant)):
            yield Envelope(
                channel=chat if made.on_chat else session,
                action=made.action,
                server_seq=number(entry.seq, place),
                origin=entry.origin if made.is_own else None,
                meta=meta,
            )
        record = after


def shown_actions(
    before: SessionRecord, action: RecordAction, after: SessionRecord, variant: Variant
) -> list[Shown]:
    """The actions that clients of this variant get for one entry, in order."""
    projection = PROJECTIONS.get(type(action))
    if projection is None:
        return []
    made = list(projection(before, action, after, variant))
    if type(action) in SETTLING:
        made += _consequences(before, action, after, variant)
    return made


# What follows on the session


def _consequences(
    before: SessionRecord, action: RecordAction, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    """Changes of what waits for people, of the read mark, and of the chat's summary."""
    old, new = needed_entries(before, variant), needed_entries(after, variant)
    for name in old:
        if name not in new:
            yield _on_session(shown.InputNeededRemoved(id=name))
    for name, entry in new.items():
        if name not in old or not is_same(old[name], entry):
            yield _on_session(shown.InputNeededSet(request=entry))
    if not isinstance(action, ahp.IsReadChanged) and _is_read(before) and not _is_read(after):
        yield _on_session(ahp.IsReadChanged(is_read=False))
    changes = chat_changes(before, after, variant)
    if changes != shown.ChatChanges():
        yield _on_session(shown.ChatUpdated(chat=chat_name(after, variant), changes=changes))


def _is_read(record: SessionRecord) -> bool:
    return bool(record.public.summary.status & Status.IS_READ)


def chat_changes(
    before: SessionRecord, after: SessionRecord, variant: Variant
) -> shown.ChatChanges:
    old, new = chat_summary(before, variant), chat_summary(after, variant)
    unset = msgspec.UNSET
    return shown.ChatChanges(
        status=unset if old.status == new.status else new.status,
        modified_at=unset if old.modified_at == new.modified_at else new.modified_at,
    )


def summary_changes(old: SessionSummary, new: SessionSummary) -> SummaryChanges | None:
    """The changed fields of the summary, for subscribers of the root; `None` if there are none."""
    changes = {
        name: _cleared(new, name)
        for name in SummaryChanges.__struct_fields__
        if not is_same(getattr(old, name), getattr(new, name))
    }
    return SummaryChanges(**changes) if changes else None


def _cleared(summary: SessionSummary, name: str) -> Any:
    """These versions cannot clear a field; only an empty activity means that there is none."""
    value = getattr(summary, name)
    if value is not None:
        return value
    return "" if name == "activity" else msgspec.UNSET


# The entry itself

Projection: TypeAlias = Callable[
    [SessionRecord, Any, SessionRecord, Variant], Sequence[Shown] | Iterator[Shown]
]


def _same_on_chat(kind: type[shown.ChatAction]) -> Projection:
    def project(
        before: SessionRecord, action: Any, after: SessionRecord, variant: Variant
    ) -> Sequence[Shown]:
        made: Any = reshaped(kind, action)
        return (_on_chat(made, is_own=True),)

    return project


def _of_tool_call(kind: type[shown.ChatAction]) -> Projection:
    """Without `_meta`: 0.3.0 keeps only what the call began with."""

    def project(
        before: SessionRecord, action: Any, after: SessionRecord, variant: Variant
    ) -> Sequence[Shown]:
        made: Any = reshaped(kind, action, meta=None)
        return (_on_chat(made, is_own=True),)

    return project


def _same_on_session(
    before: SessionRecord, action: Any, after: SessionRecord, variant: Variant
) -> Sequence[Shown]:
    return (_on_session(action, is_own=True),)


def _turn_started(
    before: SessionRecord, action: ahp.TurnStarted, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    chat = chat_of(after)
    assert chat.active is not None  # the turn that it started
    started = shown.TurnStarted(
        turn_id=action.turn_id,
        started_at=moment(chat.modified_at),
        message=shown_message(action.message, chat.active),
        queued_message_id=action.queued_message_id,
    )
    yield _on_chat(started, is_own=True)


def _turn_ended(
    before: SessionRecord,
    action: ahp.TurnComplete | ahp.TurnCancelled | ahp.TurnFailed,
    after: SessionRecord,
    variant: Variant,
) -> Iterator[Shown]:
    if len(after.public.turns) == len(before.public.turns):
        return
    took = duration(chat_of(after).turns[-1])
    match action:
        case ahp.TurnFailed():
            part = ErrorPart(error=action.error)
            failed = shown.TurnFailed(turn_id=action.turn_id, duration=took, part=part)
            yield _on_chat(failed)
        case ahp.TurnCancelled():
            cancelled = shown.TurnCancelled(turn_id=action.turn_id, duration=took)
            yield _on_chat(cancelled, is_own=True)
        case _:
            yield _on_chat(shown.TurnComplete(turn_id=action.turn_id, duration=took))


def _response_part_added(
    before: SessionRecord, action: ahp.ResponsePartAdded, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    if is_shown(action.part) and not is_note(before, action.part):
        yield _on_chat(reshaped(shown.ResponsePartAdded, action))


def _tool_call_ready(
    before: SessionRecord, action: ahp.ToolCallReady, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    """Later versions would treat it as a call that waits already; 0.3.0 does not."""
    if after.public is not before.public:
        yield _on_chat(reshaped(shown.ToolCallReady, action, meta=None))


def _input_requested(
    before: SessionRecord, action: ahp.InputRequested, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    turn = chat_of(after).active
    request = open_request(after.public, action.request.id)
    if turn is None or request is None or open_place(turn, request.id) is None:
        # Without a turn the request is not shown, but the session becomes unread.
        if variant.has_chat_marks and _is_read(before):
            yield _on_chat(shown.ChatIsReadChanged(is_read=False))
        return
    asked = shown_request(request)
    if asked.answers is None:
        # Asking again keeps answers unless it has some, so removed ones are cleared one by one.
        earlier = open_request(before.public, request.id)
        for question_id in (None if earlier is None else earlier.answers) or ():
            cleared = shown.InputAnswerChanged(request_id=request.id, question_id=question_id)
            yield _on_chat(cleared)
    yield _on_chat(shown.InputRequested(request=asked))


def _input_completed(
    before: SessionRecord, action: ahp.InputCompleted, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    completed = shown.InputCompleted(
        request_id=action.request_id, response=action.response, answers=action.answers or None
    )
    yield _on_chat(completed, is_own=True)


def _activity_changed(
    before: SessionRecord, action: ahp.ActivityChanged, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    yield _on_session(action)
    yield _on_chat(reshaped(shown.ChatActivityChanged, action))


def _is_read_changed(
    before: SessionRecord, action: ahp.IsReadChanged, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    """The sender may have sent it for the session or for the chat: both count as its echo."""
    yield _on_session(action, is_own=True)
    if variant.has_chat_marks:
        yield _on_chat(reshaped(shown.ChatIsReadChanged, action), is_own=True)


def _is_archived_changed(
    before: SessionRecord, action: ahp.IsArchivedChanged, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    yield _on_session(action, is_own=True)
    if variant.has_chat_marks:
        yield _on_chat(reshaped(shown.ChatIsArchivedChanged, action), is_own=True)


def _clients_changed(
    before: SessionRecord, action: RecordAction, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    old, new = chat_of(before).clients, chat_of(after).clients
    kept = {entry.client_id for entry in new}
    for entry in old:
        if entry.client_id not in kept:
            yield _on_session(shown.ActiveClientRemoved(client_id=entry.client_id))
    for entry in new:
        if entry not in old:
            yield _on_session(shown.ActiveClientSet(active_client=entry))


def _client_joined(
    before: SessionRecord, action: ClientJoined, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    yield _on_session(shown.ActiveClientSet(active_client=action.client), is_own=True)


def _client_left(
    before: SessionRecord, action: ClientLeft, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    yield _on_session(shown.ActiveClientRemoved(client_id=action.client_id), is_own=True)


def _message_drafted(
    before: SessionRecord, action: MessageDrafted, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    yield _on_chat(shown.DraftChanged(draft=action.draft), is_own=True)


def _customization_toggled(
    before: SessionRecord, action: ahp.CustomizationToggled, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    toggled = shown.CustomizationToggled(
        id=action.id, enablement=enablement(enabled=action.enabled)
    )
    yield _on_session(toggled, is_own=True)
    if len([name for name in _names(after) if name == action.id]) > 1:
        yield _all_customizations(after)  # a mirror has switched all of them


def _names(record: SessionRecord) -> Iterator[str | None]:
    """The ids of all customizations, inside others too."""
    for entry in record.public.customizations or ():
        yield identity_of(entry)
        if isinstance(entry, ContainerBase):
            yield from (identity_of(child) for child in entry.children or ())


def _customizations_changed(
    before: SessionRecord, action: RecordAction, after: SessionRecord, variant: Variant
) -> Iterator[Shown]:
    """Sends all of them: versions differ in which of several with one id is changed."""
    if after.public.customizations is not before.public.customizations:
        yield _all_customizations(after)


def _all_customizations(record: SessionRecord) -> Shown:
    entries = shown_entries(record.public.customizations) or ()
    return _on_session(shown.CustomizationsChanged(customizations=entries))


PROJECTIONS: dict[type, Projection] = {
    ahp.Ready: _same_on_session,
    ahp.CreationFailed: _same_on_session,
    ahp.TurnStarted: _turn_started,
    ahp.Delta: _same_on_chat(shown.Delta),
    ahp.Reasoning: _same_on_chat(shown.Reasoning),
    ahp.ResponsePartAdded: _response_part_added,
    ahp.Usage: _same_on_chat(shown.Usage),
    ahp.TurnComplete: _turn_ended,
    ahp.TurnCancelled: _turn_ended,
    ahp.TurnFailed: _turn_ended,
    ahp.Truncated: _same_on_chat(shown.Truncated),
    ahp.ToolCallStart: _same_on_chat(shown.ToolCallStart),
    ahp.ToolCallDelta: _of_tool_call(shown.ToolCallDelta),
    ahp.ToolCallReady: _tool_call_ready,
    ahp.ToolCallConfirmed: _of_tool_call(shown.ToolCallConfirmed),
    ahp.ToolCallComplete: _of_tool_call(shown.ToolCallComplete),
    ahp.ToolCallResultConfirmed: _of_tool_call(shown.ToolCallResultConfirmed),
    ahp.ToolCallContentChanged: _of_tool_call(shown.ToolCallContentChanged),
    ahp.InputRequested: _input_requested,
    ahp.InputAnswerChanged: _same_on_chat(shown.InputAnswerChanged),
    ahp.InputCompleted: _input_completed,
    ahp.PendingMessageSet: _same_on_chat(shown.PendingMessageSet),
    ahp.PendingMessageRemoved: _same_on_chat(shown.PendingMessageRemoved),
    ahp.QueuedMessagesReordered: _same_on_chat(shown.QueuedMessagesReordered),
    ahp.TitleChanged: _same_on_session,
    ahp.IsReadChanged: _is_read_changed,
    ahp.IsArchivedChanged: _is_archived_changed,
    ahp.ActivityChanged: _activity_changed,
    ahp.ConfigChanged: _same_on_session,
    ahp.MetaChanged: _same_on_session,
    ahp.ChangesetsChanged: _same_on_session,
    ahp.ServerToolsChanged: _same_on_session,
    ahp.ActiveClientChanged: _clients_changed,
    ahp.ActiveClientToolsChanged: _clients_changed,
    ahp.CustomizationsChanged: _customizations_changed,
    ahp.CustomizationToggled: _customization_toggled,
    ahp.CustomizationUpdated: _customizations_changed,
    ahp.CustomizationRemoved: _customizations_changed,
    ahp.McpServerStateChanged: _customizations_changed,
    ClientJoined: _client_joined,
    ClientLeft: _client_left,
    MessageDrafted: _message_drafted,
}
"""By what is in the log. Changes of the model and the agent show in the next turn's message."""

SETTLING = frozenset[type](
    {
        ahp.TurnStarted,
        ahp.TurnComplete,
        ahp.TurnCancelled,
        ahp.TurnFailed,
        ahp.Truncated,
        ahp.ToolCallStart,
        ahp.ToolCallReady,
        ahp.ToolCallConfirmed,
        ahp.ToolCallComplete,
        ahp.ToolCallResultConfirmed,
        ahp.InputRequested,
        ahp.InputCompleted,
        ahp.IsReadChanged,
        ahp.IsArchivedChanged,
    }
)
"""What may change the status, or what waits for people."""
