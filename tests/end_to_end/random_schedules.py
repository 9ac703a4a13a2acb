"""Random schedules over real sockets: who takes part, what breaks, what must hold in the end."""

import asyncio
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, TypeAlias

from session_server.log.opening import open_log
from session_server.schemas.ahp.commands import PROTOCOL_VERSION
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.principals import Role
from session_server.schemas.wire import Seq, Uri
from tests.ahp.actions import title_changed
from tests.ahp.ahp1_mirror import VARIANTS, Ahp1Mirror
from tests.ahp.ahp1_oracle import Ahp1Oracle
from tests.ahp.mirror import ROOT, Mirror, State
from tests.ahp.oracle import Diverged, LogOracle, expect
from tests.effort import PATIENCE
from tests.end_to_end.mirror_client import Device
from tests.host.random_actions import some_frame
from tests.servers import ServerProcess

PROVIDERS = ("demo", "demo", "people")
VERSIONS = (PROTOCOL_VERSION, *VARIANTS)

Seen: TypeAlias = dict[str, dict[Seq, Any]]
"""By version: what anybody got under a number."""


class Schedule:
    """The clients and sessions of one schedule. Many can take place on one server."""

    def __init__(self, seed: int, seen: Seen) -> None:
        self.dice = Random(seed)
        self.seed = seed
        self.seen = seen
        self.uris: list[Uri] = [f"ahp-session:/{seed}-{n}" for n in range(len(PROVIDERS))]
        self.devices: list[Device] = []
        self.crowd = self.dice.randrange(12, 25)
        self.cuts = 0

    def join(self) -> Device:
        wanted = self.dice.sample(self.uris, self.dice.randrange(1, len(self.uris) + 1))
        if self.dice.random() < 0.5:
            wanted.append(ROOT)
        device = Device(self._mirror(f"{self.seed}-c{len(self.devices)}", wanted))
        self.devices.append(device)
        return device

    def _mirror(self, name: str, wanted: list[Uri]) -> Mirror:
        is_careful, version = self.dice.random() < 0.5, self.dice.choice(VERSIONS)
        seen = self.seen[version]
        if version == PROTOCOL_VERSION:
            return Mirror(name, wanted, is_careful=is_careful, seen=seen)
        return self._ahp1_mirror(name, wanted, version, is_careful=is_careful, seen=seen)

    def _ahp1_mirror(
        self, name: str, wanted: list[Uri], version: str, **options: Any
    ) -> Ahp1Mirror:
        providers = dict(zip(self.uris, PROVIDERS, strict=True))
        return Ahp1Mirror(name, wanted, providers, version=version, **options)

    async def open(self, server: ServerProcess) -> None:
        maker = Device(Mirror(f"{self.seed}-maker", self.uris, seen=self.seen[PROTOCOL_VERSION]))
        self.devices.append(maker)
        await maker.connect(server.ahp)
        for uri, provider in zip(self.uris, PROVIDERS, strict=True):
            await maker.say(maker.mirror.request("createSession", uri, provider=provider))
        await maker.until(lambda: not maker.mirror.is_waiting)
        for _ in range(self.crowd // 2):
            await self.join().dial(server.ahp)

    async def step(self, server: ServerProcess) -> None:
        device = self.dice.choice(self.devices)
        if not device.is_online:
            await device.dial(server.ahp)
            return
        chance = self.dice.random()
        if chance < 0.08:
            device.cut()
            self.cuts += 1
        elif chance < 0.12 and len(self.devices) < self.crowd:
            await self.join().dial(server.ahp)
        elif chance < 0.2 and device.mirror.is_in:
            await device.ping()
        elif device.mirror.is_in:
            await self._act(device)
        else:
            await asyncio.sleep(0)

    async def _act(self, device: Device) -> None:
        for _ in range(self.dice.choice((1, 2, 8))):
            frame = some_frame(self.dice, device.mirror, Role.OWNER, self.uris)
            if frame is not None:
                await device.say(frame)

    async def lose_server(self) -> None:
        for device in self.devices:
            await device.ended()

    async def agree(self, server: ServerProcess) -> None:
        """Everybody comes back, and once nothing happens any more, all hold what the host shows."""
        while len(self.devices) < self.crowd:
            self.join()
        observer = QuietObserver(self, server)
        try:
            async with asyncio.timeout(PATIENCE):
                shown: dict[Uri, Any] = await observer.shown_when_quiet()
        except TimeoutError:
            raise Diverged("somebody waits for what never comes") from None
        await observer.hang_up()
        later = await self._shown_to_later_versions(server)
        for device in self.devices:
            who = device.mirror.client_id
            expect(not device.mirror.faults, f"{who}: {device.mirror.faults[:3]}")
            mirror = device.mirror
            wanted = later[mirror.version] if isinstance(mirror, Ahp1Mirror) else shown
            for uri, copy in mirror.copies.items():
                expect(copy.state == wanted[uri], f"{who}: {uri} is not what the host shows")

    async def _shown_to_later_versions(self, server: ServerProcess) -> dict[str, dict[Uri, Any]]:
        """By version: what somebody sees who comes now."""
        shown: dict[str, dict[Uri, Any]] = {}
        for version in VARIANTS:
            name = f"{self.seed}-observer-{version}"
            device = Device(self._ahp1_mirror(name, [ROOT, *self.uris], version))
            await device.connect(server.ahp)
            shown[version] = {uri: copy.state for uri, copy in device.mirror.copies.items()}
            await device.hang_up()
        return shown

    async def all_back(self, server: ServerProcess) -> None:
        """Whatever was sent to any of them before has arrived when this returns."""
        for device in self.devices:
            while not device.mirror.is_in or not device.is_online:
                await device.connect(server.ahp)
            await device.ping()

    async def close(self) -> None:
        for device in self.devices:
            await device.hang_up()


class QuietObserver(Device):
    """Finds out when a schedule is over: nothing under way, and nobody at work."""

    def __init__(self, schedule: Schedule, server: ServerProcess) -> None:
        super().__init__(Mirror(f"{schedule.seed}-observer", [ROOT, *schedule.uris]))
        self._schedule = schedule
        self._server = server
        self._marks = 0

    async def shown_when_quiet(self) -> dict[Uri, State]:
        await self.connect(self._server.ahp)
        for uri in self._schedule.uris:
            expect(uri in self.mirror.copies, f"{uri} was made, and is gone")
        while True:
            await self._schedule.all_back(self._server)
            await self._mark()
            before = await self._shown()
            await self._schedule.all_back(self._server)
            after = await self._shown()
            if before == after and all(map(is_idle, after.values())):
                return after

    async def _mark(self) -> None:
        """Everything that was submitted to a session before its mark is delivered before it."""
        self._marks += 1
        for uri in self._schedule.uris:
            title = title_changed(f"over {self._marks}")
            await self.say(self.mirror.dispatch(uri, title))
        await self.until(lambda: not self.mirror.unanswered)

    async def _shown(self) -> dict[Uri, State]:
        """As a newcomer would see it."""
        for uri in (ROOT, *self._schedule.uris):
            await self.say(self.mirror.request("subscribe", uri))
        await self.until(lambda: not self.mirror.is_waiting)
        return {uri: copy.state for uri, copy in self.mirror.copies.items()}


def is_idle(state: State) -> bool:
    """Nobody but a person can go on: an agent waits for answers, or has nothing to do."""
    if not isinstance(state, SessionState):
        return True
    if state.active_turn is not None:
        return bool(state.input_requests)
    return not state.queued_messages


class ScheduleSeries:
    """Gatherings one after the other, on servers that die and come back on the same file."""

    def __init__(self, store: str, command: Sequence[str]) -> None:
        self.store = store
        self.command = command
        self.dice = Random(7)
        self.seen: Seen = {version: {} for version in VERSIONS}
        self.schedules: list[Schedule] = []
        self.crashes = 0

    async def run(self, seeds: Iterable[int]) -> None:
        self.server = self._started()
        try:
            for seed in seeds:
                await self._gather(seed)
        finally:
            self.server.kill()
            for schedule in self.schedules:
                await schedule.close()
        await self._check()

    def _started(self) -> ServerProcess:
        return ServerProcess(self.store, command=self.command)

    async def _gather(self, seed: int) -> None:
        schedule = Schedule(seed, self.seen)
        self.schedules.append(schedule)
        await schedule.open(self.server)
        steps = self.dice.randrange(120, 250)
        crash_at = self.dice.randrange(steps) if seed % 3 == 1 else None
        for number in range(steps):
            if number == crash_at:
                self.server.kill()
                await schedule.lose_server()
                self.server = self._started()
                self.crashes += 1
            await schedule.step(self.server)
        await schedule.agree(self.server)
        await schedule.close()

    async def _check(self) -> None:
        log = await open_log(self.store)
        oracle = await LogOracle.of(log)
        await log.close()
        oracle.check_seen(self.seen[PROTOCOL_VERSION])
        later = {variant: Ahp1Oracle(oracle, variant) for variant in VARIANTS.values()}
        for version, variant in VARIANTS.items():
            later[variant].check_seen(self.seen[version])
        for schedule in self.schedules:
            for device in schedule.devices:
                mirror = device.mirror
                if isinstance(mirror, Ahp1Mirror):
                    later[mirror.variant].check_past_mirror(mirror)
                else:
                    oracle.check_past_mirror(mirror)
        assert min(map(len, self.seen.values())) > len(self.schedules)

    def measured(self) -> dict[str, Any]:
        return {
            "schedules": len(self.schedules),
            "crashes": self.crashes,
            "cuts": sum(schedule.cuts for schedule in self.schedules),
            **{f"envelopes of {version}": len(seen) for version, seen in self.seen.items()},
        }
