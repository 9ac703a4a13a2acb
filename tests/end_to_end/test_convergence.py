"""The same as in tests/host, with a server process, real sockets and a real file."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from session_server.log.opening import open_log
from session_server.schemas.envelopes import ActionEnvelope
from session_server.schemas.principals import Role
from session_server.schemas.wire import Seq, Uri
from tests.end_to_end.devices import PATIENCE, Device
from tests.host.agreement import Truth
from tests.host.harness import run
from tests.host.mirror import ROOT, Mirror
from tests.host.people import some_frame
from tests.servers import PLAIN, SERVE, ServerProcess, sqlite_store

SCHEDULES = 50 if os.environ.get("CI") == "true" else 5
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
        await maker.ping()
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
            for _ in range(self.dice.choice((1, 2, 8))):
                frame = some_frame(self.dice, device.mirror, Role.OWNER, self.uris)
                if frame is not None:
                    await device.say(frame)
        else:
            await asyncio.sleep(0)

    async def lose_server(self) -> None:
        for device in self.devices:
            await device.ended()

    async def agree(self, server: ServerProcess) -> None:
        """Everybody comes back, and then sees what a newcomer is shown."""
        while len(self.devices) < self.crowd:
            self.join()
        async with asyncio.timeout(PATIENCE):
            while not await self._is_agreed(server):
                pass

    async def _is_agreed(self, server: ServerProcess) -> bool:
        """Agents may still be at work; as long as they are, this is asked again."""
        for device in self.devices:
            if not device.is_online:
                await device.dial(server.ahp)
            await device.ping()
        newcomer = Device(Mirror("newcomer", [ROOT, *self.uris]))
        await newcomer.connect(server.ahp)
        shown = {uri: copy.state for uri, copy in newcomer.mirror.copies.items()}
        await newcomer.hang_up()
        return all(
            copy.state == shown[uri]
            for device in self.devices
            for uri, copy in device.mirror.copies.items()
        )

    async def close(self) -> None:
        for device in self.devices:
            await device.hang_up()


class Season:
    """Gatherings one after the other, on servers that die and come back on the same file."""

    def __init__(self, store: str, command: Sequence[str]) -> None:
        self.store = store
        self.command = command
        self.dice = Random(7)
        self.seen: dict[Seq, ActionEnvelope] = {}
        self.gatherings: list[Gathering] = []
        self.crashes = 0

    async def run(self, schedules: int) -> None:
        server = ServerProcess(self.store, command=self.command)
        try:
            for seed in range(schedules):
                server = await self._gather(seed, server)
        finally:
            server.kill()
        await self._check()

    async def _gather(self, seed: int, server: ServerProcess) -> ServerProcess:
        gathering = Gathering(seed, self.seen)
        self.gatherings.append(gathering)
        await gathering.open(server)
        steps = self.dice.randrange(120, 250)
        crash_at = self.dice.randrange(steps) if seed % 3 == 1 else None
        for number in range(steps):
            if number == crash_at:
                server.kill()
                await gathering.lose_server()
                server = ServerProcess(self.store, command=self.command)
                self.crashes += 1
            await gathering.step(server)
        await gathering.agree(server)
        await gathering.close()
        return server

    async def _check(self) -> None:
        log = await open_log(self.store)
        truth = await Truth.of(log)
        await log.close()
        truth.check_seen(self.seen)
        for gathering in self.gatherings:
            for device in gathering.devices:
                truth.check_past_mirror(device.mirror)
        assert len(self.seen) > len(self.gatherings)


@pytest.mark.proves("ahp.reconnect.seamless", "design.words.order")
@run
async def test_clients_server_and_log_agree_whatever_breaks(
    tmp_path: Path, record_property: Any
) -> None:
    season = Season(sqlite_store(tmp_path), SERVE)
    await season.run(SCHEDULES)
    record_property("schedules", SCHEDULES)
    record_property("crashes", season.crashes)
    record_property("cuts", sum(gathering.cuts for gathering in season.gatherings))
    record_property("envelopes", len(season.seen))


@pytest.mark.slow
@pytest.mark.proves("design.speed.embedded")
@run
async def test_they_agree_under_another_websocket_implementation(tmp_path: Path) -> None:
    await Season(sqlite_store(tmp_path), PLAIN).run(max(2, SCHEDULES // 10))
