"""Who a client is to others, and to a host that has seen its label before."""

from pathlib import Path

import pytest

from session_server.client import GaveUp, connect
from session_server.schemas.questions import Submitted
from tests.client.running import PATIENCE, run
from tests.client.test_server import DEMO, TRIP, answer
from tests.servers import ServerProcess, serving, sqlite_store

TOKEN = "a-token-that-nobody-guesses"


@run
async def test_a_name_stands_beside_what_is_done_right_after_connecting() -> None:
    with serving("memory:", "--demo") as server:
        async with connect(server.url, name="Ana") as client, client.session(DEMO) as session:
            envelope = await session.answer(TRIP, "name", "Fjords")
            assert envelope.meta is not None
            assert envelope.meta.by is not None
            assert envelope.meta.by.name == "Ana"


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
            waiting = session.answer(TRIP, "name", "Fjords")
            server = ServerProcess(store, "--demo", port=server.port)
            envelope = await waiting
            assert envelope.meta is not None
            assert envelope.meta.by is not None
            assert envelope.meta.by.name == "Ana"
            given = answer(session.confirmed, "name")
            assert isinstance(given, Submitted)
            assert given.meta.by.name == "Ana"
    finally:
        server.kill()


@run
async def test_a_label_of_somebody_else_is_to_be_changed(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with serving(store) as server:
        async with connect(server.url, client_id="me"):
            pass
    with serving(store, "--connection-token", TOKEN) as server:
        with pytest.raises(GaveUp, match="belongs to someone else.*another client_id"):
            async with connect(server.url, client_id="me", token=TOKEN):
                pass
        async with connect(server.url, token=TOKEN) as client:
            assert client.status.is_connected
