"""What is asked of the MCP client that made a call, and what its answers mean.

A client's answer counts like a person's in the session: the first one wins. `rounds` says which
questions there are; the gateway carries them to the client and its answers back.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from session_server.reducers.batches import Batch, batch_of, completion, note
from session_server.reducers.calls import presentation as invocations
from session_server.reducers.calls.lifecycle import call_answered
from session_server.reducers.calls.rounds import abandon, failure
from session_server.reducers.forms.mcp_forms import questions_of
from session_server.reducers.forms.plain_values import value_of
from session_server.reducers.rules.input_rules import input_completed
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.texts import subject
from session_server.schemas.ahp.actions import InputCompleted
from session_server.schemas.ahp.questions import InputRequest, ResponseKind, Submitted
from session_server.schemas.limits import CLIENT_ANSWER_MS
from session_server.schemas.mcp import ElicitResult
from session_server.schemas.principals import Principal, Role, Stamp
from session_server.schemas.record import (
    Asked,
    Call,
    CallAnswered,
    ClientAnswers,
    ClientRound,
    FailureKind,
    RecordAction,
    Remembered,
    SessionRecord,
    Uncertain,
    Waiting,
)
from session_server.schemas.wire import Extra, Millis

AGAIN = "runAgain"


def client_round(record: SessionRecord, call_id: str) -> ClientRound | None:
    """What the client is to be asked now."""
    call = record.private.calls.get(call_id)
    if call is None or call.client is None:
        return None
    if isinstance(call.phase, Uncertain):
        return _doubt(record, call, call.phase)
    open_now = [asked for asked in call.asked if asked.waits_for_client]
    if not isinstance(call.phase, Waiting) or not open_now:
        return None
    return ClientRound(
        round=call.round,
        run=call.restarts,
        questions={asked.key: asked.question or {} for asked in open_now},
        fingerprints={asked.key: asked.fingerprint for asked in open_now},
    )


def _doubt(record: SessionRecord, call: Call, phase: Uncertain) -> ClientRound | None:
    """The question to the owner, as a server asks it."""
    request = open_request(record.public, phase.request_id)
    if request is None or call.answers == "session":
        return None
    sure = {"type": "boolean", "title": "Run it again?"}
    schema = {"type": "object", "properties": {AGAIN: sure}, "required": [AGAIN]}
    params = {"mode": "form", "message": request.message, "requestedSchema": schema}
    question = {"method": "elicitation/create", "params": params}
    return ClientRound(
        round=call.round, run=call.restarts, questions={AGAIN: question}, again=phase.leg
    )


def client_deadline(record: SessionRecord, call: Call) -> Millis | None:
    """When a call ends whose client does not answer what only it can answer."""
    if not isinstance(call.phase, Waiting) or not any(
        asked.waits_for_client and open_request(record.public, asked.request_id) is None
        for asked in call.asked
    ):
        return None
    since = call.started_at if call.asked_at is None else call.asked_at
    return since + (call.answer_within or CLIENT_ANSWER_MS)


def client_expired(record: SessionRecord, call_id: str, stamp: Stamp) -> Batch:
    """Ends a call whose client did not answer in time; nothing if it did, or still has time."""
    call = record.private.calls.get(call_id)
    deadline = None if call is None else client_deadline(record, call)
    if call is None or deadline is None or stamp.at < deadline:
        return ()
    seconds = (call.answer_within or CLIENT_ANSWER_MS) / 1000
    reason = f"{_name(call)} did not answer within {seconds:g} seconds. Call again if it is needed."
    return abandon(record, call_id, reason, stamp)


def client_answered(
    record: SessionRecord, call_id: str, answers: ClientAnswers, stamp: Stamp
) -> Batch:
    """Records the client's answers; invalid ones are noted, and their questions stay open."""
    call = record.private.calls.get(call_id)
    if call is None or call.client is None or not call.is_open:
        return ()
    if answers.round.again is not None:
        return _decision(record, call, answers, stamp)
    if answers.round.run < call.restarts:
        return _of_earlier_run(record, call, answers, stamp)
    if answers.round.round != call.round:
        return ()
    return _of_this_round(record, call, answers, stamp)


def _of_this_round(
    record: SessionRecord, call: Call, answers: ClientAnswers, stamp: Stamp
) -> Batch:
    given: dict[str, Extra] = {}
    errors: dict[str, Extra] = {}
    more: list[RecordAction] = []
    for asked in call.asked:
        if not asked.waits_for_client:
            continue
        request = open_request(record.public, asked.request_id)
        if asked.key in answers.given:
            response = answers.given[asked.key]
            reason, batch = _taken(record, call, asked, request, response, answers, stamp)
            more += batch
            if reason is None:
                given[asked.key] = response
        elif asked.key in answers.errors and request is None:
            errors[asked.key] = answers.errors[asked.key]
        elif asked.key in answers.errors:
            text = answers.errors[asked.key].get("message")
            more += note(record.public, f"{_name(call)} could not be asked: {text}")
    if not given and not errors:
        return tuple(more)
    answered = CallAnswered(call_id=call.id, round=call.round, given=given, errors=errors)
    is_on_connection = isinstance(call.phase, Waiting) and call.phase.held
    if errors and not is_on_connection:
        return (*more, *_failed(record, call, answered, stamp))
    return (answered, *more, *_shown(record, call, given))


def _taken(
    record: SessionRecord,
    call: Call,
    asked: Asked,
    request: InputRequest | None,
    response: Mapping[str, Any],
    answers: ClientAnswers,
    stamp: Stamp,
) -> tuple[str | None, Batch]:
    """Why a response is refused, if it is, and the actions that complete its request."""
    is_refusal = response.get("action") in (ResponseKind.DECLINE, ResponseKind.CANCEL)
    hasty = ""
    if is_refusal and answers.within is not None:
        verb = "declined" if response["action"] == ResponseKind.DECLINE else "cancelled"
        hasty = f"{_name(call)} {verb} within {answers.within} ms, before anyone could read it."
    if request is None:
        return None, note(record.public, hasty) if hasty else ()
    if hasty:
        text = f"{hasty} “{subject(request)}” can still be answered here."
        return hasty, note(record.public, text)
    action = _completed(record, asked, request, response, stamp)
    if isinstance(action, str):
        return action, note(record.public, f"What {_name(call)} answered does not fit: {action}")
    return None, completion(record.public, action, stamp)


def _completed(
    record: SessionRecord,
    asked: Asked,
    request: InputRequest,
    response: Mapping[str, Any],
    stamp: Stamp,
) -> InputCompleted | str:
    """The completion, or why the response does not fit.

    Checked like a person's answers, unless something in the form had to be hidden from people.
    """
    result = _elicit_result(response)
    if result is None:
        return "that is not an answer to an elicitation"
    completed = InputCompleted(request_id=request.id, response=result.action)
    questions = request.questions or ()
    if asked.schema is not None and questions_of(asked.schema) != questions:
        return completed
    if result.action is ResponseKind.ACCEPT:
        content = result.content or {}
        values = ((q.id, value_of(q, content.get(q.id))) for q in questions)
        answers = {name: Submitted(value=value) for name, value in values if value is not None}
        completed = msgspec.structs.replace(completed, answers=answers or None)
    by = "" if stamp.by is None else stamp.by.id
    refusal = input_completed(Principal(id=by, role=Role.ANSWERER), record, completed)
    return completed if refusal is None else refusal.message


def _elicit_result(response: Mapping[str, Any] | None) -> ElicitResult | None:
    try:
        return msgspec.convert(response, ElicitResult)
    except msgspec.ValidationError:
        return None


def _of_earlier_run(
    record: SessionRecord, call: Call, answers: ClientAnswers, stamp: Stamp
) -> Batch:
    """Answers to an earlier run: they count if the same questions are asked in this one."""
    before = answers.round
    kept = tuple(
        Remembered(run=before.run, key=key, fingerprint=before.fingerprints[key], given=given)
        for key, given in answers.given.items()
        if key in before.fingerprints and given.get("action") != ResponseKind.CANCEL
    )
    if not kept:
        return ()
    known = CallAnswered(call_id=call.id, round=before.round, remembered=kept)
    now = client_round(record, call.id)
    same = now is not None and now.fingerprints == before.fingerprints
    if now is None or not same:
        return (known,)
    return _of_this_round(record, call, msgspec.structs.replace(answers, round=now), stamp)


def _decision(record: SessionRecord, call: Call, answers: ClientAnswers, stamp: Stamp) -> Batch:
    """Whether the call runs again: the client that made it may decide that, like the owner."""
    phase, result = call.phase, _elicit_result(answers.given.get(AGAIN))
    if not isinstance(phase, Uncertain) or phase.leg != answers.round.again or result is None:
        return ()
    action = result.action
    if action is ResponseKind.ACCEPT and (result.content or {}).get(AGAIN) is not True:
        action = ResponseKind.DECLINE
    elif action is not ResponseKind.ACCEPT and answers.within is not None:
        text = f"{_name(call)} refused within {answers.within} ms, before anyone could read it."
        return note(record.public, text)
    completed = InputCompleted(request_id=phase.request_id, response=action)
    return batch_of(record, completed, stamp)


def _failed(record: SessionRecord, call: Call, answered: CallAnswered, stamp: Stamp) -> Batch:
    """An error cannot be sent to a 2026-era server: the whole call ends with it."""
    error = next(iter(answered.errors.values()))
    everything = {a.key: error for a in call.asked if a.waits_for_client} | answered.errors
    closed = msgspec.structs.replace(answered, given={}, errors=everything)
    after = msgspec.structs.replace(record, private=call_answered(record.private, closed, stamp.at))
    leg = call.phase.leg + 1 if isinstance(call.phase, Waiting) else 0
    text = f"{_name(call)} could not answer: {error.get('message')}"
    return (closed, *failure(after, call.id, leg, FailureKind.UPSTREAM, text, stamp, error))


def _shown(record: SessionRecord, call: Call, given: Mapping[str, Any]) -> Batch:
    """Notes of answers to questions that the session did not show."""
    alone = [
        a.key
        for a in call.asked
        if a.key in given and open_request(record.public, a.request_id) is None
    ]
    return invocations.progress(record, call, f"Answered in {_name(call)}") if alone else ()


def _name(call: Call) -> str:
    return "The client" if call.client is None else call.client.name
