"""Presence, deadlines and leases with several nodes: they hold whichever node somebody is at."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.ahp.client import SocketClient
from tests.end_to_end.test_disk_faults import metric
from tests.end_to_end.test_node_consistency import get, store_on
from tests.end_to_end.test_node_failover import LEASE
from tests.end_to_end.test_nodes import (
    BOUND,
    QUESTION,
    TALK,
    is_action,
    nodes,
    open_talk,
    post,
)
from tests.servers import ServerProcess
from tests.waiting import until

ROOM = "ahp-presence:/talk"
REQUESTS = "/v1/sessions/talk/requests"
DEADLINES = 10


async def present(client: SocketClient, wanted: Any) -> None:
    """Until who is there is as wanted, from now on."""
    client.received.clear()
    await client.wait_for(
        lambda f: f.get("method") == "presence/changed" and wanted(f["params"]["present"])
    )


def names(people: list[dict[str, Any]]) -> set[str]:
    return {person["clientId"] for person in people}


@pytest.mark.proves("design.nodes.presence")
async def test_people_at_different_nodes_see_each_other_until_a_node_dies(
    engine: str, tmp_path: Path
) -> None:
    with nodes(store_on(engine, "nodes_presence"), tmp_path, *LEASE) as (one, other):
        await open_talk(one)
        here = await SocketClient.joined(one.ahp, "here", TALK, ROOM)
        there = await SocketClient.joined(other.ahp, "there", TALK, ROOM)
        for client in (here, there):
            await client.wait_for(
                lambda f: (
                    f.get("method") == "presence/changed"
                    and names(f["params"]["present"]) == {"here", "there"}
                )
            )
        place = {"requestId": "r", "questionId": "q"}
        for editor, watcher in ((here, there), (there, here)):
            watcher.received.clear()
            editing = {"channel": ROOM, "editing": place}
            editor.say({"jsonrpc": "2.0", "method": "presence/update", "params": editing})
            await watcher.wait_for(
                lambda f, who=editor.client_id: (
                    f.get("method") == "presence/changed"
                    and any(p["clientId"] == who and "editing" in p for p in f["params"]["present"])
                )
            )
        guest = await SocketClient.joined(one.ahp, "guest", ROOM)
        await present(there, lambda people: names(people) == {"here", "there", "guest"})
        await guest.close()
        await present(there, lambda people: names(people) == {"here", "there"})
        assert await metric(other, "session_server_nodes") == 2
        one.kill()
        await present(there, lambda people: names(people) == {"there"})
        assert await metric(other, "session_server_nodes") == 1
        await there.close()


async def asked(server: ServerProcess, **more: Any) -> str:
    wanted = {"message": "Go on?", "questions": [QUESTION], **more}
    made: str = (await post(server, REQUESTS, wanted))["id"]
    return made


@pytest.mark.proves("design.nodes.deadlines")
async def test_a_deadline_fires_once_and_also_when_the_node_that_asked_is_dead(
    engine: str, tmp_path: Path
) -> None:
    with nodes(store_on(engine, "nodes_deadlines"), tmp_path, *LEASE) as running:
        await open_talk(running[0])
        there = await SocketClient.joined(running[1].ahp, "there", TALK)
        requests = [await asked(running[n % 2], expiresIn=1) for n in range(DEADLINES)]
        orphan = await asked(running[0], expiresIn=4)
        for request in requests:
            await there.wait_for(is_action("inputCompleted", requestId=request))
        running[0].kill()
        await there.wait_for(is_action("inputCompleted", requestId=orphan))
        ends = Counter(
            envelope["action"]["requestId"]
            for envelope in there.envelopes()
            if envelope["action"]["type"] == "session/inputCompleted"
        )
        assert ends == Counter([*requests, orphan])
        await there.close()


async def is_marked(server: ServerProcess, request: str) -> bool:
    view = await get(server, f"{REQUESTS}/{request}")
    return "askerGoneSince" in view["request"].get("_meta", {})


async def until_marked(server: ServerProcess, request: str) -> None:
    await until(lambda: is_marked(server, request))


@pytest.mark.proves("design.nodes.leases")
async def test_who_waits_at_any_node_waits_and_who_waited_at_a_dead_one_has_left(
    engine: str, tmp_path: Path
) -> None:
    with nodes(store_on(engine, "nodes_leases"), tmp_path, *LEASE) as (one, other):
        await open_talk(one)
        watcher = await SocketClient.joined(other.ahp, "watcher", TALK)
        moved, left = await asked(one, lease=3), await asked(one, lease=8)
        async with (
            httpx2.AsyncClient(base_url=one.url, timeout=BOUND) as here,
            httpx2.AsyncClient(base_url=other.url, timeout=BOUND) as there,
        ):
            waits = asyncio.create_task(there.get(f"{REQUESTS}/{moved}?wait=50"))
            await until_marked(one, left)
            assert not await is_marked(one, moved)
            stays = await asked(other, lease=3)
            doomed = asyncio.create_task(here.get(f"{REQUESTS}/{stays}?wait=50"))
            lost = await asked(other, lease=8)
            await until_marked(other, lost)
            assert not await is_marked(other, stays)
            one.kill()
            with pytest.raises(httpx2.TransportError):
                await doomed
            await until_marked(other, stays)
            assert not await is_marked(other, moved)
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
        assert await watcher.call("ping") is None
        marks = [e["action"]["request"] for e in watcher.envelopes() if "request" in e["action"]]
        marked = [r["id"] for r in marks if "askerGoneSince" in r.get("_meta", {})]
        assert marked.count(moved) <= 1, "it was marked again and again, though it was waited for"
        await watcher.close()
