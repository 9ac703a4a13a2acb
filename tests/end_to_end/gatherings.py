"""Random schedules over real sockets: who takes part, what breaks, what must hold in the end."""

import asyncio
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from session_server.log.opening import open_log
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.principals import Role
from session_server.schemas.wire import Seq, Uri
from tests.end_to_end.devices import PATIENCE, Device
from tests.host.agreement import Diverged, Truth, expect
from tests.host.mirror import ROOT, Mirror, State
from tests.host.people import some_frame
from tests.servers import ServerProcess

PROVIDERS = ("demo", "demo", "people")


class Gathering:
    """The clients and sessions of one schedule. Many can take place on one server."""

    def __init__(self, seed: int, seen: dict[Seq, ActionEnvelope]) -> None:
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
        name = f"{self.seed}-c{len(self.devices)}"
        is_careful = self.dice.random() < 0.5
        device = Device(Mirror(name, wanted, is_careful=is_careful, seen=self.seen))
        self.devices.append(device)
        return device

    async def open(self, server: ServerProcess) -> None:
        maker = self.join()
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
        witness = Witness(self, server)
        try:
            async with asyncio.timeout(PATIENCE):
                shown = await witness.shown_when_quiet()
        except TimeoutError:
            raise Diverged("somebody waits for what never comes") from None
        await witness.hang_up()
        for device in self.devices:
            who = device.mirror.client_id
            expect(not device.mirror.faults, f"{who}: {device.mirror.faults[:3]}")
            for uri, copy in device.mirror.copies.items():
                expect(copy.state == shown[uri], f"{who}: {uri} is not what the host shows")

    async def all_back(self, server: ServerProcess) -> None:
        """Whatever was sent to any of them before has arrived when this returns."""
        for device in self.devices:
            while not device.mirror.is_in or not device.is_online:
                await device.connect(server.ahp)
            await device.ping()

    async def close(self) -> None:
        for device in self.devices:
            await device.hang_up()


class Witness(Device):
    """Finds out when a gathering is over: nothing under way, and nobody at work."""

    def __init__(self, gathering: Gathering, server: ServerProcess) -> None:
        super().__init__(Mirror(f"{gathering.seed}-witness", [ROOT, *gathering.uris]))
        self._gathering = gathering
        self._server = server
        self._marks = 0

    async def shown_when_quiet(self) -> dict[Uri, State]:
        await self.connect(self._server.ahp)
        for uri in self._gathering.uris:
            expect(uri in self.mirror.copies, f"{uri} was made, and is gone")
        while True:
            await self._gathering.all_back(self._server)
            await self._mark()
            before = await self._shown()
            await self._gathering.all_back(self._server)
            after = await self._shown()
            if before == after and all(map(is_idle, after.values())):
                return after

    async def _mark(self) -> None:
        """Everything that was submitted to a session before its mark is delivered before it."""
        self._marks += 1
        for uri in self._gathering.uris:
            title = {"type": "session/titleChanged", "title": f"over {self._marks}"}
            await self.say(self.mirror.dispatch(uri, title))
        await self.until(lambda: len(self.mirror.echoed) == self.mirror.client_seq)

    async def _shown(self) -> dict[Uri, State]:
        """As a newcomer would see it."""
        for uri in (ROOT, *self._gathering.uris):
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


class Season:
    """Gatherings one after the other, on servers that die and come back on the same file."""

    def __init__(self, store: str, command: Sequence[str]) -> None:
        self.store = store
        self.command = command
        self.dice = Random(7)
        self.seen: dict[Seq, ActionEnvelope] = {}
        self.gatherings: list[Gathering] = []
        self.crashes = 0

    async def run(self, seeds: Iterable[int]) -> None:
        self.server = self._started()
        try:
            for seed in seeds:
                await self._gather(seed)
        finally:
            self.server.kill()
            for gathering in self.gatherings:
                await gathering.close()
        await self._check()

    def _started(self) -> ServerProcess:
        return ServerProcess(self.store, command=self.command)

    async def _gather(self, seed: int) -> None:
        gathering = Gathering(seed, self.seen)
        self.gatherings.append(gathering)
        await gathering.open(self.server)
        steps = self.dice.randrange(120, 250)
        crash_at = self.dice.randrange(steps) if seed % 3 == 1 else None
        for number in range(steps):
            if number == crash_at:
                self.server.kill()
                await gathering.lose_server()
                self.server = self._started()
                self.crashes += 1
            await gathering.step(self.server)
        await gathering.agree(self.server)
        await gathering.close()

    async def _check(self) -> None:
        log = await open_log(self.store)
        truth = await Truth.of(log)
        await log.close()
        truth.check_seen(self.seen)
        for gathering in self.gatherings:
            for device in gathering.devices:
                truth.check_past_mirror(device.mirror)
        assert len(self.seen) > len(self.gatherings)

    def measured(self) -> dict[str, Any]:
        return {
            "schedules": len(self.gatherings),
            "crashes": self.crashes,
            "cuts": sum(gathering.cuts for gathering in self.gatherings),
            "envelopes": len(self.seen),
        }
