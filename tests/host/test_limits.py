"""What one connection, one principal and one host may have and do, and what is said beyond it."""

import asyncio
from time import monotonic
from typing import Any

import msgspec
import pytest

from session_server.app import bounds_of
from session_server.host import kinds
from session_server.host.connections import Connections, TooManyConnectionsError
from session_server.host.host import Host
from session_server.host.pace import Bounds, Pace
from session_server.schemas.limits import (
    ACTIONS_AT_ONCE,
    ACTIONS_PER_SECOND,
    ACTIONS_UNSETTLED,
    CLIENT_LIFETIME_MS,
    CONNECTIONS_PER_PRINCIPAL,
    ID_CHARS,
    PRESENCE_NEWS_PER_SECOND,
    REFUSALS_BEFORE_CLOSE,
    REFUSALS_WINDOW_SECONDS,
    REQUESTS_IN_FLIGHT,
    SESSIONS_PER_HOST,
    SUBSCRIPTIONS_PER_CONNECTION,
    TURNS_PER_PAGE,
)
from session_server.settings import Settings
from tests.host.harness import AGENT, ANA, BO, SESSION, Client, hosting, joined, run, with_session

SLOW = Bounds(actions_per_second=1)
ROOM = "ahp-presence:/1"
TITLE = {"type": "session/titleChanged", "title": "x"}


def ping(number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "ping", "params": {"channel": "ahp-root://"}}


def spend(client: Client) -> None:
    """All that it may send at once, and a little more in case the clock has moved."""
    for _ in range(ACTIONS_AT_ONCE + 5):
        client.say(ping())
    client.received.clear()


# Pace


@pytest.mark.proves("design.limits.connection")
@run
async def test_who_sends_too_fast_is_told_and_may_go_on_later() -> None:
    async with hosting(bounds=SLOW) as host:
        ana = await with_session(host)
        spend(ana)
        envelope = await ana.act(TITLE)
        assert "wait a moment" in envelope["rejectionReason"]
        assert envelope["_meta"]["code"] == "limit"
        refused = await ana.call("listSessions")
        assert (refused["code"], "wait a moment" in refused["message"]) == (-32011, True)
        ana.connection._pace._filled_at -= 3
        assert "rejectionReason" not in await ana.act(TITLE)
        assert ana.closed is None


@run
async def test_haste_never_keeps_anyone_from_leaving() -> None:
    async with hosting(bounds=SLOW) as host:
        ana = await with_session(host)
        spend(ana)
        ana.say({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": SESSION}})
        assert ana not in host.sessions[SESSION].subscribers


@run
async def test_who_never_stops_is_closed_with_a_code_that_says_come_back_later() -> None:
    async with hosting(bounds=SLOW) as host:
        ana, bo = await with_session(host), await joined(host, BO, "phone")
        spend(ana)
        for _ in range(REFUSALS_BEFORE_CLOSE - 100):
            ana.dispatch(TITLE)
        assert ana.closed is None
        for number in range(200):
            ana.connection.receive(b"rubbish" if number % 2 else b"{}")
        assert ana.closed is not None
        assert 4000 <= ana.closed[0] < 4500
        assert "come back later" in ana.closed[1]
        assert await bo.call("ping") is None


@run
async def test_an_operator_may_lift_the_limit() -> None:
    async with hosting(bounds=Bounds(actions_per_second=0)) as host:
        ana = await joined(host)
        for number in range(3 * ACTIONS_AT_ONCE):
            ana.say(ping(number))
        assert all("result" in frame for frame in ana.received)


def test_a_bucket_fills_with_time_and_no_further_than_its_size() -> None:
    pace = Pace(per_second=10, at_once=20)
    pace.credit = -1
    assert not pace.may_go_on()
    pace._filled_at -= 1.05
    assert pace.may_go_on()
    assert pace.credit == 9
    pace._filled_at -= 1_000
    assert pace.may_go_on()
    assert pace.credit == 19


def test_refusals_are_forgotten_after_a_while() -> None:
    pace = Pace(per_second=1)
    assert not any(pace.is_abused() for _ in range(REFUSALS_BEFORE_CLOSE))
    assert 0 < pace._window_ends - monotonic() <= REFUSALS_WINDOW_SECONDS
    pace._window_ends = 0.0
    assert not pace.is_abused()


def test_an_operator_who_says_nothing_gets_the_limits() -> None:
    bounds = (ACTIONS_PER_SECOND, CONNECTIONS_PER_PRINCIPAL, SESSIONS_PER_HOST)
    assert Bounds() == bounds == bounds_of(Settings())


# What is under way


@run
async def test_requests_without_an_answer_yet_are_bounded() -> None:
    async with hosting() as host:
        ana = await joined(host)
        for number in range(REQUESTS_IN_FLIGHT + 1):
            params = {"channel": f"ahp-session:/{number}", "provider": "people"}
            frame = {"jsonrpc": "2.0", "method": "createSession", "params": params}
            ana.say({**frame, "id": 100 + number})
        refused = ana.received[-1]
        assert (refused["id"], refused["error"]["code"]) == (100 + REQUESTS_IN_FLIGHT, -32011)
        assert "unanswered" in refused["error"]["message"]
        await ana.wait_for(lambda frame: frame.get("id") == 99 + REQUESTS_IN_FLIGHT)
        assert ana.connection.peer.replies.unanswered == 0
        assert len((await ana.call("listSessions"))["items"]) == REQUESTS_IN_FLIGHT


@run
async def test_every_answer_is_counted_once() -> None:
    async with hosting() as host:
        ana = await joined(host)
        for method in ("ping", "listSessions", "nonsense", "authenticate", "subscribe"):
            await ana.call(method, channel="ahp-root://", resource="x", token="y")
        ana.connection.receive(b"rubbish")
        await ana.call("createSession", "ahp-nope:/1")
        await ana.initialize("again")
        assert ana.connection.peer.replies.unanswered == 0


@pytest.mark.slow
@run
async def test_actions_that_wait_to_be_written_are_bounded() -> None:
    async with hosting(bounds=Bounds(actions_per_second=0)) as host:
        ana = await with_session(host)
        for _ in range(ACTIONS_UNSETTLED + 1):
            ana.received.clear()
            ana.dispatch(TITLE)
        refused = ana.received[-1]["params"]
        assert "still being written" in refused["rejectionReason"]
        await ana.wait_for(lambda f: f["params"]["origin"]["clientSeq"] == ACTIONS_UNSETTLED)
        assert "rejectionReason" not in await ana.act(TITLE)
        assert ana.connection.dispatches.unsettled == 0


# What one connection and one host may have


@run
async def test_rooms_count_among_the_channels_that_a_connection_watches() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        for number in range(SUBSCRIPTIONS_PER_CONNECTION - 1):
            await ana.call("createSession", f"ahp-session:/x{number}", provider="people")
            await ana.call("subscribe", f"ahp-presence:/x{number}")
        assert (await ana.call("subscribe", ROOM))["code"] == -32011
        ana.say({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": SESSION}})
        assert await ana.call("subscribe", ROOM) == {}


@run
async def test_the_sessions_of_a_host_are_bounded() -> None:
    async with hosting(bounds=Bounds(sessions=2)) as host:
        ana = await with_session(host)
        assert await ana.call("createSession", "ahp-session:/2", provider="people") is None
        refused = await ana.call("createSession", "ahp-session:/3", provider="people")
        assert refused["code"] == -32011
        assert "dispose of some" in refused["message"]
        assert await ana.call("disposeSession", SESSION) is None
        assert await ana.call("createSession", "ahp-session:/3", provider="people") is None


@pytest.mark.parametrize(
    "uri",
    ["ahp-session:/" + "x" * ID_CHARS, "session-server:tokens", "Session-Server:x", "ahp-x:/1"],
)
@run
async def test_a_session_cannot_have_any_name(uri: str) -> None:
    async with hosting() as host:
        ana = await joined(host)
        assert (await ana.call("createSession", uri, provider="people"))["code"] == -32602


@run
async def test_the_connections_of_a_principal_are_bounded() -> None:
    async with hosting(bounds=Bounds(connections_per_principal=2)) as host:
        clients = [Client(host, ANA) for _ in range(3)]
        assert [client.closed and client.closed[0] for client in clients] == [None, None, 4002]
        with pytest.raises(TooManyConnectionsError, match="come back"):
            host.connections.check(ANA)
        host.connections.check(BO)
        for client in clients[1:]:
            client.connection.closed()
        host.connections.check(ANA)
        clients[0].connection.closed()


def test_connections_may_be_without_limit() -> None:
    connections = Connections(0)
    for _ in range(10):
        connections.check(ANA)


@run
async def test_news_of_who_is_there_come_at_a_bounded_rate() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        await ana.call("subscribe", ROOM)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(200):
            params = {"channel": ROOM, "editing": {"requestId": "r", "questionId": str(number)}}
            ana.say({"jsonrpc": "2.0", "method": "presence/update", "params": params})
            await asyncio.sleep(0.001)
        last = {"requestId": "r", "questionId": "199"}

        def is_last(frame: dict[str, Any]) -> bool:
            return any(p.get("editing") == last for p in frame.get("params", {}).get("present", ()))

        await ana.wait_for(is_last)
        told = sum(frame.get("method") == "presence/changed" for frame in ana.received)
        assert told <= (loop.time() - began) * PRESENCE_NEWS_PER_SECOND + 2


@run
async def test_turns_come_in_pages_however_many_are_asked_for() -> None:
    async with hosting() as host:
        await with_session(host, "demo")
        agent = await joined(host, AGENT, "agent", SESSION)
        message = {"text": "Go", "origin": {"kind": "user"}}
        for number in range(TURNS_PER_PAGE + 1):
            turn = {"turnId": str(number)}
            await agent.act({"type": "session/turnStarted", **turn, "message": message})
            await agent.act({"type": "session/turnComplete", **turn})
        page = await agent.call("fetchTurns", SESSION, limit=10 * TURNS_PER_PAGE)
        assert (len(page["turns"]), page["hasMore"]) == (TURNS_PER_PAGE, True)


# Clients that are known


@pytest.fixture
def few_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "CLIENTS_PER_PRINCIPAL", 3)
    monkeypatch.setattr(kinds, "CLIENTS_KEPT", 5)


def known(host: Host) -> list[str]:
    assert host.clients.channel.committed is not None
    return list(host.clients.channel.committed.clients)


@pytest.mark.usefixtures("few_clients")
@run
async def test_who_has_too_many_clients_loses_its_own_oldest() -> None:
    async with hosting() as host:
        await joined(host, BO, "bo")
        for number in range(4):
            await joined(host, ANA, f"ana-{number}")
        assert known(host) == ["bo", "ana-1", "ana-2", "ana-3"]
        await joined(host, ANA, "ana-1")
        assert known(host) == ["bo", "ana-2", "ana-3", "ana-1"]


@pytest.mark.usefixtures("few_clients")
@run
async def test_a_host_that_knows_too_many_clients_forgets_the_oldest() -> None:
    async with hosting() as host:
        for number in range(6):
            principal = msgspec.structs.replace(ANA, id=f"p{number}")
            await joined(host, principal, f"c{number}")
        assert known(host) == ["c1", "c2", "c3", "c4", "c5"]


@pytest.mark.proves("design.doors.client-id-expiry")
@run
async def test_a_client_that_was_long_away_is_forgotten() -> None:
    async with hosting() as host:
        ana = await joined(host, ANA, "laptop")
        ana.connection.closed()
        later(host, CLIENT_LIFETIME_MS + 1)
        again = Client(host, ANA)
        reconnect = {"clientId": "laptop", "lastSeenServerSeq": 0, "subscriptions": []}
        assert (await again.call("reconnect", **reconnect))["code"] == -32008
        bo = Client(host, BO)
        assert "protocolVersion" in await bo.initialize("laptop")
        assert (await again.initialize("laptop"))["code"] == -32009


def later(host: Host, ms: int) -> None:
    now = host.now
    host.now = lambda: now() + ms  # type: ignore[method-assign]
    host.clients._now = host.now


@run
async def test_a_client_that_comes_back_is_remembered_from_then() -> None:
    async with hosting() as host:
        (await joined(host, ANA, "laptop")).connection.closed()
        later(host, CLIENT_LIFETIME_MS - 1000)
        back = Client(host, ANA)
        reconnect = {"clientId": "laptop", "lastSeenServerSeq": 0, "subscriptions": []}
        assert "type" in await back.call("reconnect", **reconnect)
        await joined(host, ANA, "another")  # written after
        back.connection.closed()
        later(host, 2_000)
        assert "type" in await Client(host, ANA).call("reconnect", **reconnect)


@run
async def test_a_client_that_is_connected_stays_its_own_however_long_that_lasts() -> None:
    async with hosting() as host:
        ana = await joined(host, ANA, "laptop")
        later(host, CLIENT_LIFETIME_MS + 1)
        assert (await Client(host, BO).initialize("laptop"))["code"] == -32009
        ana.connection.closed()
        assert "protocolVersion" in await Client(host, BO).initialize("laptop")
