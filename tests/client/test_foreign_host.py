"""The client and an AHP host that is not ours: no extension, other uses of `_meta`, new kinds."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from session_server.client import (
    Cause,
    Client,
    Conversation,
    Rejected,
    RequestClosed,
    Session,
    SessionExists,
    SessionNotFound,
    UnknownAction,
    Unsupported,
    connect,
)
from session_server.schemas.ahp.actions import InputCompleted, ModelChanged, TitleChanged
from session_server.schemas.ahp.questions import Draft
from session_server.schemas.ahp.session import ModelSelection, Status
from session_server.schemas.ahp.turns import MarkdownPart, UnknownPart
from session_server.schemas.ahp1.actions import DraftChanged
from tests.client.foreign_host import (
    CHAT,
    QUESTIONS,
    REQUEST,
    SESSION,
    SIDE_CHAT,
    TOKEN,
    ForeignHost,
    chat,
    hosted,
    summary_of,
    turn,
)
from tests.effort import PATIENCE

RUNNING = {
    "type": "chat/turnStarted",
    "turnId": "t1",
    "startedAt": "2026-10-05T12:00:00.000Z",
    "message": {"text": "Go", "origin": {"kind": "user"}},
}


@asynccontextmanager
async def following(
    host: ForeignHost, **options: Any
) -> AsyncGenerator[tuple[Client, Session], None]:
    async with (
        hosted(host),
        connect(host.url, token=TOKEN, name="Ana") as client,
        client.session(SESSION, **options) as session,
    ):
        yield client, session
    assert host.violations == []


def documents(session: Session) -> tuple[Any, Any]:
    state = session.confirmed
    assert isinstance(state, Conversation)
    return state.session, state.chat


async def same(host: ForeignHost, session: Session) -> None:
    """The mirror has, in the end, exactly what the host has."""
    await session.settled(PATIENCE)
    await session.wait_until(
        lambda _: documents(session) == (host.states[SESSION], host.states[CHAT]), PATIENCE
    )
    assert session.state == session.confirmed


@pytest.mark.parametrize("version", ["1.0.0", "0.9.0"])
@pytest.mark.proves("ahp.ahp1.any-host")
async def test_a_question_of_another_host_is_drafted_answered_and_completed(version: str) -> None:
    host = ForeignHost(version)
    async with following(host) as (client, session):
        assert client.version == version
        host.start_turn(RUNNING)
        host.ask()
        request = await session.wait_for_request(timeout=PATIENCE)
        assert [question.id for question in request.questions or ()] == ["where", "count"]
        await session.answer("ask-1", "count", 2, draft=True)
        (shown,) = session.requests
        assert isinstance((shown.answers or {})["count"], Draft)
        with pytest.raises(Rejected, match="Where to"):
            await session.complete("ask-1", "accept")
        await session.answer("ask-1", "where", "Europe")
        envelope = await session.complete("ask-1", "accept", {"count": 3})
        assert isinstance(envelope.action, InputCompleted)
        assert session.requests == ()
        with pytest.raises(RequestClosed):
            await session.answer("ask-1", "where", "us")
        host.finish()
        await same(host, session)
        assert "Where to?: Europe; How many?: 3" in str(session.state.turns[0].response_parts)


async def test_the_agent_is_asked_something_and_its_answer_followed() -> None:
    host = ForeignHost(is_ahead=True)
    async with following(host) as (_, session):
        turn_id = await session.start_turn("What is new?")
        assert session.state.summary.status & Status.IN_PROGRESS
        host.say(
            {"kind": "markdown", "id": "p1", "content": "Much"}, {"kind": "hologram", "x": [1]}
        )
        host.act(CHAT, {"type": "chat/delta", "turnId": turn_id, "partId": "p1", "content": "!"})
        host.states[CHAT]["activeTurn"]["responseParts"][0]["content"] = "Much!"
        host.finish()
        done = await session.wait_until(lambda state: state.turns, PATIENCE)
        first, second = done.turns[0].response_parts
        assert first == MarkdownPart(id="p1", content="Much!")
        assert isinstance(second, UnknownPart)
        await same(host, session)


async def test_sessions_are_listed_page_by_page_and_created() -> None:
    host = ForeignHost()
    async with following(host) as (client, _):
        listed = await client.list_sessions()
        assert [summary.title for summary in listed] == ["Work", "More work"]
        assert listed[0].created_at == listed[0].modified_at == 1_791_201_600_000
        await client.create_session("acme", uri="acme:/jobs/3")
        with pytest.raises(SessionExists):
            await client.create_session("acme", uri="acme:/jobs/3")
        with pytest.raises(SessionNotFound):
            async with client.session("acme:/none"):
                raise AssertionError("there is none")
        with pytest.raises(Unsupported):
            await client.create_session("acme", model="m")
        assert await client.ping() < PATIENCE


@pytest.mark.parametrize("way", ["replay", "snapshot", "initialize", "unloaded"])
async def test_a_client_that_was_away_gets_what_it_missed(way: str) -> None:
    host = ForeignHost()
    async with following(host) as (client, session):
        host.start_turn(RUNNING)
        host.ask()
        await session.wait_for_request(timeout=PATIENCE)
        changes = session.changes()
        (peer,) = host.peers
        await peer.socket.close(1012)
        host.say({"kind": "markdown", "id": "p", "content": "Meanwhile"})
        host.unloads = way == "unloaded"
        if way in ("snapshot", "initialize"):
            host.floor = host.seq + 1
        if way == "initialize":
            host.known.clear()
        await session.answer("ask-1", "count", 4)
        causes = {(await anext(changes)).cause for _ in range(3)}
        assert (Cause.SNAPSHOT in causes) == (way != "replay")
        assert client.version == "1.0.0"
        await same(host, session)


async def test_what_happens_while_an_unloaded_session_is_loaded_again_is_not_lost() -> None:
    host = ForeignHost()

    def rename() -> None:
        host.states[SESSION]["title"] = "Renamed between two answers"
        title = {"type": "session/titleChanged", "title": host.states[SESSION]["title"]}
        host.act(SESSION, title)

    async with following(host) as (_, session):
        host.unloads = True
        host.after_subscribe[SESSION] = rename
        (peer,) = host.peers
        await peer.socket.close(1012)
        turn_id = await session.start_turn("Still there?")
        assert [f["method"] for f in host.sent].count("dispatchAction") == 1
        assert host.states[CHAT]["activeTurn"]["id"] == turn_id
        await same(host, session)


async def test_a_chat_other_than_the_default_one_can_be_followed_too() -> None:
    host = ForeignHost(chats=(CHAT, SIDE_CHAT))
    host.states[SIDE_CHAT]["turns"].append(turn("s1", "Aside"))
    async with following(host) as (client, session):
        assert session.chat == CHAT
        assert [found.resource for found in session.chats] == [CHAT, SIDE_CHAT]
        async with client.session(SESSION, chat=SIDE_CHAT) as aside:
            assert aside.chat == SIDE_CHAT
            assert [found.id for found in aside.state.turns] == ["s1"]
            await aside.dispatch(TitleChanged(title="Both"))
            await session.wait_until(lambda state: state.summary.title == "Both", PATIENCE)
        await session.dispatch(TitleChanged(title="Still here"))
        await same(host, session)
    subscribed = [f["params"]["channel"] for f in host.sent if f["method"] == "subscribe"]
    assert subscribed == [SESSION, CHAT, SIDE_CHAT]
    left = [f["params"]["channel"] for f in host.sent if f["method"] == "unsubscribe"]
    assert left[0] == SIDE_CHAT


async def test_a_session_without_a_chat_is_followed_until_it_has_one() -> None:
    host = ForeignHost(chats=())
    async with following(host) as (_, session):
        assert session.chat is None
        with pytest.raises(Unsupported, match="no chat"):
            await session.start_turn("Anybody?")
        host.states[CHAT] = chat(CHAT, turns=[turn("t0", "Hello")])
        summary = summary_of(host.states[CHAT])
        host.states[SESSION]["chats"] = [summary]
        host.act(SESSION, {"type": "session/chatAdded", "summary": summary})
        found = await session.wait_until(lambda state: state.turns, PATIENCE)
        assert found.turns[0].message.text == "Hello"
        await session.start_turn("There you are")
        await same(host, session)


async def test_older_turns_are_fetched_where_a_host_shows_the_latest_ones() -> None:
    host = ForeignHost()
    host.older = [turn("t1", "One"), turn("t2", "Two")]
    host.states[CHAT] |= {"turns": [turn("t3", "Three")], "turnsNextCursor": "2"}
    async with following(host) as (client, session):
        assert session.older_turns == "2"
        page = await client.fetch_turns(SESSION, before="t3", limit=1)
        assert ([found.id for found in page.turns], page.has_more) == (["t2"], True)
        page = await client.fetch_turns(SESSION)
        assert ([found.id for found in page.turns], page.has_more) == (["t1", "t2", "t3"], False)
        assert [found.id for found in session.state.turns] == ["t1", "t2", "t3"]


async def test_what_is_new_to_us_is_carried_along() -> None:
    host = ForeignHost(is_ahead=True)
    async with following(host, present=True) as (_, session):
        session.editing("ask-1", "count")
        host.start_turn(RUNNING)
        host.ask({**REQUEST, "questions": QUESTIONS, "acme": True})
        request = await session.wait_for_request(timeout=PATIENCE)
        assert [question.id for question in request.questions or ()] == ["where", "count"]
        changes = session.changes()
        host.act(CHAT, {"type": "acme/blinked", "times": 2})
        assert (await anext(changes)).envelope.action == UnknownAction(
            {"type": "acme/blinked", "times": 2}
        )
        await session.dispatch(TitleChanged(title="On"))
        await same(host, session)
        with pytest.raises(Rejected, match="not for clients"):
            await session.dispatch(DraftChanged())
        with pytest.raises(Unsupported, match="modelChanged"):
            await session.dispatch(ModelChanged(model=ModelSelection(id="m")))


async def test_an_action_that_makes_no_sense_leads_to_a_new_snapshot() -> None:
    host = ForeignHost()
    async with following(host) as (_, session):
        for peer in host.peers:
            broken = {"type": "chat/turnStarted", "message": 5}
            params = {"channel": CHAT, "action": broken, "serverSeq": host.seq + 1}
            peer.out.put_nowait({"jsonrpc": "2.0", "method": "action", "params": params})
        host.seq += 1
        host.states[CHAT]["turns"].append(turn("t0", "Known only to the host"))
        await same(host, session)
