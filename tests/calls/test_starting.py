"""How calls start: "started" and "sent" are one write, and the first leg goes out once."""

import asyncio
import sys
from collections.abc import Collection
from pathlib import Path

import msgspec
import pytest

from session_server.host.host_limits import HostLimits
from session_server.log.protocol import Batch, FailedError, RefusedBecause
from session_server.mcp_client.config import ServerConfig
from session_server.schemas.errors import (
    CommandError,
    ErrorCode,
    InDoubtError,
    NotSavedError,
    RefusalCode,
    RefusedError,
    UnknownServerError,
)
from session_server.schemas.limits import BACK_OFF_LIMIT_MS
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Seq
from tests.calls.running_host import AGENT, BO, OWNER, PATIENCE, SESSION, running_host, stdio
from tests.host.faulty_logs import NO_WORD
from tests.host.manual_clock import ManualClock
from tests.log.one_by_one import OneByOneLog, SettledOne
from tests.mcp.servers import odd
from tests.mcp.zoo import text_of
from tests.waiting import until

SERVER = ServerConfig(command=sys.executable, args=(str(Path(odd.__file__)),))


class WatchedLog(OneByOneLog):
    """Remembers what was written together; may not say whether it was stored."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[bytes] = []
        self.is_silent = False
        self.is_found = asyncio.Event()
        self.is_found.set()

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        data = b"".join(entry.data for entry in batch.entries)
        if batch.channel == SESSION:
            self.batches.append(data)
        if self.is_silent and b'"private/callSent"' in data:
            self.is_silent = False
            super().append_one(batch, lambda _: settled(NO_WORD))
        else:
            super().append_one(batch, settled)

    async def find(self, ids: Collection[str]) -> dict[str, Seq]:
        if ids and not self.is_found.is_set():
            raise FailedError(RefusedBecause.BROKEN, "ask again later")
        return await super().find(ids)

    def together(self, *names: bytes) -> int:
        return sum(all(b'"%s"' % name in batch for name in names) for batch in self.batches)


def ended(record: SessionRecord) -> int:
    return sum(not call.is_open for call in record.private.calls.values())


async def test_a_call_is_written_down_in_three_batches() -> None:
    log = WatchedLog()
    async with running_host(SERVER, log=log) as at:
        for number in range(1, 4):
            assert await at.text(await at.call("untyped", key=str(number))) == "plain"
            assert log.together(b"private/callStarted", b"private/callSent") == number
            assert log.together(b"private/callFinished", b"session/turnComplete") == number
        assert at.record.public.active_turn is None


@pytest.mark.parametrize("where", ["in memory", "not in memory", "no session"])
async def test_who_may_not_call_learns_neither_the_servers_nor_the_sessions(where: str) -> None:
    elsewhere = msgspec.structs.replace(OWNER, sessions=("ahp-session:/other",))
    async with running_host(SERVER) as at:
        uri = SESSION
        if where == "not in memory":
            await until(lambda: at.host.loaded.is_evictable(at.host.sessions[SESSION]))
            assert await at.host.loaded.evict(at.host.sessions[SESSION])
        elif where == "no session":
            uri = "ahp-session:/missing"
        for principal, code in ((BO, RefusalCode.ROLE), (elsewhere, RefusalCode.OTHER_SESSION)):
            for server in ("zoo", "unknown"):
                with pytest.raises(RefusedError) as refused:
                    await at.calls.start(principal, uri, server, "tools/call", {"name": "untyped"})
                assert refused.value.refusal.code is code


async def test_a_call_starts_in_a_session_that_is_not_in_memory() -> None:
    async with running_host(SERVER) as at:
        await until(lambda: at.host.loaded.is_evictable(at.host.sessions[SESSION]))
        assert await at.host.loaded.evict(at.host.sessions[SESSION])
        assert await at.text(await at.call("untyped")) == "plain"


async def test_a_call_in_a_session_that_does_not_exist_says_so() -> None:
    async with running_host(SERVER) as at:
        assert await at.text(await at.call("untyped")) == "plain"  # the server is connected
        missing, params = "ahp-session:/missing", {"name": "untyped"}
        with pytest.raises(CommandError) as error:
            await at.calls.start(OWNER, missing, "zoo", "tools/call", params)
        assert error.value.rpc_code is ErrorCode.SESSION_NOT_FOUND
        with pytest.raises(UnknownServerError):
            await at.calls.start(OWNER, missing, "unknown", "tools/call", params)


async def test_a_start_that_was_stored_without_a_word_is_sent_once() -> None:
    log = WatchedLog()
    async with running_host(SERVER, log=log) as at:
        assert await at.text(await at.call("untyped")) == "plain"
        log.is_silent = True
        assert await at.text(await at.call("untyped", key="again")) == "plain"
        assert log.together(b"private/callSent") == 2


async def test_a_start_in_doubt_is_reported_and_goes_out_once_it_is_known() -> None:
    log = WatchedLog()
    async with running_host(SERVER, log=log, limits=HostLimits(store_seconds=0.2)) as at:
        assert await at.text(await at.call("untyped")) == "plain"
        log.is_silent = True
        log.is_found.clear()
        with pytest.raises(InDoubtError):
            await at.call("untyped", key="again")
        log.is_found.set()
        await at.until(lambda record: True if ended(record) == 2 else None)
        assert log.together(b"private/callFinished") == 2


@pytest.mark.slow
async def test_a_leg_whose_claim_is_in_doubt_goes_out_once_the_log_has_it() -> None:
    log = WatchedLog()
    async with running_host(stdio("modern"), log=log, limits=HostLimits(store_seconds=0.2)) as at:
        call_id = await at.call("pair")
        await at.answer("Your age?", age=7)
        log.is_silent = True
        log.is_found.clear()
        await at.answer("Your name?", name="Cy")
        await until(lambda: at.host.log_status.in_doubt)
        with pytest.raises(NotSavedError):
            await at.call("pair", key="while nothing can be stored")
        log.is_found.set()
        assert await at.text(call_id) == "Cy is 7"
        assert log.together(b"private/callSent") == 2


async def test_a_server_that_wants_a_retry_later_gets_it_by_the_hosts_clock() -> None:
    """Ten pauses: by the clock on the wall they take two minutes."""
    clock = ManualClock()
    async with running_host(stdio("modern", max_rounds=20), clock=clock) as at:
        call_id = await at.call("busy", times=10)
        async with asyncio.timeout(PATIENCE):
            for rounds in range(1, 11):
                await at.until(
                    lambda record, n=rounds: record.private.calls[call_id].round >= n or None
                )
                await clock.advance(BACK_OFF_LIMIT_MS / 1000)
        assert text_of((await at.ended(call_id)).result) == "ready after 10"


async def test_results_that_are_fetched_at_about_the_same_time_are_noted_together() -> None:
    log = WatchedLog()
    async with running_host(SERVER, log=log) as at:
        calls = [await at.call("untyped", key=str(number)) for number in range(3)]
        await asyncio.gather(*map(at.result, calls))
        assert log.together(b"private/callCollected") == 1
        assert all(call.collected for call in at.record.private.calls.values())


async def test_what_was_fetched_is_noted_before_the_host_stops() -> None:
    log = WatchedLog()
    async with running_host(SERVER, log=log, clock=ManualClock()) as at:
        call_id = await at.call("untyped")
        await at.ended(call_id)
        collecting = asyncio.create_task(at.calls.collect(OWNER, call_id))
        await asyncio.sleep(0)
    await collecting
    assert log.together(b"private/callCollected") == 1


async def test_what_is_fetched_after_the_host_has_stopped_keeps_nobody_waiting() -> None:
    async with running_host(SERVER) as at:
        call_id = await at.call("untyped")
        await at.ended(call_id)
    async with asyncio.timeout(PATIENCE):
        await at.calls.collect(OWNER, call_id)


async def test_a_result_counts_as_fetched_by_its_maker_whoever_else_looks_at_it_then() -> None:
    async with running_host(SERVER) as at:
        call_id = await at.call("untyped", by=AGENT)
        await at.ended(call_id, AGENT)
        fetching = (at.calls.collect(by, call_id) for by in (AGENT, OWNER))
        await asyncio.gather(*fetching)
        assert at.record.private.calls[call_id].collected


async def test_a_call_keeps_nothing_of_its_callers_that_belongs_to_one_leg() -> None:
    """So it goes out with no leg, and the same request without it is the same call."""
    async with running_host(SERVER) as at:
        smuggled = {"requestState": "old", "inputResponses": {"a": 1}}
        call_id = await at.request("tools/call", name="untyped", **smuggled)
        assert at.record.private.calls[call_id].params == {"name": "untyped"}
        assert await at.request("tools/call", name="untyped") == call_id
        assert await at.text(call_id) == "plain"
