"""What a host holds on to: many sessions, many comings and goings, one long session.

`python -m benchmarks.lasting`. Memory is the process's own (resident); times are of the processor.
"""

import asyncio
import gc
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from time import process_time
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from session_server.agents.registry import installed_agents
from session_server.agents.turns import AgentTurns
from session_server.host import upkeep
from session_server.host.connection import Connection
from session_server.host.delivery import Message, Outbox
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.host.pace import Bounds
from session_server.host.performing import perform, write
from session_server.log import Sync
from session_server.log.opening import open_log
from session_server.schemas.actions import (
    ResponsePartAdded,
    TitleChanged,
    TurnComplete,
    TurnStarted,
)
from session_server.schemas.commands import CreateSessionParams
from session_server.schemas.messages import USER, MessageOrigin
from session_server.schemas.messages import Message as Said
from session_server.schemas.principals import Author, Principal, Role
from session_server.schemas.turns import MarkdownPart

SESSIONS = 10_000
AT_ONCE = 500
ROUNDS = 10
TURNS = 2_000
USED, ACTIONS = 1_000, 300
OWNER = Principal(id="local", role=Role.OWNER)
AGENT = Author(id="agent:bench")
LONG = "ahp-session:/long"


def megabytes() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


@asynccontextmanager
async def hosting(folder: Path) -> AsyncIterator[tuple[Host, float]]:
    """A host on what is in the folder, and what it took to start."""
    begun = process_time()
    log = await open_log(f"sqlite:///{folder / 'log.db'}", sync=Sync.NORMAL)
    agents = installed_agents()
    infos = tuple(agent.info for agent in agents.values())
    host = Host(log, infos, Bounds(0, 0, 0, 0, 0))
    effects = EffectRunner(host, AgentTurns(host, agents))
    await host.start()
    effects.restarted()
    took = process_time() - begun
    try:
        yield host, took
    finally:
        await host.stop()


async def made(host: Host, uris: Iterable[str]) -> None:
    done: list[asyncio.Future[None]] = []
    for uri in uris:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        params = CreateSessionParams(channel=uri, provider="people")
        host.create_session(
            OWNER,
            params,
            done=lambda future=future: future.set_result(None),
            failed=lambda words, future=future: future.set_exception(RuntimeError(words)),
        )
        done.append(future)
    await asyncio.gather(*done)


class Nowhere(Outbox):
    """Where a client would read; `answered` once it was sent something."""

    closed_with: int | None = None

    def __init__(self) -> None:
        self.answered = asyncio.Event()

    def send(self, _: Message) -> None:
        self.answered.set()

    def close(self, code: int, _: str) -> None:
        self.closed_with = code


def frame(number: int, method: str, **params: Any) -> bytes:
    whole = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return msgspec.json.encode(whole)


async def visited(host: Host, run: int) -> None:
    """Many come, look at three channels each, and go."""
    guests = []
    for number in range(AT_ONCE):
        outbox = Nowhere()
        guest = Connection(host, OWNER, outbox)
        uris = ["ahp-root://", f"ahp-session:/{number}", f"ahp-presence:/{number}"]
        hello = {"protocolVersions": ["0.3.0"], "clientId": f"guest-{run}-{number}"}
        guest.receive(
            frame(1, "initialize", channel="ahp-root://", initialSubscriptions=uris, **hello)
        )
        guests.append((guest, outbox))
    for guest, outbox in guests:
        await outbox.answered.wait()
        guest.closed()


async def lived(host: Host) -> None:
    await made(host, [LONG])
    for number in range(TURNS):
        turn_id = f"t{number}"
        message = Said(text=f"Question {number}", origin=MessageOrigin(kind=USER))
        part = MarkdownPart(id=f"m{number}", content="Some text. " * 20)
        actions = (
            TurnStarted(turn_id=turn_id, message=message),
            ResponsePartAdded(turn_id=turn_id, part=part),
            TurnComplete(turn_id=turn_id),
        )
        await write(host, LONG, lambda *_, actions=actions: actions, AGENT)


async def retitled(host: Host, uri: str, times: int) -> float:
    """Processor time of one small action, in microseconds."""
    begun = process_time()
    for number in range(times):
        await perform(host, OWNER, uri, TitleChanged(title=f"Title {number}"))
    return (process_time() - begun) / times * 1e6


async def used(host: Host) -> None:
    """Some sessions have seen many actions."""
    for number in range(USED):
        actions = [TitleChanged(title=f"Title {n}") for n in range(ACTIONS)]
        await write(host, f"ahp-session:/{number}", lambda *_, actions=actions: actions, AGENT)


async def rested(host: Host) -> None:
    """As if nothing had happened for long, and one round of upkeep later."""
    upkeep.AGING_SECONDS, upkeep.HISTORY_IDLE_MS = 0.0, -1
    caring = host.spawn(host.upkeep.age(host.sessions.values, host.now))
    last = host.sessions[f"ahp-session:/{USED - 1}"]
    while last.entries_since_snapshot:
        await retitled(host, LONG, 1)
    caring.cancel()


class Report:
    def __init__(self) -> None:
        self.table = Table(title="What a host holds on to", title_justify="left")
        self.table.add_column("")
        self.table.add_column("resident MB", justify="right")
        self.table.add_column("", justify="right")

    def add(self, name: str, words: str = "") -> None:
        self.table.add_row(name, f"{megabytes():,.0f}", words)


async def crowded(host: Host, report: Report) -> None:
    before, begun = megabytes(), process_time()
    await made(host, (f"ahp-session:/{number}" for number in range(SESSIONS)))
    size = (megabytes() - before) * 1000 / SESSIONS
    each = (process_time() - begun) / SESSIONS * 1e6
    report.add(f"{SESSIONS:,} sessions", f"{size:.1f} kB and {each:.0f} µs each")
    for run in range(ROUNDS):
        await visited(host, run)
        if run in (0, ROUNDS // 2, ROUNDS - 1):
            report.add(f"{(run + 1) * AT_ONCE:,} connections have come and gone")


async def aged(host: Host, report: Report) -> None:
    short = await retitled(host, "ahp-session:/0", 200)
    await lived(host)
    long = await retitled(host, LONG, 200)
    begun = process_time()
    size = len(host.sessions[LONG].shown()) / 1e6
    shown = (process_time() - begun) * 1e3
    words = f"a snapshot has {size:.1f} MB and takes {shown:.1f} ms"
    report.add(f"a session with {TURNS:,} turns", words)
    report.add("one small action", f"{short:.0f} µs, in the long session {long:.0f} µs")
    await used(host)
    report.add(f"{USED:,} sessions with {ACTIONS:,} actions each")


async def main() -> None:
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with hosting(folder) as (host, seconds):
            report.add("empty", f"started in {seconds:.2f} s")
            await crowded(host, report)
            await aged(host, report)
        async with hosting(folder) as (host, seconds):
            report.add("started again", f"in {seconds:.2f} s")
            await rested(host)
            report.add("after a quiet hour")
        async with hosting(folder) as (host, seconds):
            report.add("started again", f"in {seconds:.2f} s")
    Console(width=100).print(report.table)


if __name__ == "__main__":
    asyncio.run(main())
