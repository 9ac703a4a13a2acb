"""Calling tools through the client: people answer, whoever waits gets the result."""

import asyncio
from collections.abc import Iterator

import pytest

from session_server.client import CallFailed, CallRefused, connect
from session_server.client.http_commands import http_api
from tests.mcp import zoo
from tests.servers import ServerProcess, serving

pytestmark = pytest.mark.slow

SESSION = "ahp-session:/called"
SECONDS = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    config = zoo.mcp_json(tmp_path_factory.mktemp("client"), {"zoo": zoo.stdio_entry("modern")})
    with serving("memory:", "--mcp-config", str(config)) as server:
        yield server


async def test_a_tool_is_called_and_answered_through_clients(server: ServerProcess) -> None:
    async with connect(server.url) as caller, connect(server.url) as person:
        await caller.create_session("people", uri=SESSION)
        called = asyncio.create_task(caller.call_tool(SESSION, "zoo", "weather", timeout=SECONDS))
        async with person.session(SESSION) as session:
            request = await session.wait_for_request(timeout=SECONDS)
            await session.complete(request.id, answers={"city": "Oslo"})
        assert zoo.text_of(await called) == "Sunny in Oslo"


async def test_what_cannot_be_called_is_raised(server: ServerProcess) -> None:
    async with connect(server.url) as client:
        uri = await client.create_session("people")
        with pytest.raises(CallRefused, match="Configured are: zoo") as refused:
            await client.call_tool(uri, "nowhere", "echo")
        assert refused.value.code == "unknownServer"
        with pytest.raises(CallFailed, match="modelcontextprotocol/tasks") as failed:
            await client.call_tool(uri, "zoo", "task", timeout=SECONDS)
        assert failed.value.kind == "invalidResult"
        with pytest.raises(TimeoutError):
            await client.call_tool(uri, "zoo", "weather", timeout=0.5)


@pytest.mark.parametrize(
    ("socket", "url"),
    [
        ("ws://127.0.0.1:8737/ahp", "http://127.0.0.1:8737"),
        ("wss://x.example/deep/ahp", "https://x.example/deep"),
    ],
)
def test_the_http_address_is_derived_from_the_socket_address(socket: str, url: str) -> None:
    http = http_api(socket, {"Authorization": "Bearer mine"}, None)()
    found = str(http.base_url).removesuffix("/")
    assert (found, http.headers["Authorization"]) == (url, "Bearer mine")
