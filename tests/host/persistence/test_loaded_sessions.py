"""Sessions that leave memory when nobody needs them, and are read again when somebody does."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import pytest

from session_server.host.async_api import StateWaiters
from session_server.host.channels.changes import ActionChange
from session_server.host.host import Host
from session_server.host.host_limits import HostLimits
from session_server.host.persistence.loaded_sessions import SWEEP_SECONDS
from session_server.host.recordings import exported, played, replayed
from session_server.log import Entry, StoredSnapshot
from session_server.log.memory import MemoryLog
from session_server.log.protocol import FailedError, RefusedBecause
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.codec import encode
from session_server.schemas.errors import CommandError, ErrorCode
from session_server.schemas.limits import HISTORY_LIFETIME_MS, IDLE_SECONDS
from session_server.schemas.principals import Principal, Role
from tests.ahp.actions import (
    answer_changed,
    input_completed,
    input_requested,
    text_question,
    title_changed,
)
from tests.ahp.client import ROOT
from tests.effort import PATIENCE
from tests.host.ahp1 import Ahp1Client
from tests.host.harness import (
    AGENT,
    ANA,
    BO,
    SESSION,
    Client,
    back_as,
    hosting,
    joined,
    record_of,
    with_session,
)
from tests.host.manual_clock import ManualClock
from tests.host.test_follower import two_nodes
from tests.host.test_recordings import asked_and_answered, lines
from tests.waiting import until

pytestmark = pytest.mark.proves("design.memory.order")

OTHER = "ahp-session:/2"


class ReadLog(MemoryLog):
    """Counts what is read of single sessions, and can wait or fail before it."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[set[str]] = []
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.failures = 0

    async def snapshots(self, channels: Collection[str] | None = None) -> Sequence[StoredSnapshot]:
        if channels is not None:
            self.loads.append(set(channels))
            await self.may_read.wait()
            if self.failures:
                self.failures -= 1
                raise FailedError(RefusedBecause.BROKEN, "the disk has failed")
        return await super().snapshots(channels)


async def evicted(host: Host, uri: str = SESSION) -> None:
    """Its clients are gone, and so is it."""
    channel = host.sessions[uri]
    async with asyncio.timeout(PATIENCE):
        while not await host.loaded.evict(channel):  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0)
    assert channel.committed is None


async def left_alone(host: Host, client: Client, uri: str = SESSION) -> None:
    client.connection.closed()
    await evicted(host, uri)


async def test_an_evicted_session_is_listed_like_the_others_and_comes_back_whole() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        await ana.act(title_changed("Oslo"))
        before = host.sessions[SESSION].committed
        wall = await joined(host, ANA, "wall", ROOT)
        shown = (await wall.call("listSessions"))["items"]
        await left_alone(host, ana)
        assert (await wall.call("listSessions"))["items"] == shown
        assert host.states.evicted_sessions == 1
        state = (await wall.call("subscribe", SESSION))["snapshot"]["state"]
        assert state["summary"]["title"] == "Oslo"
        assert host.sessions[SESSION].committed == before
        assert host.states.evicted_sessions == 0
        assert (host.counts.evictions, host.counts.loads) == (1, 1)


async def test_what_is_open_or_watched_stays_in_memory() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        channel = host.sessions[SESSION]
        assert not await host.loaded.evict(channel)  # watched
        agent = await joined(host, AGENT, "agent")
        agent.dispatch(input_requested("r", text_question()))
        await ana.wait_for_action("session/inputRequested")
        ana.connection.closed()
        assert not await host.loaded.evict(channel)  # a question is open
        bo = await joined(host, BO, "phone", SESSION)
        await bo.act(input_completed("r", "decline"))
        bo.connection.closed()
        with host.loaded.pinned(SESSION):
            assert not await host.loaded.evict(channel)
        await evicted(host)


async def test_frames_for_an_evicted_session_are_dealt_with_in_their_order() -> None:
    log = ReadLog()
    async with hosting(log) as host:
        await left_alone(host, await with_session(host))
        ana = await joined(host, ANA, "desk")
        log.may_read.clear()
        ana.dispatch(title_changed("One"))
        ana.ask(90, "subscribe", SESSION)
        ana.dispatch(title_changed("Two"))
        ana.ask(91, "unsubscribe", SESSION)
        ana.dispatch(title_changed("Three"))
        ana.ask(92, "fetchTurns", SESSION)
        await asyncio.sleep(0)
        assert not [frame for frame in ana.received if frame.get("id") in (90, 91, 92)]
        log.may_read.set()
        await ana.answer(92)
        answers = [frame["id"] for frame in ana.received if frame.get("id") in (90, 91, 92)]
        assert answers == [90, 91, 92]
        bo = await joined(host, BO, "phone", SESSION)
        await until(lambda: record_of(host).public.summary.title == "Three")
        assert len(log.loads) == 1
        assert bo.closed is None


async def test_concurrent_needs_of_a_session_are_one_load_and_of_several_one_read() -> None:
    log = ReadLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        await ana.call("createSession", OTHER, provider="people")
        await left_alone(host, ana)
        await evicted(host, OTHER)
        log.may_read.clear()
        clients = [await joined(host, ANA, f"c{number}") for number in range(3)]
        asked = [
            asyncio.create_task(client.call("subscribe", uri))
            for client in clients
            for uri in (SESSION, OTHER)
        ]
        waited = asyncio.create_task(host.loaded.loaded(SESSION))
        host.write(host.sessions[SESSION], lambda *_: ())
        await asyncio.sleep(0)
        log.may_read.set()
        assert all("snapshot" in answer for answer in await asyncio.gather(*asked))
        assert await waited is host.sessions[SESSION]
        assert log.loads == [{SESSION, OTHER}]
        assert host.counts.loads == 2


async def test_who_comes_back_to_an_evicted_session_misses_nothing() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        await ana.act(title_changed("Oslo"))
        seen = host.position
        await left_alone(host, ana)
        again, resumed = await back_as(host, "laptop", seen, SESSION)
        assert resumed == {"type": "replay", "actions": [], "missing": []}
        await again.act(title_changed("Bergen"))
        await left_alone(host, again)
        _, resumed = await back_as(host, "laptop", seen, SESSION)
        assert [s["state"]["summary"]["title"] for s in resumed["snapshots"]] == ["Bergen"]


async def test_clients_of_ahp_1_find_an_evicted_session_too() -> None:
    async with hosting() as host:
        await left_alone(host, await with_session(host))
        client = Ahp1Client(host)
        await client.open_with()
        listed = (await client.call("listSessions"))["items"]
        assert len(listed) == 1
        assert host.states.evicted_sessions == 1
        state = await client.call("subscribe", listed[0]["resource"])
        assert state["snapshot"]["state"]["title"] == listed[0]["title"]


async def test_an_evicted_session_can_be_forked_and_disposed_of() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        turn = record_of(host).public.turns[0].id
        for outbox in tuple(host.sessions[SESSION].publisher.subscribers):
            outbox.connection.closed()  # type: ignore[attr-defined]
        await evicted(host)
        ana = await joined(host, ANA, "desk")
        fork = {"session": SESSION, "turnId": turn}
        assert await ana.call("createSession", OTHER, provider="people", fork=fork) is None
        assert [t.id for t in record_of(host, OTHER).public.turns] == [turn]
        await evicted(host)
        assert await ana.call("disposeSession", SESSION) is None
        assert (await ana.call("subscribe", SESSION))["code"] == ErrorCode.SESSION_NOT_FOUND
        assert host.states.evicted_sessions == 0
        assert host.states.evicted_bytes == 0


async def test_a_session_that_is_disposed_of_while_it_is_read_is_gone() -> None:
    log = ReadLog()
    async with hosting(log) as host:
        await left_alone(host, await with_session(host))
        ana = await joined(host, ANA, "desk")
        bo = await joined(host, BO, "phone")
        log.may_read.clear()
        asked = asyncio.create_task(bo.call("subscribe", SESSION))
        await asyncio.sleep(0)
        disposed = asyncio.create_task(ana.call("disposeSession", SESSION))
        async with asyncio.timeout(PATIENCE):
            while SESSION in {o.channel for o in await log.outlines()}:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0)
        log.may_read.set()
        assert await disposed is None
        assert (await asked)["code"] == ErrorCode.SESSION_NOT_FOUND
        states = host.states
        assert (states.sessions, states.evicted_sessions, states.evicted_bytes) == (3, 0, 0)


async def test_a_log_that_cannot_be_read_is_tried_again_and_then_an_error() -> None:
    log = ReadLog()
    limits = HostLimits(store_seconds=0.2)
    async with hosting(log, limits=limits) as host:
        await left_alone(host, await with_session(host))
        ana = await joined(host, ANA, "desk")
        log.failures = 1
        assert "snapshot" in await ana.call("subscribe", SESSION)
        await left_alone(host, ana)
        ana = await joined(host, ANA, "desk")
        log.failures = 1_000
        assert (await ana.call("subscribe", SESSION))["code"] == ErrorCode.INTERNAL_ERROR
        rejected = await ana.act(title_changed("Lost"))
        assert rejected["_meta"]["code"] == "notSaved"
        with pytest.raises(FailedError):
            await host.loaded.loaded(SESSION)
        again = Client(host)
        seen = {"clientId": "laptop", "lastSeenServerSeq": host.position}
        again.ask(1, "reconnect", **seen, subscriptions=[SESSION])
        await again.until_closed()
        log.failures = 0
        assert "snapshot" in await ana.call("subscribe", SESSION)
        assert SESSION not in host.unreadable


@pytest.mark.proves("design.memory.unreadable")
async def test_a_session_that_is_found_damaged_is_set_aside() -> None:
    log = MemoryLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        await ana.call("createSession", OTHER, provider="people")
        await left_alone(host, ana)
        (stored,) = await log.snapshots((SESSION,))
        await log.save_snapshot(stored._replace(data=b"{", is_intact=False))
        await log.trim(SESSION, stored.seq)
        ana = await joined(host, ANA, "desk")
        error = await ana.call("subscribe", SESSION)
        assert "snapshot" in error["message"]
        assert SESSION in host.unreadable
        assert SESSION not in host.sessions
        assert "snapshot" in await ana.call("subscribe", OTHER)
        with pytest.raises(CommandError):
            host.submit(SESSION, ActionChange(ANA, TitleChanged(title="x")))


async def test_a_guest_of_another_session_causes_no_load() -> None:
    log = ReadLog()
    async with hosting(log) as host:
        await left_alone(host, await with_session(host))
        guest = Principal(id="guest", role=Role.ANSWERER, sessions=(OTHER,))
        client = await joined(host, guest, "guest", SESSION)
        assert (await client.call("subscribe", SESSION))["code"] == ErrorCode.SESSION_NOT_FOUND
        assert log.loads == []


async def test_who_waits_for_something_in_a_session_keeps_it_in_memory() -> None:
    async with hosting() as host:
        waiting = StateWaiters(host)
        await left_alone(host, await with_session(host))

        def asked(record: Any) -> Any:
            return record.public.input_requests or None

        assert await waiting.until(SESSION, asked, 0) is None
        found = asyncio.create_task(waiting.until(SESSION, asked, PATIENCE))
        await asyncio.sleep(0)
        assert not await host.loaded.evict(host.sessions[SESSION])
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(input_requested("r", text_question()))
        assert len(await found) == 1


@pytest.mark.slow
async def test_a_recording_leaves_memory_and_is_exported_as_it_was() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        recording = b"".join(await exported(host, SESSION))
    log = MemoryLog()
    clock = ManualClock()
    async with hosting(log, clock=clock) as host:
        await replayed(host, lines(recording))
        await evicted(host)
        assert host.sessions[SESSION].overview.private.is_recording  # type: ignore[union-attr]
        assert b"".join(await exported(host, SESSION)) == recording
        await clock.advance(HISTORY_LIFETIME_MS / 1_000 + 3_600)
        assert SESSION not in await log.floors()
        assert b"".join(await exported(host, SESSION)) == recording


async def test_a_recording_that_is_being_played_stays_in_memory() -> None:
    async with hosting() as host:
        await asked_and_answered(host)
        recording = b"".join(await exported(host, SESSION))
    async with hosting() as host:

        async def slowly() -> Any:
            async for line in lines(recording):
                yield line
                await asyncio.sleep(0)
                if SESSION in host.sessions:
                    assert not await host.loaded.evict(host.sessions[SESSION])

        assert await played(host, slowly()) == SESSION
        await evicted(host)


@pytest.mark.slow
async def test_a_session_leaves_memory_after_a_while_and_its_history_is_trimmed() -> None:
    log, clock = MemoryLog(), ManualClock()
    async with hosting(log, clock=clock) as host:
        ana = await with_session(host)
        await ana.act(title_changed("Oslo"))
        await clock.advance(2 * IDLE_SECONDS)
        assert host.states.evicted_sessions == 0
        ana.connection.closed()
        await clock.advance(IDLE_SECONDS - 1)
        assert host.states.evicted_sessions == 0
        await clock.advance(2 * SWEEP_SECONDS)
        assert host.states.evicted_sessions == 1
        await clock.advance(HISTORY_LIFETIME_MS / 1_000 + 3_600)
        assert SESSION in await log.floors()
        bo = await joined(host, BO, "phone", SESSION)
        assert record_of(host).public.summary.title == "Oslo"
        assert bo.closed is None


async def test_beyond_the_bound_those_that_were_idle_for_longest_leave_first() -> None:
    clock = ManualClock()
    limits = HostLimits(loaded_bytes=250_000, idle_seconds=0)
    async with hosting(limits=limits, clock=clock) as host:
        ana = await joined(host)
        uris = [f"ahp-session:/{number}" for number in range(4)]
        for number, uri in enumerate(uris):
            await ana.call("createSession", uri, provider="people")
            agent = await joined(host, AGENT, f"a{number}", uri)
            for part in range(2):
                asked = input_requested(f"r{part}", text_question(), message="x" * 50_000)
                await agent.act(asked, uri)
                await agent.act(input_completed(f"r{part}", "cancel"), uri)
            agent.connection.closed()
            await clock.advance(2 * SWEEP_SECONDS)
        await clock.advance(4 * SWEEP_SECONDS)
        assert host.states.loaded_bytes <= 250_000
        gone = [uri for uri in uris if host.loaded.is_evicted(uri)]
        assert gone == uris[: len(gone)]
        assert 0 < len(gone) < 4


@pytest.mark.proves("design.memory.needed")
async def test_a_start_reads_only_outlines_and_what_is_open_or_has_no_snapshot() -> None:
    log = ReadLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        await ana.act(title_changed("Oslo"))
        await ana.call("createSession", OTHER, provider="people")
        await left_alone(host, ana)
    log = await copied(log)
    async with hosting(log) as host:
        assert host.loaded.is_evicted(SESSION)
        assert host.record(OTHER) is not None
        assert "Oslo" in [summary.title for summary in host.summaries(ANA)]
        assert host.states.loaded_bytes < host.states.bytes
        assert all(SESSION not in load for load in log.loads)
        ana = await joined(host, ANA, "desk", SESSION)
        await ana.act(title_changed("Bergen"))
    log = await copied(log)
    async with hosting(log) as host:  # an entry after the snapshot
        assert record_of(host).public.summary.title == "Bergen"


async def copied(log: ReadLog) -> ReadLog:
    """What a process that was killed leaves to the next."""
    new = ReadLog()
    own = ("_progress", "_waiting", "_listeners")
    new.__dict__ |= {name: value for name, value in vars(log).items() if name not in own}
    new.__dict__["_progress"].reach(log.last_seq)
    return new


async def test_another_nodes_entries_reach_a_session_that_is_not_in_memory_here() -> None:
    async with two_nodes() as (one, two):
        ana = await with_session(one)
        await until(lambda: SESSION in two.sessions)
        await evicted(two)
        wall = await joined(two, ANA, "wall", ROOT)
        await ana.act(title_changed("Oslo"))
        changed = await wall.wait_for(
            lambda frame: frame.get("method") == "root/sessionSummaryChanged"
        )
        assert changed["params"]["changes"]["title"] == "Oslo"
        agent = await joined(one, AGENT, "agent", SESSION)
        await agent.act(input_requested("r", text_question()))
        bo = await joined(two, BO, "phone", SESSION)
        await bo.act(answer_changed("Fj"))
        await ana.wait_for_action("session/inputAnswerChanged")
        assert one.record(SESSION) == two.record(SESSION)


class OvertakingLog(MemoryLog):
    """Another node stores a newer snapshot, and trims what it covers, while this one reads."""

    def __init__(self) -> None:
        super().__init__()
        self.overtake: Callable[[], Awaitable[None]] | None = None

    async def snapshots(self, channels: Collection[str] | None = None) -> Sequence[StoredSnapshot]:
        found = await super().snapshots(channels)
        await self._overtaken(channels)
        return found

    async def read(
        self, *, after: int, limit: int, channels: Collection[str] | None = None
    ) -> Sequence[Entry]:
        found = await super().read(after=after, limit=limit, channels=channels)
        await self._overtaken(channels)
        return found

    async def _overtaken(self, channels: Collection[str] | None) -> None:
        if self.overtake is not None and channels is not None and SESSION in channels:
            overtake, self.overtake = self.overtake, None
            await overtake()


@pytest.mark.parametrize("is_open", [True, False])
async def test_a_newer_snapshot_of_another_node_leaves_no_gap_in_what_is_read(
    is_open: bool,
) -> None:
    log = OvertakingLog()
    async with hosting(log, is_shared=True) as one:
        ana = await with_session(one)
        channel = one.sessions[SESSION]
        if is_open:
            agent = await joined(one, AGENT, "agent", SESSION)
            await agent.act(input_requested("r", text_question()))
        assert await one.maintenance.is_saved(channel)

        async def overtake() -> None:
            await ana.act(title_changed("Oslo"))
            await ana.act({"type": "session/activityChanged", "activity": "Reads"})
            assert await one.maintenance.is_saved(channel)
            await log.trim(SESSION, channel.last_seq)

        log.overtake = overtake
        async with hosting(log, is_shared=True) as two:
            if not is_open:
                assert two.loaded.is_evicted(SESSION)
                await two.loaded.loaded(SESSION)
            assert log.overtake is None
            assert two.record(SESSION) == one.record(SESSION)
            assert "Oslo" in encode(two.record(SESSION)).decode()
