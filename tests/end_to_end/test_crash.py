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
from tests.ahp.actions import answer_changed, title_changed, turn_started
from tests.ahp.ahp1_mirror import VARIANTS, Ahp1Mirror
from tests.ahp.ahp1_oracle import Ahp1Oracle
from tests.ahp.client import SocketClient
from tests.ahp.mirror import ROOT, Mirror, State
from tests.ahp.oracle import LogOracle, expect
from tests.effort import tries
from tests.end_to_end.mirror_client import Device
from tests.servers import ServerProcess, sqlite_store

KILLS = tries(in_ci=20, at_hand=2)
DEVICES = 8
WINDOW = 40
"""Actions that a device has under way at once, so that a kill mostly finds some of them there."""

MOMENT = 0.004
"""Seconds within which a kill follows the last burst: the server is still at work on it."""

SESSIONS: tuple[Uri, ...] = ("ahp-session:/busy", "ahp-session:/lively")
PROVIDERS = dict.fromkeys(SESSIONS, "demo")


class Typist(Device):
    """Types without end into the questions it sees: every text is its own."""

    def __init__(self, mirror: Mirror, dice: Random) -> None:
        super().__init__(mirror)
        self.dice = dice
        self.typed: list[str] = []
        self.is_typing = False

    async def type(self) -> None:
        """Until it is told to stop, never too far ahead of what is answered."""
        self.is_typing = True
        while self.is_typing:
            await self.until(lambda: self.mirror.unanswered < WINDOW or not self.is_typing)
            await self.strike()

    async def strike(self) -> None:
        uri = self.dice.choice(SESSIONS)
        await self.say(self.mirror.dispatch(uri, self._stroke(self.mirror.sessions()[uri])))

    def stop(self) -> None:
        self.is_typing = False
        self._news.set()

    def _stroke(self, state: SessionState) -> dict[str, Any]:
        text = f"{self.mirror.client_id}/{len(self.typed)}"
        self.typed.append(text)
        requests = open_requests(state)
        if not requests or self.dice.random() < 0.1:
            return title_changed(text)
        state_of_answer = self.dice.choice(("draft", "draft", "submitted"))
        return answer_changed(text, requests[0].id, "name", state_of_answer)


async def open_talks(server: ServerProcess) -> None:
    """Two sessions, each with a question that stays open."""
    maker = Device(Mirror("maker", [ROOT]))
    await maker.connect(server.ahp)
    for uri in SESSIONS:
        await maker.say(maker.mirror.request("createSession", uri, provider="demo"))
        await maker.ping()
        await maker.say(maker.mirror.request("subscribe", uri))
        await maker.ping()
        action = turn_started()
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


def strokes(oracle: LogOracle) -> Counter[str]:
    """How often each text stands in the log."""
    found: Counter[str] = Counter()
    for logged in oracle.logged.values():
        action = logged.action
        if isinstance(action, InputAnswerChanged) and isinstance(action.answer, Draft | Submitted):
            value = action.answer.value
            assert isinstance(value, TextValue)
            found[value.value] += 1
        elif hasattr(action, "title"):
            found[action.title] += 1
    return found


class KillSchedule:
    """One server after the other on the same file, and the same devices all the time."""

    def __init__(self, store: str, dice: Random) -> None:
        self.store = store
        self.dice = dice
        self.seen: dict[Seq, ActionEnvelope] = {}
        self.ahp1_seen: dict[str, dict[Seq, Any]] = {version: {} for version in VARIANTS}
        self.typists = [Typist(self._mirror(number), dice) for number in range(DEVICES)]
        self.start: Seq = 0
        self.in_flight: list[int] = []
        self.undelivered: list[int] = []
        self.replays = 0

    def _mirror(self, number: int) -> Mirror:
        """Every other one is careful; a half of them speaks later versions."""
        name, is_careful = f"d{number}", number % 2 == 0
        if number < DEVICES // 2:
            return Mirror(name, SESSIONS, is_careful=is_careful, seen=self.seen)
        version = [*VARIANTS][number // 2 % len(VARIANTS)]
        seen = self.ahp1_seen[version]
        return Ahp1Mirror(
            name, SESSIONS, PROVIDERS, version=version, is_careful=is_careful, seen=seen
        )

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
            for _ in range(WINDOW - typist.mirror.unanswered):
                await typist.strike()
        busy_for(self.dice.uniform(0, MOMENT))
        server.kill()
        for typist in self.typists:
            await typist.ended()
        self.in_flight.append(sum(typist.mirror.unanswered for typist in self.typists))

    async def check_log(self) -> LogOracle:
        log = await open_log(self.store)
        oracle = await LogOracle.of(log)
        await log.close()
        oracle.check_seen(self.seen)
        for version, seen in self.ahp1_seen.items():
            Ahp1Oracle(oracle, VARIANTS[version]).check_seen(seen)
        times = strokes(oracle)
        expect(max(times.values()) == 1, "something was written twice")
        reached = max(self.seen)
        self.undelivered.append(sum(seq > reached for seq in oracle.entries))
        for uri in SESSIONS:
            expect(oracle.floors.get(uri, 0) <= self.start, "what was just seen is gone again")
            expect(bool(open_requests(oracle.state(uri))), f"the question of {uri} is gone")
        return oracle

    async def check_resumption(self, server: ServerProcess, oracle: LogOracle) -> None:
        """Who comes back is where the log is; who had seen nothing yet gets it all again."""
        later = {variant: Ahp1Oracle(oracle, variant) for variant in VARIANTS.values()}
        for typist in self.typists:
            await typist.connect(server.ahp)
            mirror = typist.mirror
            if isinstance(mirror, Ahp1Mirror):
                expect(len(mirror.copies) == 2 * len(SESSIONS), "sessions or chats are missing")
                later[mirror.variant].check_mirror(mirror)
            else:
                expect(len(mirror.copies) == len(SESSIONS), "sessions are missing")
                oracle.check_mirror(mirror)
        newcomer = Device(Mirror("newcomer", SESSIONS))
        await newcomer.connect(server.ahp)
        for uri, copy in newcomer.mirror.copies.items():
            expect(copy.state == oracle.state(uri), f"{uri} is shown as something else")
        await newcomer.hang_up()

    async def check_replay(self, server: ServerProcess, oracle: LogOracle) -> None:
        """Everything since the last kill, told again: in order, and exactly once."""
        client = await SocketClient.open(server.ahp)
        answer = await client.call(
            "reconnect", clientId="d0", lastSeenServerSeq=self.start, subscriptions=SESSIONS
        )
        await client.close()
        if answer["type"] == "snapshot":
            return  # the host began with a stored snapshot, and knows no more of what was before
        self.replays += 1
        told = [action["serverSeq"] for action in answer["actions"]]
        due = [seq for uri in SESSIONS for seq in oracle.public[uri] if seq > self.start]
        expect(told == sorted(due), "the replay is not what the log says")
        expect({s for s in self.seen if s > self.start} <= set(told), "what was seen is not told")


async def check_kills(store: str, kills: int, record_property: Any) -> None:
    """A host on this store is killed at work, again and again."""
    schedule = KillSchedule(store, Random(3))
    server = ServerProcess(schedule.store)
    await open_talks(server)
    try:
        for _ in range(kills):
            await schedule.kill_at_work(server)
            oracle = await schedule.check_log()
            server = ServerProcess(schedule.store)
            await schedule.check_replay(server, oracle)
            await schedule.check_resumption(server, oracle)
    finally:
        server.kill()
        for typist in schedule.typists:
            await typist.hang_up()
    assert len(schedule.in_flight) == kills
    record_property("kills", kills)
    record_property("in_flight_at_least", min(schedule.in_flight))
    record_property("in_flight_in_all", sum(schedule.in_flight))
    record_property("kills_between_append_and_delivery", sum(map(bool, schedule.undelivered)))
    record_property("replays", schedule.replays)
    record_property("envelopes", len(schedule.seen))
    record_property("ahp1_envelopes", sum(map(len, schedule.ahp1_seen.values())))


@pytest.mark.proves("design.log.kill", "ahp.reconnect.after-restart", "ahp.ahp1.mixed")
async def test_what_anybody_has_seen_survives_every_kill(
    tmp_path: Path, record_property: Any
) -> None:
    await check_kills(sqlite_store(tmp_path), KILLS, record_property)
