"""What of a session's log may leave the host: everything but the secrets of its calls.

A `requestState` becomes a digest, private arguments and the query of a URI become dots, and what a
server repeated of them does too.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from session_server.reducers.calls.redaction import HIDDEN, masked
from session_server.reducers.forms.mcp_forms import EMPTY_FORM, questions_of
from session_server.schemas.mcp import ElicitResult, Unshowable
from session_server.schemas.record import (
    Asked,
    Call,
    CallAnswered,
    CallError,
    CallFailed,
    CallFinished,
    CallInputRequired,
    CallStarted,
    Failed,
    Finished,
    Phase,
    PrivateState,
    RecordAction,
    Remembered,
    SessionRecord,
)

replace = msgspec.structs.replace


def redacted(action: RecordAction, calls: Mapping[str, Call]) -> RecordAction:
    """The action without secrets. `calls` are those started so far, as they really are."""
    match action:
        case CallStarted(call=call):
            return CallStarted(call=redacted_call(call))
        case CallInputRequired(call_id=call_id):
            asked = _asked(calls[call_id], action.asked) if call_id in calls else action.asked
            return replace(action, request_state=digest(action.request_state), asked=asked)
        case CallAnswered(call_id=call_id) if call_id in calls:
            call = calls[call_id]
            return replace(
                action,
                given=masked(call, action.given),
                errors=masked(call, action.errors),
                remembered=_remembered(call, action.remembered),
            )
        case CallFinished(call_id=call_id) if call_id in calls:
            return replace(action, result=masked(calls[call_id], action.result))
        case CallFailed(call_id=call_id) if call_id in calls:
            return replace(action, error=_error(calls[call_id], action.error))
        case _:
            return action


def redacted_record(record: SessionRecord) -> SessionRecord:
    """A whole record, as a recording begins with it; without the retry key of its creation."""
    calls = {call_id: redacted_call(call) for call_id, call in record.private.calls.items()}
    private: PrivateState = replace(record.private, calls=calls, opened_with=None)
    return replace(record, private=private)


def redacted_call(call: Call) -> Call:
    """Without its fingerprint too: a short secret could be guessed from it."""
    return replace(
        call,
        params=_params(call),
        request_state=digest(call.request_state),
        fingerprint=None,
        phase=_phase(call),
        asked=_asked(call, call.asked),
        remembered=_remembered(call, call.remembered),
        begun=tuple(replace(b, key=masked(call, b.key)) for b in call.begun),
    )


def digest(state: str | None) -> str | None:
    """Equal states have equal digests, so that a recording can still be followed."""
    return None if state is None else f"sha256:{hashlib.sha256(state.encode()).hexdigest()}"


def _params(call: Call) -> dict[str, Any]:
    params = dict(call.params)
    arguments = params.get("arguments")
    if isinstance(arguments, dict):
        params["arguments"] = {
            name: HIDDEN if name in call.private_arguments else masked(call, value)
            for name, value in arguments.items()
        }
    uri = params.get("uri")
    if isinstance(uri, str) and "?" in uri:
        params["uri"] = f"{uri.partition('?')[0]}?{HIDDEN}"
    return params


def _phase(call: Call) -> Phase:
    phase = call.phase
    if isinstance(phase, Finished):
        return replace(phase, result=masked(call, phase.result))
    return replace(phase, error=_error(call, phase.error)) if isinstance(phase, Failed) else phase


def _error(call: Call, error: CallError) -> CallError:
    return replace(error, message=masked(call, error.message), data=masked(call, error.data))


def _asked(call: Call, asked: tuple[Asked, ...]) -> tuple[Asked, ...]:
    return tuple(
        replace(
            a,
            key=masked(call, a.key),
            schema=None if a.schema is None else _schema(call, a.schema),
            response=_response(call, a.response),
            elicitation_id=masked(call, a.elicitation_id),
            question=masked(call, a.question),
            given=masked(call, a.given),
            error=masked(call, a.error),
        )
        for a in asked
    )


def _remembered(call: Call, remembered: tuple[Remembered, ...]) -> tuple[Remembered, ...]:
    return tuple(
        replace(
            memory,
            key=masked(call, memory.key),
            response=_response(call, memory.response),
            given=masked(call, memory.given),
        )
        for memory in remembered
    )


def _schema(call: Call, schema: dict[str, Any]) -> dict[str, Any]:
    """Keeps keywords of JSON Schema, in case a secret is the same text as one."""
    hidden = masked(call, schema)
    return EMPTY_FORM if isinstance(questions_of(hidden), Unshowable) else hidden


def _response(call: Call, response: ElicitResult | None) -> ElicitResult | None:
    """Also for questions without an answer: the default may repeat a secret."""
    return response and replace(response, content=masked(call, response.content))
