"""Two nodes on one log, in one event loop: what each does with what the other wrote."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from session_server.host import follower
from session_server.host.host import Host
from session_server.log import Entry, StoredSnapshot
from session_server.log.memory import MemoryLog
from session_server.schemas.codec import encode
from session_server.schemas.errors import ErrorCode
from session_server.schemas.wire import Seq
from tests.ahp.actions import (
    answer_changed,
    input_completed,
    input_requested,
    text_question,
    title_changed,
)
from tests.ahp.client import ROOT, SESSION
from tests.effort import PATIENCE
from tests.host.harness import AGENT, Client, hosting, joined, with_session

OTHER = "ahp-session:/2"


class GatedLog(MemoryLog):
    """One that can be kept from telling what is new."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    async def follow(self, after: Seq) -> AsyncIterator[Sequence[Entry]]:
        async for entries in super().follow(after):
            await self.gate.wait()
            yield await self.read(after=after, limit=len(entries) + 1_000) or entries
            after = entries[-1].seq


@asynccontextmanager
async def two_nodes(
    log: MemoryLog | None = None, **options: Any
) -> AsyncIterator[tuple[Host, Host]]:
    shared = log or MemoryLog()
    options |= {"is_shared": True}
    async with hosting(shared, **options) as one, hosting(shared, **options) as other:
        yield one, other


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110  # the log moves on in the same loop
            await asyncio.sleep(0)


@pytest.mark.proves("design.nodes.seen")
async def test_a_session_that_one_node_opened_is_served_by_the_other() -> None:
    async with two_nodes() as (one, other):
        await with_session(one)
        await until(lambda: SESSION in other.sessions)
        there = await joined(other, client_id="phone")
        assert "snapshot" in await there.call("subscribe", SESSION)
        await there.act(title_changed("Oslo"))
        await until(lambda: one.record(SESSION).public.summary.title == "Oslo")
        assert one.position == other.position


@pytest.mark.proves("design.nodes.seen")
async def test_a_batch_waits_for_what_stands_before_it_in_the_log() -> None:
    """The other node's entry is delivered first, though this node's own outcome came before it."""
    log = GatedLog()
    async with two_nodes(log) as (one, other):
        here = await with_session(one)
        await until(lambda: SESSION in other.sessions)
        assert await here.call("createSession", OTHER, provider="people") is None
        await until(lambda: OTHER in other.sessions and not other.follower.is_behind)
        there = await joined(other, client_id="phone")
        await there.call("subscribe", SESSION)
        await there.call("subscribe", OTHER)
        log.gate.clear()
        here.dispatch(title_changed("first"))
        mine = there.dispatch(title_changed("second"), OTHER)
        await until(lambda: log.last_seq > other.position + 1)
        assert not there.envelopes()
        log.gate.set()
        await there.echo(mine)
        titles = [envelope["action"]["title"] for envelope in there.envelopes()]
        assert titles == ["first", "second"]


@pytest.mark.proves("design.nodes.seen")
async def test_a_refusal_names_no_position_beyond_what_was_delivered_before_it() -> None:
    """Others wrote ahead of a batch in which something was refused, so it is read with theirs."""
    log = GatedLog()
    async with two_nodes(log) as (one, other):
        here = await with_session(one)
        assert await here.call("createSession", OTHER, provider="people") is None
        await until(lambda: OTHER in other.sessions and not other.follower.is_behind)
        there = await joined(other, client_id="phone")
        await there.call("subscribe", OTHER)
        log.gate.clear()
        here.dispatch(title_changed("ahead"))
        await until(lambda: log.last_seq > other.position)
        there.dispatch(title_changed("one"), OTHER)
        there.dispatch(input_completed("gone"), OTHER)
        there.dispatch(title_changed("two"), OTHER)
        last = there.dispatch(title_changed("three"), OTHER)
        await until(lambda: log.last_seq >= other.position + 4)
        log.gate.set()
        await there.echo(last)
        got = [frame["params"] for frame in there.received if frame.get("method") == "action"]
        seqs = [(envelope["serverSeq"], "rejectionReason" in envelope) for envelope in got]
        (first, _), refused, (second, _), (third, _) = seqs
        assert refused == (first, True)
        assert first < second < third


async def asked_on_both(one: Host, other: Host) -> tuple[Client, Client]:
    """Somebody at each node, and a question that both have."""
    here = await with_session(one)
    await until(lambda: SESSION in other.sessions)
    there = await joined(other, client_id="phone")
    await there.call("subscribe", SESSION)
    agent = await joined(one, AGENT, "agent", SESSION)
    await agent.act(input_requested("r", text_question()))
    await until(lambda: not other.follower.is_behind)
    return here, there


@pytest.mark.proves("design.nodes.one-winner")
async def test_what_was_judged_on_an_older_state_is_judged_again() -> None:
    async with two_nodes() as (one, other):
        here, there = await asked_on_both(one, other)
        seqs = [client.dispatch(input_completed("r", q="x")) for client in (here, there)]
        echoes = [await c.echo(s) for c, s in zip((here, there), seqs, strict=True)]
        assert sorted("rejectionReason" in echo for echo in echoes) == [False, True]
        await here.act(title_changed("goes on"))
        await until(lambda: not other.follower.is_behind)
        assert encode(one.record(SESSION)) == encode(other.record(SESSION))


async def test_a_session_that_was_written_to_while_the_other_node_disposed_of_it_is_gone() -> None:
    """The other node did not know of the last entry, which has gone with the rest."""
    log = GatedLog()
    async with two_nodes(log) as (one, other):
        here = await with_session(one)
        await until(lambda: SESSION in other.sessions and not other.follower.is_behind)
        there = await joined(other, client_id="phone")
        await until(lambda: not one.follower.is_behind)
        log.gate.clear()
        await here.act(title_changed("unseen"))
        disposing = asyncio.create_task(there.call("disposeSession", SESSION))
        await until(lambda: SESSION not in other.sessions)
        log.gate.set()
        assert await disposing is None
        await until(lambda: SESSION not in one.sessions)
        assert SESSION not in other.unreadable
        assert await there.call("createSession", SESSION, provider="people") is None


async def test_a_session_that_the_other_node_disposed_of_is_gone_and_its_name_is_free() -> None:
    async with two_nodes() as (one, other):
        here = await with_session(one)
        await here.call("subscribe", ROOT)
        await until(lambda: SESSION in other.sessions)
        there = await joined(other, client_id="phone")
        assert await there.call("disposeSession", SESSION) is None
        await here.wait_for(lambda frame: frame.get("method") == "root/sessionRemoved")
        assert SESSION not in one.sessions
        assert await here.call("createSession", SESSION, provider="people") is None
        await until(lambda: SESSION in other.sessions and not other.follower.is_behind)
        taken = await there.call("createSession", SESSION, provider="people")
        assert taken["code"] == ErrorCode.SESSION_EXISTS
        assert SESSION in one.sessions


async def test_a_session_that_was_dropped_behind_a_nodes_back_takes_nothing_more() -> None:
    """The node that dropped it died before it could say so."""
    async with two_nodes() as (one, other):
        here = await with_session(one)
        await until(lambda: SESSION in other.sessions)
        await one.log.drop(SESSION)
        echo = await here.act(title_changed("too late"))
        assert "removed or replaced" in echo["rejectionReason"]


async def test_a_node_that_fell_behind_what_the_log_keeps_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(follower, "LATE_SECONDS", -1.0)
    log = GatedLog()
    async with two_nodes(log) as (one, other):
        here = await with_session(one)
        await until(lambda: SESSION in other.sessions and not other.follower.is_behind)
        log.gate.clear()
        for number in range(3):
            here.dispatch(title_changed(f"{number}"))
        await until(lambda: log.last_seq > other.position + 2)
        last = log.last_seq
        await log.save_snapshot(StoredSnapshot(SESSION, last, encode(one.record(SESSION))))
        await log.trim(SESSION, last - 1)
        log.gate.set()
        await until(lambda: other.follower.failure is not None)
        assert other.follower.failure == follower.FELL_BEHIND
        assert "trimmed up to" in caplog.text


async def test_drafts_of_both_nodes_are_in_the_same_order_on_both() -> None:
    async with two_nodes() as (one, other):
        here, there = await asked_on_both(one, other)
        begun = one.log.last_seq
        for number in range(50):
            here.dispatch(answer_changed(f"here {number}"))
            there.dispatch(answer_changed(f"there {number}"))
            if number % 7 == 0:
                await asyncio.sleep(0)
        await until(lambda: one.log.last_seq >= begun + 100)
        await until(lambda: not one.follower.is_behind and not other.follower.is_behind)
        got = [[e for e in c.envelopes() if e["serverSeq"] > begun] for c in (here, there)]
        assert len(got[0]) == 100
        assert got[0] == got[1]


@pytest.mark.proves("design.nodes.seen")
async def test_a_node_that_cannot_apply_an_entry_stops_following_and_reports_it() -> None:
    async with two_nodes() as (one, other):
        here = await with_session(one)
        await until(lambda: SESSION in other.sessions and not other.follower.is_behind)

        def broken(_: Entry) -> None:
            raise RuntimeError("a defect")

        other.apply = broken  # type: ignore[method-assign]
        position = other.follower.position
        await here.act(title_changed("Oslo"))
        await until(lambda: other.follower.failure)
        assert other.follower.failure == follower.NOT_APPLIED
        assert other.follower.position == position
