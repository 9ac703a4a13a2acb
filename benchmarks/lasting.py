"""What a host holds on to: many sessions, many comings and goings, one long session.

`python -m benchmarks.lasting`. Memory is the process's own (resident); times are of the processor.
"""

import asyncio
import gc
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from session_server.agents.registry import installed_agents
from session_server.agents.turns import AgentTurns
from session_server.host.connection import Connection
from session_server.host.delivery import Message, Outbox
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.host.pace import Bounds
from session_server.host.performing import perform, write
from session_server.log import Sync
from session_server.log.opening import open_log
from session_server.schemas.actions import ResponsePartAdded, TurnComplete, TurnStarted
from session_server.schemas.commands import CreateSessionParams
from session_server.schemas.messages import USER, MessageOrigin
from session_server.schemas.messages import Message as Said
from session_server.schemas.principals import Author, Principal, Role
from session_server.schemas.turns import MarkdownPart

SESSIONS = 10_000
AT_ONCE = 500
ROUNDS = 10
TURNS = 2_000
OWNER = Principal(id="local", role=Role.OWNER)
AGENT = Author(id="agent:bench")
LONG = "ahp-session:/long"


def megabytes() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


@asynccontextmanager
async def hosting(folder: Path) -> AsyncIterator[tuple[Host, float]]:
    """A host on what is in the folder, and how long it took to start."""
    begun = perf_counter()
    log = await open_log(f"sqlite:///{folder / 'log.db'}", sync=Sync.NORMAL)
    agents = installed_agents()
    infos = tuple(agent.info for agent in agents.values())
    host = Host(log, infos, Bounds(0, 0, 0))
    effects = EffectRunner(host, AgentTurns(host, agents))
    await host.start()
    effects.restarted()
    took = perf_counter() - begun
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
    closed_with: int | None = None

    def __init__(self) -> None:
        self.sent = 0

    def send(self, message: Message) -> None:
        self.sent += 1

    def close(self, code: int, reason: str) -> None:
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
    while not all(outbox.sent for _, outbox in guests):
        await asyncio.sleep(0.001)
    for guest, _ in guests:
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


async def titled(host: Host, uri: str, times: int) -> float:
    """Processor time of one small action, in microseconds."""
    from session_server.schemas.actions import TitleChanged  # noqa: PLC0415

    begun = process_time()
    for number in range(times):
        await perform(host, OWNER, uri, TitleChanged(title=f"Title {number}"))
    return (process_time() - begun) / times * 1e6


async def main() -> None:
    table = Table(title="What a host holds on to", title_justify="left")
    table.add_column("")
    table.add_column("resident MB", justify="right")
    table.add_column("", justify="right")

    def row(name: str, words: str = "") -> None:
        table.add_row(name, f"{megabytes():,.0f}", words)

    with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as name:
        folder = Path(name)
        async with hosting(folder) as (host, took):
            row("empty", f"started in {took:.2f} s")
            before, begun = megabytes(), process_time()
            await made(host, (f"ahp-session:/{number}" for number in range(SESSIONS)))
            each = (megabytes() - before) * 1000 / SESSIONS
            took = (process_time() - begun) / SESSIONS * 1e6
            row(f"{SESSIONS:,} sessions", f"{each:.1f} kB and {took:.0f} µs each")
            for run in range(ROUNDS):
                await visited(host, run)
                if run in (0, ROUNDS - 1):
                    row(f"{(run + 1) * AT_ONCE:,} connections have come and gone")
            short = await titled(host, "ahp-session:/0", 200)
            await lived(host)
            long = await titled(host, LONG, 200)
            begun = process_time()
            size = len(host.sessions[LONG].shown())
            shown = (process_time() - begun) * 1e3
            words = f"a snapshot has {size / 1e6:.1f} MB and takes {shown:.1f} ms"
            row(f"a session with {TURNS:,} turns", words)
            row("one small action", f"{short:.0f} µs, in the long session {long:.0f} µs")
            files = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        async with hosting(folder) as (host, took):
            row("started again", f"in {took:.2f} s, from {files:.0f} MB")
    Console(width=100).print(table)


if __name__ == "__main__":
    asyncio.run(main())
