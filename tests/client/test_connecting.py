"""A client on real sockets: how connections begin, break, come back and end."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest

from session_server.client import (
    Cause,
    Change,
    Client,
    Closed,
    ConnectionLost,
    GaveUp,
    InvalidAnswer,
    NotConnected,
    NotUnderstood,
    Phase,
    Rejected,
    RequestClosed,
    Session,
    Status,
    connect,
    connecting,
)
from session_server.client.watching import CHANGES_KEPT
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.ahp.session import SessionState
from tests.client.model_clients import asking_host, completed, draft, submitted
from tests.client.model_server import SocketHost, hosting
from tests.effort import PATIENCE
from tests.sessions import OWNER, PHONE, SESSION


@asynccontextmanager
async def watching() -> AsyncGenerator[tuple[SocketHost, Client, Session], None]:
    async with (
        hosting(asking_host()) as host,
        connect(host.url) as client,
        client.session(SESSION) as session,
    ):
        yield host, client, session


async def status_of(client: Client, *phases: Phase) -> Status:
    """The next status of one of these phases."""
    async with asyncio.timeout(PATIENCE):
        async for status in client.statuses():
            if status.phase in phases:
                return status
    raise AssertionError(f"the client ended without {phases}")


async def title(session: Session, wanted: str) -> None:
    await session.wait_until(lambda state: state.summary.title == wanted, PATIENCE)


@pytest.mark.parametrize("way", ["closed", "cut without a word", "talks nonsense"])
async def test_a_connection_that_ends_is_made_again(way: str) -> None:
    """Which close codes are for good is in `test_reconnecting`."""
    async with watching() as (host, client, session):
        (server_side,) = host.model.sockets
        offline = asyncio.create_task(status_of(client, Phase.OFFLINE))
        if way == "closed":
            await host.close(1012)
        elif way == "talks nonsense":
            await server_side.connection.send("nonsense")
        else:
            server_side.connection.transport.abort()
        await offline
        host.model.act(TitleChanged(title="missed"), OWNER)
        await title(session, "missed")
        assert host.arrived == 2


async def test_a_connection_that_is_closed_for_good_is_given_up_and_everybody_learns_why() -> None:
    async with watching() as (host, client, session):
        changes = session.changes()
        waiting = asyncio.create_task(session.wait_until(lambda _: False))
        await host.close(4500, "not you")
        with pytest.raises(GaveUp, match="not you") as error:
            await waiting
        assert error.value.close_code == 4500
        assert client.status.phase is Phase.CLOSED
        with pytest.raises(GaveUp):
            await anext(changes)
        with pytest.raises(GaveUp):
            await session.dispatch(draft("x"))
        with pytest.raises(GaveUp):
            await session.wait_until(lambda _: False)
        with pytest.raises(GaveUp):
            await client.ping()
        assert host.arrived == 1


async def test_a_host_that_does_not_let_us_in_is_given_up_at_once() -> None:
    async with hosting(asking_host()) as host:
        host.statuses = [HTTPStatus.FORBIDDEN]
        with pytest.raises(GaveUp) as error:
            async with connect(host.url, token="wrong"):
                raise AssertionError("it let us in")
        assert error.value.status == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    ("link", "token"),
    [("", "s3cret"), ("/?tkn=s3cret#/s/x", None), ("/ahp?tkn=other", "s3cret")],
)
async def test_the_token_goes_into_a_header_and_not_into_the_address(
    link: str, token: str | None
) -> None:
    async with hosting(asking_host()) as host, connect(host.url + link, token=token):
        (headers,) = host.headers
        assert headers["Authorization"] == "Bearer s3cret"
        assert host.paths == ["/ahp"]


async def test_a_host_that_is_not_there_yet_is_waited_for() -> None:
    async with hosting(asking_host()) as host:
        host.statuses = [HTTPStatus.BAD_GATEWAY] * 3
        async with connect(host.url) as client:
            assert client.status.is_connected
        assert len(host.headers) == 4


async def test_a_host_that_does_not_come_is_named_with_what_went_wrong() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(NotConnected, match=url) as error:
            async with connect(url, timeout=0.3):
                raise AssertionError("there is nobody")
    assert isinstance(error.value.__cause__, OSError)
    assert error.value.can_retry


@pytest.mark.slow
async def test_a_host_that_never_answers_the_handshake_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connecting, "HANDSHAKE_SECONDS", 0.1)
    async with hosting(asking_host()) as host:
        host.is_mute = True
        with pytest.raises(NotConnected, match="handshake"):
            async with connect(host.url, timeout=3.0):
                raise AssertionError("it said nothing")


async def test_status_changes_are_reported_in_order() -> None:
    seen: list[Status] = []
    async with hosting(asking_host()) as host:
        async with connect(host.url) as client:

            async def watch() -> None:
                seen.extend([status async for status in client.statuses()])

            watching = asyncio.create_task(watch())
            async with client.session(SESSION) as session:
                await session.dispatch(draft("x"))
                await host.close(1012)
                await status_of(client, Phase.OFFLINE)
                await client.wait_until_live(PATIENCE)
        await watching
    assert [status.phase for status in seen] == [
        Phase.LIVE,
        Phase.SYNCING,
        Phase.LIVE,
        Phase.OFFLINE,
        Phase.LIVE,
        Phase.CLOSED,
    ]


# Commands


async def test_a_command_that_changes_nothing_is_asked_again() -> None:
    async with hosting(asking_host()) as host, connect(host.url, client_id="me") as client:
        assert client.client_id == "me"
        host.cut_at, host.cuts = '"ping"', 2
        assert await client.ping() < PATIENCE
        assert host.arrived == 3


async def test_a_command_that_changes_something_is_not_repeated_by_itself() -> None:
    async with hosting(asking_host()) as host, connect(host.url) as client:
        host.cut_at, host.cuts = '"createSession"', 1
        with pytest.raises(ConnectionLost) as error:
            await client.create_session("demo")
        assert error.value.can_retry
        await client.ping()


async def test_an_answer_of_another_shape_is_not_understood() -> None:
    async with watching() as (host, client, _session):
        (server_side,) = host.model.sockets
        asking = asyncio.create_task(client.list_sessions())
        server_side.answer(3, {"pong": True})
        with pytest.raises(NotUnderstood):
            await asking


async def test_a_defect_ends_the_client_with_an_error_and_a_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        def changed(self, _: object) -> None:
            raise ZeroDivisionError

        def ended(self, _: object) -> None: ...

    async with watching() as (host, _client, session):
        broken = Broken()
        session._mirror.observe(broken)
        host.model.act(TitleChanged(title="x"), OWNER)
        with pytest.raises(GaveUp, match="ZeroDivisionError"):
            await session.wait_until(lambda _: False, PATIENCE)
    assert "ZeroDivisionError" in caplog.text


async def test_what_was_dispatched_last_still_leaves() -> None:
    async with hosting(asking_host()) as host:
        async with connect(host.url) as client, client.session(SESSION) as session:
            session.dispatch_nowait(TitleChanged(title="goodbye"))
        async with connect(host.url) as client, client.session(SESSION) as session:
            await title(session, "goodbye")


# Sessions


async def test_changes_come_one_by_one_with_before_and_after() -> None:
    async with watching() as (host, _client, session):
        changes = session.changes()
        await session.dispatch(draft("mine"))
        host.model.act(TitleChanged(title="theirs"), OWNER)
        seen: list[Change[SessionState]] = []
        async for change in changes:
            seen.append(change)
            if change.cause is Cause.ACTION:
                break
        assert [c.cause for c in seen] == [Cause.DISPATCHED, Cause.CONFIRMED, Cause.ACTION]
        assert [c.before for c in seen[1:]] == [c.after for c in seen[:-1]]
        assert seen[0].envelope is None
        assert seen[2].envelope.action == TitleChanged(title="theirs")
        assert seen[2].after == session.state


async def test_a_slow_reader_gets_one_change_for_many() -> None:
    async with watching() as (host, _client, session):
        changes = session.changes()
        first = session.state
        for number in range(CHANGES_KEPT + 1):
            host.model.act(TitleChanged(title=str(number)), OWNER)
        await title(session, str(CHANGES_KEPT))
        change = await anext(changes)
        assert (change.cause, change.envelope) == (Cause.SEVERAL, None)
        assert (change.before, change.after) == (first, session.state)
        host.model.act(TitleChanged(title="next"), OWNER)
        assert (await anext(changes)).cause is Cause.ACTION


async def test_changes_end_when_the_session_is_left() -> None:
    async with watching() as (_, client, session):
        async with client.session(SESSION) as left:
            assert left.state is session.state
            changes = left.changes()
            await left.dispatch(draft("x"))
        assert len([change async for change in changes]) == 2
        with pytest.raises(Closed):
            await left.dispatch(draft("y"))
        assert left.state == session.state
        await session.dispatch(draft("z"))


async def test_a_session_is_watched_inside_async_with_only() -> None:
    async with hosting(asking_host()) as host, connect(host.url) as client:
        with pytest.raises(Closed):
            client.session(SESSION).state  # noqa: B018


async def test_waiting_sees_states_that_pass_quickly() -> None:
    async with watching() as (host, _client, session):

        async def rename_twice() -> None:
            for name in ("briefly", "then this"):
                host.model.act(TitleChanged(title=name), OWNER)

        await asyncio.gather(title(session, "briefly"), rename_twice())
        await title(session, "then this")
        with pytest.raises(TimeoutError):
            await session.wait_until(lambda state: state.summary.title == "never", 0.05)
        with pytest.raises(ZeroDivisionError):
            await session.wait_until(lambda _: 1 / 0)


async def test_settled_waits_for_everything_that_was_done() -> None:
    async with watching() as (host, client, session):
        session.dispatch_nowait(draft("a", "q1"))
        session.dispatch_nowait(draft("too long is fine in a draft", "q2"))
        assert len(session.pending) == 2
        assert client.status == Status(Phase.SYNCING, 2)
        await session.settled(PATIENCE)
        assert session.pending == ()
        assert session.state == host.model.record.public


async def test_questions_are_answered_with_plain_values() -> None:
    async with watching() as (_host, _client, session):
        request = await session.wait_for_request("r2", PATIENCE)
        assert session.requests[1] == request
        assert (await session.wait_for_request(lambda r: r.id == "r1")).id == "r1"
        assert (await session.wait_for_request()).id == "r1"
        await session.answer("r2", "q1", "some", draft=True)
        await session.answer("r2", "q2", "ab")
        await session.skip("r2", "q1")
        await session.clear("r2", "q2")
        with pytest.raises(InvalidAnswer, match="at most 2"):
            await session.answer("r2", "q2", "abc")
        with pytest.raises(InvalidAnswer, match="no question 'q3'"):
            await session.complete("r2", answers={"q3": "x"})
        await session.complete("r2", "accept", {"q1": None, "q2": "cd"})
        assert [request.id for request in session.requests] == ["r1"]
        await session.complete("r1", ResponseKind.CANCEL)
        assert session.requests == ()
        with pytest.raises(ValueError, match="maybe"):
            await session.complete("r1", "maybe")


@pytest.mark.proves("design.calls.review-outdated")
async def test_a_completion_is_refused_if_anything_else_would_be_sent_than_was_reviewed() -> None:
    async with watching() as (host, _client, session):
        await session.answer("r1", "q1", "Fjords")
        host.model.act(draft("Bergen"), PHONE)
        await session.wait_until(lambda state: "Bergen" in str(state.input_requests), PATIENCE)
        seen = session.review("r1", {"q2": "x"})
        assert seen.content == {"q1": "Fjords", "q2": "x"}
        host.model.act(submitted("Bergen"), PHONE)
        with pytest.raises(Rejected, match="Changed after you reviewed it"):
            await session.complete("r1", answers={"q2": "x"}, reviewed=seen)
        seen = session.review("r1", {"q2": "x"})
        assert seen.content["q1"] == "Bergen"
        await session.complete("r1", answers={"q2": "x"}, reviewed=seen)


async def test_a_question_that_is_closed_says_by_whom_without_asking_the_host() -> None:
    async with watching() as (host, _client, session):
        host.model.act(completed(), PHONE)
        await session.wait_until(lambda state: len(state.input_requests or ()) == 1, PATIENCE)
        for late in (session.answer("r1", "q1", "x"), session.complete("r1")):
            with pytest.raises(RequestClosed, match="closed by Bo") as error:
                await late
            assert error.value.by == PHONE.author
        with pytest.raises(RequestClosed, match="No request 'r9' is open"):
            await session.complete("r9")


async def test_leaving_a_client_says_goodbye() -> None:
    async with hosting(asking_host()) as host:
        async with connect(host.url) as client:
            pass
        assert client.status == Status(Phase.CLOSED)
        async with asyncio.timeout(PATIENCE):
            assert await host.closings.get() == 1000
        with pytest.raises(Closed):
            await client.ping()
