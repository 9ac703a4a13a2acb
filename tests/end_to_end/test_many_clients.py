"""Many at once: all come back at the same moment, and thousands just sit there."""

import asyncio
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect

from session_server.log.opening import open_log
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.wire import Seq, Uri
from tests.ahp.actions import title_changed
from tests.ahp.ahp1_mirror import VARIANTS, Ahp1Mirror
from tests.ahp.ahp1_oracle import Ahp1Oracle
from tests.ahp.client import SocketClient
from tests.ahp.mirror import ROOT, Mirror
from tests.ahp.oracle import LogOracle
from tests.end_to_end.mirror_client import Device
from tests.servers import ServerProcess, serving, sqlite_store

SESSIONS: tuple[Uri, ...] = tuple(f"ahp-session:/{number}" for number in range(4))
STORM = 500
IDLE = 5_000
AT_ONCE = 100
"""Connections that are opened at the same time where that is not the point."""

MINUTES = 120.0


def titled(title: str) -> dict[str, Any]:
    return title_changed(title)


class Storm:
    def __init__(self, crowd: int, dice: Random) -> None:
        self.dice = dice
        self.seen: dict[Seq, ActionEnvelope] = {}
        self.devices = [Device(self._mirror(number)) for number in range(crowd)]
        self.writer = Device(Mirror("writer", SESSIONS, seen=self.seen))
        self._written = 0

    def _mirror(self, number: int) -> Mirror:
        """Of four, two speak later versions."""
        name, watched = f"c{number}", self.dice.sample(SESSIONS, 2)
        if number % 4 < 2:
            return Mirror(name, watched, seen=self.seen)
        providers = dict.fromkeys(SESSIONS, "people")
        return Ahp1Mirror(name, watched, providers, version=[*VARIANTS][number % len(VARIANTS)])

    async def gather(self, server: ServerProcess) -> None:
        maker = await SocketClient.open(server.ahp)
        await maker.initialize("maker")
        for uri in SESSIONS:
            await maker.call("createSession", uri, provider="people")
        await maker.close()
        await self.writer.connect(server.ahp)
        for start in range(0, len(self.devices), AT_ONCE):
            group = self.devices[start : start + AT_ONCE]
            await asyncio.gather(*(device.connect(server.ahp) for device in group))

    async def write(self, number: int) -> None:
        mirror = self.writer.mirror
        for _ in range(number):
            self._written += 1
            uri = self.dice.choice(SESSIONS)
            await self.writer.say(mirror.dispatch(uri, titled(f"number {self._written}")))
        await self.writer.until(lambda: not mirror.unanswered)

    async def scatter(self) -> None:
        """One after the other is cut off, each at a position of its own."""
        left = self.dice.sample(self.devices, len(self.devices))
        while left:
            await self.write(self.dice.randrange(1, 12))
            for _ in range(min(len(left), len(self.devices) // 20)):
                left.pop().cut()
        for device in self.devices:
            await device.ended()
        await self.write(30)

    async def come_back(self, server: ServerProcess) -> None:
        async with asyncio.timeout(MINUTES):
            await asyncio.gather(*(device.connect(server.ahp) for device in self.devices))

    async def close(self) -> None:
        for device in (self.writer, *self.devices):
            await device.hang_up()


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_clients_reconnecting_at_once_get_exactly_what_they_missed(
    tmp_path: Path, record_property: Any, *, is_restarted: bool
) -> None:
    store = sqlite_store(tmp_path)
    storm = Storm(STORM, Random(STORM))
    server = ServerProcess(store)
    try:
        await storm.gather(server)
        await storm.scatter()
        positions = {device.mirror.last_seen for device in storm.devices}
        if is_restarted:
            server.kill()
            server = ServerProcess(store)
            await storm.writer.connect(server.ahp)
        began = time.perf_counter()
        await storm.come_back(server)
        took = time.perf_counter() - began
        await storm.write(5)
        for device in storm.devices:
            await device.ping()
    finally:
        server.kill()
    log = await open_log(store)
    oracle = await LogOracle.of(log)
    await log.close()
    later = {variant: Ahp1Oracle(oracle, variant) for variant in VARIANTS.values()}
    for device in storm.devices:
        mirror = device.mirror
        assert mirror.errors == []
        if isinstance(mirror, Ahp1Mirror):
            # What later versions are told of a session is not made again after a restart.
            how = "snapshot" if is_restarted else "replay"
            later[mirror.variant].check_mirror(mirror)
        else:
            how = "replay"
            oracle.check_mirror(mirror)
        assert mirror.resumptions == ["initialize", how]
    await storm.close()
    record_property("clients", STORM)
    record_property("positions", len(positions))
    record_property("seconds_until_all_were_back", round(took, 2))


@contextmanager
def open_files(number: int) -> Iterator[None]:
    """So many for this process and those that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        pytest.skip(f"only {hard} open files are allowed here, and {number} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def sit_down(url: str, number: int) -> ClientConnection:
    socket = await connect(
        url, compression=None, ping_interval=None, close_timeout=1, open_timeout=MINUTES
    )
    params = {
        "channel": ROOT,
        "protocolVersions": ["0.3.0"],
        "clientId": f"idle-{number}",
        "initialSubscriptions": [SESSIONS[0]],
    }
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    await socket.send(msgspec.json.encode(frame), text=True)
    answer = msgspec.json.decode(await socket.recv())
    assert [shown["resource"] for shown in answer["result"]["snapshots"]] == [SESSIONS[0]]
    return socket


async def hears(socket: ClientConnection, title: str) -> None:
    frame = msgspec.json.decode(await socket.recv())
    assert frame["params"]["action"]["title"] == title


async def test_one_action_reaches_thousands_of_idle_clients(record_property: Any) -> None:
    crowd = ("--connections-per-principal", "0", "--actions-per-second", "0")
    with open_files(2 * IDLE), serving("memory:", *crowd) as server:
        writer = await SocketClient.open(server.ahp)
        await writer.initialize("writer")
        await writer.call("createSession", SESSIONS[0], provider="people")
        await writer.call("subscribe", SESSIONS[0])
        before = server.resident_kib
        sockets: list[ClientConnection] = []
        async with asyncio.timeout(MINUTES):
            for start in range(0, IDLE, AT_ONCE):
                group = (sit_down(server.ahp, start + n) for n in range(AT_ONCE))
                sockets += await asyncio.gather(*group)
        after = server.resident_kib
        began = time.perf_counter()
        writer.dispatch(titled("to all"), SESSIONS[0])
        async with asyncio.timeout(MINUTES):
            await asyncio.gather(*(hears(socket, "to all") for socket in sockets))
        took = time.perf_counter() - began
        for socket in sockets:
            socket.transport.abort()
        record_property("connections", len(sockets))
        record_property("kib_per_connection", round((after - before) / IDLE, 1))
        record_property("seconds_until_all_had_heard", round(took, 3))
