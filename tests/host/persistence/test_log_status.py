"""A log that fails for good, or does not answer: all are told, and all goes on when it is back."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import pytest

from session_server.host import lifecycle
from session_server.host.async_api import perform
from session_server.host.channels import channel
from session_server.host.host import Host
from session_server.host.host_limits import HostLimits
from session_server.host.persistence import log_status
from session_server.log import (
    Batch,
    Refused,
    RefusedBecause,
    StoredSnapshot,
    Unknown,
)
from session_server.log.protocol import FailedError
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.errors import InDoubtError, NotSavedError
from session_server.schemas.wire import Seq, Uri
from tests.ahp.actions import title_changed
from tests.host.harness import (
    ANA,
    BO,
    PATIENCE,
    SESSION,
    Client,
    back_as,
    hosting,
    joined,
    launched,
    record_of,
    with_session,
)
from tests.log.one_by_one import OneByOneLog, SettledOne
from tests.waiting import until

OTHER = "ahp-session:/2"
BROKEN = Refused(RefusedBecause.BROKEN, "The log could not be written: disk I/O error.")
FULL = Refused(RefusedBecause.FULL, "There is no space left for the log.")
SHORT = HostLimits(store_seconds=0.05)
"""Waits that are meant to be over; how long they last decides nothing."""


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the disk is tried again."""
    for module in (log_status, lifecycle):
        monkeypatch.setattr(module, "PROBE_SECONDS", 0.05)


class FailingLog(OneByOneLog):
    """On a disk with `trouble`:

    `lost` or `stored`   a commit is in doubt, and from then on nothing answers
    `unwritable`         every commit is in doubt, and turns out not to be stored
    `full`               every write is refused
    `silent`             the disk hangs
    """

    def __init__(self) -> None:
        super().__init__()
        self.trouble: str | None = None
        self._is_distrusted = False
        self._silenced: list[tuple[Batch, SettledOne]] = []

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        doubted = Unknown("The log's disk has failed: disk I/O error.")
        match self.trouble:
            case None:
                super().append_one(batch, settled)
            case "silent":
                self._silenced.append((batch, settled))
            case "full":
                self._loop.call_soon(settled, FULL)
            case _ if self._is_distrusted:
                self._loop.call_soon(settled, BROKEN)
            case "stored":
                self._is_distrusted = True
                super().append_one(batch, lambda _: settled(doubted))
            case trouble:
                self._is_distrusted = trouble == "lost"
                self._loop.call_soon(settled, doubted)

    async def find(self, ids: Collection[str]) -> dict[str, Seq]:
        if self._is_distrusted:
            raise FailedError(*BROKEN)
        return await super().find(ids)

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        self._check()
        await super().save_snapshot(snapshot)

    async def drop(self, channel: Uri) -> Seq:
        self._check()
        return await super().drop(channel)

    def _check(self) -> None:
        if self.trouble is not None:
            raise FailedError(*(FULL if self.trouble == "full" else BROKEN))

    async def close(self) -> None:
        """It stays open for the next host."""

    def heal(self) -> None:
        self.trouble, self._is_distrusted = None, False
        silenced, self._silenced = self._silenced, []
        for batch, settled in silenced:
            super().append_one(batch, settled)

    async def snapshot_channels(self) -> set[Uri]:
        return {snapshot.channel for snapshot in await self.snapshots()}

    async def stored(self, text: str) -> int:
        """How many entries hold it."""
        return sum(f'"{text}"'.encode() in e.data for e in await self.read(after=0, limit=10_000))


def title(host: Host) -> str:
    return record_of(host).public.summary.title


def titles_seen(client: Client) -> list[str]:
    kind = "session/titleChanged"
    return [e["action"]["title"] for e in client.envelopes() if e["action"]["type"] == kind]


async def verdict(client: Client, seq: int) -> tuple[str | None, str]:
    """The code and the reason of a rejection."""
    envelope = await client.echo(seq)
    return envelope.get("_meta", {}).get("code"), envelope.get("rejectionReason", "")


async def retitle(host: Host, text: str) -> None:
    """As over HTTP."""
    async with asyncio.timeout(PATIENCE):
        await perform(host, ANA, SESSION, TitleChanged(title=text))


async def back(host: Host, log: FailingLog) -> None:
    log.heal()
    await until(lambda: host.log_status.reason is None)


@asynccontextmanager
async def two_sessions(log: FailingLog) -> AsyncIterator[tuple[Host, Client]]:
    async with hosting(log, limits=SHORT) as host:
        ana = await with_session(host)
        assert await ana.call("createSession", OTHER, provider="people") is None
        assert "rejectionReason" not in await ana.act(title_changed("before"))
        try:
            yield host, ana
        finally:
            log.heal()


@pytest.mark.proves("design.append.in-doubt")
@pytest.mark.parametrize("trouble", ["lost", "stored", "silent"])
async def test_a_failing_disk_is_reported_to_all_who_wait_and_nothing_is_lost_or_done_twice(
    trouble: str,
) -> None:
    log = FailingLog()
    async with two_sessions(log) as (host, ana):
        bo = await joined(host, BO, "phone", SESSION)
        log.trouble = trouble
        first = ana.dispatch(title_changed("first"))
        await launched()
        second = ana.dispatch(title_changed("second"))
        elsewhere = ana.dispatch(title_changed("elsewhere"), OTHER)
        code, reason = await verdict(ana, first)
        assert code == "inDoubt"
        assert "not known yet whether this was saved" in reason
        assert (await verdict(ana, second))[0] == "notSaved"
        is_hanging = trouble == "silent"
        assert (await verdict(ana, elsewhere))[0] == ("inDoubt" if is_hanging else "notSaved")

        # From now on it is refused at once.
        for uri in (SESSION, OTHER):
            code, reason = await verdict(ana, ana.dispatch(title_changed("later"), uri))
            assert code == "notSaved"
            assert "disk" in reason
        with pytest.raises(NotSavedError, match="disk"):
            await retitle(host, "later")
        assert host.log_status.reason is not None
        assert title(host) == "before"
        assert titles_seen(bo) == []

        await back(host, log)
        is_stored = trouble != "lost"
        assert (title(host) == "first") == is_stored
        assert "rejectionReason" not in await ana.act(title_changed("after"))
        told = [*["first"] * is_stored, "after"]
        assert (titles_seen(ana), titles_seen(bo)) == (["before", *told], told)
        assert await log.stored("first") == is_stored
        assert await log.stored("second") == await log.stored("later") == 0
        assert await log.stored("elsewhere") == is_hanging
        seqs = [envelope["serverSeq"] for envelope in ana.envelopes()]
        assert seqs == sorted(set(seqs)), "nothing overtakes what was in doubt"


async def test_a_short_fault_is_waited_for_and_nobody_is_refused() -> None:
    log = FailingLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        assert await ana.call("createSession", OTHER, provider="people") is None
        await ana.call("subscribe", OTHER)
        log.trouble = "lost"
        first, elsewhere = (
            ana.dispatch(title_changed("first")),
            ana.dispatch(title_changed("there"), OTHER),
        )
        await until(lambda: host.log_status.in_doubt > 0)
        log.heal()
        assert await verdict(ana, first) == (None, "")
        assert await verdict(ana, elsewhere) == (None, "")
        assert await log.stored("first") == await log.stored("there") == 1


async def test_an_http_error_about_an_unknown_outcome_advises_to_check_first() -> None:
    log = FailingLog()
    async with two_sessions(log) as (host, _):
        log.trouble = "stored"
        with pytest.raises(InDoubtError, match="not known yet whether this was saved"):
            await retitle(host, "first")
        await back(host, log)
        await until(lambda: title(host) == "first")


async def test_a_disk_that_loses_every_write_is_reported_after_a_few_tries() -> None:
    log = FailingLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        log.trouble = "unwritable"
        code, reason = await verdict(ana, ana.dispatch(title_changed("first")))
        assert (code, "disk I/O error" in reason) == ("notSaved", True)
        assert host.counts.store_failures["unknown"] >= channel.TRIES
        await back(host, log)
        assert "rejectionReason" not in await ana.act(title_changed("after"))


@pytest.mark.parametrize("trouble", ["lost", "full", "silent"])
async def test_readers_newcomers_and_those_who_come_back_are_served_while_nothing_can_be_written(
    trouble: str,
) -> None:
    log = FailingLog()
    async with two_sessions(log) as (host, ana):
        log.trouble = trouble
        assert (await verdict(ana, ana.dispatch(title_changed("first"))))[0] is not None
        bo = Client(host, BO)
        answer = await bo.initialize("phone", SESSION)
        assert answer["snapshots"][0]["state"]["summary"]["title"] == "before"
        assert len((await bo.call("listSessions"))["items"]) == 2
        assert "snapshot" in await bo.call("subscribe", OTHER)
        thief = Client(host, ANA)
        assert (await thief.initialize("phone"))["code"] == -32009
        bo.connection.closed()
        for client_id, principal in (("phone", BO), ("laptop", ANA)):
            _, answer = await back_as(host, client_id, host.position, SESSION, principal=principal)
            assert answer["type"] == "replay"
        assert await log.stored("phone") == 0

        await back(host, log)
        await until(lambda: log.stored("phone"))
        assert await log.stored("phone") == 1
    async with hosting(log) as host:
        _, answer = await back_as(host, "phone", host.position, SESSION, principal=BO)
        assert answer["type"] == "replay"


async def test_a_handshake_during_a_disk_failure_is_answered_once() -> None:
    log = FailingLog()
    async with two_sessions(log) as (host, _):
        log.trouble = "stored"
        bo = Client(host, BO)
        assert "protocolVersion" in await bo.initialize("phone")
        await back(host, log)
        bo_again = Client(host, BO)
        assert "protocolVersion" in await bo_again.initialize("phone")
        assert sum("result" in frame for frame in bo.received) == 1
        assert await log.stored("phone") == 2


@pytest.mark.parametrize("trouble", ["lost", "stored"])
async def test_a_session_whose_making_is_in_doubt_is_there_if_it_was_stored(trouble: str) -> None:
    log = FailingLog()
    async with two_sessions(log) as (host, ana):
        log.trouble = trouble
        error = await ana.call("createSession", "ahp-session:/new", provider="people")
        assert "not known yet whether this was saved" in error["message"]
        assert (await ana.call("subscribe", "ahp-session:/new"))["code"] == -32001
        error = await ana.call("createSession", "ahp-session:/new", provider="people")
        assert error["code"] == -32003
        await back(host, log)
        assert ("ahp-session:/new" in host.sessions) == (trouble == "stored")
        if trouble == "lost":
            made = await ana.call("createSession", "ahp-session:/new", provider="people")
            assert made is None
        await ana.call("subscribe", "ahp-session:/new")
        assert "rejectionReason" not in await ana.act(title_changed("x"), "ahp-session:/new")


async def test_a_session_that_cannot_be_dropped_stays(caplog: pytest.LogCaptureFixture) -> None:
    log = FailingLog()
    async with two_sessions(log) as (host, ana):
        log.trouble = "full"
        assert "no space left" in (await ana.call("disposeSession", SESSION))["message"]
        assert host.counts.store_failures["full"] == 1
        await back(host, log)
        assert "rejectionReason" not in await ana.act(title_changed("after"))
        assert await ana.call("disposeSession", SESSION) is None
    assert not any(record.exc_info for record in caplog.records)


async def test_a_session_that_may_be_gone_from_a_failing_disk_is_disposed_of_once_it_answers() -> (
    None
):
    log = FailingLog()
    async with two_sessions(log) as (host, ana):
        log.trouble = "lost"
        error = await ana.call("disposeSession", OTHER)
        assert "not known yet whether this was saved" in error["message"]
        assert OTHER in host.sessions
        await back(host, log)
        await until(lambda: OTHER not in host.sessions)
        assert not await log.read(after=0, limit=1, channels=[OTHER])


async def test_a_snapshot_that_could_not_be_saved_is_counted_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel, "ENTRIES_BETWEEN_SNAPSHOTS", 3)
    log = FailingLog()
    async with two_sessions(log) as (host, ana):
        log.save_snapshot = _failing  # type: ignore[method-assign]
        for number in range(3):
            await ana.act(title_changed(str(number)))
        await until(lambda: host.counts.store_failures["broken"] > 0)
        del log.save_snapshot
        await ana.act(title_changed("again"))
        async with asyncio.timeout(PATIENCE):
            while SESSION not in await log.snapshot_channels():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)


async def _failing(_: StoredSnapshot) -> None:
    raise FailedError(*BROKEN)


async def test_operators_get_one_line_when_it_begins_and_one_when_it_is_over(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_status, "LOGGED_EVERY_SECONDS", 1e9)
    log = FailingLog()
    with caplog.at_level(logging.WARNING):
        async with two_sessions(log) as (host, ana):
            size = host.states.bytes
            log.trouble = "full"
            for number in range(20):
                code, _ = await verdict(ana, ana.dispatch(title_changed(str(number))))
                assert code == "notSaved"
            assert host.counts.store_failures["full"] >= 20
            assert host.states.bytes == size, "what was not stored takes no room"
            await back(host, log)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert lines[0].endswith(f"the host is read-only: {FULL.reason}")
    assert "can be written again" in lines[1]
