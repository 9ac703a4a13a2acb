"""Entries of a session's log as the envelopes of AHP 0.9 and 1.x.

One entry makes any number of envelopes, on the chat and on the session. Replaying them over an
earlier snapshot with the reducers of these versions yields the later snapshot, on both channels.
They are a pure function of the record before and the entries: a number always means the same bytes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, get_args

import msgspec

from session_server.reducers.ahp1.numbering import number
from session_server.reducers.ahp1.snapshots import (
    Variant,
    chat_name,
    chat_summary,
    duration,
    is_shown,
    moment,
    needed_entries,
    shown_entries,
    shown_message,
    shown_request,
)
from session_server.reducers.ahp1.uris import spelled_uri
from session_server.reducers.state.chat import chat_of, is_note, open_place
from session_server.reducers.state.client_entries import enablement
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

A = TypeVar("A")

ON_CHAT = frozenset[type](get_args(shown.ChatAction))


class Committed(NamedTuple):
    """An entry of the log of a session or of the root."""

    seq: Seq
    action: RecordAction | ahp.RootAction
    at: Millis
    by: Author | None = None
    origin: ActionOrigin | None = None


class Change(msgspec.Struct, Generic[A], frozen=True):
    """An action of the log, the records before and after it, and whom it is shown to."""

    before: SessionRecord
    action: A
    after: SessionRecord
    variant: Variant


class Shown(msgspec.Struct, frozen=True):
    """An action to deliver. `is_own`: the envelope carries the origin of the client's action."""

    action: shown.ChatAction | shown.SessionAction
    is_own: bool = False


def envelopes(
    record: SessionRecord, entries: Sequence[Committed], variant: Variant
) -> Iterator[Envelope]:
    """The envelopes of consecutive entries after this record."""
    session = spelled_uri(record.public.summary, variant.spelling)
    chat = chat_name(record, variant)
    for entry in entries:
        action: Any = entry.action
        after = reduce_record(record, action, entry.at)
        meta = EnvelopeMeta(at=entry.at, by=entry.by)
        for place, made in enumerate(_shown(Change(record, action, after, variant))):
            yield Envelope(
                channel=chat if type(made.action) in ON_CHAT else session,
                action=made.action,
                server_seq=number(entry.seq, place),
                origin=entry.origin if made.is_own else None,
                meta=meta,
            )
        record = after


def _shown(change: Change[Any]) -> Iterable[Shown]:
    """The actions that clients get for one entry, in order."""
    kind = type(change.action)
    projection = PROJECTIONS.get(kind)
    if projection is None:
        return ()
    made = projection(change)
    return chain(made, _consequences(change)) if kind in SETTLING else made


# What follows on the session


def _consequences(change: Change[RecordAction]) -> Iterator[Shown]:
    """Changes of what waits for people, of the read mark, and of the chat's summary."""
    before, after, variant = change.before, change.after, change.variant
    old, new = needed_entries(before, variant), needed_entries(after, variant)
    for name in old:
        if name not in new:
            yield Shown(shown.InputNeededRemoved(id=name))
    for name, entry in new.items():
        if name not in old or not is_same(old[name], entry):
            yield Shown(shown.InputNeededSet(request=entry))
    is_explicit = isinstance(change.action, ahp.IsReadChanged)
    if not is_explicit and _is_read(before) and not _is_read(after):
        yield Shown(ahp.IsReadChanged(is_read=False))
    summary = chat_summary(after, variant)
    changes = _changed_fields(shown.ChatChanges, chat_summary(before, variant), summary)
    if changes:
        changed = shown.ChatChanges(**changes)
        yield Shown(shown.ChatUpdated(chat=summary.resource, changes=changed))


def _is_read(record: SessionRecord) -> bool:
    return bool(record.public.summary.status & Status.IS_READ)


def summary_changes(old: SessionSummary, new: SessionSummary) -> SummaryChanges | None:
    """The changed fields of the summary, for subscribers of the root; `None` if there are none.

    These versions cannot clear a field; only an empty activity means that there is none.
    """
    changes = _changed_fields(SummaryChanges, old, new)
    if not changes:
        return None
    if "activity" in changes:
        changes["activity"] = new.activity or ""
    return SummaryChanges(**{name: value for name, value in changes.items() if value is not None})


def _changed_fields(kind: type[msgspec.Struct], old: object, new: object) -> dict[str, Any]:
    return {
        name: getattr(new, name)
        for name in kind.__struct_fields__
        if not is_same(getattr(old, name), getattr(new, name))
    }


# The entry itself

Projection: TypeAlias = Callable[[Change[Any]], Iterable[Shown]]


def _same_on_chat(kind: type[shown.ChatAction], **changes: Any) -> Projection:
    def project(change: Change[Any]) -> Iterable[Shown]:
        made: Any = reshaped(kind, change.action, **changes)
        return (Shown(made, is_own=True),)

    return project


def _same_on_session(change: Change[Any]) -> Iterable[Shown]:
    return (Shown(change.action, is_own=True),)


def _turn_started(change: Change[ahp.TurnStarted]) -> Iterator[Shown]:
    action, chat = change.action, chat_of(change.after)
    assert chat.active is not None  # the turn that it started
    started = shown.TurnStarted(
        turn_id=action.turn_id,
        started_at=moment(chat.modified_at),
        message=shown_message(action.message, chat.active),
        queued_message_id=action.queued_message_id,
    )
    yield Shown(started, is_own=True)


def _turn_ended(
    change: Change[ahp.TurnComplete | ahp.TurnCancelled | ahp.TurnFailed],
) -> Iterator[Shown]:
    action, after = change.action, change.after
    if len(after.public.turns) == len(change.before.public.turns):
        return
    took = duration(chat_of(after).turns[-1])
    match action:
        case ahp.TurnFailed():
            part = ErrorPart(error=action.error)
            yield Shown(shown.TurnFailed(turn_id=action.turn_id, duration=took, part=part))
        case ahp.TurnCancelled():
            yield Shown(shown.TurnCancelled(turn_id=action.turn_id, duration=took), is_own=True)
        case _:
            yield Shown(shown.TurnComplete(turn_id=action.turn_id, duration=took))


def _response_part_added(change: Change[ahp.ResponsePartAdded]) -> Iterator[Shown]:
    part = change.action.part
    if is_shown(part) and not is_note(change.before, part):
        yield Shown(reshaped(shown.ResponsePartAdded, change.action))


def _tool_call_ready(change: Change[ahp.ToolCallReady]) -> Iterator[Shown]:
    """Later versions would treat it as a call that waits already; 0.3.0 does not."""
    if change.after.public is not change.before.public:
        yield Shown(reshaped(shown.ToolCallReady, change.action, meta=None))


def _input_requested(change: Change[ahp.InputRequested]) -> Iterator[Shown]:
    before, after, variant = change.before, change.after, change.variant
    turn = chat_of(after).active
    request = open_request(after.public, change.action.request.id)
    if turn is None or request is None or open_place(turn, request.id) is None:
        # Without a turn the request is not shown, but the session becomes unread.
        if variant.has_chat_marks and _is_read(before):
            yield Shown(shown.ChatIsReadChanged(is_read=False))
        return
    asked = shown_request(request)
    if asked.answers is None:
        # Asking again keeps answers unless it has some, so removed ones are cleared one by one.
        earlier = open_request(before.public, request.id)
        for question_id in (None if earlier is None else earlier.answers) or ():
            yield Shown(shown.InputAnswerChanged(request_id=request.id, question_id=question_id))
    yield Shown(shown.InputRequested(request=asked))


def _input_completed(change: Change[ahp.InputCompleted]) -> Iterator[Shown]:
    action = change.action
    completed = shown.InputCompleted(
        request_id=action.request_id, response=action.response, answers=action.answers or None
    )
    yield Shown(completed, is_own=True)


def _activity_changed(change: Change[ahp.ActivityChanged]) -> Iterator[Shown]:
    yield Shown(change.action)
    yield Shown(shown.ChatActivityChanged(activity=change.action.activity))


def _is_read_changed(change: Change[ahp.IsReadChanged]) -> Iterator[Shown]:
    """The sender may have sent it for the session or for the chat: both count as its echo."""
    yield Shown(change.action, is_own=True)
    if change.variant.has_chat_marks:
        yield Shown(shown.ChatIsReadChanged(is_read=change.action.is_read), is_own=True)


def _is_archived_changed(change: Change[ahp.IsArchivedChanged]) -> Iterator[Shown]:
    yield Shown(change.action, is_own=True)
    if change.variant.has_chat_marks:
        on_chat = shown.ChatIsArchivedChanged(is_archived=change.action.is_archived)
        yield Shown(on_chat, is_own=True)


def _clients_changed(change: Change[RecordAction]) -> Iterator[Shown]:
    old, new = chat_of(change.before).clients, chat_of(change.after).clients
    kept = {entry.client_id for entry in new}
    for entry in old:
        if entry.client_id not in kept:
            yield Shown(shown.ActiveClientRemoved(client_id=entry.client_id))
    for entry in new:
        if entry not in old:
            yield Shown(shown.ActiveClientSet(active_client=entry))


def _client_joined(change: Change[ClientJoined]) -> Iterator[Shown]:
    yield Shown(shown.ActiveClientSet(active_client=change.action.client), is_own=True)


def _client_left(change: Change[ClientLeft]) -> Iterator[Shown]:
    yield Shown(shown.ActiveClientRemoved(client_id=change.action.client_id), is_own=True)


def _message_drafted(change: Change[MessageDrafted]) -> Iterator[Shown]:
    yield Shown(shown.DraftChanged(draft=change.action.draft), is_own=True)


def _customization_toggled(change: Change[ahp.CustomizationToggled]) -> Iterator[Shown]:
    action, after = change.action, change.after
    switch = enablement(enabled=action.enabled)
    yield Shown(shown.CustomizationToggled(id=action.id, enablement=switch), is_own=True)
    if list(_names(after)).count(action.id) > 1:
        yield _all_customizations(after)  # a mirror has switched all of them


def _names(record: SessionRecord) -> Iterator[str | None]:
    """The ids of all customizations, inside others too."""
    for entry in record.public.customizations or ():
        yield identity_of(entry)
        if isinstance(entry, ContainerBase):
            yield from (identity_of(child) for child in entry.children or ())


def _customizations_changed(change: Change[RecordAction]) -> Iterator[Shown]:
    """Sends all of them: versions differ in which of several with one id is changed."""
    if change.after.public.customizations is not change.before.public.customizations:
        yield _all_customizations(change.after)


def _all_customizations(record: SessionRecord) -> Shown:
    entries = shown_entries(record.public.customizations) or ()
    return Shown(shown.CustomizationsChanged(customizations=entries))


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
    ahp.ToolCallDelta: _same_on_chat(shown.ToolCallDelta, meta=None),
    ahp.ToolCallReady: _tool_call_ready,
    ahp.ToolCallConfirmed: _same_on_chat(shown.ToolCallConfirmed, meta=None),
    ahp.ToolCallComplete: _same_on_chat(shown.ToolCallComplete, meta=None),
    ahp.ToolCallResultConfirmed: _same_on_chat(shown.ToolCallResultConfirmed, meta=None),
    ahp.ToolCallContentChanged: _same_on_chat(shown.ToolCallContentChanged, meta=None),
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
"""By what is in the log. Changes of the model and the agent show in the next turn's message.

Actions of tool calls go without `_meta`: 0.3.0 keeps only what the call began with.
"""

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
