"""What every log promises about what it holds: reading, following, snapshots, forgetting."""

import asyncio
from itertools import pairwise

import pytest
from msgspec.structs import replace

from session_server.log import Durable, RefusedBecause, StoredSnapshot
from session_server.log.protocol import Batch, FailedError
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
            StoredSnapshot(A, three, b"after three"),
            StoredSnapshot(B, other, b"\0 any bytes \xff"),
        ]


async def test_snapshots_of_some_channels_and_outlines_alone_can_be_read(backend: Backend) -> None:
    async with backend.opened() as log:
        one, two = await stored(log, A, 0, b"1", b"2")
        (other,) = await stored(log, B, 0, b"3")
        (third,) = await stored(log, C, 0, b"4")
        kept = StoredSnapshot(A, two, b"whole a", outline=b"a, short \xff")
        await log.save_snapshot(StoredSnapshot(A, one, b"early", outline=b"early"))
        await log.save_snapshot(kept)
        await log.save_snapshot(StoredSnapshot(B, other, b"whole b"))
        await log.save_snapshot(StoredSnapshot(C, third, b"whole c", outline=b"c"))
        log = await backend.reopened(log)  # noqa: PLW2901
        assert await log.snapshots([A]) == [kept]
        assert sorted(await log.snapshots([B, A, "unknown"])) == [
            kept,
            StoredSnapshot(B, other, b"whole b"),
        ]
        assert await log.snapshots([]) == []
        assert {stored.channel: stored for stored in await log.outlines()} == {
            A: StoredSnapshot(A, two, b"", outline=b"a, short \xff"),
            B: StoredSnapshot(B, other, b""),
            C: StoredSnapshot(C, third, b"", outline=b"c"),
        }
        await log.drop(A)
        assert {stored.channel for stored in await log.outlines()} == {B, C}
        await log.close()


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
        assert await log.snapshots() == [StoredSnapshot(C, 0, b"before anything")]
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
        assert await log.snapshots() == [StoredSnapshot(A, last, b"all")]
        assert log.last_seq == last
        assert await refused(log, batch(A, 0, b"y")) == CONFLICT
        (after,) = await stored(log, A, last, b"y")
        assert after > last
        await log.close()


async def test_a_dropped_channel_is_forgotten_and_begins_anew(backend: Backend) -> None:
    async with backend.opened() as log:
        dropped = batch(A, 0, b"1", b"2")
        outcome = await settled(log, dropped)
        assert isinstance(outcome, Durable)
        *_, last = outcome.seqs
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
        assert await log.find([entry.id for entry in dropped.entries]) == {}
        assert await refused(log, batch(A, last, b"x")) == CONFLICT
        (again,) = await stored(log, A, 0, b"again")
        assert again > other
        assert [e.data for e in await everything(log)] == [b"again"]


async def test_what_is_asked_takes_effect_in_the_order_of_asking(backend: Backend) -> None:
    async with backend.opened() as log:
        dropped = batch(A, 0, b"before")
        before = asked(log, dropped)
        await log.drop(A)
        assert before.done()
        assert await everything(log) == []
        assert await log.find([dropped.entries[0].id]) == {}
        (again,) = entries(b"again")
        after = asked(log, Batch(A, 0, (again,)))
        assert list(await log.find([again.id])) == [again.id]
        assert isinstance(await after, Durable)


@pytest.mark.proves("design.log.decisions")
async def test_lasting_entries_stay_until_their_time_has_come(backend: Backend) -> None:
    async with backend.opened() as log:
        new = [*entries(b"1", b"2", b"3", b"4", b"5")]
        new[1] = replace(new[1], lasts_until=100)
        new[3] = replace(new[3], lasts_until=200)
        outcome = await settled(log, Batch(A, 0, tuple(new)))
        assert isinstance(outcome, Durable)
        _, two, _, four, five = outcome.seqs
        await log.save_snapshot(StoredSnapshot(A, five, b"all"))
        await log.trim(A, five, 99)
        log = await backend.reopened(log)  # noqa: PLW2901
        assert [e.seq for e in await everything(log)] == [two, four]
        assert await log.floors() == {A: five}
        assert await refused(log, batch(A, four, b"x")) == CONFLICT
        (last,) = await stored(log, A, five, b"6")
        await log.trim(A, 0, 100)
        assert [e.seq for e in await everything(log)] == [four, last]
        assert await log.floors() == {A: five}
        await log.trim(A, 0, 200)
        assert [e.seq for e in await everything(log)] == [last]
        await log.close()


@pytest.mark.proves("design.log.decisions")
async def test_a_refused_batch_leaves_nothing_that_lasts(backend: Backend) -> None:
    async with backend.opened() as log:
        known, other = entries(b"known", b"other")
        outcome = await settled(log, Batch(A, 0, (known,)))
        assert isinstance(outcome, Durable)
        lasting = replace(other, lasts_until=2**40)
        assert await refused(log, Batch(B, 0, (lasting, known))) == CONFLICT
        (last,) = await stored(log, A, outcome.seqs[-1], b"next")
        await log.save_snapshot(StoredSnapshot(A, last, b"all"))
        await log.trim(A, last, 1)
        assert await everything(log) == []


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
