"""When what serves MCP clients is loaded: once, for all that wait for it, in each run."""

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from session_server.app import create_app
from session_server.gateway.endpoints import Gateway
from tests.effort import PATIENCE
from tests.gateway.requests_2026 import envelope, headers_for
from tests.waiting import until

ENDPOINTS = "session_server.gateway.endpoints"


class CountingThreads(ThreadPoolExecutor):
    """Counts what is given to threads, which begin with it when `may_begin` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.may_begin = threading.Event()

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        self.count += 1

        def begin() -> Any:
            assert self.may_begin.wait(PATIENCE)
            return work(*args, **more)

        return super().submit(begin)


@asynccontextmanager
async def running_app(app: FastAPI) -> AsyncGenerator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        yield client


async def tools_at(client: httpx2.AsyncClient) -> list[str]:
    body, headers = envelope("tools/list", {}), headers_for("tools/list", {})
    response = await client.post("/mcp", json=body, headers=headers)
    return [tool["name"] for tool in response.raise_for_status().json()["result"]["tools"]]


def gateways() -> list[Gateway]:
    return [one for one in gc.get_objects() if type(one) is Gateway]


@pytest.fixture
def nothing_is_frozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("nothing_is_frozen")
async def test_two_first_requests_at_once_are_one_loading_and_one_gateway() -> None:
    threads = CountingThreads()
    async with running_app(create_app("memory:")) as client:
        asyncio.get_running_loop().set_default_executor(threads)
        threads.may_begin.set()
        before = gateways()
        first, second = await asyncio.gather(tools_at(client), tools_at(client))
        assert first == second != []
        assert threads.count == 1
        assert len([one for one in gateways() if one not in before]) == 1


async def test_a_first_client_that_leaves_does_not_end_the_loading() -> None:
    threads = CountingThreads()
    async with running_app(create_app("memory:")) as client:
        asyncio.get_running_loop().set_default_executor(threads)
        first = asyncio.ensure_future(tools_at(client))
        await until(lambda: threads.count)
        second = asyncio.ensure_future(tools_at(client))
        first.cancel()
        await asyncio.wait([first])
        threads.may_begin.set()
        assert await second
        assert first.cancelled()
        assert threads.count == 1


async def test_after_a_failure_the_next_request_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_app(create_app("memory:")) as client:
        with monkeypatch.context() as broken:
            broken.setitem(sys.modules, ENDPOINTS, None)
            with pytest.raises(ImportError):
                await tools_at(client)
        assert await tools_at(client)


async def test_an_application_restarted_through_its_lifespan_serves_mcp_again() -> None:
    app = create_app("memory:")
    for _ in range(2):
        async with running_app(app) as client:
            assert await tools_at(client)
            session = "/v1/sessions/restarted"
            assert (await client.get(session)).status_code == 404
            params = {"name": "notify_status", "arguments": {"status": "Here"}}
            headers = {**headers_for("tools/call", params), "Session-Server-Session": "restarted"}
            body = envelope("tools/call", params)
            assert (await client.post("/mcp", json=body, headers=headers)).is_success
            assert (await client.get(session)).status_code == 200


@pytest.mark.usefixtures("nothing_is_frozen")
@pytest.mark.parametrize("is_frozen", [False, True])
async def test_what_is_loaded_later_is_frozen_if_the_rest_is(is_frozen: bool) -> None:
    async with running_app(create_app("memory:")) as client:
        if is_frozen:
            gc.freeze()
        mark: list[object] = []
        assert await tools_at(client)
        assert any(one is mark for one in gc.get_objects()) is not is_frozen
