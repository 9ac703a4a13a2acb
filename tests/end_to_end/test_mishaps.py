"""Clients that vanish or stop reading: the server lets go of them, and says nothing odd."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from websockets.asyncio.client import connect

from session_server.schemas.limits import OUTBOX_BYTES
from tests.end_to_end.devices import Device
from tests.end_to_end.test_convergence import PLAIN
from tests.end_to_end.wire import WireClient
from tests.host.harness import run
from tests.host.mirror import Mirror
from tests.servers import SERVE, serving

SESSION = "ahp-session:/x"
ROOM = "ahp-presence:/x"
SOON = 3.0
TEXT = "x" * 60_000


def drafted(number: int) -> dict[str, Any]:
    value = {"kind": "text", "value": f"{number} {TEXT}"}
    return {
        "type": "session/inputAnswerChanged",
        "requestId": "t:trip",
        "questionId": "name",
        "answer": {"state": "draft", "value": value},
    }


async def with_question(url: str) -> WireClient:
    client = await WireClient.open(url)
    await client.initialize("writer")
    await client.call("createSession", SESSION, provider="demo")
    await client.call("subscribe", SESSION)
    message = {"text": "Go", "origin": {"kind": "user"}}
    start = {"type": "session/turnStarted", "turnId": "t", "message": message}
    await client.dispatch(SESSION, start)
    await client.until(lambda f: "request" in f.get("params", {}).get("action", {}))
    return client


@pytest.mark.parametrize("command", [SERVE, PLAIN], ids=["ours", "plain"])
@run
async def test_who_is_cut_off_leaves_no_traceback_behind(command: Sequence[str]) -> None:
    with serving("memory:", command=command) as server:
        writer = await with_question(server.ahp)
        for round_ in range(10):
            devices = [Device(Mirror(f"{round_}-{n}", [SESSION])) for n in range(10)]
            for device in devices:
                await device.connect(server.ahp)
            for number in range(50):
                seq = await writer.dispatch(SESSION, drafted(number))
                if number % 5 == 0:
                    devices[number // 5].cut()
            await writer.until(partial(is_echo, seq=seq))
            for device in devices:
                await device.hang_up()
        await writer.close()
        server.kill()
        assert "Traceback" not in "".join(server.output)


def is_echo(frame: dict[str, Any], seq: int) -> bool:
    origin = frame.get("params", {}).get("origin", {})
    return bool(origin == {"clientId": "writer", "clientSeq": seq})


@pytest.mark.slow
@run
async def test_a_client_that_never_reads_again_is_let_go() -> None:
    with serving("memory:") as server:
        writer = await with_question(server.ahp)
        stalled = WireClient(await connect(server.ahp, max_queue=1, compression=None))
        await stalled.initialize("stalled", SESSION)
        await stalled.call("subscribe", ROOM)
        await writer.call("subscribe", ROOM)
        for number in range(8 * OUTBOX_BYTES // len(TEXT)):
            seq = await writer.dispatch(SESSION, drafted(number))
            await writer.until(partial(is_echo, seq=seq))
        try:
            async with asyncio.timeout(SOON):
                await writer.until(is_alone)
        finally:
            stalled.socket.transport.abort()
        await writer.close()


def is_alone(frame: dict[str, Any]) -> bool:
    if frame.get("method") != "presence/changed":
        return False
    return [present["clientId"] for present in frame["params"]["present"]] == ["writer"]
