"""One random schedule: dozens of clients on bad links, a host that dies, and what must hold."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

import pytest

from session_server.agents.demo import DemoAgent, PeopleAgent
from session_server.agents.interface import Agent
from session_server.agents.turn_runner import AgentTurns
from session_server.host.channels import ahp1_views, channel, history
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.host.takeover import Takeover
from session_server.log import Entry, Log
from session_server.reducers.ahp1.snapshots import Variant
from session_server.schemas.ahp.commands import PROTOCOL_VERSION, ROOT_CHANNEL
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.log_entries import CLIENTS_CHANNEL
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Seq, Uri
from tests.ahp.ahp1_mirror import VARIANTS, Ahp1Mirror
from tests.ahp.ahp1_oracle import Ahp1Oracle
from tests.ahp.mirror import Frame, Mirror
from tests.ahp.oracle import LogOracle, entries_of, expect
from tests.effort import PATIENCE
from tests.host.faulty_logs import SlowLog
from tests.host.links import Link
from tests.host.random_actions import AGENT, PEOPLE, WATCHER, some_frame

SESSIONS: dict[Uri, str] = {
    "ahp-session:/people": "people",
    "ahp-session:/demo": "demo",
    "custom:/demo": "demo",
}
VERSIONS = (PROTOCOL_VERSION, PROTOCOL_VERSION, *VARIANTS)
SCRATCH: tuple[Uri, ...] = tuple(f"ahp-session:/scratch-{number}" for number in range(4))
PROVIDERS: dict[Uri, str] = {**SESSIONS, **dict.fromkeys(SCRATCH, "people")}
ROLES = (*PEOPLE, *PEOPLE, *PEOPLE, AGENT, AGENT, AGENT, WATCHER)
KNOWN_TROUBLE = ("full", "lost and unknown")
AGENTS: dict[str, Agent] = {"demo": DemoAgent(), "people": PeopleAgent()}


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
        kinds: tuple[str, ...] = KNOWN_TROUBLE,
        make_link: type[Link] = Link,
        make_log: type[SlowLog] = SlowLog,
        versions: Sequence[str] = VERSIONS,
        evicts: bool = False,
    ) -> None:
        """`evicts`: sessions leave memory whenever they can."""
        self.dice = dice = Random(seed)
        self.seed = seed
        self.host: Host
        self.log: SlowLog
        self.history: dict[Seq, Entry] = {}
        self.seen: dict[Seq, ActionEnvelope] = {}
        self.ahp1_seen: dict[Variant, dict[Seq, Any]] = {}
        self.restarts = 0
        self.steps = dice.randrange(300, 700) if steps is None else steps
        self.known: list[Uri] = []
        self.clients: list[Client] = []
        self._zombies: list[Link] = []
        self._open_log = open_log
        self._trouble = dice.choice((0.0, 0.0, 0.03)) if trouble is None else trouble
        self._kinds = kinds
        reuses_uris = dice.random() < 0.5
        self._scratch = SCRATCH[:1] if reuses_uris else SCRATCH
        self._fresh = None if reuses_uris else list(SCRATCH)
        self._make_link = make_link
        self._make_log = make_log
        self._versions = versions
        self._has_scratch = dice.random() < 0.5
        self._crowd = dice.randrange(12, 37) if clients is None else clients
        self._evicts = evicts
        self.evictions = self.loads = 0

    # The host

    async def _start(self) -> None:
        inner = await self._open_log()
        self.log = self._make_log(inner, self.dice, self.history, self._trouble)
        self.log.kinds = self._kinds
        self.host = Host(self.log, tuple(agent.info for agent in AGENTS.values()))
        takeover = Takeover(self.host, EffectRunner(self.host, AgentTurns(self.host, AGENTS)))
        await self.host.start()
        takeover.started()

    async def _restart(self) -> None:
        """Killed in the middle of its work, or told to stop."""
        self.restarts += 1
        if self.dice.random() < 0.7:
            self.log.crash()
        self._count_loads()
        await self.host.stop()
        await self.log.inner.find(())  # what is being written when a process dies may still land
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
        for uri, provider in SESSIONS.items():
            link.say(maker.request("createSession", uri, provider=provider))
        self.known = [*SESSIONS, *(self._scratch if self._has_scratch else ())]
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
            limits.setattr(history, "ENVELOPES_KEPT", self.dice.choice((4, 20, 1_000)))
            limits.setattr(ahp1_views, "ENVELOPES_KEPT", self.dice.choice((4, 20, 1_000)))
            limits.setattr(channel, "ENTRIES_BETWEEN_SNAPSHOTS", self.dice.choice((15, 60, 1_000)))
            await self._run()

    async def _run(self) -> None:
        await self._start()
        await self._prepare()
        for _ in range(self._crowd * 2 // 3):
            self._join()
        kinds, weights = zip(*STEPS, strict=True)
        for step in self.dice.choices(kinds, weights, k=self.steps):
            await step(self)
            if self._evicts:
                self._evict()
        await self._settle()
        await self._check()

    def _join(self) -> None:
        name = f"c{len(self.clients)}"
        wanted = self.dice.sample(self.known, self.dice.randrange(len(self.known)))
        if self._has_scratch or self.dice.random() < 0.7:
            wanted.append(ROOT_CHANNEL)
        mirror = self._mirror(name, wanted, is_careful=self.dice.random() < 0.5)
        self.clients.append(Client(mirror, self.dice.choice(ROLES)))

    def _mirror(self, name: str, wanted: list[Uri], *, is_careful: bool) -> Mirror:
        version = self.dice.choice(self._versions)
        if version == PROTOCOL_VERSION:
            return Mirror(name, wanted, is_careful=is_careful, seen=self.seen)
        seen = self.ahp1_seen.setdefault(VARIANTS[version], {})
        return Ahp1Mirror(
            name, wanted, PROVIDERS, version=version, is_careful=is_careful, seen=seen
        )

    def _connect(self, client: Client) -> None:
        client.link = self._make_link(self.host, client.principal, client.mirror, self.dice)

    def _online(self) -> Client | None:
        client = self.dice.choice(self.clients)
        return client if client.link is not None else None

    async def act(self) -> None:
        client = self._online()
        if client is None or client.link is None or not client.mirror.is_in:
            return
        for _ in range(self.dice.choice((1, 2, 3, 8))):
            role = client.principal.role
            frame = some_frame(self.dice, client.mirror, role, self.known)
            if frame is not None:
                client.link.say(frame)

    async def make_or_dispose(self) -> None:
        if not self._has_scratch:
            return
        for client in self.dice.choices(self.clients, k=1 if self._fresh is not None else 4):
            if client.link is not None and client.mirror.is_in:
                frame = self._made_or_disposed(client.mirror)
                if frame is not None:
                    client.link.say(frame)

    def _made_or_disposed(self, mirror: Mirror) -> Frame | None:
        uri = self.dice.choice(self._scratch)
        if self.dice.random() < 0.5:
            return mirror.request("disposeSession", uri)
        if self._fresh is not None:
            if not self._fresh:
                return None
            uri = self._fresh.pop()
        return mirror.request("createSession", uri, provider="people")

    async def carry(self) -> None:
        for client in self.dice.choices(self.clients, k=8):
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

    def _evict(self) -> None:
        """Begins to, while other things happen."""

        async def evict(session: Any) -> None:
            await self.host.loaded.evict(session)

        for session in self.host.sessions.values():
            if self.host.loaded.is_evictable(session):
                self.host.spawn(evict(session))

    def _count_loads(self) -> None:
        self.evictions += self.host.counts.evictions
        self.loads += self.host.counts.loads

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
            await self.host.loaded.all_of(tuple(self.host.sessions))
        self._count_loads()
        await self.host.stop()
        for client in self.clients:
            self._carry_all(client)

    def _carry_all(self, client: Client) -> None:
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
        oracle = LogOracle(self.history.values())
        self._check_host(oracle)
        self._check_log(oracle, await entries_of(self.log.inner), await self.log.inner.floors())
        later = {variant: Ahp1Oracle(oracle, variant) for variant in self.ahp1_seen}
        for client in self.clients:
            if isinstance(client.mirror, Ahp1Mirror):
                later[client.mirror.variant].check_mirror(client.mirror)
            else:
                oracle.check_mirror(client.mirror)
        oracle.check_seen(self.seen)
        for variant, seen in self.ahp1_seen.items():
            later[variant].check_seen(seen)
        await self._check_restart(oracle)

    def _check_host(self, oracle: LogOracle) -> None:
        for uri, record in held_by(self.host).items():
            expect(
                record == oracle.records.get(uri), f"{uri}: the host holds what its log does not"
            )

    def _check_log(self, oracle: LogOracle, stored: list[Entry], floors: dict[Uri, Seq]) -> None:
        """What can still be read is what became durable, in that order, and nothing twice."""
        seqs = [entry.seq for entry in stored]
        expect(seqs == sorted(set(seqs)), "the log is out of order")
        expect(all(self.history[e.seq] == e for e in stored), "the log holds what nobody wrote")
        present, held = frozenset(seqs), held_by(self.host)
        for entry in self.history.values():
            begin = max(floors.get(entry.channel, 0) + 1, oracle.openings.get(entry.channel, 0))
            is_due = entry.channel in held and entry.seq >= begin
            expect(not is_due or entry.seq in present, f"{entry.seq} is gone from the log")

    async def _check_restart(self, oracle: LogOracle) -> None:
        """A host that starts from the log holds the same sessions."""
        again = Host(SlowLog(self.log.inner, self.dice, {}), self.host.agents)
        await again.start()
        await again.loaded.all_of(tuple(again.sessions))
        held = held_by(again)
        wanted = {uri: oracle.records[uri] for uri in held_by(self.host)}
        del held[ROOT_CHANNEL], wanted[ROOT_CHANNEL]  # a start may have news for the root
        expect(held == wanted, "a host that starts again holds something else")
        await again.stop()


def held_by(host: Host) -> dict[Uri, Any]:
    held: dict[Uri, Any] = {uri: channel.committed for uri, channel in host.sessions.items()}
    held[ROOT_CHANNEL] = host.root.committed
    held[CLIENTS_CHANNEL] = host.clients.channel.committed
    return held


STEPS: tuple[tuple[Callable[[Schedule], Awaitable[None]], int], ...] = (
    (Schedule.act, 60),
    (Schedule.carry, 50),
    (Schedule.turn, 12),
    (Schedule.write, 30),
    (Schedule.connect, 40),
    (Schedule.cut, 8),
    (Schedule.bury, 4),
    (Schedule.join, 4),
    (Schedule.make_or_dispose, 6),
    (Schedule.die, 2),
)
