"""A node dies at work, and another one goes on with it; nothing runs twice unasked."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_server.mcp_client.failpoints import VARIABLE
from tests.ahp.actions import input_completed, turn_started
from tests.ahp.client import SocketClient
from tests.calls.host_kills import Era, Person, check, paired
from tests.end_to_end.test_node_consistency import get, store_on
from tests.end_to_end.test_nodes import (
    TALK,
    is_action,
    node,
    nodes,
    post,
    until_ready,
)
from tests.mcp import zoo
from tests.servers import ServerProcess
from tests.waiting import until

LEASE = ("--node-lease-seconds", "3")
PLACES: dict[Era, tuple[str, ...]] = {
    "modern": (
        "appended.callStarted#1",  # to be sent, and nobody has said that it does
        "appended.callSent#1",  # claimed, and not sent
        "appended.outcomeRecorded#1",  # answered, and the retry is due
        "appended.outcomeRecorded#3",  # the same, and the retry runs it: both others would send
        "mcp.sent#2",  # on its way
        "mcp.receive#4",  # it has run, and the result is lost
    ),
    "legacy": (
        "mcp.receive#2",  # asked on the connection that is lost
        "appended.outcomeRecorded#3",  # answered, and the connection was not told
    ),
}


@contextlib.contextmanager
def survivors(store: str, folder: Path, config: Path) -> Iterator[list[ServerProcess]]:
    """Two, so that they have to agree on who takes over."""
    running: list[ServerProcess] = []
    try:
        running += (node(store, folder, *LEASE, "--mcp-config", str(config)) for _ in range(2))
        yield running
    finally:
        for server in running:
            server.kill()


@pytest.mark.proves("design.nodes.taken-over")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_call_of_a_node_that_died_is_finished_by_another(
    engine: str, era: Era, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The people asked do not see that it was another; what may have run is asked about."""
    store = store_on(engine, f"failover_{era}")
    with (
        paired(era, "http", tmp_path) as pairing,
        survivors(store, tmp_path, pairing.config) as running,
    ):
        for number, place in enumerate(PLACES[era]):
            monkeypatch.setenv(VARIABLE, place)
            doomed = node(store, tmp_path, *LEASE, "--mcp-config", str(pairing.config))
            monkeypatch.delenv(VARIABLE)
            person = Person(place)
            with pytest.raises(httpx2.TransportError):
                person.work_to_the_death(doomed.url)
            doomed.kill()
            view = person.work(running[number % 2].url)
            check(view, person, pairing)
        for server in running:
            assert "Traceback" not in "".join(server.output)


@pytest.mark.proves("design.nodes.taken-over")
async def test_an_agents_turn_on_a_node_that_died_is_resumed_by_another(
    engine: str, tmp_path: Path
) -> None:
    uri, store = "ahp-session:/trip", store_on(engine, "failover_turns")
    with nodes(store, tmp_path, *LEASE) as (one, other):
        await post(one, "/v1/sessions", {"resource": uri, "provider": "demo"})
        here = await SocketClient.joined(one.ahp, "here", uri)
        there = await SocketClient.joined(other.ahp, "there", uri)
        here.dispatch(turn_started("t"), uri)
        await there.wait_for(is_action("inputRequested"))
        one.kill()
        await there.act(input_completed("t:trip", response="decline"), uri)
        await there.wait_for(is_action("turnComplete", turnId="t"))
        parts = [e["action"] for e in there.envelopes() if e["action"]["type"].endswith("Part")]
        assert len(parts) == len({str(part) for part in parts})
        await there.close()


async def until_state(server: ServerProcess, call: str, state: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        view: dict[str, Any] = await get(server, f"/v1/calls/{call}")
        return view if view["state"] == state else None

    found = await until(look)
    assert found is not None
    return found


@pytest.mark.proves("design.nodes.taken-over")
async def test_what_a_paused_node_brings_after_others_took_over_changes_nothing(
    engine: str, tmp_path: Path
) -> None:
    """Its call was out meanwhile. It may have run, and has; so people say no, and that stays."""
    file, store = tmp_path / "effects", store_on(engine, "failover_pause")
    with zoo.http_server("modern", "--effects", str(file), is_forked=False) as server:
        config = zoo.mcp_json(tmp_path, {"zoo": {"url": server.url}})
        with nodes(store, tmp_path, *LEASE, "--mcp-config", str(config)) as (one, other):
            await post(one, "/v1/sessions", {"resource": TALK})
            wanted = {"server": "zoo", "tool": "weather"}
            call = (await post(one, "/v1/sessions/talk/calls", wanted))["id"]
            (request,) = (await until_state(one, call, "waiting"))["requests"]
            server.process.send_signal(signal.SIGSTOP)
            path = f"/v1/sessions/talk/requests/{request.replace('/', '%2F')}/complete"
            await post(one, path, {"content": {"city": "Oslo"}})
            await until_state(other, call, "running")
            os.kill(one.pid, signal.SIGSTOP)
            doubt = (await until_state(other, call, "uncertain"))["requests"][0]
            server.process.send_signal(signal.SIGCONT)
            await until(lambda: zoo.effects(file, "weather"))
            os.kill(one.pid, signal.SIGCONT)
            await until_ready(one)
            path = f"/v1/sessions/talk/requests/{doubt.replace('/', '%2F')}/complete"
            await post(other, path, {"response": "decline"})
            echo = {"server": "zoo", "tool": "echo", "arguments": {"text": "still there"}}
            later = (await post(one, "/v1/sessions/talk/calls?wait=30", echo))["result"]
            assert zoo.text_of(later) == "still there"
            views = [await get(node, f"/v1/calls/{call}") for node in (one, other)]
            assert views[0] == views[1]
            assert views[0]["state"] == "failed", views[0]
            assert len(zoo.effects(file, "weather")) == 1
