"""The server is killed in the middle of its work, again and again, and nobody ever notices more."""

import asyncio
import time
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from session_server.log.opening import open_log
from session_server.schemas.ahp.actions import InputAnswerChanged
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.questions import Draft, InputRequest, Submitted, TextValue
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.wire import Seq, Uri
from tests.effort import tries
from tests.end_to_end.devices import Device
from tests.end_to_end.wire import WireClient
from tests.host.agreement import Truth, expect
from tests.host.harness import run
from tests.host.mirror import ROOT, Mirror, State
from tests.servers import ServerProcess, sqlite_store

KILLS = tries(in_ci=50, at_hand=2)
DEVICES = 8
WINDOW = 40
"""Actions that a device has under way at once, so that a kill mostly finds some of them there."""

MOMENT = 0.004
"""Seconds within which a kill follows the last burst: the server is still at work on it."""

TALKS: tuple[Uri, ...] = ("ahp-session:/busy", "ahp-session:/lively")


class Typist(Device):
    """Types without end into the questions it sees: every text is its own."""

    def __init__(self, mirror: Mirror, dice: Random) -> None:
        super().__init__(mirror)
        self.dice = dice
        self.typed: list[str] = []
        self.is_typing = False

    @property
    def unanswered(self) -> int:
        return self.mirror.client_seq - len(self.mirror.echoed)

    async def type(self) -> None:
        """Until it is told to stop, never too far ahead of what is answered."""
        self.is_typing = True
        while self.is_typing:
            await self.until(lambda: self.unanswered < WINDOW or not self.is_typing)
            await self.strike()

    async def strike(self) -> None:
        uri = self.dice.choice(TALKS)
        state = self.mirror.copies[uri].state
        assert isinstance(state, SessionState)
        await self.say(self.mirror.dispatch(uri, self._stroke(state)))

    def stop(self) -> None:
        self.is_typing = False
        self._news.set()

    def _stroke(self, state: SessionState) -> dict[str, Any]:
        text = f"{self.mirror.client_id}/{len(self.typed)}"
        self.typed.append(text)
        requests = open_requests(state)
        if not requests or self.dice.random() < 0.1:
            return {"type": "session/titleChanged", "title": text}
        return {
            "type": "session/inputAnswerChanged",
            "requestId": requests[0].id,
            "questionId": "name",
            "answer": {
                "state": self.dice.choice(("draft", "draft", "submitted")),
                "value": {"kind": "text", "value": text},
            },
        }


async def open_talks(server: ServerProcess) -> None:
    """Two sessions, each with a question that stays open."""
    maker = Device(Mirror("maker", [ROOT]))
    await maker.connect(server.ahp)
    for uri in TALKS:
        await maker.say(maker.mirror.request("createSession", uri, provider="demo"))
        await maker.ping()
        await maker.say(maker.mirror.request("subscribe", uri))
        await maker.ping()
        message = {"text": "Go", "origin": {"kind": "user"}}
        action = {"type": "session/turnStarted", "turnId": "t", "message": message}
        await maker.say(maker.mirror.dispatch(uri, action))
        await maker.until(partial(is_asking, maker.mirror, uri))
    await maker.hang_up()


def busy_for(seconds: float) -> None:
    """Exact to the microsecond, as no sleep would be."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def is_asking(mirror: Mirror, uri: Uri) -> bool:
    return bool(open_requests(mirror.copies[uri].state))


def open_requests(state: State) -> tuple[InputRequest, ...]:
    assert isinstance(state, SessionState)
    return state.input_requests or ()


def strokes(truth: Truth) -> Counter[str]:
    """How often each text stands in the log."""
    found: Counter[str] = Counter()
    for logged in truth.logged.values():
        action = logged.action
        if isinstance(action, InputAnswerChanged) and isinstance(action.answer, Draft | Submitted):
            value = action.answer.value
            assert isinstance(value, TextValue)
            found[value.value] += 1
        elif hasattr(action, "title"):
            found[action.title] += 1
    return found


class Ordeal:
    """One server after the other on the same file, and the same devices all the time."""

    def __init__(self, store: str, dice: Random) -> None:
        self.store = store
        self.dice = dice
        self.seen: dict[Seq, ActionEnvelope] = {}
        self.typists = [
            Typist(Mirror(f"d{number}", TALKS, is_careful=number % 2 == 0, seen=self.seen), dice)
            for number in range(DEVICES)
        ]
        self.start: Seq = 0
        self.in_flight: list[int] = []
        self.undelivered: list[int] = []
        self.replays = 0

    async def kill_at_work(self, server: ServerProcess) -> None:
        """After so many envelopes, a moment after everybody has sent another burst."""
        for typist in self.typists:
            await typist.connect(server.ahp)
        self.start = max(self.seen, default=0)
        goal = len(self.seen) + self.dice.randrange(60, 300)
        async with asyncio.TaskGroup() as tasks:
            for typist in self.typists:
                tasks.create_task(typist.type())
            await self.typists[0].until(lambda: len(self.seen) >= goal)
            for typist in self.typists:
                typist.stop()
        for typist in self.typists:
            for _ in range(WINDOW - typist.unanswered):
                await typist.strike()
        busy_for(self.dice.uniform(0, MOMENT))
        server.kill()
        for typist in self.typists:
            await typist.ended()
        self.in_flight.append(sum(typist.unanswered for typist in self.typists))

    async def check_log(self) -> Truth:
        log = await open_log(self.store)
        truth = await Truth.of(log)
        await log.close()
        truth.check_seen(self.seen)
        times = strokes(truth)
        expect(max(times.values()) == 1, "something was written twice")
        reached = max(self.seen)
        self.undelivered.append(sum(seq > reached for seq in truth.entries))
        for uri in TALKS:
            expect(truth.floors.get(uri, 0) <= self.start, "what was just seen is gone again")
            expect(bool(open_requests(truth.state(uri))), f"the question of {uri} is gone")
        return truth

    async def check_resumption(self, server: ServerProcess, truth: Truth) -> None:
        """Who comes back is where the log is; who had seen nothing yet gets it all again."""
        for typist in self.typists:
            await typist.connect(server.ahp)
            for uri, copy in typist.mirror.copies.items():
                expect(copy.state == truth.state(uri), f"{uri} is not what the log says")
            truth.check_mirror(typist.mirror)
        newcomer = Device(Mirror("newcomer", TALKS))
        await newcomer.connect(server.ahp)
        for uri, copy in newcomer.mirror.copies.items():
            expect(copy.state == truth.state(uri), f"{uri} is shown as something else")
        await newcomer.hang_up()

    async def check_replay(self, server: ServerProcess, truth: Truth) -> None:
        """Everything since the last kill, told again: in order, and exactly once."""
        client = await WireClient.open(server.ahp)
        answer = await client.call(
            "reconnect", clientId="d0", lastSeenServerSeq=self.start, subscriptions=TALKS
        )
        await client.close()
        if answer["type"] == "snapshot":
            return  # the host began with a stored snapshot, and knows no more of what was before
        self.replays += 1
        told = [action["serverSeq"] for action in answer["actions"]]
        due = [seq for uri in TALKS for seq in truth.public[uri] if seq > self.start]
        expect(told == sorted(due), "the replay is not what the log says")
        expect({s for s in self.seen if s > self.start} <= set(told), "what was seen is not told")


@pytest.mark.proves("design.log.kill", "ahp.reconnect.after-restart")
@run
async def test_what_anybody_has_seen_survives_every_kill(
    tmp_path: Path, record_property: Any
) -> None:
    ordeal = Ordeal(sqlite_store(tmp_path), Random(3))
    server = ServerProcess(ordeal.store)
    await open_talks(server)
    try:
        for _ in range(KILLS):
            await ordeal.kill_at_work(server)
            truth = await ordeal.check_log()
            server = ServerProcess(ordeal.store)
            await ordeal.check_replay(server, truth)
            await ordeal.check_resumption(server, truth)
    finally:
        server.kill()
        for typist in ordeal.typists:
            await typist.hang_up()
    assert len(ordeal.in_flight) == KILLS
    record_property("kills", KILLS)
    record_property("in_flight_at_least", min(ordeal.in_flight))
    record_property("in_flight_in_all", sum(ordeal.in_flight))
    record_property("kills_between_append_and_delivery", sum(map(bool, ordeal.undelivered)))
    record_property("replays", ordeal.replays)
    record_property("envelopes", len(ordeal.seen))
