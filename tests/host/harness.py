"""A host on a memory log and clients without sockets, all in one event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec

import msgspec

from session_server.agents.interface import Agent
from session_server.agents.turn_runner import AgentTurns, installed_agents
from session_server.host.connection.protocol import Connection
from session_server.host.connection.rate_limit import DEFAULT_BOUNDS, Bounds
from session_server.host.delivery import Message, Outbox
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.log import Log
from session_server.log.memory import MemoryLog
from session_server.schemas.principals import Principal, Role

ROOT = "ahp-root://"
SESSION = "ahp-session:/1"
ANA = Principal(id="ana", name="Ana", role=Role.OWNER)
BO = Principal(id="bo", name="Bo", role=Role.ANSWERER)
AGENT = Principal(id="agent", name="Agent", role=Role.AGENT)
PATIENCE = 30.0

P = ParamSpec("P")


def run(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """An asynchronous test, in an event loop of its own."""

    @wraps(test)
    def runner(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return runner


@asynccontextmanager
async def hosting(
    log: Log | None = None,
    agents: dict[str, Agent] | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
) -> AsyncIterator[Host]:
    known = installed_agents() if agents is None else agents
    host = Host(log or MemoryLog(), tuple(agent.info for agent in known.values()), bounds)
    effects = EffectRunner(host, AgentTurns(host, known))
    await host.start()
    effects.restarted()
    try:
        yield host
    finally:
        await host.stop()


class Client(Outbox):
    """The other end of a connection: what it was sent, and a way to wait for more."""

    closed_with: int | None = None

    def __init__(self, host: Host, principal: Principal = ANA) -> None:
        self.received: list[dict[str, Any]] = []
        self.closed: tuple[int, str] | None = None
        self._news = asyncio.Event()
        self._next_id = 0
        self._client_seq = 0
        self.connection = Connection(host, principal, self)

    # Outbox

    def send(self, message: Message) -> None:
        self.received.append(msgspec.json.decode(message.text))
        self._news.set()

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)
        self._news.set()

    # Speaking

    def say(self, frame: Any) -> None:
        self.connection.receive(msgspec.json.encode(frame))

    async def call(self, method: str, channel: str = ROOT, **params: Any) -> Any:
        """The result, or the error as `{"code": …}`."""
        self._next_id += 1
        request_id = self._next_id
        self.say(
            {
                "jsonrpc": "2.0",
                "id": request_id,
                "method": method,
                "params": {"channel": channel, **params},
            }
        )
        answer = await self.wait_for(lambda frame: frame.get("id") == request_id)
        return answer["result"] if "result" in answer else answer["error"]

    async def initialize(self, client_id: str = "laptop", *subscriptions: str) -> Any:
        return await self.call(
            "initialize",
            protocolVersions=["0.3.0"],
            clientId=client_id,
            initialSubscriptions=list(subscriptions),
        )

    def dispatch(self, action: dict[str, Any], channel: str = SESSION) -> int:
        self._client_seq += 1
        self.say(
            {
                "jsonrpc": "2.0",
                "method": "dispatchAction",
                "params": {
                    "channel": channel,
                    "clientSeq": self._client_seq,
                    "action": action,
                },
            }
        )
        return self._client_seq

    async def act(self, action: dict[str, Any], channel: str = SESSION) -> dict[str, Any]:
        """Dispatches, and waits for the envelope that confirms or refuses it."""
        seq = self.dispatch(action, channel)
        mine = self.connection.peer.principal.client_id

        def is_mine(frame: dict[str, Any]) -> bool:
            origin = frame.get("params", {}).get("origin", {})
            return bool(origin.get("clientId") == mine and origin.get("clientSeq") == seq)

        frame = await self.wait_for(is_mine)
        envelope: dict[str, Any] = frame["params"]
        return envelope

    # Listening

    async def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            while True:
                for frame in self.received:
                    if wanted(frame):
                        return frame
                self._news.clear()
                await self._news.wait()

    async def until_closed(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.closed is None:
                self._news.clear()
                await self._news.wait()

    async def wait_for_action(self, kind: str) -> dict[str, Any]:
        frame = await self.wait_for(
            lambda f: f.get("method") == "action" and f["params"]["action"]["type"] == kind
        )
        envelope: dict[str, Any] = frame["params"]
        return envelope

    def envelopes(self) -> list[dict[str, Any]]:
        return [
            frame["params"]
            for frame in self.received
            if frame.get("method") == "action" and "rejectionReason" not in frame["params"]
        ]


async def joined(
    host: Host, principal: Principal = ANA, client_id: str = "laptop", *channels: str
) -> Client:
    client = Client(host, principal)
    await client.initialize(client_id, *channels)
    return client


async def with_session(host: Host, provider: str = "people") -> Client:
    """A client that made a session and watches it."""
    client = await joined(host)
    assert await client.call("createSession", SESSION, provider=provider) is None
    await client.call("subscribe", SESSION)
    return client
