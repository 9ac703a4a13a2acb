"""Two devices press the button at the same moment, over real sockets."""

import asyncio
from random import Random
from typing import Any

from tests.end_to_end.wire import WireClient
from tests.host.harness import run
from tests.servers import serving

RACES = 50
SESSION = "ahp-session:/race"
NAMES = ("laptop", "phone")


def started(number: int) -> dict[str, Any]:
    message = {"text": "Go", "origin": {"kind": "user"}}
    return {"type": "session/turnStarted", "turnId": f"t{number}", "message": message}


def completed(number: int) -> dict[str, Any]:
    answers = {
        "name": {"state": "submitted", "value": {"kind": "text", "value": f"Trip {number}"}},
        "city": {"state": "submitted", "value": {"kind": "selected", "value": "oslo"}},
    }
    return {
        "type": "session/inputCompleted",
        "requestId": f"t{number}:trip",
        "response": "accept",
        "answers": answers,
    }


async def race(client: WireClient, name: str, number: int) -> dict[str, Any]:
    """Completes the request; the envelope that came back."""
    seq = await client.dispatch(SESSION, completed(number))
    origin = {"clientId": name, "clientSeq": seq}
    frame = await client.until(
        lambda f: (
            f.get("params", {}).get("origin") == origin
            and f["params"]["action"]["type"] == "session/inputCompleted"
        )
    )
    envelope: dict[str, Any] = frame["params"]
    return envelope


async def asked(client: WireClient, number: int) -> None:
    wanted = f"t{number}:trip"
    await client.until(
        lambda f: f.get("params", {}).get("action", {}).get("request", {}).get("id") == wanted
    )


async def turn_over(client: WireClient, number: int) -> None:
    over = {"type": "session/turnComplete", "turnId": f"t{number}"}
    if all(f.get("params", {}).get("action") != over for f in client.received):
        await client.until(lambda f: f.get("params", {}).get("action") == over)


@run
async def test_one_of_two_devices_wins_and_the_other_is_told_who_did() -> None:
    dice = Random(1)
    with serving("memory:") as server:
        clients = [await WireClient.open(server.ahp) for _ in NAMES]
        for client, name in zip(clients, NAMES, strict=True):
            await client.initialize(name)
        await clients[0].call("createSession", SESSION, provider="demo")
        for client in clients:
            await client.call("subscribe", SESSION)
        for number in range(RACES):
            await clients[0].dispatch(SESSION, started(number))
            for client in clients:
                await asked(client, number)
            both = list(zip(clients, NAMES, strict=True))
            dice.shuffle(both)
            envelopes = await asyncio.gather(*(race(c, name, number) for c, name in both))
            refused, accepted = sorted(envelopes, key=lambda e: "rejectionReason" not in e)
            assert "rejectionReason" not in accepted
            winner = accepted["_meta"]["by"]
            assert refused["rejectionReason"] == (
                f"Too late: {winner.get('name', 'Someone')} answered “Planning your trip”."
            )
            for client in clients:
                await turn_over(client, number)
                client.received.clear()
        for client in clients:
            await client.close()
