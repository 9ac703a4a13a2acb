"""Clients and the real server: a process of its own, real sockets, a real file."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from session_server.client import (
    Cause,
    Closed,
    Phase,
    Session,
    SessionExists,
    SessionGone,
    SessionNotFound,
    connect,
)
from session_server.schemas.ahp.actions import InputCompleted, TitleChanged
from session_server.schemas.ahp.questions import Draft, InputRequest, Submitted
from session_server.schemas.ahp.session import Lifecycle, SessionState
from session_server.schemas.ahp.turns import TurnState
from tests.effort import PATIENCE
from tests.servers import serving, sqlite_store

pytestmark = pytest.mark.slow

DEMO = "ahp-session:/demo"
TRIP = "first:trip"


def answer(state: SessionState, question_id: str) -> Any:
    for request in state.input_requests or ():
        if request.id == TRIP:
            return (request.answers or {}).get(question_id)
    return None


async def trip(session: Session) -> InputRequest:
    return await session.wait_for_request(TRIP, PATIENCE)


OLD, NEW = ("0.3.0",), ("1.0.0",)


@pytest.mark.proves("design.session.together")
async def test_two_clients_share_drafts_and_one_completes_for_both() -> None:
    """One speaks the latest version, the other one the oldest."""
    with serving("memory:", "--demo") as server:
        async with (
            connect(server.url, client_id="laptop") as laptop,
            connect(server.url, client_id="phone", versions=OLD) as phone,
            laptop.session(DEMO) as at_desk,
            phone.session(DEMO) as in_bed,
        ):
            assert (await trip(at_desk)).message == (await trip(in_bed)).message
            await at_desk.answer(TRIP, "name", "Fjords", draft=True)
            seen = await in_bed.wait_until(lambda state: answer(state, "name"), PATIENCE)
            drafted = answer(seen, "name")
            assert isinstance(drafted, Draft)
            assert drafted.value.value == "Fjords"
            assert drafted.meta.by.id == "local"
            changes = at_desk.changes()
            await in_bed.complete(TRIP, answers={"name": "Fjords", "city": "oslo"})
            async with asyncio.timeout(PATIENCE):
                closing = await anext(c async for c in changes if _completes(c))
            assert closing.cause is Cause.ACTION
            assert closing.envelope.origin.client_id == "phone"
            assert closing.envelope.meta.by.id == "local"
            for session in (at_desk, in_bed):
                done = await session.wait_until(lambda state: state.turns, PATIENCE)
                assert "Someone answered" in str(done.turns[0].response_parts)
            assert at_desk.confirmed.turns == in_bed.confirmed.turns


def _completes(change: Any) -> bool:
    return change.envelope is not None and isinstance(change.envelope.action, InputCompleted)


@pytest.mark.parametrize("versions", [OLD, NEW])
@pytest.mark.proves("design.session.restart", "ahp.reconnect.after-restart")
async def test_clients_outlive_a_killed_server_and_an_offline_edit_arrives(
    tmp_path: Path, versions: tuple[str, ...]
) -> None:
    store = sqlite_store(tmp_path)
    with serving(store, "--demo") as first:
        async with (
            connect(first.url, versions=versions, name="Ana") as laptop,
            connect(first.url, versions=versions) as phone,
            laptop.session(DEMO) as at_desk,
            phone.session(DEMO) as in_bed,
        ):
            await trip(in_bed)
            await trip(at_desk)
            await at_desk.answer(TRIP, "people", 4)
            changes = in_bed.changes()
            first.kill()
            await _until(laptop, Phase.OFFLINE)
            edits = [
                asyncio.create_task(at_desk.answer(TRIP, "name", text, draft=True))
                for text in ("F", "Fj", "Fjord")
            ]
            await _until(laptop, Phase.OFFLINE, waiting=1)
            assert answer(at_desk.state, "name").value.value == "Fjord"
            assert answer(at_desk.confirmed, "name") is None
            with serving(store, "--demo", port=first.port) as second:
                assert second.url == first.url
                envelopes = await asyncio.gather(*edits)
                assert {envelope.server_seq for envelope in envelopes} == {at_desk.position}
                assert envelopes[-1].meta.by.name == "Ana"
                seen = await in_bed.wait_until(lambda state: answer(state, "name"), PATIENCE)
                assert answer(seen, "name").value.value == "Fjord"
                assert isinstance(answer(seen, "people"), Submitted)
                await laptop.wait_until_live(PATIENCE)
                causes = [c.cause async for c in _so_far(changes, seen)]
                assert versions == NEW or Cause.SNAPSHOT not in causes
                await in_bed.complete(TRIP, answers={"name": "Fjord", "city": "Bergen"})
                await at_desk.wait_until(lambda state: state.turns, PATIENCE)
                assert at_desk.state.turns[0].state is TurnState.COMPLETE


async def _until(client: Any, phase: Phase, waiting: int = 0) -> None:
    async with asyncio.timeout(PATIENCE):
        async for status in client.statuses():
            if status.phase is phase and status.waiting == waiting:
                return


async def _so_far(changes: Any, last: SessionState) -> Any:
    async for change in changes:
        yield change
        if change.after == last:
            return


async def test_sessions_are_made_listed_watched_and_disposed_of() -> None:
    with serving("memory:") as server:
        async with connect(server.url) as client, connect(server.url) as other:
            assert await client.ping() < PATIENCE
            assert await client.list_sessions() == ()
            uri = await client.create_session("demo", uri="mine:one")
            assert uri == "mine:one"
            with pytest.raises(SessionExists):
                await client.create_session(uri=uri)
            with pytest.raises(SessionNotFound):
                await client.dispose_session("ahp-session:/none")
            with pytest.raises(SessionNotFound):
                async with client.session("ahp-session:/none"):
                    raise AssertionError("there is none")
            async with other.root() as root, client.session(uri) as session:
                await root.wait_until(lambda state: state.active_sessions == 1, PATIENCE)
                assert {agent.provider for agent in root.state.agents} >= {"demo", "people"}
                await session.wait_until(lambda s: s.lifecycle is Lifecycle.READY, PATIENCE)
                (listed,) = await client.list_sessions()
                shown = msgspec.structs.replace(session.state.summary, created_at=listed.created_at)
                assert listed == shown
                changes = session.changes()
                await other.dispose_session(uri)
                with pytest.raises(SessionGone):
                    async for _ in changes:
                        pass
                with pytest.raises(SessionGone):
                    await session.dispatch(TitleChanged(title="late"))
                await root.wait_until(lambda state: state.active_sessions == 0, PATIENCE)


@pytest.mark.proves("ahp.channels.fetch-turns")
@pytest.mark.parametrize("versions", [OLD, NEW])
async def test_turns_are_started_and_fetched(versions: tuple[str, ...]) -> None:
    with serving("memory:") as server:
        async with connect(server.url, versions=versions) as client:
            uri = await client.create_session("demo")
            async with client.session(uri) as session:
                ids = []
                for number in range(3):
                    turn_id = await session.start_turn(f"trip {number}")
                    request = await session.wait_for_request(timeout=PATIENCE)
                    await session.complete(request.id, "cancel")
                    ids.append(turn_id)
                    await session.wait_until(lambda s: len(s.turns) == len(ids), PATIENCE)
                page = await client.fetch_turns(uri, before=ids[2], limit=1)
                assert [turn.id for turn in page.turns] == [ids[1]]
                assert page.has_more
                rest = await client.fetch_turns(uri, before=ids[1])
                assert [turn.id for turn in rest.turns] == [ids[0]]
                assert not rest.has_more


async def test_the_list_of_sessions_follows_what_comes_changes_and_goes(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with serving(store) as server:
        port = server.port
        async with connect(server.url) as client:
            listing = client.sessions()

            async def until(wanted: dict[str, str]) -> None:
                async with asyncio.timeout(PATIENCE):
                    async for sessions in listing:
                        if {s.resource: s.title for s in sessions} == wanted:
                            return

            await until({})
            uri = await client.create_session("people", uri="ahp-session:/a")
            await until({uri: "New session"})
            async with client.session(uri) as session:
                await session.dispatch(TitleChanged(title="Renamed"))
                await until({uri: "Renamed"})
            server.kill()
            await _until(client, Phase.OFFLINE)
            with serving(store, port=port):
                await client.wait_until_live(PATIENCE)
                await client.dispose_session(uri)
                await until({})
    with pytest.raises(Closed):
        await anext(listing)
