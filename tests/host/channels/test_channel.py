"""What clients see when the log refuses, or does not know, or was written to by somebody else."""

from typing import Any

import pytest

from session_server.log import AppendResult, Batch, Durable, NewEntry, RefusedBecause
from session_server.log.memory import MemoryLog
from session_server.log.protocol import FailedError
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.codec import encode
from session_server.schemas.log_entries import Logged
from session_server.schemas.principals import HOST, Stamp
from tests.ahp.actions import title_changed
from tests.host.faulty_logs import TroubledLog
from tests.host.harness import BO, SESSION, hosting, joined, launched, with_session
from tests.log.one_by_one import SettledOne, append_one


@pytest.mark.proves("design.deliver.after-append")
async def test_nothing_is_seen_before_it_is_durable() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        bo = await joined(host, BO, "phone", SESSION)
        log.trouble = ["hold"]
        ana.dispatch(title_changed("Oslo"))
        await launched()
        assert await ana.call("ping") is None
        assert ana.envelopes() == bo.envelopes() == []
        late = await joined(host, BO, "tablet")
        snapshot = (await late.call("subscribe", SESSION))["snapshot"]
        assert snapshot["state"]["summary"]["title"] != "Oslo"
        log.release()
        assert (await late.wait_for_action("session/titleChanged"))["action"] == title_changed(
            "Oslo"
        )
        assert (await bo.wait_for_action("session/titleChanged"))["action"] == title_changed("Oslo")


class CountingLog(TroubledLog):
    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        if batch.channel == SESSION:
            self.sizes.append(len(batch.entries))
        super().append_one(batch, settled)


async def test_the_next_batch_takes_along_what_is_sent_at_once_after_a_delivery() -> None:
    """So each subscriber is written to once for both, and not once for what waited before."""
    log = CountingLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        log.trouble, log.sizes = ["hold"], []
        ana.dispatch(title_changed("1"))
        await launched()
        ana.dispatch(title_changed("2"))
        log.release()
        await ana.wait_for_action("session/titleChanged")
        ana.dispatch(title_changed("3"))
        await ana.wait_for_title("3")
    assert log.sizes == [1, 2]


@pytest.mark.proves("design.append.refused")
async def test_a_refused_batch_is_reported_to_its_senders_and_changes_nothing() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        bo = await joined(host, BO, "phone", SESSION)
        before = host.record(SESSION)
        log.trouble = ["full"]
        refused = await ana.act(title_changed("Oslo"))
        assert refused["rejectionReason"] == "This could not be saved: the disk is full"
        assert host.record(SESSION) is before
        accepted = await ana.act(title_changed("Bergen"))
        assert "rejectionReason" not in accepted
        await bo.wait_for_action("session/titleChanged")
        assert [e["action"] for e in bo.envelopes()] == [title_changed("Bergen")]


@pytest.mark.proves("design.append.refused")
async def test_what_another_process_wrote_is_folded_in_and_the_action_judged_again() -> None:
    log = MemoryLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        logged = Logged(action=TitleChanged(title="theirs"), stamp=Stamp(at=1, by=HOST))
        last = host.sessions[SESSION].last_seq
        settled: list[AppendResult] = []
        append_one(log, Batch(SESSION, last, (NewEntry("x", encode(logged)),)), settled.append)
        mine = await ana.act(title_changed("mine"))
        assert isinstance(settled[0], Durable)
        titles = [
            (e["action"]["title"], e["serverSeq"])
            for e in ana.envelopes()
            if e["action"]["type"] == "session/titleChanged"
        ]
        assert titles == [("theirs", settled[0].seqs[0]), ("mine", mine["serverSeq"])]


class ShyLog(MemoryLog):
    """Cannot be read so many times."""

    silences = 0

    async def read(self, **about: Any) -> Any:
        if self.silences:
            self.silences -= 1
            raise FailedError(RefusedBecause.BROKEN, "ask again later")
        return await super().read(**about)


@pytest.mark.parametrize("silences", [0, 1])
async def test_a_log_that_contradicts_itself_closes_the_channel_once_it_can_be_read(
    silences: int,
) -> None:
    log = ShyLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        await log.drop(SESSION)
        log.silences = silences
        refused = await ana.act(title_changed("Oslo"))
        assert "no longer agrees" in refused["rejectionReason"]
