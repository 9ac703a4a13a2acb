"""Transitions of input requests: asked, answered bit by bit, completed."""

import msgspec

from session_server.reducers.state.frozen_values import is_same, updated
from session_server.reducers.state.status import marked, touched, with_status
from session_server.schemas.ahp.actions import InputAnswerChanged, InputCompleted, InputRequested
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.ahp.session import SessionState, Status


def open_request(state: SessionState, request_id: str) -> InputRequest | None:
    for request in state.input_requests or ():
        if request.id == request_id:
            return request
    return None


def text_of(request: InputRequest) -> tuple[object, ...]:
    """What people read: two requests with the same text ask the same."""
    return (request.message, request.url, request.questions or ())


def input_requested(state: SessionState, action: InputRequested, at: int) -> SessionState:
    """Adds the request, or replaces it; earlier answers are kept unless it has its own."""
    request, open_requests = action.request, state.input_requests or ()
    existing = open_request(state, request.id)
    if existing is None:
        requests = (*open_requests, request)
    else:
        if request.answers is None:
            request = updated(request, answers=existing.answers)
        requests = tuple(request if r.id == request.id else r for r in open_requests)
    asked = with_status(updated(state, input_requests=requests))
    return touched(marked(asked, Status.IS_READ, on=False), at)


def input_answer_changed(state: SessionState, action: InputAnswerChanged, at: int) -> SessionState:
    requests = state.input_requests or ()
    for place, request in enumerate(requests):
        if request.id == action.request_id:
            before, behind = requests[:place], requests[place + 1 :]
            break
    else:
        return state
    answers = dict(request.answers or {})
    if action.answer is None:
        answers.pop(action.question_id, None)
        answered = updated(request, answers=answers or None)
    elif is_same(answers.get(action.question_id), action.answer):
        answered = request
    else:
        answers[action.question_id] = action.answer
        answered = msgspec.structs.replace(request, answers=answers)
    if answered is request:
        return touched(state, at)
    # The hot path: what is known to differ is not compared again.
    return msgspec.structs.replace(
        state,
        input_requests=(*before, answered, *behind),
        summary=msgspec.structs.replace(state.summary, modified_at=at),
    )


def input_completed(state: SessionState, action: InputCompleted, at: int) -> SessionState:
    if open_request(state, action.request_id) is None:
        return state
    rest = tuple(r for r in state.input_requests or () if r.id != action.request_id)
    return touched(with_status(updated(state, input_requests=rest or None)), at)
