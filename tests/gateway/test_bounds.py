"""How much the gateway keeps, and for how long, where the numbers are the host's own."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import pytest
from mcp.server import Server
from starlette.datastructures import Headers

from session_server.gateway.mcp_callers import introduce
from session_server.gateway.request_state import sealing
from session_server.gateway.server_app import ClientSessions, ServerApp
from session_server.host.host import Host
from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.connections.pool import Pool, Pools
from session_server.mcp_client.connections.shared_connections import Signal
from session_server.mcp_client.notifications import Notifications
from session_server.schemas.errors import UnreachableError
from session_server.schemas.limits import (
    CAPABILITY_SETS,
    CAPABILITY_SETS_PER_PRINCIPAL,
    MCP_REQUESTS_PER_PRINCIPAL,
    MCP_SESSION_IDLE_SECONDS,
    MCP_SESSIONS_PER_PRINCIPAL,
    SEALED_STATE_SECONDS,
)
from session_server.schemas.principals import Principal, Role
from tests.gateway.requests_2026 import HELLO_2025
from tests.host.harness import hosting


class Clock:
    """A loop's own, which can be put forward."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._real: Callable[[], float] = loop.time
        self._ahead = 0.0
        loop.time = self  # type: ignore[method-assign]

    def __call__(self) -> float:
        return self._real() + self._ahead

    async def pass_by(self, seconds: float) -> None:
        self._ahead += seconds
        await asyncio.sleep(0.01)


def in_a_loop(story: Coroutine[Any, Any, None]) -> None:
    """asyncio's own kind, whose clock can be replaced."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(story)


def pools() -> Pools:
    config = ServerConfig(command="never-started")
    return Pools(config, Signal(), asyncio.create_task, Notifications(asyncio.create_task))


async def use(kept: Pools, number: int, principal: str) -> Pool:
    """A set that is in use from now on."""
    used = await kept.of({"experimental": {str(number): {}}}, principal)
    used.users[principal] += 1
    return used


async def test_so_many_sets_of_capabilities_are_in_use_and_no_more() -> None:
    kept = pools()
    share = CAPABILITY_SETS_PER_PRINCIPAL
    used = [await use(kept, n, f"p{n // share}") for n in range(CAPABILITY_SETS)]
    with pytest.raises(UnreachableError, match=f"{CAPABILITY_SETS} different sets"):
        await kept.of({"roots": {}}, "late")
    used[0].users.clear()
    await kept.of({"roots": {}}, "late")


async def test_the_capability_sets_of_one_principal_leave_room_for_others() -> None:
    kept = pools()
    for number in range(CAPABILITY_SETS_PER_PRINCIPAL):
        await use(kept, number, "greedy")
    with pytest.raises(UnreachableError, match="clients of yours"):
        await kept.of({"roots": {}}, "greedy")
    await use(kept, 0, "greedy")  # one that it has
    await use(kept, CAPABILITY_SETS, "ana")


# The SDK keeps these for us; that it was told is all there is to see.


def test_a_sealed_state_is_good_for_its_time() -> None:
    boundary = sealing(lambda: b"k" * 32, "here")
    assert boundary._security.ttl == SEALED_STATE_SECONDS


# Sessions of the 2025 era

GREEDY = Principal(id="token:greedy", role=Role.AGENT, credential="t1")
ANA = Principal(id="ana", role=Role.OWNER)


class Door:
    """Requests to one MCP server of ours, without a socket."""

    def __init__(self, served: ServerApp) -> None:
        self._served = served

    async def send(
        self, method: str, principal: Principal, session: str | None = None
    ) -> tuple[int, str | None]:
        """The status, and the session that was opened."""
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **({} if session is None else {"mcp-session-id": session}),
        }
        scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": "/mcp",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        introduce(scope, principal)
        body = json.dumps(HELLO_2025 | ({} if session is None else {"method": "ping"})).encode()
        inbox = [{"type": "http.request", "body": body, "more_body": False}]
        answer: dict[str, Any] = {}

        async def receive() -> Any:
            if inbox:
                return inbox.pop()
            return await asyncio.Event().wait()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.update(message)

        await self._served(scope, receive, send)
        return answer["status"], Headers(raw=answer["headers"]).get("mcp-session-id")

    async def opened(self, principal: Principal) -> str:
        status, session = await self.send("POST", principal)
        assert status == 200
        assert session is not None
        return session

    async def is_open(self, session: str, principal: Principal) -> bool:
        status, _ = await self.send("POST", principal, session)
        assert status in (200, 404)
        return status == 200


@contextlib.asynccontextmanager
async def door() -> AsyncGenerator[tuple[Door, Host]]:
    over = asyncio.Event()
    async with hosting() as host:
        yield Door(ServerApp(host, Server("any"), over)), host
        over.set()


def test_a_session_ends_when_it_was_not_used_for_a_while() -> None:
    async def story() -> None:
        clock = Clock(asyncio.get_running_loop())
        async with door() as (at, _):
            session = await at.opened(GREEDY)
            for _ in range(2):
                await clock.pass_by(MCP_SESSION_IDLE_SECONDS - 60)
                assert await at.is_open(session, GREEDY)
            await clock.pass_by(MCP_SESSION_IDLE_SECONDS + 1)
            assert not await at.is_open(session, GREEDY)

    in_a_loop(story())


async def test_a_principal_with_too_many_sessions_loses_its_own_and_no_others() -> None:
    async with door() as (at, _):
        ana = await at.opened(ANA)
        greedy = [await at.opened(GREEDY) for _ in range(MCP_SESSIONS_PER_PRINCIPAL)]
        assert await at.is_open(greedy[0], GREEDY)
        late = await at.opened(GREEDY)
        assert not await at.is_open(greedy[1], GREEDY)  # it was idle for longest
        assert await at.is_open(greedy[0], GREEDY)
        assert await at.is_open(late, GREEDY)
        assert await at.is_open(ana, ANA)


async def test_sessions_that_are_all_in_use_make_no_room() -> None:
    async with door() as (at, host):
        sessions = ClientSessions(host, lambda _: None)
        for number in range(MCP_SESSIONS_PER_PRINCIPAL):
            assert sessions.make_room(GREEDY)
            sessions.opened(str(number), GREEDY).in_use += 1
        assert not sessions.make_room(GREEDY)
        assert sessions.make_room(ANA)
        sessions.close()
        for number in range(MCP_SESSIONS_PER_PRINCIPAL):
            at._served._sessions.opened(str(number), GREEDY).in_use += 1
        assert (await at.send("POST", GREEDY))[0] == 503


async def test_a_session_ends_with_the_token_that_opened_it() -> None:
    async with door() as (at, host):
        mine, other = await at.opened(GREEDY), await at.opened(ANA)
        host.connections.revoke("t1")
        assert not await at.is_open(mine, GREEDY)
        assert await at.is_open(other, ANA)


async def test_a_session_that_its_client_has_ended_counts_no_longer() -> None:
    async with door() as (at, host):
        for _ in range(MCP_SESSIONS_PER_PRINCIPAL + 1):
            session = await at.opened(GREEDY)
            assert (await at.send("DELETE", GREEDY, session))[0] == 200
            assert not await at.is_open(session, GREEDY)
        host.connections.revoke("t1")


async def test_the_requests_of_one_principal_in_flight_are_bounded() -> None:
    async with door() as (at, _):
        at._served._in_flight[GREEDY.id] = MCP_REQUESTS_PER_PRINCIPAL
        assert (await at.send("POST", GREEDY))[0] == 429
        assert (await at.send("POST", ANA))[0] == 200
        at._served._in_flight[GREEDY.id] -= 1
        assert (await at.send("POST", GREEDY))[0] == 200
