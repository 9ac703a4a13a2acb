"""Who a client is to others, and to a host that has seen its label before."""

import asyncio
from pathlib import Path

import pytest

from session_server.client import GaveUp, connect
from session_server.schemas.ahp.envelopes import ActionEnvelope
from tests.client.running import PATIENCE, run
from tests.client.test_server import DEMO, TRIP
from tests.servers import ServerProcess, serving, sqlite_store

TOKEN = "a-token-that-nobody-guesses"


def author(envelope: ActionEnvelope) -> str | None:
    by = envelope.meta and envelope.meta.by
    return by.name if by else None


@run
async def test_a_name_stands_beside_what_is_done_right_after_connecting() -> None:
    with serving("memory:", "--demo") as server:
        async with connect(server.url, name="Ana") as client, client.session(DEMO) as session:
            assert author(await session.answer(TRIP, "name", "Fjords")) == "Ana"


@pytest.mark.slow
@run
async def test_what_waited_for_a_connection_arrives_under_the_name(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    server = ServerProcess(store, "--demo")
    try:
        async with connect(server.url, name="Ana") as client, client.session(DEMO) as session:
            await session.wait_for_request(TRIP, PATIENCE)
            server.kill()
            async for status in client.statuses():
                if not status.is_connected:
                    break
            waiting = asyncio.create_task(session.answer(TRIP, "name", "Fjords"))
            await asyncio.sleep(0)
            assert session.pending
            server = ServerProcess(store, "--demo", port=server.port)
            assert author(await waiting) == "Ana"
    finally:
        server.kill()


@run
async def test_a_label_of_somebody_else_is_to_be_changed(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with serving(store) as server:
        async with connect(server.url, client_id="me"):
            pass
    with serving(store, "--connection-token", TOKEN) as server:
        with pytest.raises(GaveUp, match=r"belongs to someone else.*another client_id"):
            async with connect(server.url, client_id="me", token=TOKEN):
                pass
        async with connect(server.url, token=TOKEN) as client:
            assert client.status.is_connected
