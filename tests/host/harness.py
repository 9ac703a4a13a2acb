"""A host on a memory log and clients without sockets, all in one event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from session_server.agents.interface import Agent
from session_server.agents.turn_runner import AgentTurns, installed_agents
from session_server.host.channels.messages import Message, Outbox
from session_server.host.connection.protocol import Connection
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.host.host_limits import DEFAULT_LIMITS, HostLimits
from session_server.host.takeover import Takeover
from session_server.host.timers import CLOCK, Clock
from session_server.log import Log
from session_server.log.memory import MemoryLog
from session_server.schemas.ahp.session import Lifecycle
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import SessionRecord
from tests.ahp.client import SESSION, AhpClient
from tests.effort import PATIENCE
from tests.waiting import until

ANA = Principal(id="ana", name="Ana", role=Role.OWNER)
BO = Principal(id="bo", name="Bo", role=Role.ANSWERER)
AGENT = Principal(id="agent", name="Agent", role=Role.AGENT)


async def launched() -> None:
    """Returns when what was submitted in this turn of the event loop has been handed to the log."""
    await asyncio.sleep(0)


@asynccontextmanager
async def hosting(
    log: Log | None = None,
    agents: dict[str, Agent] | None = None,
    limits: HostLimits = DEFAULT_LIMITS,
    clock: Clock = CLOCK,
    *,
    is_shared: bool = False,
) -> AsyncIterator[Host]:
    known = installed_agents() if agents is None else agents
    infos = tuple(agent.info for agent in known.values())
    host = Host(log or MemoryLog(), infos, limits, clock, is_shared=is_shared)
    takeover = Takeover(host, EffectRunner(host, AgentTurns(host, known)))
    await host.start()
    takeover.started()
    try:
        yield host
    finally:
        await host.stop()


def record_of(host: Host, uri: str = SESSION) -> SessionRecord:
    """Of a session that is there, in memory."""
    record = host.record(uri)
    assert record is not None
    return record


async def until_trimmed(host: Host, uri: str = SESSION) -> int:
    """The last entry that is gone. The log tells nobody of it."""

    async def floor() -> int:
        return (await host.log.floors()).get(uri, 0)

    return await until(floor)


class Client(AhpClient, Outbox):
    """The other end of a connection."""

    closed_with: int | None = None

    def __init__(self, host: Host, principal: Principal = ANA) -> None:
        super().__init__()
        self.closed: tuple[int, str] | None = None
        self._news = asyncio.Event()
        self.connection = Connection(host, principal, self)

    # Outbox

    def send(self, message: Message) -> None:
        self.received.append(msgspec.json.decode(message.text))
        self._news.set()

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)
        self._news.set()

    # AhpClient

    def say(self, frame: Any) -> None:
        self.connection.receive(msgspec.json.encode(frame))

    async def _more(self) -> None:
        self._news.clear()
        await self._news.wait()

    async def until_closed(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.closed is None:
                await self._more()


async def joined(
    host: Host, principal: Principal = ANA, client_id: str = "laptop", *channels: str
) -> Client:
    client = Client(host, principal)
    await client.initialize(client_id, *channels)
    return client


async def back_as(
    host: Host, client_id: str, last_seen: int, *channels: str, principal: Principal = ANA
) -> tuple[Client, Any]:
    """A client that comes back on a new connection, and what it was answered."""
    client = Client(host, principal)
    return client, await client.reconnect(client_id, last_seen, *channels)


async def with_session(host: Host, provider: str = "people") -> Client:
    """A client that made a session and watches it."""
    client = await joined(host)
    assert await client.call("createSession", SESSION, provider=provider) is None
    channel = host.sessions[SESSION]
    async with asyncio.timeout(PATIENCE):
        while channel.committed and channel.committed.public.lifecycle is Lifecycle.CREATING:  # noqa: ASYNC110
            await asyncio.sleep(0)
    await client.call("subscribe", SESSION)
    return client


async def with_agent(host: Host) -> tuple[Client, Client]:
    """A client that made a session, and the session's agent; both watch it."""
    return await with_session(host), await joined(host, AGENT, "agent", SESSION)
