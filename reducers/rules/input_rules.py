"""Rules of input requests: what may be asked, answered and completed."""

from collections.abc import Mapping

import msgspec

from session_server.reducers.forms.answer_checks import check_answer, label
from session_server.reducers.forms.formats import is_web_address
from session_server.reducers.forms.review import changed_since, effective_answers, revision_of
from session_server.reducers.state.input_requests import open_request, text_of
from session_server.reducers.state.status import is_left
from session_server.reducers.texts import ending
from session_server.schemas.ahp.actions import (
    Action,
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
)
from session_server.schemas.ahp.questions import (
    Answer,
    Draft,
    InputRequest,
    MultiSelectQuestion,
    Question,
    ResponseKind,
    SingleSelectQuestion,
    Submitted,
)
from session_server.schemas.ahp.session import Lifecycle
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.limits import (
    ID_CHARS,
    OPEN_REQUESTS_PER_SESSION,
    OPTIONS_PER_QUESTION,
    QUESTIONS_PER_REQUEST,
)
from session_server.schemas.principals import Principal, Provenance, Role
from session_server.schemas.record import Outcome, SessionRecord, Uncertain

NAMED_QUESTIONS = 5
"""How many questions a refusal names."""

CALL_PREFIX = "call:"
"""Ids of requests that belong to calls; others may not open such a request."""

NOT_A_WEB_ADDRESS = (
    "`url` must be a web address: http:// or https:// with the name or IP address of a host, and"
    " without a user name before it."
)


PERSON = Provenance.PERSON
"""Asked for with every key that is pressed, and members of an enum are slow to look up."""


def question_of(request: InputRequest, question_id: str) -> Question | None:
    for question in request.questions or ():
        if question.id == question_id:
            return question
    return None


def provenance_of(principal: Principal, action: Action) -> Provenance:
    """Withdrawn if an agent closes its own request; otherwise by a person or a policy."""
    if isinstance(action, InputCompleted) and principal.role is Role.AGENT:
        return Provenance.WITHDRAWN
    return Provenance.POLICY if principal.is_policy else PERSON


def input_requested(
    principal: Principal, record: SessionRecord, action: InputRequested
) -> Refusal | None:
    """Only its asker may ask it again; HTTP and the ask tools never reuse an id."""
    request, state = action.request, record.public
    existing = open_request(state, request.id)
    if request.id.startswith(CALL_PREFIX):
        message = f"Ids that begin with {CALL_PREFIX} belong to calls."
        return _refusal(request, RefusalCode.NOT_YOURS, message)
    if state.lifecycle is Lifecycle.CREATION_FAILED:
        message = "This session could not be created."
        return _refusal(request, RefusalCode.WRONG_STATE, message)
    if existing is None:
        if len(state.input_requests or ()) >= OPEN_REQUESTS_PER_SESSION:
            message = f"At most {OPEN_REQUESTS_PER_SESSION} questions can be open at once."
            return _refusal(request, RefusalCode.LIMIT, message)
        if outcome_of(record, request.id) is not None:
            return _refusal(request, RefusalCode.DUPLICATE, "That id was used before.")
    elif not is_asker(principal, existing):
        message = "Somebody else asked this, so you cannot change it. Use another id."
        return _refusal(request, RefusalCode.NOT_YOURS, message)
    return check_form(request)


def input_answer_changed(
    principal: Principal, record: SessionRecord, action: InputAnswerChanged
) -> Refusal | None:
    request = open_request(record.public, action.request_id)
    if request is None:
        return _closed(record, action.request_id)
    return _check(request, action.question_id, action.answer)


def input_completed(
    principal: Principal, record: SessionRecord, action: InputCompleted
) -> Refusal | None:
    request = open_request(record.public, action.request_id)
    if request is None:
        return _closed(record, action.request_id)
    refusal = _check_completer(principal, record, request, action.response) or _check_reviewed(
        request, action
    )
    if refusal is not None:
        return refusal
    for question_id, answer in (action.answers or {}).items():
        refusal = _check(request, question_id, _as_submitted(answer))
        if refusal is not None:
            return refusal
    if action.response is ResponseKind.ACCEPT:
        return _check_complete(request, effective_answers(request, action.answers))
    return None


def check_form(request: InputRequest) -> Refusal | None:
    """Whether a request can be asked at all."""
    questions = request.questions or ()
    if len(questions) > QUESTIONS_PER_REQUEST:
        message = f"A request may have at most {QUESTIONS_PER_REQUEST} questions."
        return _refusal(request, RefusalCode.LIMIT, message)
    if max(len(request.id), *(len(question.id) for question in questions), 0) > ID_CHARS:
        message = f"An id may have at most {ID_CHARS} characters."
        return _refusal(request, RefusalCode.LIMIT, message)
    if request.url is not None and not is_web_address(request.url):
        return _refusal(request, RefusalCode.BAD_FORM, NOT_A_WEB_ADDRESS)
    if len({question.id for question in questions}) < len(questions):
        return _refusal(request, RefusalCode.DUPLICATE, "Two questions have the same id.")
    for question in questions:
        refusal = _check_question(request, question)
        if refusal is not None:
            return refusal
    for question_id, answer in (request.answers or {}).items():
        refusal = _check(request, question_id, answer)
        if refusal is not None:
            return refusal
    return None


def is_asker(principal: Principal, request: InputRequest) -> bool:
    """Whether this principal asked it; never for a request of a call."""
    return request.meta is not None and (
        request.meta.by is not None and request.meta.by.id == principal.id
    )


def left_request(
    principal: Principal, record: SessionRecord, wanted: InputRequest
) -> InputRequest | None:
    """The open request with the same text by the same asker, if its asker is gone."""
    for request in record.public.input_requests or ():
        is_same = is_asker(principal, request) and text_of(request) == text_of(wanted)
        if is_same and is_left(request):
            return request
    return None


def check_withdrawal(
    principal: Principal, record: SessionRecord, request_id: str
) -> Refusal | None:
    """Only its asker and owners may withdraw a question; a call withdraws its own."""
    request = open_request(record.public, request_id)
    if request is None:
        return _closed(record, request_id)
    if request.meta is not None and request.meta.call is not None:
        message = "A call asked this. Cancel the call, or decline the question."
        return _refusal(request, RefusalCode.ROLE, message)
    if principal.role is Role.OWNER or is_asker(principal, request):
        return None
    message = "Somebody else asked this. Only they and the owners can withdraw it."
    return _refusal(request, RefusalCode.NOT_YOURS, message)


def outcome_of(record: SessionRecord, request_id: str) -> Outcome | None:
    """How a request ended, as long as it is remembered."""
    outcomes = reversed(record.private.outcomes)
    return next((o for o in outcomes if o.request.id == request_id), None)


def _check_completer(
    principal: Principal, record: SessionRecord, request: InputRequest, response: ResponseKind
) -> Refusal | None:
    """An agent can only withdraw its own question; only an owner may run a call again."""
    call = None if request.meta is None else request.meta.call
    if principal.role is Role.AGENT:
        if response is ResponseKind.CANCEL:
            return check_withdrawal(principal, record, request.id)
        message = "An agent can withdraw its question, but not answer it."
        return _refusal(request, RefusalCode.ROLE, message)
    phase = record.private.calls[call].phase if call in record.private.calls else None
    is_doubt = isinstance(phase, Uncertain) and phase.request_id == request.id
    is_owner = principal.role is Role.OWNER and not principal.is_policy
    if is_doubt and response is ResponseKind.ACCEPT and not is_owner:
        message = "Only an owner can approve running it again, and a policy cannot do it for them."
        return _refusal(request, RefusalCode.ROLE, message)
    return None


def _check_question(request: InputRequest, question: Question) -> Refusal | None:
    if isinstance(question, SingleSelectQuestion | MultiSelectQuestion):
        ids = {option.id for option in question.options}
        if len(ids) < len(question.options):
            message = f"{label(question)}: two options have the same id."
            return _refusal(request, RefusalCode.DUPLICATE, message, question.id)
        if len(ids) > OPTIONS_PER_QUESTION:
            message = f"{label(question)}: at most {OPTIONS_PER_QUESTION} options are possible."
            return _refusal(request, RefusalCode.LIMIT, message, question.id)
        if not ids and not question.allow_freeform_input:
            message = f"{label(question)}: there are no options to choose from."
            return _refusal(request, RefusalCode.BAD_FORM, message, question.id)
    low, high = getattr(question, "min", None), getattr(question, "max", None)
    if low is not None and high is not None and low > high:
        message = f"{label(question)}: the minimum is greater than the maximum."
        return _refusal(request, RefusalCode.BAD_FORM, message, question.id)
    return None


def _check(request: InputRequest, question_id: str, answer: Answer | None) -> Refusal | None:
    question = question_of(request, question_id)
    if question is None:
        message = "There is no such question in this request."
        return _refusal(request, RefusalCode.NO_QUESTION, message, question_id)
    refusal = None if answer is None else check_answer(question, answer)
    return refusal and msgspec.structs.replace(refusal, request_id=request.id)


def _as_submitted(answer: Answer) -> Answer:
    """What comes with a completion is final, so its drafts are checked like answers."""
    return Submitted(value=answer.value) if isinstance(answer, Draft) else answer


def _check_reviewed(request: InputRequest, action: InputCompleted) -> Refusal | None:
    """What is sent must be what was reviewed, if the sender names that."""
    seen = None if action.meta is None else action.meta.reviewed
    if seen is None or action.response is not ResponseKind.ACCEPT:
        return None
    code = RefusalCode.REVIEW_CHANGED
    if (seen.revision or None) != revision_of(request):
        message = "The questions were changed after you reviewed them. Review them again."
        return _refusal(request, code, message)
    changed = changed_since(seen, request, action.answers)
    if not changed:
        return None
    names = ", ".join(f"“{label(question)}”" for question in changed[:NAMED_QUESTIONS])
    more = f" and {len(changed) - NAMED_QUESTIONS} more" if len(changed) > NAMED_QUESTIONS else ""
    message = f"Changed after you reviewed it: {names}{more}. Review the answers again."
    return _refusal(request, code, message, changed[0].id)


def _check_complete(request: InputRequest, answers: Mapping[str, Answer]) -> Refusal | None:
    for question in request.questions or ():
        answer = answers.get(question.id)
        if isinstance(answer, Submitted):
            # A request that was replaced may hold answers to what it used to ask.
            refusal = _check(request, question.id, answer)
            if refusal is not None:
                return refusal
        elif question.required:
            message = f"{label(question)}: an answer is required."
            return _refusal(request, RefusalCode.REQUIRED, message, question.id)
    return None


def _closed(record: SessionRecord, request_id: str) -> Refusal:
    outcome = outcome_of(record, request_id)
    if outcome is None:
        return Refusal(
            code=RefusalCode.NO_REQUEST,
            message="That question is no longer open.",
            request_id=request_id,
        )
    return Refusal(
        code=RefusalCode.ALREADY_COMPLETED,
        message=f"Too late: {ending(outcome)}",
        request_id=request_id,
    )


def _refusal(
    request: InputRequest, code: RefusalCode, message: str, question_id: str | None = None
) -> Refusal:
    return Refusal(code=code, message=message, request_id=request.id, question_id=question_id)
