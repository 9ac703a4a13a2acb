"""What an accepted action brings with it: all that becomes durable and visible together.

Completing a request records its outcome; ending a turn abandons what was open in it; a change that
must wait is put off. The result is one batch for the log, in order.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from session_server.reducers.calls.presentation import failed
from session_server.reducers.forms.answer_checks import check_answer
from session_server.reducers.forms.defaults import is_proposal, with_valid_default
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
    IsArchivedChanged,
    IsReadChanged,
    MetaChanged,
    ModelChanged,
    PendingMessageRemoved,
    ResponsePartAdded,
    TitleChanged,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.messages import (
    HOST_TURN_PREFIX,
    SYSTEM_NOTIFICATION,
    Message,
    MessageOrigin,
)
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    Draft,
    InputRequest,
    Question,
    RequestMeta,
    ResponseKind,
    Skipped,
)
from session_server.schemas.ahp.session import ActiveClient, SessionState
from session_server.schemas.ahp.turns import SystemNotificationPart
from session_server.schemas.ahp1.state import ClientEntry
from session_server.schemas.codec import encode
from session_server.schemas.errors import Refusal
from session_server.schemas.limits import ANSWER_CHARS
from session_server.schemas.principals import HOST_KEYS, Principal, Provenance, Stamp
from session_server.schemas.record import (
    NOT_REPEATED,
    OPEN_PHASES,
    Call,
    CallAbandoned,
    CallAnswered,
    CallCollected,
    ChangeDeferred,
    ClientJoined,
    ClientLeft,
    CompletionHeld,
    Deferred,
    Outcome,
    OutcomeCollected,
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
    """The batch for an action that the rules allow, with the host's marks on it."""
    match action:
        case InputAnswerChanged():
            return (_stamped_change(record.public, action, stamp),)
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
        case TurnComplete() if has_joined(record):
            return (CompletionHeld(turn_id=action.turn_id),)
        case TurnCancelled() | TurnFailed() | Truncated():
            return (*abandonment(record, stamp), action)
        case TitleChanged():
            return (msgspec.structs.replace(action, title=visible_name(action.title)),)
        case ActiveClientChanged() | ClientJoined():
            return (_with_visible_name(action),)
        case _:
            return (action,)


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


ENDINGS = (
    CallAbandoned,
    CallAnswered,
    CallCollected,
    ClientLeft,
    CompletionHeld,
    InputCompleted,
    IsArchivedChanged,
    IsReadChanged,
    OutcomeCollected,
    PendingMessageRemoved,
    TitleChanged,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
)
"""Actions that end or remove something, or only replace what is small anyway."""


def makes_room(record: SessionRecord, batch: Sequence[Any]) -> bool:
    """Whether a full session takes this too: nothing in it makes the session larger.

    An ending may bring a last text with it, and an answer may be replaced by one of its size.
    """
    changes = [action for action in batch if isinstance(action, InputAnswerChanged)]
    endings = [action for action in batch if isinstance(action, ENDINGS)]
    if endings:
        return sum(len(encode(action)) for action in (*changes, *endings)) <= ANSWER_CHARS
    return bool(changes) and all(_is_no_larger(record.public, action) for action in changes)


def _is_no_larger(state: SessionState, action: InputAnswerChanged) -> bool:
    if action.answer is None:
        return True
    request = open_request(state, action.request_id)
    current = ((request and request.answers) or {}).get(action.question_id)
    return current is not None and _size(action.answer) <= _size(current)


def _size(answer: Answer) -> int:
    """Of what somebody chose or wrote, and of the answer that it covers."""
    own = len(encode(answer.freeform_values if isinstance(answer, Skipped) else answer.value))
    covers = None if answer.meta is None else answer.meta.covers
    return own if covers is None else own + _size(covers)


def completion(state: SessionState, action: InputCompleted, stamp: Stamp) -> Batch:
    """The request leaves the public state; who answered what stays readable in the turn."""
    request = open_request(state, action.request_id)
    assert request is not None  # the rules saw it open
    own = _stamped_answers(action.answers, stamp)
    outcome = _outcome(state, request, action.response, own, stamp)
    completed = msgspec.structs.replace(action, answers=own, meta=None)
    return (OutcomeRecorded(outcome=outcome), *note(state, outcome_note(outcome)), completed)


def question(state: SessionState, action: InputRequested) -> Batch:
    """A question joins the active turn; without one, the host opens a turn to show it in."""
    return (*host_turn(state, action.request.id, subject(action.request)), action)


def host_turn(state: SessionState, reason_id: str, text: str) -> Batch:
    """A turn of the host's own, unless one is active. It ends with the last thing in it."""
    if state.active_turn is not None:
        return ()
    message = Message(text=text, origin=MessageOrigin(kind=SYSTEM_NOTIFICATION))
    turn_id = f"{HOST_TURN_PREFIX}{len(state.turns)}:{reason_id}"
    return (TurnStarted(turn_id=turn_id, message=message),)


def note(state: SessionState, text: str) -> Batch:
    """A line in the active turn, if there is one."""
    if state.active_turn is None:
        return ()
    part = SystemNotificationPart(content=text)
    return (ResponsePartAdded(turn_id=state.active_turn.id, part=part),)


def abandonment(record: SessionRecord, stamp: Stamp) -> Batch:
    """Everything that joined the turn ends with it; notes of this are added before it ends."""
    if not has_joined(record):
        return ()
    state, calls = record.public, open_calls(record)
    requests = state.input_requests or ()
    given_up = msgspec.structs.replace(stamp, via=Provenance.ABANDONED)
    return (
        *note(state, abandoned_note(calls, requests, stamp.by)),
        *(CallAbandoned(call_id=call.id, reason="the turn ended") for call in calls),
        *(
            OutcomeRecorded(outcome=_outcome(state, r, ResponseKind.CANCEL, None, given_up))
            for r in requests
        ),
    )


def withdrawal(record: SessionRecord, call_id: str, stamp: Stamp) -> Batch:
    """Closes the questions of a call that can no longer take their answers."""
    taken_back = msgspec.structs.replace(stamp, via=Provenance.WITHDRAWN)
    batch: list[RecordAction] = []
    for request in record.public.input_requests or ():
        if request.meta is not None and request.meta.call == call_id:
            action = InputCompleted(request_id=request.id, response=ResponseKind.CANCEL)
            batch += completion(record.public, action, taken_back)
    return tuple(batch)


def turn_end(record: SessionRecord, call_id: str) -> Batch:
    """Ends a turn of the host's own with this call, if nothing else keeps it open."""
    turn = record.public.active_turn
    if turn is None or not turn.id.startswith(HOST_TURN_PREFIX):
        return ()
    requests = record.public.input_requests or ()
    is_last = all(call.id == call_id for call in open_calls(record)) and all(
        request.meta is not None and request.meta.call == call_id for request in requests
    )
    return (TurnComplete(turn_id=turn.id),) if is_last else ()


def has_joined(record: SessionRecord) -> bool:
    """Whether a call or a question is open: both live in the active turn."""
    return bool(record.public.input_requests) or bool(open_calls(record))


def open_calls(record: SessionRecord) -> list[Call]:
    """Most calls that a record holds have ended, and this is asked after every change."""
    calls = record.private.calls.values()
    return [call for call in calls if type(call.phase) in OPEN_PHASES]


def _refusal_to_repeat(record: SessionRecord, action: InputCompleted, stamp: Stamp) -> Batch:
    """A call that may have run and is not to run again ends here, and so does its tool call."""
    for call in open_calls(record):
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


def kept_answer(state: SessionState, action: InputAnswerChanged) -> Answer | None:
    """The answer that a draft put here covers, and that clearing a draft here brings back."""
    request = open_request(state, action.request_id)
    existing = None if request is None else (request.answers or {}).get(action.question_id)
    if isinstance(existing, Draft):
        return None if existing.meta is None else existing.meta.covers
    return None if action.answer is None else existing


def _stamped_change(
    state: SessionState, action: InputAnswerChanged, stamp: Stamp
) -> InputAnswerChanged:
    kept = kept_answer(state, action)
    if action.answer is None:
        return msgspec.structs.replace(action, answer=kept)
    covers = kept if isinstance(action.answer, Draft) else None
    return msgspec.structs.replace(action, answer=_stamped(action.answer, stamp, covers))


def _stamped_answers(
    answers: Mapping[str, Answer] | None, stamp: Stamp
) -> dict[str, Answer] | None:
    if answers is None:
        return None
    return {question_id: _stamped(answer, stamp) for question_id, answer in answers.items()}


def _stamped(answer: Answer, stamp: Stamp, covers: Answer | None = None) -> Answer:
    """What a client wrote there is overwritten."""
    meta = AnswerMeta(by=stamp.by, at=stamp.at, via=stamp.via, covers=covers)
    return msgspec.structs.replace(answer, meta=meta)


def _asked(state: SessionState, action: InputRequested, stamp: Stamp) -> InputRequested:
    """The question with its asker set by the host, so that it cannot pass for a call's.

    What people have answered stays theirs. If the text or the questions are others than before,
    it becomes drafts, marked as given before the change.
    """
    request, existing = action.request, open_request(state, action.request.id)
    questions = request.questions and tuple(with_valid_default(q) for q in request.questions)
    request = msgspec.structs.replace(request, questions=questions)
    is_changed = existing is not None and text_of(existing) != text_of(request)
    earlier = (None if existing is None else existing.answers) or {}
    kept = reopened(request, earlier) if is_changed else earlier
    if request.answers is not None:
        kept = {name: answer for name, answer in kept.items() if not is_proposal(answer)}
    # An empty map takes earlier answers away; without a map, reducers keep them.
    answers = {**_proposals(request.answers, stamp), **kept}
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
    """The asker sets a deadline and a lease; all else is the host's."""
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


def _proposals(answers: Mapping[str, Answer] | None, stamp: Stamp) -> dict[str, Answer]:
    """What an asker fills in is a draft that it proposes: only people submit answers."""
    by_asker = msgspec.structs.replace(stamp, via=Provenance.PROPOSED)
    return {
        question_id: _stamped(Draft(value=answer.value), by_asker)
        for question_id, answer in (answers or {}).items()
        if not isinstance(answer, Skipped)
    }


def reopened(request: InputRequest, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """Answers to an earlier version of the questions: drafts, as far as they are of their kind."""
    drafts = {
        question.id: _reopened(question, answers[question.id])
        for question in request.questions or ()
        if question.id in answers
    }
    return {question_id: draft for question_id, draft in drafts.items() if draft is not None}


def _reopened(question: Question, answer: Answer) -> Draft | None:
    if isinstance(answer, Skipped):
        return None
    meta = answer.meta or AnswerMeta()
    covers = None if meta.covers is None else _reopened(question, meta.covers)
    marked = msgspec.structs.replace(meta, covers=covers, before_change=True)
    draft = Draft(value=answer.value, meta=marked)
    return draft if check_answer(question, draft) is None else covers


def _reserved(state: SessionState, action: MetaChanged) -> MetaChanged:
    """The session's metadata is its agent's, apart from what only the host writes there."""
    host_keys = HOST_KEYS["session"]
    given = {name: value for name, value in (action.meta or {}).items() if name not in host_keys}
    kept = {name: value for name, value in (state.meta or {}).items() if name in host_keys}
    is_as_given = not kept and len(given) == len(action.meta or {})
    return action if is_as_given else MetaChanged(meta=given | kept or None)


def still_fitting(request: InputRequest, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """The answers that the request takes, when the same request is asked again."""
    return {
        question.id: answers[question.id]
        for question in request.questions or ()
        if question.id in answers and check_answer(question, answers[question.id]) is None
    }
