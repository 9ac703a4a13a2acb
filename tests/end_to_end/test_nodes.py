"""Several server processes on one store: any client on any node, and any node may die."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from session_server.client import connect
from session_server.log.opening import open_log
from tests.ahp.actions import answer_changed, input_completed
from tests.ahp.ahp1_mirror import VARIANTS, Ahp1Mirror
from tests.ahp.ahp1_oracle import Ahp1Oracle
from tests.ahp.client import ROOT, SocketClient
from tests.ahp.oracle import LogOracle, expect
from tests.calls.test_exactly_once import raced
from tests.effort import tries
from tests.end_to_end.test_crash import WINDOW, KillSchedule, Typist, open_talks, strokes
from tests.end_to_end.test_disk_faults import ready
from tests.mcp import zoo
from tests.nats import shared_server
from tests.postgres import shared_cluster
from tests.servers import AT_ANY_PACE, ServerProcess, serving, sqlite_store

TALK = "ahp-session:/talk"
PAUSE = 0.02
BOUND = 60
COMPLETIONS = tries(in_ci=200, at_hand=50)
CALLS = tries(in_ci=100, at_hand=30)
NODE_KILLS = tries(in_ci=6, at_hand=4)
Work = Callable[[], Awaitable[None]]
QUESTION = {"kind": "text", "id": "q", "message": "What?"}


def node(store: str, folder: Path, *arguments: str, port: int = 0) -> ServerProcess:
    """All nodes of a host have the same key; here it is in the folder that they share."""
    key = folder / "secret.key"
    if not key.exists():
        key.touch(0o600)
        key.write_text(secrets.token_hex(32))
    shared = ("--shared", "--data-dir", str(folder))
    return ServerProcess(store, *shared, *AT_ANY_PACE, *arguments, port=port)


@contextmanager
def nodes(store: str, folder: Path, *arguments: str) -> Iterator[list[ServerProcess]]:
    """Two of them."""
    running: list[ServerProcess] = []
    try:
        running.append(node(store, folder, *arguments))
        running.append(node(store, folder, *arguments))
        yield running
    finally:
        for server in running:
            server.kill()


async def until_ready(server: ServerProcess) -> None:
    async with asyncio.timeout(BOUND):
        while await ready(server) != (200, "ready"):  # noqa: ASYNC110  # it is another process
            await asyncio.sleep(PAUSE)


async def post(
    server: ServerProcess, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> Any:
    async with httpx2.AsyncClient(base_url=server.url, timeout=BOUND) as client:
        answer = await client.post(path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()


async def open_talk(server: ServerProcess, uri: str = TALK) -> None:
    await post(server, "/v1/sessions", {"resource": uri, "title": "Talk"})


async def ask(server: ServerProcess) -> str:
    """The id of a new request."""
    wanted = {"message": "Go on?", "questions": [QUESTION]}
    asked = await post(server, f"/v1/sessions/{TALK.rpartition('/')[2]}/requests", wanted)
    return asked["id"]


def is_action(kind: str, **fields: Any) -> Any:
    def fits(frame: dict[str, Any]) -> bool:
        action = frame.get("params", {}).get("action", {})
        return action.get("type") == f"session/{kind}" and fields.items() <= action.items()

    return fits


def _seq(frame: dict[str, Any]) -> int | None:
    return frame.get("params", {}).get("serverSeq")


def _asked(frame: dict[str, Any]) -> str | None:
    """The id of the request that a frame brings."""
    return frame.get("params", {}).get("action", {}).get("request", {}).get("id")


@pytest.mark.proves("design.nodes.seen")
async def test_what_happens_on_one_node_is_seen_on_the_other(tmp_path: Path) -> None:
    store = shared_cluster().url("nodes_seen")
    with nodes(store, tmp_path) as (one, other):
        await until_ready(other)
        here, there = await SocketClient.open(one.ahp), await SocketClient.open(other.ahp)
        await here.initialize("here", ROOT)
        await there.initialize("there", ROOT)
        await open_talk(one)
        await there.wait_for(lambda f: f.get("method") == "root/sessionAdded")
        for client in (here, there):
            assert "snapshot" in await client.call("subscribe", TALK)
        request = await ask(other)
        await here.wait_for(is_action("inputRequested"))
        for writer, reader, text in ((here, there, "one"), (there, here, "other")):
            mine = (await writer.act(answer_changed(text, request), TALK))["serverSeq"]
            frame = await reader.wait_for(lambda f, seq=mine: _seq(f) == seq)
            assert frame["params"]["origin"]["clientId"] == writer.client_id
            assert frame["params"]["action"]["answer"]["value"]["value"] == text
        await there.act(input_completed(request, q="done"), TALK)
        await here.wait_for(is_action("inputCompleted", requestId=request))
        begun = _seq(await here.wait_for(is_action("inputRequested"))) or 0
        seqs = [
            [e["serverSeq"] for e in client.envelopes() if e["serverSeq"] >= begun]
            for client in (here, there)
        ]
        assert seqs[0] == seqs[1]
        assert await there.call("disposeSession", TALK) is None
        await here.wait_for(lambda f: f.get("method") == "root/sessionRemoved")
        assert (await here.call("subscribe", TALK))["code"] == -32001
        await open_talk(one)
        await here.close()
        await there.close()


@pytest.mark.proves("design.nodes.one-winner")
@pytest.mark.parametrize("engine", ["postgres", "nats"])
async def test_of_two_completions_on_two_nodes_one_wins(
    engine: str, tmp_path: Path, record_property: Any
) -> None:
    server = shared_server() if engine == "nats" else shared_cluster()
    store = server.url("nodes_race")
    with nodes(store, tmp_path) as (one, other):
        await open_talk(one)
        await until_ready(other)
        clients = [
            await SocketClient.joined(one.ahp, "here", TALK),
            await SocketClient.joined(other.ahp, "there", TALK),
        ]
        wins = [0, 0]
        for _ in range(COMPLETIONS):
            request = await ask(one)
            for client in clients:
                await client.wait_for(lambda f, wanted=request: _asked(f) == wanted)
            echoes = await asyncio.gather(
                *(c.act(input_completed(request, q=c.client_id), TALK) for c in clients)
            )
            won = ["rejectionReason" not in echo for echo in echoes]
            assert sum(won) == 1, echoes
            wins[won.index(True)] += 1
        record_property("wins", wins)
        ends = [
            [e["serverSeq"] for e in client.envelopes() if "Completed" in e["action"]["type"]]
            for client in clients
        ]
        assert ends[0] == ends[1]
        assert len(ends[0]) == COMPLETIONS
        for client in clients:
            await client.close()


@pytest.mark.proves("design.nodes.killed")
async def test_the_clients_of_a_killed_node_go_on_at_another_by_position(tmp_path: Path) -> None:
    store = shared_cluster().url("nodes_killed")
    with nodes(store, tmp_path) as (one, other):
        await open_talk(one)
        request = await ask(one)
        await until_ready(other)
        here = await SocketClient.joined(one.ahp, "here", TALK)
        there = await SocketClient.joined(other.ahp, "there", TALK)
        seen = [
            (await here.act(answer_changed(f"{n}", request), TALK))["serverSeq"] for n in range(20)
        ]
        one.kill()
        texts = [f"after {n}" for n in range(20)]
        missed = [(await there.act(answer_changed(t, request), TALK))["serverSeq"] for t in texts]
        back = await SocketClient.open(other.ahp)
        answer = await back.call(
            "reconnect", clientId="here", lastSeenServerSeq=seen[-1], subscriptions=[TALK]
        )
        assert answer["type"] == "replay", answer
        assert [action["serverSeq"] for action in answer["actions"]] == missed
        back.client_id = "here"
        await back.act(input_completed(request, q="done"), TALK)
        await there.wait_for(is_action("inputCompleted", requestId=request))
        for client in (there, back):
            await client.close()


class NodeKills(KillSchedule):
    """The same devices, over nodes that die and are replaced."""

    async def type_and_kill(self, running: list[ServerProcess], victim: int) -> None:
        for number, typist in enumerate(self.typists):
            await typist.connect(running[number % len(running)].ahp)
        async with asyncio.TaskGroup() as tasks:
            for typist in self.typists:
                tasks.create_task(typist.type())
            await self._typed(self.dice.randrange(200, 400))
            for typist in self.typists:
                typist.stop()
        for typist in self.typists:
            for _ in range(WINDOW - typist.mirror.unanswered):
                await typist.strike()
        running[victim].kill()
        await self._move(self.typists[victim :: len(running)], running[1 - victim])

    async def type_during(self, running: list[ServerProcess], fault: Work) -> None:
        """All that is sent is answered, whatever happens meanwhile to nodes and their store."""
        for number, typist in enumerate(self.typists):
            await typist.connect(running[number % len(running)].ahp)
        async with asyncio.TaskGroup() as tasks:
            for typist in self.typists:
                tasks.create_task(typist.type())
            await self._typed(100)
            await fault()
            await self._typed(100)
            for typist in self.typists:
                typist.stop()
        await self._answered(self.typists)

    async def _answered(self, typists: Sequence[Typist]) -> None:
        """What these sent; nothing else comes then."""
        for typist in typists:
            await typist.until(lambda typist=typist: typist.mirror.unanswered == 0)

    async def _typed(self, more: int) -> None:
        goal = len(self.seen) + more
        await self.typists[0].until(lambda: len(self.seen) >= goal)

    async def _move(self, orphans: list[Typist], survivor: ServerProcess) -> None:
        """Those who were at the killed node go on at another; what was sent there is done."""
        for typist in orphans:
            await typist.ended()
        self.in_flight.append(sum(typist.mirror.unanswered for typist in orphans))
        for typist in orphans:
            await typist.connect(survivor.ahp)
        await self._answered([t for t in self.typists if t not in orphans])

    async def check_all(self) -> None:
        log = await open_log(self.store, is_exclusive=False)
        oracle = await LogOracle.of(log)
        await log.close()
        oracle.check_seen(self.seen)
        expect(max(strokes(oracle).values()) == 1, "something was written twice")
        later = {variant: Ahp1Oracle(oracle, variant) for variant in VARIANTS.values()}
        for typist in self.typists:
            mirror = typist.mirror
            if isinstance(mirror, Ahp1Mirror):
                await typist.until(partial(later[mirror.variant].has_all, mirror))
                later[mirror.variant].check_mirror(mirror)
            else:
                await typist.until(partial(oracle.has_all, mirror))
                oracle.check_mirror(mirror)


@pytest.mark.proves("design.nodes.killed", "design.nodes.seen")
@pytest.mark.parametrize("engine", ["postgres", "nats"])
async def test_nodes_that_are_killed_at_work_lose_and_repeat_nothing(
    engine: str, tmp_path: Path, record_property: Any
) -> None:
    """All clients, wherever they are, and a replay of the log agree after each kill."""
    store = shared_cluster().url("nodes_kills")
    if engine == "nats":
        store = shared_server().url("nodes_kills")
    schedule = NodeKills(store, Random(7))
    with nodes(store, tmp_path) as running:
        await open_talks(running[0])
        for kill in range(NODE_KILLS):
            victim = kill % 2
            await schedule.type_and_kill(running, victim)
            await schedule.check_all()
            running[victim] = node(store, tmp_path)
            await until_ready(running[victim])
        for typist in schedule.typists:
            await typist.hang_up()
    resumptions = Counter(r for typist in schedule.typists for r in typist.mirror.resumptions)
    record_property("in_flight", schedule.in_flight)
    record_property("envelopes", len(schedule.seen))
    record_property("resumptions", dict(resumptions))


@pytest.mark.proves("design.nodes.one-retry")
async def test_a_call_that_is_answered_on_two_nodes_is_sent_again_once(tmp_path: Path) -> None:
    """Whichever node completes it; the call and its result are the same on both."""
    file, store = tmp_path / "effects", shared_cluster().url("nodes_calls")
    with zoo.http_server("modern", "--effects", str(file)) as server:
        config = zoo.mcp_json(tmp_path, {"zoo": {"url": server.url}})
        with nodes(store, tmp_path, "--mcp-config", str(config)) as (one, other):
            await post(one, "/v1/sessions", {"resource": "ahp-session:/race"})
            await until_ready(other)
            async with (
                httpx2.AsyncClient(base_url=one.url, timeout=BOUND) as first,
                httpx2.AsyncClient(base_url=other.url, timeout=BOUND) as second,
                connect(one.ahp) as laptop,
                connect(other.ahp) as phone,
                laptop.session("ahp-session:/race") as here,
                phone.session("ahp-session:/race") as there,
            ):
                for number in range(0, CALLS, 10):
                    races = (
                        raced((first, second)[n % 2], (here, there), n)
                        for n in range(number, number + 10)
                    )
                    await asyncio.gather(*races)
    cities = [row["city"] for row in zoo.effects(file, "weather")]
    assert len(cities) == CALLS
    assert {int(city.partition("-")[2]) for city in cities} == set(range(CALLS))


@pytest.mark.proves("design.nodes.one-winner")
async def test_a_name_that_two_nodes_take_at_once_is_one_session(tmp_path: Path) -> None:
    store = shared_cluster().url("nodes_names")
    with nodes(store, tmp_path) as running:
        await until_ready(running[1])
        clients = [
            await SocketClient.joined(server.ahp, f"c{n}", ROOT) for n, server in enumerate(running)
        ]
        for number in range(20):
            uri = f"ahp-session:/n{number}"
            answers = await asyncio.gather(
                *(client.call("createSession", uri, provider="people") for client in clients)
            )
            assert sum(answer is None for answer in answers) == 1, answers
        for client in clients:
            sessions = (await client.call("listSessions"))["items"]
            assert len({session["resource"] for session in sessions}) == 20
            await client.close()


@pytest.mark.proves("design.nodes.alone")
async def test_a_store_that_one_host_has_for_itself_is_not_shared(tmp_path: Path) -> None:
    store = shared_cluster().url("nodes_alone")
    with (
        serving(store, "--data-dir", str(tmp_path)),
        pytest.raises(RuntimeError, match="in use by a host that does not share it"),
    ):
        node(store, tmp_path)
    with nodes(store, tmp_path), pytest.raises(RuntimeError, match="is in use by"):
        ServerProcess(store, "--data-dir", str(tmp_path))
    with pytest.raises(RuntimeError, match="cannot be shared by several nodes; use"):
        node(sqlite_store(tmp_path), tmp_path)


@pytest.mark.proves("design.nodes.alone")
def test_nodes_need_a_key_in_common(tmp_path: Path) -> None:
    store = shared_cluster().url("nodes_key")
    with pytest.raises(RuntimeError, match="need the same key: set secret"):
        ServerProcess(store, "--shared", "--data-dir", str(tmp_path))
