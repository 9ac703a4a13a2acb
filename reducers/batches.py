"""What an accepted action becomes: the actions that are appended together, in order.

Completing a request records its outcome; ending a turn abandons the calls and requests open in it;
a change of model or agent during a turn is deferred. The host sets authors and times.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from session_server.reducers.calls.presentation import failed
from session_server.reducers.forms.defaults import is_proposal, with_valid_default
from session_server.reducers.forms.kept_answers import (
    proposals,
    reopened,
    stamped_answers,
    stamped_change,
)
from session_server.reducers.forms.review import effective_answers
from session_server.reducers.rules.judge import judge
from session_server.reducers.state.input_requests import open_request, text_of
from session_server.reducers.texts import abandoned_note, outcome_note, subject, visible_name
from session_server.schemas.ahp.actions import (
    ActiveClientChanged,
    AgentChanged,
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    MetaChanged,
    ModelChanged,
    ResponsePartAdded,
    TitleChanged,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.questions import (
    Answer,
    InputRequest,
    RequestMeta,
    ResponseKind,
)
from session_server.schemas.ahp.session import ActiveClient, SessionState
from session_server.schemas.ahp.turn_messages import (
    HOST_TURN_PREFIX,
    SYSTEM_NOTIFICATION,
    Message,
    MessageOrigin,
)
from session_server.schemas.ahp.turns import SystemNotificationPart
from session_server.schemas.ahp1.state import ClientEntry
from session_server.schemas.errors import Refusal
from session_server.schemas.principals import HOST_KEYS, Principal, Provenance, Stamp
from session_server.schemas.record import (
    NOT_REPEATED,
    CallAbandoned,
    ChangeDeferred,
    ClientJoined,
    CompletionHeld,
    Deferred,
    Outcome,
    OutcomeRecorded,
    RecordAction,
    SessionRecord,
    Uncertain,
)

C = TypeVar("C", ActiveClient, ClientEntry)

Batch = tuple[RecordAction, ...]


def judged_batch(
    principal: Principal,
    record: SessionRecord,
    action: RecordAction,
    stamp: Stamp,
    origin: ActionOrigin | None = None,
) -> Batch | Refusal:
    """The batch for an action of a principal, or why the rules do not allow it."""
    return judge(principal, record, action) or batch_of(record, action, stamp, origin)


def batch_of(
    record: SessionRecord,
    action: RecordAction,
    stamp: Stamp,
    origin: ActionOrigin | None = None,
) -> Batch:
    """The batch for an action that the rules allow, with authors and times set by the host."""
    match action:
        case InputAnswerChanged():
            return (stamped_change(record.public, action, stamp),)
        case InputCompleted():
            return (
                *completion(record.public, action, stamp),
                *_refusal_to_repeat(record, action, stamp),
            )
        case InputRequested():
            return question(record.public, _asked(record.public, action, stamp))
        case MetaChanged():
            return (_reserved(record.public, action),)
        case ModelChanged() | AgentChanged() if record.public.active_turn is not None:
            deferred = Deferred(change=action, by=stamp.by, origin=origin)
            return (ChangeDeferred(deferred=deferred),)
        case TurnComplete() if has_open_work(record):
            return (CompletionHeld(turn_id=action.turn_id),)
        case TurnCancelled() | TurnFailed() | Truncated():
            return (*abandonment(record, stamp), action)
        case TitleChanged():
            return (msgspec.structs.replace(action, title=visible_name(action.title)),)
        case ActiveClientChanged() | ClientJoined():
            return (_with_visible_name(action),)
        case _:
            return (action,)


def title_change(record: SessionRecord, title: str | None) -> Batch:
    """The host's own new title, if there is one and it is not the present one."""
    if title is None or visible_name(title) == record.public.summary.title:
        return ()
    return (TitleChanged(title=visible_name(title)),)


def _with_visible_name(action: ActiveClientChanged | ClientJoined) -> RecordAction:
    if isinstance(action, ClientJoined):
        return ClientJoined(client=_named(action.client))
    client = action.active_client
    return action if client is None else ActiveClientChanged(active_client=_named(client))


def _named(client: C) -> C:
    name = client.display_name
    if name is None:
        return client
    return msgspec.structs.replace(client, display_name=visible_name(name))


def completion(state: SessionState, action: InputCompleted, stamp: Stamp) -> Batch:
    """Removes the request from the public state, records its outcome, and notes it in the turn."""
    request = open_request(state, action.request_id)
    assert request is not None  # the rules saw it open
    own = stamped_answers(action.answers, stamp)
    outcome = _outcome(state, request, action.response, own, stamp)
    completed = msgspec.structs.replace(action, answers=own, meta=None)
    return (OutcomeRecorded(outcome=outcome), *note(state, outcome_note(outcome)), completed)


def question(state: SessionState, action: InputRequested) -> Batch:
    """Asks in the active turn; without one, the host starts a turn for the request."""
    return (*host_turn(state, action.request.id, subject(action.request)), action)


def host_turn(state: SessionState, reason_id: str, text: str) -> Batch:
    """Starts a turn of the host, unless one is active; it ends with the last thing open in it."""
    if state.active_turn is not None:
        return ()
    message = Message(text=text, origin=MessageOrigin(kind=SYSTEM_NOTIFICATION))
    turn_id = f"{HOST_TURN_PREFIX}{len(state.turns)}:{reason_id}"
    return (TurnStarted(turn_id=turn_id, message=message),)


def note(state: SessionState, text: str) -> Batch:
    """Adds a system notification to the active turn, if there is one."""
    if state.active_turn is None:
        return ()
    part = SystemNotificationPart(content=text)
    return (ResponsePartAdded(turn_id=state.active_turn.id, part=part),)


def abandonment(record: SessionRecord, stamp: Stamp) -> Batch:
    """Ends the open calls and requests of a turn that ends; a notification lists them."""
    if not has_open_work(record):
        return ()
    state, calls = record.public, record.private.open_calls
    requests = state.input_requests or ()
    abandoned = msgspec.structs.replace(stamp, via=Provenance.ABANDONED)
    return (
        *note(state, abandoned_note(calls, requests, stamp.by)),
        *(CallAbandoned(call_id=call.id, reason="the turn ended") for call in calls),
        *(
            OutcomeRecorded(outcome=_outcome(state, r, ResponseKind.CANCEL, None, abandoned))
            for r in requests
        ),
    )


def withdrawal(record: SessionRecord, call_id: str, stamp: Stamp) -> Batch:
    """Closes the requests of a call that can no longer use their answers."""
    withdrawn = msgspec.structs.replace(stamp, via=Provenance.WITHDRAWN)
    batch: list[RecordAction] = []
    for request in record.public.input_requests or ():
        if request.meta is not None and request.meta.call == call_id:
            action = InputCompleted(request_id=request.id, response=ResponseKind.CANCEL)
            batch += completion(record.public, action, withdrawn)
    return tuple(batch)


def turn_end(record: SessionRecord, call_id: str) -> Batch:
    """Ends a turn that the host started, if this call is the last thing open in it."""
    turn = record.public.active_turn
    if turn is None or not turn.id.startswith(HOST_TURN_PREFIX):
        return ()
    requests = record.public.input_requests or ()
    is_last = all(call.id == call_id for call in record.private.open_calls) and all(
        request.meta is not None and request.meta.call == call_id for request in requests
    )
    return (TurnComplete(turn_id=turn.id),) if is_last else ()


def has_open_work(record: SessionRecord) -> bool:
    """Whether any call or request of the session is open; both belong to the active turn."""
    return bool(record.public.input_requests) or bool(record.private.open_calls)


def _refusal_to_repeat(record: SessionRecord, action: InputCompleted, stamp: Stamp) -> Batch:
    """Fails a call that may already have run, if a person did not agree to run it again."""
    for call in record.private.open_calls:
        phase = call.phase
        if isinstance(phase, Uncertain) and phase.request_id == action.request_id:
            by_person = stamp.via is Provenance.PERSON
            is_repeated = action.response is ResponseKind.ACCEPT and by_person
            return () if is_repeated else failed(record, call, NOT_REPEATED)
    return ()


def _outcome(
    state: SessionState,
    request: InputRequest,
    response: ResponseKind,
    own: Mapping[str, Answer] | None,
    stamp: Stamp,
) -> Outcome:
    return Outcome(
        request=msgspec.structs.replace(request, answers=None),
        response=response,
        answers={**effective_answers(request, own)} or None,
        by=stamp.by,
        via=stamp.via,
        at=stamp.at,
        turn_id=None if state.active_turn is None else state.active_turn.id,
    )


def _asked(state: SessionState, action: InputRequested, stamp: Stamp) -> InputRequested:
    """The request with its asker set by the host, so that it cannot be mistaken for a call's.

    If a request with that id is open, its answers are kept; they become drafts if the text or the
    questions have changed.
    """
    request, existing = action.request, open_request(state, action.request.id)
    questions = request.questions and tuple(with_valid_default(q) for q in request.questions)
    request = msgspec.structs.replace(request, questions=questions)
    is_changed = existing is not None and text_of(existing) != text_of(request)
    earlier = (None if existing is None else existing.answers) or {}
    kept = reopened(request, earlier) if is_changed else earlier
    if request.answers is not None:
        kept = {name: answer for name, answer in kept.items() if not is_proposal(answer)}
    # An empty map removes earlier answers; without a map, reducers keep them.
    answers = {**proposals(request.answers, stamp), **kept}
    return InputRequested(
        request=msgspec.structs.replace(
            request,
            meta=_asker_meta(request, existing, stamp, is_changed=is_changed),
            answers=answers if answers or earlier else None,
        )
    )


def _asker_meta(
    request: InputRequest, existing: InputRequest | None, stamp: Stamp, *, is_changed: bool
) -> RequestMeta:
    """The asker sets a deadline and a lease; the host sets everything else."""
    given = request.meta or RequestMeta()
    earlier = RequestMeta() if existing is None else existing.meta or RequestMeta()
    revision = (earlier.revision or 0) + is_changed
    return RequestMeta(
        by=earlier.by or stamp.by,
        revision=revision or None,
        expires_at=given.expires_at,
        on_expiry=None if given.expires_at is None else given.on_expiry,
        lease=given.lease,
    )


def _reserved(state: SessionState, action: MetaChanged) -> MetaChanged:
    """An agent sets the session's metadata, except for the keys that only the host writes."""
    host_keys = HOST_KEYS["session"]
    given = {name: value for name, value in (action.meta or {}).items() if name not in host_keys}
    kept = {name: value for name, value in (state.meta or {}).items() if name in host_keys}
    is_as_given = not kept and len(given) == len(action.meta or {})
    return action if is_as_given else MetaChanged(meta=given | kept or None)
