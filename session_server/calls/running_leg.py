"""One leg of a call while its request is out: what the server asks, reports and logs meanwhile.

Only a 2025-era server asks then: it waits on the open connection for the answers.
"""

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ErrorData, LoggingMessageNotificationParams

from session_server.mcp_client.connections.shared_connections import Question
from session_server.mcp_client.progress import LEVELS, Report
from session_server.reducers.batches import Batch
from session_server.reducers.calls import rounds
from session_server.schemas.mcp import InputRequired
from session_server.schemas.principals import Stamp
from session_server.schemas.record import Asked, Sent, SessionRecord
from session_server.schemas.wire import Uri

if TYPE_CHECKING:
    from session_server.calls.driver import CallDriver

NO_ANSWER = ErrorData(code=INTERNAL_ERROR, message="The call has ended.")
REPORT_SECONDS = 0.5
"""People are shown progress no more often than they can read."""


class RunningLeg:
    """Has its questions asked, one at a time, and brings back the answers (`CallCallbacks`)."""

    def __init__(
        self, driver: "CallDriver", uri: Uri, call_id: str, leg: int, log_level: str | None
    ) -> None:
        self._driver = driver
        self._uri = uri
        self._call_id = call_id
        self._leg = leg
        self._levels = () if log_level is None else LEVELS[LEVELS.index(log_level) :]
        self._times_asked: Counter[str] = Counter()
        self._one_at_a_time = asyncio.Lock()
        self._latest: Report | None = None
        self._reporting: asyncio.Task[None] | None = None

    async def ask(self, question: Question) -> dict[str, Any] | ErrorData:
        """`question` is the request as the server made it: its method and its parameters."""
        # How often it was asked on this leg: the same when all is asked again, in any order.
        fingerprint = rounds.raw_fingerprint(question)
        self._times_asked[fingerprint] += 1
        key = str(self._times_asked[fingerprint])
        round_ = {"resultType": "input_required", "inputRequests": {key: question}}
        try:
            required = msgspec.convert(round_, InputRequired)
        except msgspec.ValidationError:
            reason = f"That is not a request of {question['method']}."
            return ErrorData(code=INVALID_PARAMS, message=reason)
        async with self._one_at_a_time:
            return await self._asked(required, {key: question})

    def logged(self, message: LoggingMessageNotificationParams) -> None:
        if message.level in self._levels:
            self._driver.logs.of(self._call_id).add(message)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Writes the first report at once and of those that follow the latest, with pauses."""
        self._latest = Report(progress, total, message)
        self._driver.reports.publish(self._call_id, self._latest)
        if self._reporting is None or self._reporting.done():
            self._reporting = self._driver.spawn(self._report())

    async def _report(self) -> None:
        while self._latest is not None:
            text, self._latest = self._latest.text, None

            def plan(record: SessionRecord, _: Stamp, text: str = text) -> Batch:
                return rounds.progress(record, self._call_id, self._leg, text)

            await self._driver.write_until_saved(self._uri, plan)
            await self._driver.clock.sleep(REPORT_SECONDS)

    def close(self) -> None:
        """It has come back: what it reported last is not shown any more."""
        if self._reporting is not None:
            self._reporting.cancel()

    async def visited(self, elicitation_id: str) -> None:
        def plan(record: SessionRecord, _: Stamp) -> Batch:
            return rounds.visited(record, self._call_id, elicitation_id)

        await self._driver.write_until_saved(self._uri, plan)

    async def _asked(
        self, required: InputRequired, raw: dict[str, Any]
    ) -> dict[str, Any] | ErrorData:
        opened = 0

        def plan(record: SessionRecord, stamp: Stamp) -> Batch:
            nonlocal opened
            call = record.private.calls.get(self._call_id)
            if call is None:
                return ()
            opened = call.round + 1
            return rounds.open_round(
                record, self._call_id, self._leg, required, stamp, held=True, raw=raw
            )

        await self._driver.write_until_saved(self._uri, plan)
        answer: dict[str, Any] | ErrorData | None = await self._driver.until(
            self._uri, lambda record: self._answer(record, opened)
        )
        return NO_ANSWER if answer is None else answer

    def _answer(self, record: SessionRecord, opened: int) -> dict[str, Any] | ErrorData | None:
        """The answer, that there will be none, or nothing yet."""
        call = record.private.calls.get(self._call_id)
        if call is None or rounds.outstanding(record, self._call_id, self._leg) is None:
            return NO_ANSWER
        if call.round != opened or not isinstance(call.phase, Sent):
            return None
        return next(iter(map(_answer_to, call.asked)), NO_ANSWER)


def _answer_to(asked: Asked) -> dict[str, Any] | ErrorData:
    if asked.error is not None:
        return ErrorData.model_validate(asked.error)
    if asked.roots is not None:
        return {"roots": msgspec.to_builtins(asked.roots)}
    given: dict[str, Any] = asked.given or msgspec.to_builtins(asked.response)
    return given
