"""Questions of a 2025-era server, which waits on the open connection for people's answers."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ErrorData

from session_server.calls.connections import Question
from session_server.host.channel import Plan
from session_server.reducers import rounds
from session_server.reducers.batches import Batch
from session_server.schemas.calls import Call, Sent
from session_server.schemas.mcp import Elicitation, ElicitRequest, ElicitResult, InputRequired
from session_server.schemas.principals import Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri


class Recorder(Protocol):
    async def record(self, uri: Uri, plan: Plan) -> None: ...

    async def until(self, uri: Uri, look: Callable[[SessionRecord], Any]) -> Any: ...


class PeopleAsker:
    """Puts the questions of one leg before people, one at a time, and brings back the answers."""

    def __init__(self, recorder: Recorder, uri: Uri, call_id: str, leg: int) -> None:
        self._recorder = recorder
        self._uri = uri
        self._call_id = call_id
        self._leg = leg
        self._times_asked: Counter[str] = Counter()
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, question: Question) -> dict[str, Any] | ErrorData:
        try:
            elicitation = msgspec.convert(question["params"], Elicitation)
        except msgspec.ValidationError:
            return ErrorData(code=INVALID_PARAMS, message="That is no elicitation.")
        async with self._one_at_a_time:
            return await self._asked(elicitation)

    async def visited(self, elicitation_id: str) -> None:
        def plan(record: SessionRecord, _: Stamp) -> Batch:
            return rounds.visited(record, self._call_id, elicitation_id)

        await self._recorder.record(self._uri, plan)

    async def _asked(self, elicitation: Elicitation) -> dict[str, Any] | ErrorData:
        opened, key = 0, self._key_of(elicitation)

        def plan(record: SessionRecord, stamp: Stamp) -> Batch:
            nonlocal opened
            call = record.private.calls.get(self._call_id)
            if call is None:
                return ()
            opened = call.round + 1
            required = InputRequired(
                result_type="input_required",
                input_requests={key: ElicitRequest(params=elicitation)},
            )
            return rounds.open_round(record, self._call_id, self._leg, required, stamp, held=True)

        await self._recorder.record(self._uri, plan)
        response = await self._recorder.until(
            self._uri, lambda record: self._response(record, opened)
        )
        if not isinstance(response, ElicitResult):
            return ErrorData(code=INTERNAL_ERROR, message="The call has ended.")
        answer: dict[str, Any] = msgspec.to_builtins(response)
        return answer

    def _key_of(self, elicitation: Elicitation) -> str:
        """How often it was asked on this leg: the same when all is asked again, in any order."""
        fingerprint = rounds.fingerprint_of(elicitation)
        self._times_asked[fingerprint] += 1
        return str(self._times_asked[fingerprint])

    def _response(self, record: SessionRecord, opened: int) -> ElicitResult | str | None:
        """The answer, that there will be none, or nothing yet."""
        call = record.private.calls.get(self._call_id)
        if call is None or rounds.outstanding(record, self._call_id, self._leg) is None:
            return "ended"
        if call.round != opened or not isinstance(call.phase, Sent):
            return None
        return _only_response(call)


def _only_response(call: Call) -> ElicitResult | str:
    responses = [asked.response for asked in call.asked if asked.response is not None]
    return responses[0] if responses else "ended"
