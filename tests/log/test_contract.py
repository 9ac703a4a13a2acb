"""What every log promises, asked of each backend."""

import asyncio
import threading
from collections import Counter
from itertools import pairwise

import pytest

from session_server.log import Durable, NewEntry, Refused, RefusedBecause, StoredSnapshot
from session_server.log.errors import FailedError
from session_server.log.protocol import Batch
from tests.log.logs import (
    Backend,
    asked,
    batch,
    entries,
    everything,
    following,
    refused,
    settled,
    stored,
)

pytestmark = pytest.mark.proves("design.log.contract")

A, B, C = "ahp-session:/a", "ahp-session:/b", "ahp-root://"
CONFLICT, CLOSED = RefusedBecause.CONFLICT, RefusedBecause.CLOSED


# Order


async def test_a_new_log_is_empty(backend: Backend) -> None:
    async with backend.opened() as log:
        assert log.last_seq == 0
        assert log.epoch
        assert await everything(log) == []
        assert await log.snapshots() == []
        assert await log.floors() == {}


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
            log.append(batch(f"c{n}", 0, b"1", b"2"), lambda o: told.append(o.seqs))
        log.append(batch("last", 0, b"1"), last.set_result)
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

            log.append(batch(f"c{n % 10}", 0, b"x"), on_settled)
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


async def test_a_listener_that_fails_keeps_no_other_from_being_told(backend: Backend) -> None:
    failures: list[BaseException] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))

    def fail(_: object) -> None:
        raise ZeroDivisionError

    async with backend.opened() as log:
        log.append(batch(A, 0, b"x"), fail)
        await stored(log, B, 0, b"x")
    assert [type(failure) for failure in failures] == [ZeroDivisionError]


async def test_a_listener_may_append(backend: Backend) -> None:
    async with backend.opened() as log:
        second = asyncio.get_running_loop().create_future()

        def go_on(outcome: Durable) -> None:
            log.append(batch(A, outcome.seqs[-1], b"second"), second.set_result)

        log.append(batch(A, 0, b"first"), go_on)
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


# Reading


@pytest.mark.proves("design.log.read")
async def test_reading_is_from_a_position_bounded_and_for_chosen_channels(
    backend: Backend,
) -> None:
    async with backend.opened() as log:
        lasts = {A: 0, B: 0, C: 0}
        for n in range(30):
            channel = (A, B, C)[n % 3]
            (lasts[channel],) = await stored(log, channel, lasts[channel], b"%d" % n)
        all_ = await everything(log)
        seqs = [e.seq for e in all_]
        assert await log.read(after=seqs[9], limit=5) == all_[10:15]
        assert await log.read(after=seqs[9] - 1, limit=1) == all_[9:10]
        assert await log.read(after=seqs[-1], limit=5) == []
        assert await log.read(after=0, limit=0) == []
        some = [e for e in all_ if e.channel in (A, C)]
        assert await log.read(after=0, limit=7, channels=(A, C)) == some[:7]
        assert await log.read(after=some[6].seq, limit=99, channels={A, C}) == some[7:]
        assert await log.read(after=0, limit=99, channels=["unknown"]) == []
        assert await log.read(after=0, limit=99, channels=[]) == []
        assert await everything(log, piece=7) == all_
        assert await everything(log, piece=2, channels=[B]) == [e for e in all_ if e.channel == B]


async def test_finding_says_what_is_stored_and_where(backend: Backend) -> None:
    async with backend.opened() as log:
        wanted, never = batch(A, 0, b"1", b"2"), batch(A, 0, b"3")
        outcome = asked(log, wanted)
        found = await log.find([entry.id for entry in (*wanted.entries, *never.entries)])
        ids = [entry.id for entry in wanted.entries]
        assert found == dict(zip(ids, (await outcome).seqs, strict=True))
        assert await log.find([]) == {}


@pytest.mark.proves("design.log.read")
async def test_a_follower_gets_the_past_and_then_what_comes(backend: Backend) -> None:
    async with backend.opened() as log:
        first, last = await stored(log, A, 0, b"1", b"2")
        from_start, from_first = log.follow(0), log.follow(first)
        assert [e.data for e in await anext(from_start)] == [b"1", b"2"]
        assert [e.data for e in await anext(from_first)] == [b"2"]
        waiting = asyncio.ensure_future(anext(from_start))
        await stored(log, B, 0, b"3")
        assert [e.data for e in await waiting] == [b"3"]
        await stored(log, A, last, b"4", b"5")
        assert [e.data for e in await anext(from_start)] == [b"4", b"5"]
        assert [e.data for e in await following(log, last, 3)] == [b"3", b"4", b"5"]


@pytest.mark.proves("design.log.read")
async def test_a_follower_misses_nothing_while_many_write(backend: Backend) -> None:
    async with backend.opened() as log:

        async def write(channel: str) -> None:
            last = 0
            for n in range(40):
                (*_, last) = await stored(log, channel, last, *[b"%d" % n] * (1 + n % 3))

        total = 16 * sum(1 + n % 3 for n in range(40))
        async with asyncio.TaskGroup() as tasks:
            early = tasks.create_task(following(log, 0, total))
            for n in range(16):
                tasks.create_task(write(f"c{n}"))
        everyone = await everything(log)
        assert len(everyone) == total
        assert early.result() == everyone
        assert await following(log, everyone[99].seq, total - 100) == everyone[100:]


async def test_a_follower_passes_over_what_was_forgotten(backend: Backend) -> None:
    async with backend.opened() as log:
        (first,) = await stored(log, A, 0, b"1")
        await stored(log, B, 0, b"2")
        await log.drop(B)
        stream = log.follow(first)
        waiting = asyncio.ensure_future(anext(stream))
        await stored(log, A, first, b"3")
        assert [e.data for e in await waiting] == [b"3"]


async def test_a_follower_that_was_cancelled_is_gone(backend: Backend) -> None:
    async with backend.opened() as log:
        before = asyncio.all_tasks()
        await stored(log, A, 0, b"1")

        async def follow() -> None:
            async for _ in log.follow(0):
                started.set()

        started = asyncio.Event()
        follower = asyncio.create_task(follow())
        await started.wait()
        follower.cancel()
        with pytest.raises(asyncio.CancelledError):
            await follower
        assert asyncio.all_tasks() == before
        await stored(log, B, 0, b"2")


async def test_followers_end_with_the_log(backend: Backend) -> None:
    async with backend.opened() as log:
        waiting = asyncio.create_task(anext(log.follow(0), None))
        await stored(log, A, 0, b"1")
        assert len(await waiting) == 1
        waiting = asyncio.create_task(anext(log.follow(log.last_seq), None))
        await log.find([])
        await log.close()
        assert await waiting is None
        assert [e async for e in log.follow(0)] == []


# Snapshots, trimming, dropping


async def test_the_latest_snapshot_of_each_channel_is_kept(backend: Backend) -> None:
    async with backend.opened() as log:
        one, two, three = await stored(log, A, 0, b"1", b"2", b"3")
        (other,) = await stored(log, B, 0, b"4")
        await log.save_snapshot(StoredSnapshot(A, one, b"after one"))
        await log.save_snapshot(StoredSnapshot(A, three, b"after three"))
        await log.save_snapshot(StoredSnapshot(A, two, b"too late"))
        await log.save_snapshot(StoredSnapshot(B, other, b"\0 any bytes \xff"))
        assert sorted(await log.snapshots()) == [
            (A, three, b"after three"),
            (B, other, b"\0 any bytes \xff"),
        ]


async def test_a_snapshot_of_what_never_happened_is_refused(backend: Backend) -> None:
    async with backend.opened() as log:
        (last,) = await stored(log, A, 0, b"1")
        await stored(log, B, 0, b"2")
        for wrong in (StoredSnapshot(A, last + 1, b""), StoredSnapshot(C, 1, b"")):
            with pytest.raises(FailedError) as failure:
                await log.save_snapshot(wrong)
            assert failure.value.because == CONFLICT
        assert await log.snapshots() == []
        await log.save_snapshot(StoredSnapshot(C, 0, b"before anything"))
        assert await log.snapshots() == [(C, 0, b"before anything")]
        await stored(log, C, 0, b"3")


async def test_only_what_a_snapshot_covers_can_be_trimmed(backend: Backend) -> None:
    async with backend.opened() as log:
        one, two, three, four = await stored(log, A, 0, b"1", b"2", b"3", b"4")
        await stored(log, B, 0, b"other")
        await log.trim(A, four)
        assert len(await everything(log)) == 5
        await log.save_snapshot(StoredSnapshot(A, three, b""))
        await log.trim(A, -1)
        await log.trim(A, two)
        assert await log.floors() == {A: two}
        assert [e.seq for e in await everything(log, channels=[A])] == [three, four]
        await log.trim(A, four)
        assert await log.floors() == {A: three}
        await log.trim(A, one)
        assert await log.floors() == {A: three}
        assert [e.data for e in await everything(log)] == [b"4", b"other"]


async def test_the_floor_is_what_was_forgotten_not_what_was_asked(backend: Backend) -> None:
    async with backend.opened() as log:
        (first,) = await stored(log, A, 0, b"1")
        await stored(log, B, 0, b"2", b"3")
        (last,) = await stored(log, A, first, b"4")
        await log.save_snapshot(StoredSnapshot(A, last, b""))
        await log.trim(A, last - 1)
        assert await log.floors() == {A: first}


async def test_a_channel_that_was_trimmed_away_goes_on_where_it_was(backend: Backend) -> None:
    async with backend.opened() as log:
        *_, last = await stored(log, A, 0, *[b"x"] * 2_500)
        await log.save_snapshot(StoredSnapshot(A, last, b"all"))
        await log.trim(A, last)
        log = await backend.reopened(log)  # noqa: PLW2901
        assert await everything(log) == []
        assert await log.floors() == {A: last}
        assert await log.snapshots() == [(A, last, b"all")]
        assert log.last_seq == last
        assert await refused(log, batch(A, 0, b"y")) == CONFLICT
        (after,) = await stored(log, A, last, b"y")
        assert after > last
        await log.close()


async def test_a_dropped_channel_is_forgotten_and_begins_anew(backend: Backend) -> None:
    async with backend.opened() as log:
        *_, last = await stored(log, A, 0, b"1", b"2")
        (other,) = await stored(log, B, 0, b"3")
        await log.save_snapshot(StoredSnapshot(A, last, b""))
        await log.save_snapshot(StoredSnapshot(B, other, b""))
        await log.trim(A, last - 1)
        await log.trim(B, other)
        await log.drop(A)
        await log.drop("unknown")
        assert await log.floors() == {B: other}
        assert [snapshot.channel for snapshot in await log.snapshots()] == [B]
        assert await everything(log) == []
        assert await refused(log, batch(A, last, b"x")) == CONFLICT
        (again,) = await stored(log, A, 0, b"again")
        assert again > other
        assert [e.data for e in await everything(log)] == [b"again"]


async def test_what_is_asked_takes_effect_in_the_order_of_asking(backend: Backend) -> None:
    async with backend.opened() as log:
        before = asked(log, batch(A, 0, b"before"))
        await log.drop(A)
        assert before.done()
        assert await everything(log) == []
        (again,) = entries(b"again")
        after = asked(log, Batch(A, 0, (again,)))
        assert list(await log.find([again.id])) == [again.id]
        assert isinstance(await after, Durable)


@pytest.mark.parametrize("forget", ["trim", "drop"])
async def test_seqs_are_never_used_again(backend: Backend, forget: str) -> None:
    async with backend.opened() as log:
        seen: list[int] = []
        for _ in range(3):
            seen += await stored(log, A, 0, b"1", b"2")
            if forget == "trim":
                await log.save_snapshot(StoredSnapshot(A, seen[-1], b""))
                await log.trim(A, seen[-1])
            await log.drop(A)
            log = await backend.reopened(log)  # noqa: PLW2901
            assert log.last_seq == seen[-1]
        assert all(one < other for one, other in pairwise(seen))
        await log.close()


# Life


@pytest.mark.proves("design.log.epoch")
async def test_a_log_that_lost_nothing_keeps_its_epoch(backend: Backend) -> None:
    async with backend.opened() as log:
        epoch, last = log.epoch, 0
        for _ in range(3):
            log = await backend.reopened(log)  # noqa: PLW2901
            assert (log.epoch, log.last_seq) == (epoch, last)
            (last,) = await stored(log, A, last, b"x")
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
        closing = asyncio.create_task(log.close())
        again = asyncio.create_task(log.close())
        await asyncio.gather(closing, again)
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
            assert not failure.value.retry_helps
    if backend.survives:
        async with backend.opened() as log:
            assert len(await everything(log)) == 20


async def test_a_question_that_nobody_waits_for_any_more_harms_nobody(backend: Backend) -> None:
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
