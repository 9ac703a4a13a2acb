"""Who a client is to others: its name, its id, and its presence in a session."""

import asyncio
from pathlib import Path

import pytest

from session_server.client import GaveUp, Session, connect
from session_server.schemas.ahp.commands import EditingPlace
from session_server.schemas.ahp.envelopes import ActionEnvelope
from tests.client.test_server import DEMO, TRIP
from tests.effort import PATIENCE
from tests.servers import ServerProcess, serving, sqlite_store


class Onlooker:
    """Waits for what is to be seen in a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changed = asyncio.Event()
        session.on_presence(self._changed.set)

    async def sees(self, *names: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while sorted(each.by.name or "" for each in self._session.present) != sorted(names):
                self._changed.clear()
                await self._changed.wait()

    async def sees_editing(self, place: EditingPlace | None) -> None:
        async with asyncio.timeout(PATIENCE):
            while not any(
                each.editing == place for each in self._session.present if each.by.name == "Ben"
            ):
                self._changed.clear()
                await self._changed.wait()


async def test_clients_see_who_is_here_and_what_they_answer() -> None:
    with serving("memory:", "--demo") as server:
        async with (
            connect(server.url, name="Ana") as first,
            connect(server.url, name="Ben") as second,
            first.session(DEMO, present=True) as watched,
        ):
            ana = Onlooker(watched)
            await ana.sees("Ana")
            async with second.session(DEMO) as session:
                session.editing(TRIP, "name")
                assert session.present == (), "who does not appear sees nobody"
            async with second.session(DEMO, present=True) as session:
                await ana.sees("Ana", "Ben")
                session.editing(TRIP, "name")
                await ana.sees_editing(EditingPlace(request_id=TRIP, question_id="name"))
                session.editing()
                await ana.sees_editing(None)
            await ana.sees("Ana")


@pytest.mark.slow
async def test_who_comes_back_is_seen_again(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    server = ServerProcess(store, "--demo")
    try:
        async with (
            connect(server.url, name="Ana") as client,
            client.session(DEMO, present=True) as session,
        ):
            ana = Onlooker(session)
            await ana.sees("Ana")
            server.kill()
            await ana.sees()
            server = ServerProcess(store, "--demo", port=server.port)
            await ana.sees("Ana")
    finally:
        server.kill()


# Names and client ids


TOKEN = "a-token-that-nobody-guesses"


def author(envelope: ActionEnvelope) -> str | None:
    by = envelope.meta and envelope.meta.by
    return by.name if by else None


async def test_a_name_is_attached_to_actions_right_after_connecting() -> None:
    with serving("memory:", "--demo") as server:
        async with connect(server.url, name="Ana") as client, client.session(DEMO) as session:
            await session.wait_for_request(TRIP, PATIENCE)
            assert author(await session.answer(TRIP, "name", "Fjords")) == "Ana"


@pytest.mark.slow
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
