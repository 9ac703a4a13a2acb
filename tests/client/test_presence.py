"""Who is here: clients see each other in a session, on every connection anew."""

import asyncio
from pathlib import Path

import pytest

from session_server.client import Session, connect
from session_server.schemas.ahp.commands import EditingPlace
from tests.client.running import PATIENCE, run
from tests.client.test_server import DEMO, TRIP
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


@run
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
@run
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
