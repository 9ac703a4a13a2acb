"""The order in which batches get their verdicts, and that each gets one."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

import pytest

from session_server.host.channels.channel_host import InDoubt, NotStored, Verdict
from session_server.host.metrics import Counts, Histogram
from session_server.host.persistence.log_status import LogStatus
from session_server.host.persistence.log_writer import LogWriter
from session_server.host.timers import Tasks
from session_server.log import AppendResult, Batch, Durable, NewEntry, Refused
from session_server.schemas.wire import Seq
from tests.ahp.actions import title_changed
from tests.host.faulty_logs import FULL, NO_WORD, TroubledLog
from tests.host.harness import SESSION, hosting, launched, with_session
from tests.host.manual_clock import ManualClock
from tests.log.one_by_one import OneByOneLog, SettledOne
from tests.waiting import until

PATIENCE = 10.0
A, B, C = "ahp-session:/a", "ahp-session:/b", "ahp-session:/c"


class HeldLog(OneByOneLog):
    """Stores each batch when a test says so, or reports something else."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, tuple[Batch, SettledOne]] = {}

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        self.held[batch.channel] = (batch, settled)

    def store(self, channel: str, instead: AppendResult | None = None) -> None:
        batch, settled = self.held.pop(channel)
        super().append_one(batch, settled if instead is None else lambda _: settled(instead))

    def report(self, channel: str, outcome: AppendResult) -> None:
        """Without storing anything."""
        self.held.pop(channel)[1](outcome)


class OneBatch:
    """An appender; `then` is called with what became of its batch."""

    def __init__(self, batch: Batch, then: Callable[[Verdict], None]) -> None:
        self._batch = batch
        self.settled = then

    def next_batch(self) -> Batch:
        return self._batch


class Fixture:
    """A writer, and what each channel was told."""

    def __init__(self, tasks: Tasks, log: HeldLog) -> None:
        self.log = log
        self.clock = ManualClock()
        log_status = LogStatus(Counts(), tasks, self._probe, self.clock)
        self.writer = LogWriter(
            self.log, tasks, log_status, Histogram((1.0,)), PATIENCE, self.clock
        )
        self.verdicts: list[tuple[str, type]] = []
        self._numbers = 0

    async def _probe(self) -> None: ...

    async def append(self, channel: str, then: Callable[[Verdict], None] = lambda _: None) -> None:
        self.submit(channel, then)
        await launched()

    def submit(self, channel: str, then: Callable[[Verdict], None] = lambda _: None) -> None:
        self._numbers += 1

        def settled(verdict: Verdict) -> None:
            self.verdicts.append((channel, type(verdict)))
            then(verdict)

        entry = NewEntry(f"entry-{self._numbers}", b"{}")
        self.writer.append_soon(OneBatch(Batch(channel, 0, (entry,)), settled))


@asynccontextmanager
async def writing(log: HeldLog | None = None) -> AsyncIterator[Fixture]:
    tasks = Tasks("a test", logging.getLogger("test"))
    try:
        yield Fixture(tasks, log or HeldLog())
    finally:
        await tasks.stop()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_batch_is_reported_to_be_in_doubt_once() -> None:
    """However long it takes, and although other batches were stored meanwhile."""
    async with writing() as given:
        await given.append(A)
        await given.append(B)
        await given.clock.advance(PATIENCE)
        given.log.store(A)
        await turns()
        await given.append(C)
        await given.clock.advance(PATIENCE)
        given.log.store(B)
        given.log.store(C)
        await turns()
        assert given.verdicts == [
            (A, InDoubt),
            (B, InDoubt),
            (A, Durable),
            (C, InDoubt),
            (B, Durable),
            (C, Durable),
        ]


def fails(_: Verdict) -> None:
    raise RuntimeError("a defect")


async def test_a_listener_that_fails_keeps_no_other_from_its_verdict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with writing() as given:
        await given.append(A, fails)
        await given.append(B, fails)
        await given.append(C)
        given.log.store(A, NO_WORD)
        await asyncio.sleep(0)
        given.log.report(B, NO_WORD)
        given.log.store(C)
        await turns()
        assert sorted(given.verdicts) == [(A, Durable), (B, NotStored), (C, Durable)]
    assert "a defect" in caplog.text


async def test_a_listener_that_fails_keeps_no_other_from_learning_of_a_doubt() -> None:
    async with writing() as given:
        await given.append(A, fails)
        await given.append(B)
        await given.clock.advance(PATIENCE)
        assert given.verdicts == [(A, InDoubt), (B, InDoubt)]


async def test_an_appender_that_fails_keeps_no_other_from_the_log() -> None:
    class Failing(OneBatch):
        def next_batch(self) -> Batch:
            raise RuntimeError("a defect")

    async with writing() as given:
        given.writer.append_soon(Failing(Batch(A, 0, ()), fails))
        given.submit(B)
        await turns()
        assert list(given.log.held) == [B]


async def test_what_was_refused_while_another_is_in_doubt_is_tried_again() -> None:
    async with writing() as given:
        await given.append(A)
        await given.append(B)
        given.log.store(A, NO_WORD)
        await asyncio.sleep(0)
        given.log.report(B, FULL)
        await turns()
        assert given.verdicts == [(B, NotStored), (A, Durable)]


async def test_what_was_refused_is_reported_as_soon_as_nobody_waits_any_longer() -> None:
    class SilentLog(HeldLog):
        async def find(self, ids: Collection[str]) -> dict[str, Seq]:
            await asyncio.Event().wait()
            return await super().find(ids)

    async with writing(SilentLog()) as given:
        await given.append(A)
        await given.append(B)
        given.log.store(A, NO_WORD)
        await turns()
        given.log.report(B, FULL)
        await turns()
        assert given.verdicts == []
        await given.clock.advance(PATIENCE)
        assert given.verdicts == [(B, Refused), (A, InDoubt)]
        await given.append(C)
        await turns()
        assert given.verdicts[2:] == [(C, Refused)]


async def test_a_node_that_shares_its_log_goes_on_when_the_log_answers_again() -> None:
    log, clock = TroubledLog(), ManualClock()
    async with hosting(log, clock=clock, is_shared=True) as host:
        ana = await with_session(host)
        log.trouble = ["hold"]
        doubted = ana.dispatch(title_changed("one"))
        await clock.advance(host.limits.store_seconds)
        assert "rejectionReason" in await ana.echo(doubted)
        log.release()
        session = host.sessions[SESSION]
        await until(lambda: session.committed and session.committed.public.summary.title == "one")
        assert "rejectionReason" not in await ana.act(title_changed("two"))
