"""Sessions that nobody looks at leave the memory of a real process, and its start skips them."""

import asyncio
import re
from pathlib import Path

import httpx2
import pytest

from session_server.host.host_limits import HostLimits
from session_server.log import Sync
from session_server.log.opening import open_log
from tests.ahp.actions import input_completed, input_requested
from tests.ahp.client import SESSION, SocketClient
from tests.host.harness import AGENT, ANA, Client, hosting, joined
from tests.http.sessions import Api, numbers
from tests.servers import ServerProcess, serving, sqlite_store
from tests.waiting import wait_until

pytestmark = pytest.mark.proves("design.memory.needed")

SESSIONS = 2_000
OPEN = 3
"""Sessions with a question that nobody has answered."""

QUESTION_CHARS = 20_000
STAYING = ("--idle-seconds", "0", "--max-loaded-bytes", "0")
"""What is in memory stays there."""


async def filled(folder: Path) -> None:
    """A store with sessions of which some are open and none has a snapshot."""
    log = await open_log(sqlite_store(folder), sync=Sync.NORMAL)
    limits = HostLimits(actions_per_second=0, loaded_bytes=0, idle_seconds=0)
    async with hosting(log, limits=limits) as host:
        for first in range(0, SESSIONS, 100):
            ana = await joined(host, ANA, f"ana {first}")
            agent = await joined(host, AGENT, f"agent {first}")
            numbers = range(first, first + 100)
            await asyncio.gather(*(_made(ana, agent, number) for number in numbers))


async def _made(ana: Client, agent: Client, number: int) -> None:
    uri = f"ahp-session:/{number}"
    assert await ana.call("createSession", uri, provider="people") is None
    for client in (ana, agent):
        await client.call("subscribe", uri)
    await agent.act(input_requested("r", message=f"{number} {'x' * QUESTION_CHARS}"), uri)
    if number >= OPEN:
        ended = await ana.act(input_completed("r", "decline"), uri)
        assert "rejectionReason" not in ended, ended["rejectionReason"]
    for client in (ana, agent):
        await client.call("unsubscribe", uri)


def metric(server: ServerProcess, name: str) -> float:
    with Api(server.url) as api:
        return numbers(api)[name]


def resident(server: ServerProcess) -> int:
    """MiB of the process that are its own."""
    text = Path(f"/proc/{server.pid}/smaps_rollup").read_text()
    return sum(map(int, re.findall(r"^Private_\w+:\s+(\d+)", text, re.MULTILINE))) // 1024


def test_idle_sessions_leave_memory_and_a_start_reads_only_what_it_must(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path))
    store = sqlite_store(tmp_path)
    with serving(store, *STAYING) as server:
        assert metric(server, "loaded_sessions") == SESSIONS
        with_all = resident(server)
        server.kill()
    with serving(store, "--idle-seconds", "1") as server:
        wait_until(lambda: metric(server, "loaded_sessions") == OPEN, 600)
        assert metric(server, "loaded_state_bytes") < metric(server, "state_bytes") / 100
        server.kill()
    with serving(store, *STAYING) as server:
        assert metric(server, "loaded_sessions") == OPEN
        assert metric(server, "open_requests") == OPEN
        assert metric(server, "sessions") == SESSIONS
        assert metric(server, "loads_total") == 0
        without = resident(server)
        # 2,000 sessions of 20 kB are more than 40 MiB even as text.
        assert with_all - without > 40, (with_all, without)
        assert len(httpx2.get(f"{server.url}/v1/sessions", timeout=60).json()["items"]) == SESSIONS
        assert metric(server, "loads_total") == 0
        asyncio.run(read(server))
        assert metric(server, "loads_total") == 1


async def read(server: ServerProcess) -> None:
    """One that is open, and one that has to be read for it."""
    client = await SocketClient.joined(server.ahp, "laptop", SESSION, "ahp-session:/1999")
    shown = client.received[0]["result"]["snapshots"]
    assert [len(one["state"].get("inputRequests", ())) for one in shown] == [1, 0]
    assert len(shown[1]["state"]["turns"]) == 1
    await client.close()
