"""What one connection, one principal and one host may have and do, and what is said beyond it."""

from time import monotonic
from typing import Any

import httpx2
import msgspec
import pytest

from session_server.app import create_app, limits_of
from session_server.host.clients.open_connections import Connections, TooManyConnectionsError
from session_server.host.connection.rate_limit import (
    TIDY_AT,
    Allowance,
    Allowances,
    ByteBudget,
    Pace,
    SharedBytes,
)
from session_server.host.host import Host
from session_server.host.host_limits import HostLimits
from session_server.http.dependencies import running
from session_server.reducers.state import host_channels
from session_server.schemas.errors import RateLimitError
from session_server.schemas.limits import (
    ACTIONS_AT_ONCE,
    ACTIONS_PER_SECOND,
    ACTIONS_UNSETTLED,
    ANSWER_BYTES_PER_CREDIT,
    BYTES_PER_CREDIT,
    CLIENT_LIFETIME_MS,
    CONNECTION_COST,
    CONNECTIONS_PER_PRINCIPAL,
    FLOOD_MEMORY_SECONDS,
    FLOOD_PAUSE_LIMIT_SECONDS,
    FLOOD_PAUSE_SECONDS,
    FRAME_BYTES,
    FRAMES_BEFORE_HANDSHAKE,
    IDLE_SECONDS,
    LOADED_BYTES,
    NODE_LEASE_SECONDS,
    PRESENCE_NEWS_PER_SECOND,
    REFUSALS_BEFORE_CLOSE,
    REFUSALS_WINDOW_SECONDS,
    REQUEST_COST,
    REQUESTS_IN_FLIGHT,
    RESERVE_PART,
    SELECTION_BYTES,
    SESSION_BYTES,
    SESSIONS_PER_HOST,
    STATE_BYTES_PER_HOST,
    STORE_SECONDS,
    SUBSCRIPTIONS_PER_CONNECTION,
    TURNS_PER_PAGE,
    UNSETTLED_BYTES,
    UNSETTLED_BYTES_PER_PRINCIPAL,
)
from session_server.settings import Settings
from tests.ahp.actions import input_requested, title_changed, turn_completed, turn_started
from tests.host.harness import (
    AGENT,
    ANA,
    BO,
    SESSION,
    Client,
    back_as,
    hosting,
    joined,
    with_agent,
    with_session,
)
from tests.host.manual_clock import Hands, ManualClock

SLOW = HostLimits(actions_per_second=1)
ROOM = "ahp-presence:/1"
TITLE = title_changed("x")


def spend(client: Client) -> None:
    """Uses up all that its principal may send for now, however long the test takes."""
    long_from_now = monotonic() + 1_000_000
    allowance, pace = client.connection._allowance, client.connection._pace
    allowance.credit, allowance._filled_at, pace._own_at = 0, long_from_now, long_from_now


# Pace


@pytest.mark.proves("design.limits.principal")
async def test_a_client_that_sends_too_fast_is_refused_and_may_continue_later() -> None:
    async with hosting(limits=SLOW) as host:
        ana = await with_session(host)
        spend(ana)
        envelope = await ana.act(TITLE)
        assert "wait a moment" in envelope["rejectionReason"]
        assert envelope["_meta"]["code"] == "limit"
        refused = await ana.call("listSessions")
        assert (refused["code"], "wait a moment" in refused["message"]) == (-32011, True)
        ana.notify("unsubscribe", SESSION)
        assert ana not in host.sessions[SESSION].publisher.subscribers  # that is never refused
        host.allowances.of(ANA.id)._filled_at = monotonic() - 3
        assert "snapshot" in await ana.call("subscribe", SESSION)
        assert "rejectionReason" not in await ana.act(TITLE)
        assert ana.closed is None


async def test_a_persistent_flood_ends_in_a_pause_for_its_principal_and_for_nobody_else() -> None:
    async with hosting(limits=SLOW) as host:
        ana, bo = await with_session(host), await joined(host, BO, "phone")
        spend(ana)
        for _ in range(REFUSALS_BEFORE_CLOSE - 100):
            ana.dispatch(TITLE)
        assert ana.closed is None
        for number in range(200):
            ana.connection.receive(b"random_frames" if number % 2 else b"{}")
        assert 4000 <= ana.closed[0] < 4500
        assert "wait before you reconnect" in ana.closed[1]
        with pytest.raises(RateLimitError, match="wait before you reconnect"):
            host.connections.check(ANA)
        assert await bo.call("ping") is None
        host.connections.check(BO)


async def test_an_operator_may_lift_the_limit() -> None:
    async with hosting(limits=HostLimits(actions_per_second=0)) as host:
        ana = await joined(host)
        for number in range(3 * ACTIONS_AT_ONCE):
            ana.ask(number, "ping")
        assert all("result" in frame for frame in ana.received)


async def test_a_connection_and_its_principal_follow_the_clock_of_the_host() -> None:
    clock = ManualClock()
    async with hosting(limits=HostLimits(actions_per_second=1), clock=clock) as host:
        ana = await joined(host)
        for number in range(ACTIONS_AT_ONCE + 1):
            ana.ask(number, "ping")
        assert "error" in ana.received[-1]  # however much time has really passed
        await clock.advance(10)
        assert await ana.call("ping") is None


def an_allowance(clock: Hands, per_second: int = 10, at_once: int = 20) -> Allowance:
    return Allowance(per_second, ByteBudget(100, SharedBytes()), at_once, clock)


def test_credit_comes_back_with_time_up_to_the_size_of_the_bucket() -> None:
    clock = Hands()
    allowance = an_allowance(clock)
    pace = Pace(allowance)
    assert all(pace.charge(1, 0) for _ in range(20))
    assert not pace.charge(1, 0)
    clock.now += 1.05
    assert pace.charge(1, 0)
    assert allowance.credit == 9
    clock.now += 1_000
    assert pace.charge(10, 0)
    assert allowance.credit == 20


def test_a_large_message_counts_as_several() -> None:
    clock = Hands()
    allowance = an_allowance(clock)
    pace = Pace(allowance)
    assert pace.charge(1, 4 * BYTES_PER_CREDIT)
    assert allowance.credit == 15
    assert not pace.charge(1, 15 * BYTES_PER_CREDIT)
    assert allowance.credit == 15  # what is refused costs nothing


async def test_large_answers_are_charged_to_who_asked_for_them() -> None:
    async with hosting(limits=SLOW) as host:
        ana, allowance = await with_session(host), host.allowances.of(ANA.id)
        padding = "x" * (ANSWER_BYTES_PER_CREDIT // 40)
        for number in range(40):
            directory = f"{number}{padding}"
            uri = f"ahp-session:/x{number}"
            await ana.call("createSession", uri, provider="people", workingDirectory=directory)
        before = allowance.credit
        size = len(msgspec.json.encode(await ana.call("listSessions")))
        assert size > ANSWER_BYTES_PER_CREDIT
        assert before - allowance.credit == 1 + size // ANSWER_BYTES_PER_CREDIT
        spend(ana)
        allowance.charge_answer(10 * ANSWER_BYTES_PER_CREDIT)
        allowance._filled_at = monotonic() - 5
        assert "wait a moment" in (await ana.act(TITLE))["rejectionReason"]  # there is a debt


async def test_http_requests_and_their_answers_are_charged() -> None:
    app = create_app("memory:", settings=Settings(actions_per_second=1))
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        allowance = running(app).host.allowances.of("local")
        before = allowance.credit
        body = {"workingDirectory": "x" * 3_000, "padding": "x" * BYTES_PER_CREDIT}
        for _ in range(6):
            made = await client.post("/v1/sessions", json=body)
            assert made.status_code == 201
        size = len(made.request.content)
        assert before - allowance.credit == 6 * (REQUEST_COST + size // BYTES_PER_CREDIT)
        before = allowance.credit
        size = len((await client.get("/v1/sessions")).content)
        assert size > ANSWER_BYTES_PER_CREDIT
        assert before - allowance.credit == REQUEST_COST + size // ANSWER_BYTES_PER_CREDIT
        assert (await client.get("/healthz")).status_code == 200
        await client.get("/v1/sessions", headers={"Transfer-Encoding": "chunked"})
        unknown = before - REQUEST_COST - FRAME_BYTES // BYTES_PER_CREDIT
        assert allowance.credit <= unknown


def test_refusals_are_forgotten_after_a_while() -> None:
    clock = Hands()
    pace = Pace(an_allowance(clock))
    assert not any(pace.count_refusal(1, 0) for _ in range(REFUSALS_BEFORE_CLOSE))
    clock.now += REFUSALS_WINDOW_SECONDS + 0.1
    assert not pace.count_refusal(1, 0)
    assert pace.count_refusal(1, REFUSALS_BEFORE_CLOSE * BYTES_PER_CREDIT)


@pytest.mark.proves("design.limits.principal")
async def test_reconnecting_brings_no_new_credit() -> None:
    async with hosting(limits=SLOW) as host:
        ana = await with_session(host)
        spend(ana)
        ana.connection.closed()
        again = Client(host, ANA)
        spent = host.allowances.of(ANA.id)
        assert again.connection._allowance is spent
        assert "wait a moment" in (await again.initialize("laptop"))["message"]
        assert "serverSeq" in await Client(host, BO).initialize("phone")


async def test_a_principal_that_was_closed_for_flooding_waits_longer_each_time() -> None:
    clock = Hands()
    allowance = an_allowance(clock, per_second=1_000)
    pauses = []
    for _ in range(7):
        allowance.flooded()
        allowance.flooded()  # a second connection of the same flood
        with pytest.raises(RateLimitError, match="wait before you reconnect") as refused:
            allowance.check_connecting()
        pauses.append(refused.value.retry_after)
        clock.now += pauses[-1]
        allowance.check_connecting()
    assert (
        pauses == [FLOOD_PAUSE_SECONDS * 2**n for n in range(5)] + [FLOOD_PAUSE_LIMIT_SECONDS] * 2
    )
    clock.now += FLOOD_MEMORY_SECONDS + 1
    allowance.flooded()
    with pytest.raises(RateLimitError) as refused:
        allowance.check_connecting()
    assert refused.value.retry_after == FLOOD_PAUSE_SECONDS


def test_one_flooding_connection_does_not_silence_the_others_of_its_principal() -> None:
    clock = Hands()
    allowance = an_allowance(clock, per_second=400, at_once=400)
    allowance.connections = 2
    tool, page = Pace(allowance), Pace(allowance)
    assert tool.charge(400, 0)
    clock.now += 1
    assert tool.charge(400, 0)  # the flood takes all that comes
    share = 400 // RESERVE_PART // 2
    assert all(page.charge(1, 0) for _ in range(share))
    assert not page.charge(1, 0)


async def test_opening_connections_is_rate_limited() -> None:
    async with hosting(limits=SLOW) as host:
        allowance = host.allowances.of(ANA.id)
        assert allowance.credit == ACTIONS_AT_ONCE
        host.connections.check(ANA)
        assert allowance.credit == ACTIONS_AT_ONCE - CONNECTION_COST
        allowance.credit = CONNECTION_COST - 1
        allowance._filled_at = allowance.requests._own_at = monotonic() + 1_000_000
        with pytest.raises(RateLimitError, match="open connections too fast"):
            host.connections.check(ANA)
        host.connections.check(BO)


async def test_control_frames_are_charged_like_messages() -> None:
    async with hosting(limits=SLOW) as host:
        ana = await with_session(host)
        assert ana.connection.charge(1, 125)
        spend(ana)
        assert not ana.connection.charge(1, 0)
        for _ in range(REFUSALS_BEFORE_CLOSE):
            ana.connection.charge(1, 0)
        assert "wait before you reconnect" in ana.closed[1]


def test_principals_at_rest_are_forgotten_and_floods_are_not() -> None:
    clock = Hands()
    allowances = Allowances(10, clock)
    allowances.of("flooder").flooded()
    allowances.of("connected").connections = 1
    for number in range(TIDY_AT - 2):
        allowances.of(f"p{number}")
    clock.now += 1
    allowances.of("one more")
    assert len(allowances._of) == TIDY_AT + 1 - (TIDY_AT - 2) == 3


def test_an_operator_who_says_nothing_gets_the_limits() -> None:
    limits = (
        ACTIONS_PER_SECOND,
        CONNECTIONS_PER_PRINCIPAL,
        SESSIONS_PER_HOST,
        SESSION_BYTES,
        STATE_BYTES_PER_HOST,
        LOADED_BYTES,
        IDLE_SECONDS,
        STORE_SECONDS,
        NODE_LEASE_SECONDS,
    )
    assert HostLimits() == limits == limits_of(Settings())


# What is under way


@pytest.mark.proves("design.limits.connection")
async def test_requests_without_an_answer_yet_are_bounded() -> None:
    async with hosting() as host:
        ana = await joined(host)
        for number in range(REQUESTS_IN_FLIGHT + 1):
            ana.ask(100 + number, "createSession", f"ahp-session:/{number}", provider="people")
        refused = ana.received[-1]
        assert (refused["id"], refused["error"]["code"]) == (100 + REQUESTS_IN_FLIGHT, -32011)
        assert "unanswered" in refused["error"]["message"]
        await ana.wait_for(lambda frame: frame.get("id") == 99 + REQUESTS_IN_FLIGHT)
        assert ana.connection.peer.replies.unanswered == 0
        assert len((await ana.call("listSessions"))["items"]) == REQUESTS_IN_FLIGHT


async def test_every_answer_is_counted_once() -> None:
    async with hosting() as host:
        ana = await joined(host)
        for method in ("ping", "listSessions", "nonsense", "authenticate", "subscribe"):
            await ana.call(method, channel="ahp-root://", resource="x", token="y")
        ana.connection.receive(b"random_frames")
        await ana.call("createSession", "ahp-nope:/1")
        await ana.initialize("again")
        assert ana.connection.peer.replies.unanswered == 0


@pytest.mark.slow
async def test_actions_that_wait_to_be_written_are_bounded() -> None:
    async with hosting(limits=HostLimits(actions_per_second=0)) as host:
        ana = await with_session(host)
        for _ in range(ACTIONS_UNSETTLED + 1):
            ana.received.clear()
            ana.dispatch(TITLE)
        refused = ana.received[-1]["params"]
        assert "still being written" in refused["rejectionReason"]
        await ana.wait_for(lambda f: f["params"]["origin"]["clientSeq"] == ACTIONS_UNSETTLED)
        assert "rejectionReason" not in await ana.act(TITLE)
        assert ana.connection.dispatcher.unsettled == 0


async def test_bytes_that_wait_to_be_written_are_bounded_per_principal() -> None:
    async with hosting(limits=HostLimits(actions_per_second=0)) as host:
        ana, held = await with_session(host), host.allowances.of(ANA.id).unsettled
        padding = "x" * 1_000_000
        refusals = 0
        for _ in range(UNSETTLED_BYTES_PER_PRINCIPAL // len(padding) + 1):
            ana.received.clear()
            ana.dispatch({**TITLE, "padding": padding})
            refusals += bool(ana.received)
        assert refusals == 1
        assert "still being written" in ana.received[-1]["params"]["rejectionReason"]
        assert held.bytes <= UNSETTLED_BYTES_PER_PRINCIPAL
        await ana.act(TITLE)
        assert held.bytes == 0


async def test_an_action_that_fails_here_counts_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sender loses the connection; what it may send does not become less for ever."""

    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    async with hosting() as host:
        ana, held = await with_session(host), host.allowances.of(ANA.id).unsettled
        monkeypatch.setattr("session_server.host.channels.changes.judged_batch", fail)
        with pytest.raises(RuntimeError):
            ana.dispatch(TITLE)
        assert (ana.connection.dispatcher.unsettled, held.bytes) == (0, 0)


def test_bytes_that_wait_are_bounded_for_all_principals_together() -> None:
    allowances = Allowances(0)
    held = [allowances.of(f"p{number}").unsettled for number in range(10)]
    taken = [one.acquire(UNSETTLED_BYTES_PER_PRINCIPAL) for one in held]
    assert sum(taken) == UNSETTLED_BYTES // UNSETTLED_BYTES_PER_PRINCIPAL < 10
    held[0].release(UNSETTLED_BYTES_PER_PRINCIPAL)
    assert held[-1].acquire(1)


async def test_sessions_that_wait_to_be_made_are_bounded_in_bytes() -> None:
    async with hosting(limits=HostLimits(actions_per_second=0)) as host:
        ana, held = await joined(host), host.allowances.of(ANA.id).unsettled
        tools = [{"name": "t", "description": "x" * 1_000_000}]
        wanted = {"provider": "people", "activeClient": {"clientId": "laptop", "tools": tools}}
        most = UNSETTLED_BYTES_PER_PRINCIPAL // 1_000_000
        for number in range(most + 1):
            ana.ask(100 + number, "createSession", f"ahp-session:/{number}", **wanted)
        assert ana.received[-1]["id"] == 100 + most
        assert "still being written" in ana.received[-1]["error"]["message"]
        await ana.wait_for(lambda frame: frame.get("id") == 99 + most)
        assert held.bytes == 0
        refused = await ana.call("createSession", "ahp-nope:/1", provider="people")
        assert (refused["code"], held.bytes) == (-32602, 0)


@pytest.mark.parametrize("size", [0, UNSETTLED_BYTES_PER_PRINCIPAL // FRAMES_BEFORE_HANDSHAKE])
async def test_frames_that_wait_for_the_handshake_are_bounded(size: int) -> None:
    async with hosting() as host:
        ana, held = Client(host, ANA), host.allowances.of(ANA.id).unsettled
        ana.ask(1, "initialize", protocolVersions=["0.3.0"], clientId="laptop")
        for _ in range(FRAMES_BEFORE_HANDSHAKE):
            assert ana.closed is None
            ana.connection.receive(b'{"jsonrpc": "2.0"}' + b" " * size)
        ana.connection.receive(b"{}")
        assert (ana.closed[0], "before the handshake" in ana.closed[1]) == (4001, True)
        ana.connection.closed()
        assert held.bytes == 0


# What one connection and one host may have


async def test_subscriptions_are_bounded_and_presence_channels_count_too() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        for number in range(SUBSCRIPTIONS_PER_CONNECTION // 2):
            await ana.call("createSession", f"ahp-session:/x{number}", provider="people")
            assert await ana.call("subscribe", f"ahp-presence:/x{number}") == {}
        for number in range(SUBSCRIPTIONS_PER_CONNECTION // 2 - 1):
            assert "snapshot" in await ana.call("subscribe", f"ahp-session:/x{number}")
        assert await ana.call("subscribe", SESSION) == {}  # watched already
        for another in (ROOM, "ahp-root://"):
            assert (await ana.call("subscribe", another))["code"] == -32011
        ana.notify("unsubscribe", SESSION)
        assert await ana.call("subscribe", ROOM) == {}


async def test_the_sessions_of_a_host_are_bounded() -> None:
    async with hosting(limits=HostLimits(sessions=2)) as host:
        ana = await with_session(host)
        assert await ana.call("createSession", "ahp-session:/2", provider="people") is None
        refused = await ana.call("createSession", "ahp-session:/3", provider="people")
        assert refused["code"] == -32011
        assert "dispose of some" in refused["message"]
        assert await ana.call("disposeSession", SESSION) is None
        assert await ana.call("createSession", "ahp-session:/3", provider="people") is None


@pytest.mark.parametrize(
    "chosen",
    [
        {"model": {"id": "x" * SELECTION_BYTES}},
        {"agent": {"uri": "x" * SELECTION_BYTES}},
        {"workingDirectory": "x" * SELECTION_BYTES},
    ],
)
async def test_what_a_new_session_tells_everyone_is_bounded(chosen: dict[str, Any]) -> None:
    async with hosting() as host:
        ana = await joined(host)
        refused = await ana.call("createSession", SESSION, provider="people", **chosen)
        assert (refused["code"], str(SELECTION_BYTES) in refused["message"]) == (-32602, True)
        assert host.record(SESSION) is None


async def test_the_connections_of_a_principal_are_bounded() -> None:
    async with hosting(limits=HostLimits(connections_per_principal=2)) as host:
        clients = [Client(host, ANA) for _ in range(3)]
        assert [client.closed and client.closed[0] for client in clients] == [None, None, 4002]
        with pytest.raises(TooManyConnectionsError, match="close some and try again"):
            host.connections.check(ANA)
        host.connections.check(BO)
        for client in clients[1:]:
            client.connection.closed()
        host.connections.check(ANA)
        clients[0].connection.closed()


def test_connections_may_be_without_limit() -> None:
    connections = Connections(Allowances(0), 0)
    for _ in range(10):
        connections.check(ANA)


async def test_presence_notifications_are_rate_limited() -> None:
    clock, seconds = ManualClock(), 2
    async with hosting(clock=clock) as host:
        ana = await with_session(host)
        await ana.call("subscribe", ROOM)
        ana.received.clear()
        for number in range(100 * seconds):
            place = {"requestId": "r", "questionId": str(number)}
            ana.notify("presence/update", ROOM, editing=place)
            await clock.advance(0.01)
        await clock.advance(1 / PRESENCE_NEWS_PER_SECOND)
        news = [frame for frame in ana.received if frame.get("method") == "presence/changed"]
        assert len(news) <= seconds * PRESENCE_NEWS_PER_SECOND + 1
        assert news[-1]["params"]["present"][0]["editing"] == place


async def test_turns_come_in_pages_however_many_are_asked_for() -> None:
    async with hosting() as host:
        await with_session(host, "demo")
        agent = await joined(host, AGENT, "agent", SESSION)
        for number in range(TURNS_PER_PAGE + 1):
            await agent.act(turn_started(str(number)))
            await agent.act(turn_completed(str(number)))
        page = await agent.call("fetchTurns", SESSION, limit=10 * TURNS_PER_PAGE)
        assert (len(page["turns"]), page["hasMore"]) == (TURNS_PER_PAGE, True)


# Clients that are known


@pytest.fixture
def few_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_channels, "CLIENTS_PER_PRINCIPAL", 3)
    monkeypatch.setattr(host_channels, "CLIENTS_KEPT", 5)


def known(host: Host) -> list[str]:
    return list(host.clients.channel.committed.clients)


@pytest.mark.usefixtures("few_clients")
async def test_who_has_too_many_clients_loses_its_own_oldest() -> None:
    async with hosting() as host:
        await joined(host, BO, "bo")
        for number in range(4):
            await joined(host, ANA, f"ana-{number}")
        assert known(host) == ["bo", "ana-1", "ana-2", "ana-3"]
        await joined(host, ANA, "ana-1")
        assert known(host) == ["bo", "ana-2", "ana-3", "ana-1"]


@pytest.mark.usefixtures("few_clients")
async def test_a_host_that_knows_too_many_clients_forgets_the_oldest() -> None:
    async with hosting() as host:
        for number in range(6):
            principal = msgspec.structs.replace(ANA, id=f"p{number}")
            await joined(host, principal, f"c{number}")
        assert known(host) == ["c1", "c2", "c3", "c4", "c5"]


@pytest.mark.proves("design.access.client-id-expiry")
async def test_a_client_that_was_long_away_is_forgotten() -> None:
    async with hosting() as host:
        ana = await joined(host, ANA, "laptop")
        ana.connection.closed()
        later(host, CLIENT_LIFETIME_MS + 1)
        again, error = await back_as(host, "laptop", 0)
        assert error["code"] == -32008
        bo = Client(host, BO)
        assert "protocolVersion" in await bo.initialize("laptop")
        assert (await again.initialize("laptop"))["code"] == -32009


def later(host: Host, ms: int) -> None:
    now = host.now
    host.now = lambda: now() + ms  # type: ignore[method-assign]
    host.clients._now = host.now


async def test_a_client_that_comes_back_is_remembered_from_then() -> None:
    async with hosting() as host:
        (await joined(host, ANA, "laptop")).connection.closed()
        later(host, CLIENT_LIFETIME_MS - 1000)
        back, answer = await back_as(host, "laptop", 0)
        assert "type" in answer
        await joined(host, ANA, "another")  # written after
        back.connection.closed()
        later(host, 2_000)
        assert "type" in (await back_as(host, "laptop", 0))[1]


async def test_a_client_that_is_connected_stays_its_own_however_long_that_lasts() -> None:
    async with hosting() as host:
        ana = await joined(host, ANA, "laptop")
        later(host, CLIENT_LIFETIME_MS + 1)
        assert (await Client(host, BO).initialize("laptop"))["code"] == -32009
        ana.connection.closed()
        assert "protocolVersion" in await Client(host, BO).initialize("laptop")


async def test_an_asker_that_comes_and_goes_pays_for_the_marks_on_its_large_question() -> None:
    async with hosting() as host:
        _, agent = await with_agent(host)
        text = "x" * 100_000
        await agent.act(input_requested(message=text, _meta={"lease": 0.01}))

        def is_marked(frame: dict[str, Any]) -> bool:
            request = frame.get("params", {}).get("action", {}).get("request", {})
            return "askerGoneSince" in request.get("_meta", {})

        await agent.wait_for(is_marked)
        before = host.allowances.of(AGENT.id).credit
        with host.askers.waiting(SESSION, "r"):
            assert before - host.allowances.of(AGENT.id).credit >= 2 * len(text) // BYTES_PER_CREDIT
