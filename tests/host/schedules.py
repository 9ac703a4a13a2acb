"""One random schedule: dozens of clients on bad links, a host that dies, and what must hold then."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from session_server.agents.demo import DemoAgent, PeopleAgent
from session_server.agents.interface import Agent
from session_server.agents.turns import AgentTurns
from session_server.host import channel as channels
from session_server.host import host as hosts
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.host.kinds import CLIENTS, ROOT, SESSION, Kind, is_public
from session_server.host.logged import CLIENTS_CHANNEL, Logged, SessionOpened, decode_logged
from session_server.log import Entry, Log
from session_server.schemas.commands import ROOT_CHANNEL
from session_server.schemas.envelopes import ActionEnvelope
from session_server.schemas.principals import Principal
from session_server.schemas.root import RootState
from session_server.schemas.wire import Seq, Uri
from tests.host.faults import SlowLog, entries_of
from tests.host.harness import PATIENCE
from tests.host.links import Link
from tests.host.mirror import Mirror
from tests.host.people import AGENT, PEOPLE, WATCHER, some_frame

TALKS: dict[Uri, str] = {
    "ahp-session:/people": "people",
    "ahp-session:/demo": "demo",
    "custom:/demo": "demo",
}
SCRATCH: tuple[Uri, ...] = ("ahp-session:/scratch", "ahp-session:/paper")
ROLES = (*PEOPLE, *PEOPLE, AGENT, AGENT, WATCHER)
AGENTS: dict[str, Agent] = {"demo": DemoAgent(), "people": PeopleAgent()}


class Diverged(AssertionError):  # noqa: N818 - it is named after what happened
    """Somebody holds something else than the others, or got what they must not get."""


class Client:
    def __init__(self, mirror: Mirror, principal: Principal) -> None:
        self.mirror = mirror
        self.principal = principal
        self.link: Link | None = None


class Schedule:
    def __init__(
        self,
        seed: int,
        open_log: Callable[[], Awaitable[Log]],
        *,
        clients: int | None = None,
        steps: int | None = None,
        trouble: float | None = None,
        make_link: type[Link] = Link,
        make_log: type[SlowLog] = SlowLog,
    ) -> None:
        self.dice = dice = Random(seed)
        self.seed = seed
        self.host: Host
        self.log: SlowLog
        self.history: dict[Seq, Entry] = {}
        self.seen: dict[Seq, ActionEnvelope] = {}
        self.restarts = 0
        self.steps = dice.randrange(200, 500) if steps is None else steps
        self.known: list[Uri] = []
        self.clients: list[Client] = []
        self._zombies: list[Link] = []
        self._open_log = open_log
        self._trouble = dice.choice((0.0, 0.0, 0.03)) if trouble is None else trouble
        self._make_link = make_link
        self._make_log = make_log
        self._has_scratch = dice.random() < 0.5
        self._crowd = dice.randrange(12, 37) if clients is None else clients

    # The host

    async def _start(self) -> None:
        inner = await self._open_log()
        self.log = self._make_log(inner, self.dice, self.history, self._trouble)
        self.host = Host(self.log, tuple(agent.info for agent in AGENTS.values()))
        effects = EffectRunner(self.host, AgentTurns(self.host, AGENTS))
        await self.host.start()
        effects.restarted()

    async def _restart(self) -> None:
        """Killed in the middle of its work, or told to stop."""
        self.restarts += 1
        if self.dice.random() < 0.7:
            self.log.crash()
        await self.host.stop()
        for client in self.clients:
            if client.link is not None:
                client.link.carry_down(self.dice.randrange(len(client.link.down) + 1))
                client.link.cut()
                client.link = None
        self._zombies.clear()
        await self._start()

    async def _prepare(self) -> None:
        maker = Mirror("maker", seen=self.seen)
        link = Link(self.host, PEOPLE[0], maker, self.dice)
        for uri, provider in TALKS.items():
            link.say(maker.request("createSession", uri, provider=provider))
        self.known = [*TALKS, *(SCRATCH if self._has_scratch else ())]
        self.log.is_slow, trouble = False, self.log.trouble
        self.log.trouble = 0.0
        async with asyncio.timeout(PATIENCE):
            while maker.is_waiting or link.up:
                link.carry_up(len(link.up))
                await self.log.flush()
                await asyncio.sleep(0)
                link.carry_down(len(link.down))
        link.end()
        self.log.is_slow, self.log.trouble = True, trouble

    # What happens at random

    async def run(self) -> None:
        with pytest.MonkeyPatch.context() as limits:
            limits.setattr(channels, "HISTORY", self.dice.choice((4, 20, 1_000)))
            limits.setattr(hosts, "ENTRIES_BETWEEN_SNAPSHOTS", self.dice.choice((15, 60, 1_000)))
            await self._run()

    async def _run(self) -> None:
        await self._start()
        await self._prepare()
        for _ in range(self._crowd * 2 // 3):
            self._join()
        kinds, weights = zip(*STEPS, strict=True)
        for step in self.dice.choices(kinds, weights, k=self.steps):
            await step(self)
        await self._settle()
        await self._check()

    def _join(self) -> None:
        name = f"c{len(self.clients)}"
        wanted = self.dice.sample(self.known, self.dice.randrange(len(self.known)))
        if self._has_scratch or self.dice.random() < 0.7:
            wanted.append(ROOT_CHANNEL)
        is_careful = self.dice.random() < 0.5
        mirror = Mirror(name, wanted, is_careful=is_careful, seen=self.seen)
        self.clients.append(Client(mirror, self.dice.choice(ROLES)))

    def _connect(self, client: Client) -> None:
        client.link = self._make_link(self.host, client.principal, client.mirror, self.dice)

    def _online(self) -> Client | None:
        client = self.dice.choice(self.clients)
        return client if client.link is not None else None

    async def act(self) -> None:
        client = self._online()
        if client is None or client.link is None or not client.mirror.is_in:
            return
        for _ in range(self.dice.choice((1, 1, 2, 5))):
            role = client.principal.role
            frame = some_frame(self.dice, client.mirror, role, self.known)
            if frame is not None:
                client.link.say(frame)

    async def make_or_dispose(self) -> None:
        client = self._online()
        if client is None or client.link is None or not client.mirror.is_in:
            return
        if self._has_scratch:
            method = self.dice.choice(("createSession", "disposeSession"))
            params = {"provider": "people"} if method == "createSession" else {}
            frame = client.mirror.request(method, self.dice.choice(SCRATCH), **params)
            client.link.say(frame)

    async def carry(self) -> None:
        for client in self.dice.choices(self.clients, k=6):
            if client.link is not None:
                client.link.carry_up(self.dice.randrange(1, 6))
                client.link.carry_down(self.dice.randrange(1, 12))

    async def turn(self) -> None:
        for _ in range(self.dice.randrange(1, 5)):
            await asyncio.sleep(0)

    async def write(self) -> None:
        self.log.release(self.dice.randrange(1, 4))
        await asyncio.sleep(0)

    async def connect(self) -> None:
        for client in self.dice.choices(self.clients, k=3):
            if client.link is None:
                self._connect(client)

    async def cut(self) -> None:
        client = self._online()
        if client is None or client.link is None:
            return
        client.link.cut()
        if self.dice.random() < 0.5:
            client.link.end()
        else:
            self._zombies.append(client.link)
        client.link = None
        if self.dice.random() < 0.3:
            self._connect(client)

    async def bury(self) -> None:
        """The host notices a connection that was cut before."""
        if self._zombies:
            self._zombies.pop(self.dice.randrange(len(self._zombies))).end()

    async def join(self) -> None:
        if len(self.clients) < self._crowd:
            self._join()

    async def die(self) -> None:
        if self.dice.random() < 0.3:
            await self._restart()

    # The end

    async def _settle(self) -> None:
        """Everybody comes back, and everything that is under way arrives."""
        self.log.trouble, self.log.is_slow = 0.0, False
        while len(self.clients) < self._crowd:
            self._join()
        for zombie in self._zombies:
            zombie.end()
        async with asyncio.timeout(PATIENCE):
            while not self._is_quiet():
                await self.log.flush()
                for client in self.clients:
                    if client.link is None:
                        self._connect(client)
                    self._carry_all(client)
                await asyncio.sleep(0)
        await self.host.stop()
        for client in self.clients:
            self._carry_all(client)

    def _carry_all(self, client: Client) -> None:
        assert client.link is not None
        client.link.carry_up(len(client.link.up))
        client.link.carry_down(len(client.link.down))
        if not client.mirror.is_in and not client.mirror.is_waiting:
            client.link.cut()  # the disk was full when it greeted
            client.link.end()
            client.link = None

    def _is_quiet(self) -> bool:
        return not self.log.held and all(
            client.link is not None
            and client.mirror.is_in
            and not client.mirror.is_waiting
            and not client.link.up
            and not client.link.down
            for client in self.clients
        )

    async def _check(self) -> None:
        stored = await entries_of(self.log.inner)
        folded = fold(list(self.history.values()))
        self._check_host(folded)
        self._check_log(stored, await self.log.inner.floors())
        for client in self.clients:
            self._check_mirror(client.mirror, folded)
        self._check_seen()
        await self._check_restart(folded)

    def _check_host(self, folded: dict[Uri, Any]) -> None:
        committed: dict[Uri, Any] = {uri: c.committed for uri, c in self.host.sessions.items()}
        committed[ROOT_CHANNEL] = self.host.root.committed
        committed[CLIENTS_CHANNEL] = self.host.clients.committed
        for uri, record in committed.items():
            expect(record == folded.get(uri), f"{uri}: the host holds what its log does not say")

    def _check_log(self, stored: list[Entry], floors: dict[Uri, Seq]) -> None:
        """What can still be read is what became durable, in that order, and nothing twice."""
        seqs = [entry.seq for entry in stored]
        expect(seqs == sorted(set(seqs)), "the log is out of order")
        expect(all(self.history[e.seq] == e for e in stored), "the log holds what nobody wrote")
        present = frozenset(seqs)
        alive = {*self.host.sessions, ROOT_CHANNEL, CLIENTS_CHANNEL}
        openings = self._openings()
        for entry in self.history.values():
            if entry.channel in alive and entry.seq > floors.get(entry.channel, 0):
                is_old = entry.seq < openings.get(entry.channel, 0)
                expect(is_old or entry.seq in present, f"{entry.seq} is gone from the log")

    def _openings(self) -> dict[Uri, Seq]:
        """Where each session begins that there now is: a URI can be used again."""
        return {
            entry.channel: entry.seq
            for entry in sorted(self.history.values())
            if isinstance(decode_logged(entry.data).action, SessionOpened)
        }

    def _check_mirror(self, mirror: Mirror, folded: dict[Uri, Any]) -> None:
        who = mirror.client_id
        expect(not mirror.faults, f"{who}: {mirror.faults[:3]}")
        public = self._public_seqs()
        for uri, copy in mirror.copies.items():
            expect(uri in folded, f"{who}: watches {uri}, which is gone")
            record = folded[uri]
            state = record if isinstance(record, RootState) else record.public
            expect(copy.state == state, f"{who}: {uri} is something else than on the host")
        ends = {id(copy.stretch) for copy in mirror.copies.values()}
        for stretch in mirror.stretches:
            end = None if id(stretch) in ends else (stretch.seqs or [0])[-1]
            due = [
                seq
                for seq in public.get(stretch.channel, ())
                if seq > stretch.start and (end is None or seq <= end)
            ]
            expect(
                stretch.seqs == due, f"{who}: got {stretch.seqs} of {stretch.channel}, not {due}"
            )

    def _public_seqs(self) -> dict[Uri, list[Seq]]:
        if not hasattr(self, "_public"):
            self._public: dict[Uri, list[Seq]] = {}
            for entry in sorted(self.history.values()):
                if is_public(decode_logged(entry.data).action):
                    self._public.setdefault(entry.channel, []).append(entry.seq)
        return self._public

    def _check_seen(self) -> None:
        """Whatever anybody ever received is in the log, just so."""
        for seq, envelope in self.seen.items():
            entry = self.history.get(seq)
            expect(entry is not None, f"{seq} was seen and is not in the log")
            assert entry is not None
            logged = decode_logged(entry.data)
            expect(is_same(envelope, entry.channel, logged), f"{seq} was seen as something else")

    async def _check_restart(self, folded: dict[Uri, Any]) -> None:
        """A host that starts from the log holds the same sessions."""
        again = Host(SlowLog(self.log.inner, self.dice, {}), self.host.agents)
        await again.start()
        held: dict[Uri, Any] = {uri: c.committed for uri, c in again.sessions.items()}
        held[CLIENTS_CHANNEL] = again.clients.committed
        wanted = {uri: record for uri, record in folded.items() if uri != ROOT_CHANNEL}
        expect(held == wanted, "a host that starts again holds something else")
        await again.stop()


STEPS: tuple[tuple[Callable[[Schedule], Awaitable[None]], int], ...] = (
    (Schedule.act, 40),
    (Schedule.carry, 50),
    (Schedule.turn, 12),
    (Schedule.write, 30),
    (Schedule.connect, 25),
    (Schedule.cut, 8),
    (Schedule.bury, 4),
    (Schedule.join, 4),
    (Schedule.make_or_dispose, 4),
    (Schedule.die, 2),
)


def fold(entries: list[Entry]) -> dict[Uri, Any]:
    """Every channel's record, from its first entry on."""
    kinds: dict[Uri, Kind[Any]] = {ROOT_CHANNEL: ROOT, CLIENTS_CHANNEL: CLIENTS}
    folded: dict[Uri, Any] = {}
    for entry in sorted(entries):
        logged = decode_logged(entry.data)
        kind = kinds.get(entry.channel, SESSION)
        known = folded.get(entry.channel, kind.empty)
        if isinstance(logged.action, SessionOpened):
            known = None
        folded[entry.channel] = kind.reduce(known, logged.action, logged.stamp.at)
    return folded


def is_same(envelope: ActionEnvelope, channel: Uri, logged: Logged) -> bool:
    meta = envelope.meta
    return (
        (envelope.channel, envelope.action, envelope.origin)
        == (channel, logged.action, logged.origin)
        and meta is not None
        and (meta.at, meta.by) == (logged.stamp.at, logged.stamp.by)
    )


def expect(holds: bool, words: str) -> None:
    if not holds:
        raise Diverged(words)
