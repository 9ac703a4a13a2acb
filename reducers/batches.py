"""What an accepted action brings with it: all that becomes durable and visible together.

Completing a request records its outcome; ending a turn abandons what was open in it; a change that
must wait is put off. The result is one batch for the log, in order.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..schemas.actions import (
    ActiveClientChanged,
    AgentChanged,
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    IsArchivedChanged,
    IsReadChanged,
    ModelChanged,
    PendingMessageRemoved,
    ResponsePartAdded,
    SessionAction,
    TitleChanged,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
)
from ..schemas.calls import NOT_REPEATED, Call, Outcome, Uncertain
from ..schemas.codec import encode
from ..schemas.envelopes import ActionOrigin
from ..schemas.limits import ANSWER_CHARS
from ..schemas.messages import (
    HOST_TURN_PREFIX,
    SYSTEM_NOTIFICATION,
    Message,
    MessageOrigin,
)
from ..schemas.principals import Provenance, Stamp
from ..schemas.questions import (
    Answer,
    AnswerMeta,
    Draft,
    InputRequest,
    RequestMeta,
    ResponseKind,
    Skipped,
    Submitted,
)
from ..schemas.record import (
    CallAbandoned,
    CallCollected,
    ChangeDeferred,
    CompletionHeld,
    Deferred,
    OutcomeRecorded,
    RecordAction,
    SessionRecord,
)
from ..schemas.session import ActiveClient, SessionState
from ..schemas.turns import SystemNotificationPart
from .answers import check_answer
from .input_rules import effective_answers, question_of
from .invocations import failed
from .notes import abandoned_note, outcome_note, subject
from .requests import open_request
from .words import visible_name

Batch = tuple[RecordAction, ...]


def batch_of(
    record: SessionRecord,
    action: SessionAction,
    stamp: Stamp,
    origin: ActionOrigin | None = None,
) -> Batch:
    """The batch for an action that the rules allow, with the host's marks on it."""
    match action:
        case InputAnswerChanged():
            return (_stamped_change(action, stamp),)
        case InputCompleted():
            return (
                *completion(record.public, action, stamp),
                *_refusal_to_repeat(record, action, stamp),
            )
        case InputRequested():
            return question(record.public, _of_agent(record.public, action, stamp))
        case ModelChanged() | AgentChanged() if record.public.active_turn is not None:
            deferred = Deferred(change=action, by=stamp.by, origin=origin)
            return (ChangeDeferred(deferred=deferred),)
        case TurnComplete() if has_joined(record):
            return (CompletionHeld(turn_id=action.turn_id),)
        case TurnCancelled() | TurnFailed() | Truncated():
            return (*abandonment(record, stamp), action)
        case TitleChanged():
            return (msgspec.structs.replace(action, title=visible_name(action.title)),)
        case ActiveClientChanged(active_client=ActiveClient(display_name=str(name)) as client):
            shown = msgspec.structs.replace(client, display_name=visible_name(name))
            return (msgspec.structs.replace(action, active_client=shown),)
        case _:
            return (action,)


ENDINGS = (
    CallAbandoned,
    CallCollected,
    CompletionHeld,
    InputCompleted,
    IsArchivedChanged,
    IsReadChanged,
    PendingMessageRemoved,
    TitleChanged,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
)
"""Actions that end or remove something, or only replace what is small anyway."""


def makes_room(record: SessionRecord, batch: Sequence[Any]) -> bool:
    """Whether a session that is full takes this all the same: nothing in it makes it larger.

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
    """Of what somebody chose or wrote."""
    return len(encode(answer.freeform_values if isinstance(answer, Skipped) else answer.value))


def completion(state: SessionState, action: InputCompleted, stamp: Stamp) -> Batch:
    """The request leaves the public state; who answered what stays readable in the turn."""
    request = open_request(state, action.request_id)
    assert request is not None  # the rules saw it open
    own = _stamped_answers(action.answers, stamp)
    outcome = _outcome(state, request, action.response, own, stamp)
    completed = msgspec.structs.replace(action, answers=own)
    return (*note(state, outcome_note(outcome)), completed, OutcomeRecorded(outcome=outcome))


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
    """Everything that joined the turn ends with it, and the turn says so before it ends."""
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


def has_joined(record: SessionRecord) -> bool:
    """Whether a call or a question is open: both live in the active turn."""
    return bool(record.public.input_requests) or any(
        c.is_open for c in record.private.calls.values()
    )


def open_calls(record: SessionRecord) -> list[Call]:
    return [call for call in record.private.calls.values() if call.is_open]


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
        answers=_final(request, effective_answers(request, own)),
        by=stamp.by,
        via=stamp.via,
        at=stamp.at,
        turn_id=None if state.active_turn is None else state.active_turn.id,
    )


def _stamped_change(action: InputAnswerChanged, stamp: Stamp) -> InputAnswerChanged:
    if action.answer is None:
        return action
    return msgspec.structs.replace(action, answer=_stamped(action.answer, stamp))


def _stamped_answers(
    answers: Mapping[str, Answer] | None, stamp: Stamp
) -> dict[str, Answer] | None:
    if answers is None:
        return None
    return {question_id: _stamped(answer, stamp) for question_id, answer in answers.items()}


def _stamped(answer: Answer, stamp: Stamp) -> Answer:
    """Whatever a client wrote there is overwritten."""
    meta = AnswerMeta(by=stamp.by, at=stamp.at, via=stamp.via)
    return msgspec.structs.replace(answer, meta=meta)


def _final(request: InputRequest, answers: Mapping[str, Answer]) -> dict[str, Answer] | None:
    """What counts: submitted and skipped answers to questions that exist."""
    final: dict[str, Answer] = {
        question_id: answer
        for question_id, answer in answers.items()
        if not isinstance(answer, Draft) and question_of(request, question_id) is not None
    }
    return final or None


def _of_agent(state: SessionState, action: InputRequested, stamp: Stamp) -> InputRequested:
    """An agent's own question: it can set a deadline, but not pass for a call's.

    When it replaces a question, the answers that still fit are kept.
    """
    request = action.request
    meta = None
    if request.meta is not None and request.meta.expires_at is not None:
        meta = RequestMeta(expires_at=request.meta.expires_at, on_expiry=request.meta.on_expiry)
    answers = _stamped_answers(request.answers, stamp)
    existing = open_request(state, request.id)
    if answers is None and existing is not None and existing.answers is not None:
        answers = still_fitting(request, existing.answers)
    return InputRequested(request=msgspec.structs.replace(request, meta=meta, answers=answers))


def still_fitting(request: InputRequest, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """Answers that are no longer good enough become drafts; those of another kind go."""
    kept: dict[str, Answer] = {}
    for question_id, answer in answers.items():
        asked = question_of(request, question_id)
        if asked is None:
            continue
        if check_answer(asked, answer) is None:
            kept[question_id] = answer
        elif isinstance(answer, Submitted):
            draft = Draft(value=answer.value, meta=answer.meta)
            if check_answer(asked, draft) is None:
                kept[question_id] = draft
    return kept
