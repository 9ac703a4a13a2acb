"""What every log promises about writing: order, outcomes, whole batches, and its own life."""

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest

from session_server.log import Durable, NewEntry, Refused, RefusedBecause, StoredSnapshot
from session_server.log.protocol import AppendResult, Batch, FailedError
from session_server.reducers.ahp1.numbering import number_after
from session_server.schemas.wire import SAFE_INTEGER
from tests.log.logs import (
    BOUND,
    Backend,
    asked,
    batch,
    entries,
    everything,
    refused,
    settled,
    stored,
)
from tests.log.one_by_one import append_one

pytestmark = pytest.mark.proves("design.log.contract")

A, B, C = "ahp-session:/a", "ahp-session:/b", "ahp-root://"
CONFLICT, CLOSED = RefusedBecause.CONFLICT, RefusedBecause.CLOSED


# Order


async def test_a_new_log_is_empty(backend: Backend) -> None:
    async with backend.opened() as log:
        assert log.last_seq == log.epoch.first
        assert await everything(log) == []
        assert await log.snapshots() == []
        assert await log.floors() == {}


async def test_numbers_of_a_new_log_leave_room_for_those_of_ahp_1_x(backend: Backend) -> None:
    """JavaScript must be able to count envelopes on from there."""
    async with backend.opened() as log:
        assert number_after(log.last_seq) < SAFE_INTEGER // 8


async def test_entries_come_back_as_they_were_written(backend: Backend) -> None:
    async with backend.opened() as log:
        datas = (b"", b"\0\xff" * 100, b"x" * 300_000, '{"ü":"\U0001f600"}'.encode())
        wanted = Batch(A, 0, tuple(NewEntry(f"id-ü-{n}", data) for n, data in enumerate(datas)))
        outcome = await settled(log, wanted)
        assert isinstance(outcome, Durable)
        found = await everything(log)
        assert [(e.seq, e.channel, NewEntry(e.id, e.data)) for e in found] == [
            (seq, A, entry) for seq, entry in zip(outcome.seqs, wanted.entries, strict=True)
        ]


async def test_seqs_increase_in_the_order_in_which_batches_become_durable(
    backend: Backend,
) -> None:
    async with backend.opened() as log:
        told: list[tuple[int, ...]] = []
        last = asyncio.get_running_loop().create_future()
        for n in range(50):
            append_one(log, batch(f"c{n}", 0, b"1", b"2"), lambda o: told.append(o.seqs))
        append_one(log, batch("last", 0, b"1"), last.set_result)
        told.append((await last).seqs)
        seqs = [seq for seqs in told for seq in seqs]
        assert len(seqs) == 101
        assert all(one < other for one, other in pairwise(seqs))
        assert seqs[-1] == log.last_seq
        assert [e.seq for e in await everything(log)] == seqs


async def test_a_channel_goes_on_from_its_last_seq(backend: Backend) -> None:
    async with backend.opened() as log:
        last = 0
        for n in range(10):
            (*_, last) = await stored(log, A, last, b"%d" % n, b"and")
            await stored(log, f"other-{n}", 0, b"between")
        found = await everything(log, channels=[A])
        assert [e.data for e in found[::2]] == [b"%d" % n for n in range(10)]


# Outcomes


async def test_an_outcome_comes_once_on_the_loops_thread_and_after_append(
    backend: Backend,
) -> None:
    async with backend.opened() as log:
        told: Counter[int] = Counter()
        threads: set[int] = set()
        returned: set[int] = set()
        too_early: list[int] = []
        done = asyncio.Event()

        def append(n: int) -> None:
            def on_settled(outcome: object) -> None:
                told[n] += 1
                threads.add(threading.get_ident())
                if n not in returned:
                    too_early.append(n)
                if len(told) == 100:
                    done.set()

            append_one(log, batch(f"c{n % 10}", 0, b"x"), on_settled)
            returned.add(n)

        for n in range(100):
            append(n)
        await done.wait()
        await log.close()
    assert told == dict.fromkeys(range(100), 1)
    assert threads == {threading.get_ident()}
    assert too_early == []


async def test_a_channels_outcomes_come_in_the_order_of_its_batches(backend: Backend) -> None:
    async with backend.opened() as log:
        order: list[int] = []
        outcomes = []
        for n in range(30):
            outcome = asked(log, batch(A, 0, b"x"))
            outcome.add_done_callback(lambda _, n=n: order.append(n))
            outcomes.append(outcome)
        told = await asyncio.gather(*outcomes)
        assert order == list(range(30))
        assert [type(outcome) for outcome in told] == [Durable] + [Refused] * 29


async def test_batches_that_are_appended_together_have_results_of_their_own(
    backend: Backend,
) -> None:
    """One that is refused keeps none of the others from being stored."""
    async with backend.opened() as log:
        together = [batch(A, 0, b"1", b"2"), batch(B, 7, b"3"), batch(C, 0, b"4")]
        told: dict[str, AppendResult] = {}
        done = asyncio.Event()

        def keep(results: Sequence[tuple[Batch, AppendResult]]) -> None:
            assert all(one in together for one, _ in results)
            told.update((one.channel, result) for one, result in results)
            if len(told) == len(together):
                done.set()

        log.append(together, keep)
        assert told == {}
        await asyncio.wait_for(done.wait(), BOUND)
        assert [type(told[channel]) for channel in (A, B, C)] == [Durable, Refused, Durable]
        assert sorted(e.data for e in await everything(log)) == [b"1", b"2", b"4"]
        await log.close()
        done.clear()
        told.clear()
        log.append(together, keep)
        await asyncio.wait_for(done.wait(), BOUND)
        assert {getattr(result, "because", None) for result in told.values()} == {CLOSED}


async def test_a_failing_listener_does_not_affect_the_others(backend: Backend) -> None:
    failures: list[BaseException] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))

    def fail(_: object) -> None:
        raise ZeroDivisionError

    async with backend.opened() as log:
        append_one(log, batch(A, 0, b"x"), fail)
        await stored(log, B, 0, b"x")
    assert [type(failure) for failure in failures] == [ZeroDivisionError]


async def test_a_listener_may_append(backend: Backend) -> None:
    async with backend.opened() as log:
        second = asyncio.get_running_loop().create_future()

        def go_on(outcome: Durable) -> None:
            append_one(log, batch(A, outcome.seqs[-1], b"second"), second.set_result)

        append_one(log, batch(A, 0, b"first"), go_on)
        assert isinstance(await second, Durable)
        assert [e.data for e in await everything(log)] == [b"first", b"second"]


# All or nothing


@pytest.mark.proves("design.log.all-or-nothing")
async def test_a_batch_that_expects_another_end_is_refused_whole(backend: Backend) -> None:
    async with backend.opened() as log:
        first, last = await stored(log, A, 0, b"1", b"2")
        (elsewhere,) = await stored(log, B, 0, b"3")
        for wrong in (0, first, elsewhere, last + 100):
            assert await refused(log, batch(A, wrong, b"x", b"y")) == CONFLICT
        assert await refused(log, batch(C, last, b"x")) == CONFLICT
        assert [e.data for e in await everything(log)] == [b"1", b"2", b"3"]
        await stored(log, A, last, b"4")


@pytest.mark.proves("design.log.all-or-nothing")
async def test_of_two_batches_in_flight_for_the_same_place_one_is_stored(backend: Backend) -> None:
    async with backend.opened() as log:
        both = (asked(log, batch(A, 0, b"1", b"1")), asked(log, batch(A, 0, b"2", b"2")))
        outcomes = await asyncio.gather(*both)
        assert [type(outcome) for outcome in outcomes] == [Durable, Refused]
        assert [e.data for e in await everything(log)] == [b"1", b"1"]


@pytest.mark.proves("design.log.all-or-nothing")
async def test_an_id_is_stored_once(backend: Backend) -> None:
    async with backend.opened() as log:
        used, unused = entries(b"used", b"unused")
        (last,) = await stored(log, A, 0, b"x")
        assert isinstance(await settled(log, Batch(B, 0, (used,))), Durable)
        assert await refused(log, Batch(A, last, (unused, used))) == CONFLICT
        assert await refused(log, Batch(A, last, (unused, unused))) == CONFLICT
        assert isinstance(await settled(log, Batch(A, last, (unused,))), Durable)
        assert [e.data for e in await everything(log)] == [b"x", b"used", b"unused"]


async def test_nobody_suffers_for_anothers_batch(backend: Backend) -> None:
    async with backend.opened() as log:
        (used,) = entries(b"used")
        await settled(log, Batch(A, 0, (used,)))
        outcomes = [
            asked(log, Batch(f"c{n}", 0, (used,)) if n == 7 else batch(f"c{n}", 0, b"x", b"y"))
            for n in range(20)
        ]
        kinds = [type(outcome) for outcome in await asyncio.gather(*outcomes)]
        assert kinds == [Refused if n == 7 else Durable for n in range(20)]
        assert len(await everything(log)) == 1 + 19 * 2


async def test_an_empty_batch_changes_nothing(backend: Backend) -> None:
    async with backend.opened() as log:
        assert await settled(log, Batch(A, 0, ())) == Durable(())
        (last,) = await stored(log, A, 0, b"x")
        assert await settled(log, Batch(A, last, ())) == Durable(())
        assert await refused(log, Batch(A, 0, ())) == CONFLICT
        await stored(log, A, last, b"y")


# Life


@pytest.mark.proves("design.log.epoch")
async def test_a_log_that_lost_nothing_keeps_its_epoch(backend: Backend) -> None:
    async with backend.opened() as log:
        epoch, last, expected = log.epoch, log.epoch.first, 0
        for _ in range(3):
            log = await backend.reopened(log)  # noqa: PLW2901
            assert (log.epoch, log.last_seq) == (epoch, last)
            (expected,) = (last,) = await stored(log, A, expected, b"x")
            assert last > epoch.first
        await log.close()


@pytest.mark.proves("design.log.epoch")
async def test_every_new_log_has_an_epoch_of_its_own(backend: Backend, tmp_path) -> None:
    epochs = set()
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        async with type(backend)(tmp_path / name).opened() as log:
            epochs.add(log.epoch)
    assert len(epochs) == 3


async def test_closing_settles_what_is_in_flight_and_refuses_the_rest(backend: Backend) -> None:
    async with backend.opened() as log:
        flying = [asked(log, batch(f"c{n}", 0, b"x")) for n in range(20)]
        await log.close()
        assert all(isinstance(outcome.result(), Durable) for outcome in flying)
        assert await refused(log, batch(A, 0, b"x")) == CLOSED
        await log.close()
        for attempt in (
            log.read(after=0, limit=1),
            log.find(["x"]),
            log.snapshots(),
            log.floors(),
            log.save_snapshot(StoredSnapshot(A, 0, b"")),
            log.trim(A, 1),
            log.drop(A),
        ):
            with pytest.raises(FailedError) as failure:
                await attempt
            assert failure.value.because == CLOSED
            assert not failure.value.can_retry
    if backend.survives:
        async with backend.opened() as log:
            assert len(await everything(log)) == 20


async def test_closing_can_be_asked_for_by_many_and_given_up_by_some(backend: Backend) -> None:
    async with backend.opened() as log:
        flying = asked(log, batch(A, 0, b"x"))
        closings = [asyncio.create_task(log.close()) for _ in range(3)]
        await asyncio.sleep(0)
        closings[0].cancel()
        await asyncio.gather(*closings, return_exceptions=True)
        assert isinstance(flying.result(), Durable)


async def test_a_question_that_nobody_waits_for_any_more_harms_nobody(backend: Backend) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda *failure: failures.append(failure))
    async with backend.opened() as log:
        await stored(log, A, 0, b"x")
        tasks = [
            asyncio.create_task(question)
            for question in (log.drop(B), log.read(after=0, limit=9), log.find(["x"]))
        ]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await stored(log, B, 0, b"y")
    assert failures == []
