"""What clients see when the log refuses, or does not know, or was written to by somebody else."""

from collections.abc import Callable
from typing import Any

import pytest

from session_server.host.channel_kinds import Logged
from session_server.log import (
    Batch,
    Durable,
    NewEntry,
    Outcome,
    Refused,
    RefusedBecause,
    Unknown,
)
from session_server.log.memory import MemoryLog
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.codec import encode
from session_server.schemas.principals import HOST, Stamp
from tests.host.harness import BO, SESSION, hosting, joined, run, with_session

FORM = {
    "type": "session/inputRequested",
    "request": {"id": "r", "message": "Go on?"},
}


def titled(title: str) -> dict[str, Any]:
    return {"type": "session/titleChanged", "title": title}


class TroubledLog(MemoryLog):
    """A memory log whose next batches meet trouble: each item decides over one batch."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble: list[str] = []
        self.held: list[tuple[Batch, Callable[[Outcome], None]]] = []

    def append(self, batch: Batch, settled: Callable[[Outcome], None]) -> None:
        if batch.channel != SESSION or not self.trouble:
            super().append(batch, settled)
            return
        match self.trouble.pop(0):
            case "hold":
                self.held.append((batch, settled))
            case "full":
                full = Refused(RefusedBecause.FULL, "the disk is full")
                self._loop.call_soon(settled, full)
            case "stored but unknown":
                super().append(batch, lambda _: settled(Unknown("no acknowledgement")))
            case "lost and unknown":
                self._loop.call_soon(settled, Unknown("no acknowledgement"))
            case other:
                raise AssertionError(other)

    def release(self) -> None:
        for batch, settled in self.held:
            super().append(batch, settled)
        self.held.clear()


@pytest.mark.proves("design.deliver.after-append")
@run
async def test_nothing_is_seen_before_it_is_durable() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        bo = await joined(host, BO, "phone", SESSION)
        log.trouble = ["hold"]
        ana.dispatch(titled("Oslo"))
        assert await ana.call("ping") is None
        assert ana.envelopes() == bo.envelopes() == []
        late = await joined(host, BO, "tablet")
        snapshot = (await late.call("subscribe", SESSION))["snapshot"]
        assert snapshot["state"]["summary"]["title"] != "Oslo"
        log.release()
        assert (await late.wait_for_action("session/titleChanged"))["action"] == titled("Oslo")
        assert (await bo.wait_for_action("session/titleChanged"))["action"] == titled("Oslo")


@run
async def test_what_comes_while_a_batch_is_out_makes_the_next_one() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        log.trouble = ["hold"]
        for number in range(5):
            ana.dispatch(titled(str(number)))
        log.release()
        await ana.wait_for(
            lambda f: f.get("method") == "action" and f["params"]["action"].get("title") == "4"
        )
        seqs = [e["serverSeq"] for e in ana.envelopes()]
        assert seqs == sorted(set(seqs))


@pytest.mark.proves("design.append.refused")
@run
async def test_a_refused_batch_is_told_to_its_senders_and_leaves_no_trace() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        bo = await joined(host, BO, "phone", SESSION)
        before = host.record(SESSION)
        log.trouble = ["full"]
        refused = await ana.act(titled("Oslo"))
        assert refused["rejectionReason"] == "This could not be saved: the disk is full"
        assert host.record(SESSION) is before
        accepted = await ana.act(titled("Bergen"))
        assert "rejectionReason" not in accepted
        await bo.wait_for_action("session/titleChanged")
        assert [e["action"] for e in bo.envelopes()] == [titled("Bergen")]


@pytest.mark.proves("design.append.unknown")
@run
async def test_an_unknown_outcome_is_found_out_before_anything_is_said() -> None:
    for trouble in ("stored but unknown", "lost and unknown"):
        log = TroubledLog()
        async with hosting(log) as host:
            ana = await with_session(host)
            log.trouble = [trouble]
            ana.dispatch(titled("Oslo"))
            ana.dispatch(titled("Bergen"))
            await ana.wait_for(
                lambda f: (
                    f.get("method") == "action" and f["params"]["action"].get("title") == "Bergen"
                )
            )
            titles = [
                e["action"]["title"]
                for e in ana.envelopes()
                if e["action"]["type"] == "session/titleChanged"
            ]
            assert titles == ["Oslo", "Bergen"], trouble
            entries = await log.read(after=0, limit=1000, channels=[SESSION])
            assert sum(b"Oslo" in entry.data for entry in entries) == 1


@pytest.mark.proves("design.append.refused")
@run
async def test_what_another_process_wrote_is_folded_in_and_the_action_judged_again() -> None:
    log = MemoryLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        logged = Logged(action=TitleChanged(title="theirs"), stamp=Stamp(at=1, by=HOST))
        last = host.sessions[SESSION].last_seq
        settled: list[Outcome] = []
        log.append(Batch(SESSION, last, (NewEntry("x", encode(logged)),)), settled.append)
        mine = await ana.act(titled("mine"))
        assert isinstance(settled[0], Durable)
        titles = [
            (e["action"]["title"], e["serverSeq"])
            for e in ana.envelopes()
            if e["action"]["type"] == "session/titleChanged"
        ]
        assert titles == [("theirs", settled[0].seqs[0]), ("mine", mine["serverSeq"])]


@run
async def test_a_log_that_contradicts_itself_closes_the_channel_instead_of_looping() -> None:
    log = MemoryLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        await log.drop(SESSION)
        refused = await ana.act(titled("Oslo"))
        assert "no longer agrees" in refused["rejectionReason"]
