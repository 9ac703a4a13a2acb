"""Who is here: the presence of clients in a session, as others see it."""

import asyncio
from operator import itemgetter
from pathlib import Path

import pytest

from session_server.client import Session, connect
from session_server.schemas.ahp.commands import EditingPlace
from tests.client.test_server import DEMO, TRIP
from tests.effort import PATIENCE
from tests.servers import serving, sqlite_store


class Onlooker:
    """Waits for what is to be seen in a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changed = asyncio.Event()
        session.on_presence(self._changed.set)

    def _found(self) -> list[tuple[str, EditingPlace | None]]:
        found = [(each.by.name or "", each.editing) for each in self._session.present]
        return sorted(found, key=itemgetter(0))

    async def sees(self, **editing: EditingPlace | None) -> None:
        """Exactly these people, each at a question or at none."""
        async with asyncio.timeout(PATIENCE):
            while self._found() != sorted(editing.items()):
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
            await ana.sees(Ana=None)
            async with second.session(DEMO) as session:
                session.editing(TRIP, "name")
                assert session.present == (), "who does not appear sees nobody"
            async with second.session(DEMO, present=True) as session:
                await ana.sees(Ana=None, Ben=None)
                session.editing(TRIP, "name")
                await ana.sees(Ana=None, Ben=EditingPlace(request_id=TRIP, question_id="name"))
                session.editing()
                await ana.sees(Ana=None, Ben=None)
            await ana.sees(Ana=None)


@pytest.mark.slow
async def test_who_comes_back_is_seen_again(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with serving(store, "--demo") as first:
        async with (
            connect(first.url, name="Ana") as client,
            client.session(DEMO, present=True) as session,
        ):
            ana = Onlooker(session)
            await ana.sees(Ana=None)
            first.kill()
            await ana.sees()
            with serving(store, "--demo", port=first.port):
                await ana.sees(Ana=None)
