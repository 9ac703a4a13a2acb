"""Servers whose lists and resources change: every client hears of it, in the words of its era."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_types import (
    ServerCapabilities,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    ToolsCapability,
)

from session_server.gateway.announcements import Announcements
from session_server.mcp_client.config import load_servers
from session_server.mcp_client.configured_servers import Servers
from session_server.mcp_client.notifications import Notifications
from session_server.schemas.limits import (
    MCP_LISTENERS,
    WATCHED_RESOURCES,
    WATCHED_RESOURCES_PER_PRINCIPAL,
)
from session_server.schemas.principals import Principal, Role
from tests.effort import PATIENCE
from tests.gateway.requests_2026 import (
    CAN_ASK,
    People,
    envelope,
    headers_for,
    host,
    rpc,
    wait_for,
)
from tests.mcp import zoo
from tests.servers import ServerProcess

TAP = "zoo://tap"
REQUEST = SimpleNamespace(scope={"session_server.principal": Principal(id="ana", role=Role.OWNER)})
HOLD = ("--mcp-hold-seconds", "0.3")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with zoo.http_server("changing") as web:
        entries = {
            "modern": zoo.changing_entry("modern"),
            "web": {"url": web.url},
            "legacy": zoo.changing_entry("legacy"),
            "modern-client": zoo.changing_entry("modern", answers="client"),
            "legacy-client": zoo.changing_entry("legacy", answers="client"),
            "still": zoo.stdio_entry("legacy"),
        }
        with host(tmp_path_factory.mktemp("host"), entries) as running:
            yield running


def tools(url: str, capabilities: dict[str, Any] | None = None) -> list[str]:
    """All pages."""
    found: list[str] = []
    params: dict[str, Any] = {}
    while True:
        page = rpc(url, "tools/list", params, capabilities=capabilities)["result"]
        found += [tool["name"] for tool in page["tools"]]
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


@pytest.mark.parametrize("kind", ["modern", "web", "legacy"])
@pytest.mark.parametrize("client", ["modern", "typescript", "legacy"])
def test_clients_are_notified_of_new_tools_and_watched_resources(
    client: zoo.Kind, kind: str, server: ServerProcess
) -> None:
    url = f"{server.url}/mcp/{kind}"
    name = f"made-for-{client}"
    spec = {
        "url": url,
        "watch": {"uris": [TAP], "events": 2},
        "calls": [
            ["tools/call", "touch", {"uri": "zoo://other"}],
            ["tools/call", "grow", {"name": name}],
            ["tools/call", "touch", {"uri": TAP}],
        ],
        "later": [["resources/read", TAP], ["completion/complete", "feed", "animal", "l"]],
    }
    report = zoo.run_client(client, spec)
    assert sorted(report["heard"]) == ["tools", TAP]
    assert name in tools(url)
    *_, read, completed = report["results"]
    assert read["contents"][0]["text"].startswith("touched")
    assert completed["completion"]["values"] == ["lion", "lynx"]
    assert report["capabilities"]["tools"]["listChanged"] is True
    assert report["capabilities"]["resources"]["subscribe"] is True


@pytest.mark.parametrize("kind", ["modern-client", "legacy-client"])
def test_where_clients_are_asked_they_get_the_lists_of_their_own_connection(
    kind: str, server: ServerProcess
) -> None:
    """And hear of its changes."""
    spec = {
        "url": f"{server.url}/mcp/{kind}",
        "watch": {"uris": [], "events": 1},
        "answers": [{"action": "decline"}],
        "calls": [["tools/list"], ["tools/call", "grow", {"name": "grown"}]],
    }
    report = zoo.run_client("modern", spec)
    assert report["heard"] == ["tools"]
    assert "grown" in tools(f"{server.url}/mcp/{kind}", CAN_ASK)


@pytest.mark.parametrize("client", ["modern", "legacy"])
def test_changes_come_through_the_process_too(client: zoo.Kind, server: ServerProcess) -> None:
    program = [zoo.runtime("modern"), "-m", "session_server", "mcp", "legacy"]
    spec = {
        "command": [*program, "--url", server.url],
        "watch": {"uris": [TAP], "events": 1},
        "calls": [["tools/call", "touch", {"uri": TAP}]],
    }
    assert zoo.run_client(client, spec)["heard"] == [TAP]


@pytest.mark.parametrize("client", ["modern", "legacy"])
def test_what_a_server_does_not_offer_is_not_offered(
    client: zoo.Kind, server: ServerProcess
) -> None:
    report = zoo.run_client(client, {"url": f"{server.url}/mcp/still", "calls": []})
    can = report["capabilities"]
    assert not can["tools"].get("listChanged")
    assert not can["resources"].get("subscribe")
    assert "logging" not in can
    told = rpc(f"{server.url}/mcp/still", "subscriptions/listen", {"notifications": {}})
    assert told["error"]["code"] == -32601


def test_a_server_that_refuses_to_be_watched_says_so_itself(server: ServerProcess) -> None:
    url = f"{server.url}/mcp/legacy"
    spec = {"url": url, "watch": {"uris": ["https://example.com/"], "events": 0}, "calls": []}
    with zoo.client("legacy", spec) as started, pytest.raises(AssertionError) as failed:
        started.report()
    assert "cannot be watched" in str(failed.value)


def listening(url: str, wanted: dict[str, Any], into: list[dict[str, Any]]) -> None:
    """Until the stream ends."""
    params = {"notifications": wanted}
    method = "subscriptions/listen"
    with httpx2.stream(
        "POST",
        url,
        json=envelope(method, params),
        headers=headers_for(method, params),
        timeout=PATIENCE,
    ) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                into.append(json.loads(line[6:]))  # noqa: PERF401 - others look at it


def test_one_principal_watches_only_its_share_of_the_resources(server: ServerProcess) -> None:
    uris = [f"zoo://{number}" for number in range(WATCHED_RESOURCES_PER_PRINCIPAL + 1)]
    params = {"notifications": {"resourceSubscriptions": uris}}
    told = rpc(f"{server.url}/mcp/modern", "subscriptions/listen", params)
    assert told["error"]["message"] == (
        f"You watch {WATCHED_RESOURCES_PER_PRINCIPAL} resources of this server already;"
        " stop watching others first."
    )


async def test_only_so_many_resources_are_watched() -> None:
    notifications = Notifications(asyncio.create_task)
    async with contextlib.AsyncExitStack() as stack:
        for number in range(WATCHED_RESOURCES):
            who = f"p{number // WATCHED_RESOURCES_PER_PRINCIPAL}"
            await stack.enter_async_context(notifications.watching((f"zoo://{number}",), who))
        with pytest.raises(MCPError, match=f"{WATCHED_RESOURCES} resources of this server"):
            await notifications.watch("zoo://one-more", "late")
        # What is watched already costs nothing more.
        await stack.enter_async_context(notifications.watching(("zoo://1",), "late"))
    async with notifications.watching(("zoo://one-more",), "late"):
        pass


class Stream:
    """Where an acknowledgement goes."""

    async def send_notification(self, *_: Any, **__: Any) -> None:
        return None


async def test_only_so_many_clients_listen(tmp_path: Path) -> None:
    config = zoo.mcp_json(tmp_path, {"zoo": zoo.changing_entry("modern")})
    wanted = SubscriptionsListenRequestParams.model_validate(
        {"notifications": {"toolsListChanged": True}}
    )
    spawn = asyncio.get_running_loop().create_task
    servers = Servers(load_servers(config).servers, spawn, lambda *_: None)
    can = ServerCapabilities(tools=ToolsCapability(list_changed=True))
    announcements = Announcements(servers["zoo"], can, spawn)

    async def listen(number: int) -> Any:
        context: Any = SimpleNamespace(request_id=number, session=Stream(), request=REQUEST)
        return await announcements.listen(context, wanted)

    streams = [spawn(listen(number)) for number in range(MCP_LISTENERS)]
    await asyncio.sleep(0)
    with pytest.raises(MCPError, match="Subscription limit reached"):
        await listen(MCP_LISTENERS)
    announcements.close()
    await asyncio.gather(*streams)


async def test_watching_a_resource_of_a_server_that_cannot_be_used_names_the_server(
    tmp_path: Path,
) -> None:
    ends = {"command": sys.executable, "args": ["-c", ""]}
    config = zoo.mcp_json(tmp_path, {"zoo": ends})
    servers = Servers(load_servers(config).servers, asyncio.create_task, lambda *_: None)
    servers.start()
    announcements = Announcements(servers["zoo"], ServerCapabilities(), asyncio.create_task)
    context: Any = SimpleNamespace()
    try:
        with pytest.raises(MCPError, match="The MCP server 'zoo' cannot be used"):
            await announcements.subscribe(context, SubscribeRequestParams(uri=TAP))
    finally:
        await servers.stop()


class Stalled:
    """The stream of a client that does not read, until it does."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.go = asyncio.Event()

    async def notify(self, method: str, *_: Any) -> None:
        self.told.append(method)
        await self.go.wait()


async def test_repeated_changes_are_sent_once_to_a_client_that_does_not_read(
    tmp_path: Path,
) -> None:
    config = zoo.mcp_json(tmp_path, {"zoo": zoo.changing_entry("legacy")})
    telling: list[asyncio.Task[None]] = []

    def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        telling.append(asyncio.get_running_loop().create_task(work))
        return telling[-1]

    servers = Servers(load_servers(config).servers, asyncio.create_task, lambda *_: None)
    can = ServerCapabilities(tools=ToolsCapability(list_changed=True))
    announcements = Announcements(servers["zoo"], can, spawn)
    client: Any = Stalled()
    session = SimpleNamespace(_connection=Connection.for_loop(client))
    hello = {"method": "notifications/initialized", "protocol_version": "2025-11-25"}
    context: Any = SimpleNamespace(**hello, session=session, request=REQUEST)

    async def nothing(_: Any) -> None:
        return None

    await announcements.introduced(context, nothing)
    for _ in range(50):
        servers["zoo"].notifications.changed(ToolsListChanged())
        await asyncio.sleep(0)
    assert len(telling) == 1
    client.go.set()
    await asyncio.gather(*telling)
    assert client.told == ["notifications/tools/list_changed"] * 2


async def test_what_is_watched_again_at_once_is_still_watched(tmp_path: Path) -> None:
    config = zoo.mcp_json(tmp_path, {"zoo": zoo.changing_entry("legacy")})
    servers = Servers(load_servers(config).servers, asyncio.create_task, lambda *_: None)
    servers.start()
    notifications = servers["zoo"].notifications
    heard: asyncio.Queue[Any] = asyncio.Queue()
    await notifications.watch(TAP, "ana")
    notifications.unwatch(TAP, "ana")
    await notifications.watch(TAP, "ana")
    notifications.subscribe(heard.put_nowait)
    touch = {"name": "touch", "arguments": {"uri": TAP}}
    await servers["zoo"].request("tools/call", touch)
    try:
        assert await asyncio.wait_for(heard.get(), PATIENCE) == ResourceUpdated(TAP)
    finally:
        await servers.stop()


def test_after_a_restart_of_the_server_all_lists_may_have_changed(tmp_path: Path) -> None:
    with (
        host(tmp_path, {"zoo": zoo.changing_entry("modern")}, *HOLD) as running,
        People(running.url) as people,
        ThreadPoolExecutor(1) as pool,
    ):
        url = f"{running.url}/mcp/zoo"
        heard: list[dict[str, Any]] = []
        wanted = {"toolsListChanged": True, "resourceSubscriptions": [TAP]}
        stream = pool.submit(listening, url, wanted, heard)
        wait_for(lambda: heard)
        assert people.sessions() == []
        rpc(url, "tools/call", {"name": "end", "arguments": {}})
        wait_for(lambda: len(heard) >= 3)
        methods = {message["method"] for message in heard[1:]}
        assert methods == {"notifications/tools/list_changed", "notifications/resources/updated"}
        running.stop()
        stream.result(10)
    assert "result" in heard[-1]  # it ends with a result
