"""Settings of the servers that endanger what is stored there, or make it slow: for `doctor`."""

from collections.abc import Mapping
from typing import Any

import httpx2
from nats.errors import Error as NatsError

from session_server.log.nats.servers import Servers
from session_server.log.nats.stream_config import Address, address_of
from session_server.log.opening import Fact, measured_pace
from session_server.log.protocol import FailedError, OpenError

MONITOR_SECONDS = 5.0
OLDEST_SERVER = (2, 12)
SYNC_ADVICE = (
    "Set `jetstream { sync_interval: always }`: otherwise servers that lose power together lose"
    " up to two minutes of what they have acknowledged."
)


async def examined_server(url: str) -> list[Fact]:
    """Raises an `OpenError`."""
    address = address_of(url)
    servers = Servers(address)
    try:
        await servers.open("session-server doctor")
        pace = await measured_pace(lambda: servers.api("INFO"), "the servers")
        facts = [pace, *await _stream_facts(servers, address)]
    except (FailedError, NatsError, OSError) as error:
        raise OpenError(f"{address.shown} cannot be examined: {error}") from error
    finally:
        await servers.close()
    return [*facts, *await _sync_facts(address)]


async def _stream_facts(servers: Servers, address: Address) -> list[Fact]:
    info = await servers.api(f"STREAM.INFO.{address.stream}")
    if "error" in info:
        return [Fact(f"The stream {address.stream} is not there yet; `serve` makes it.")]
    copies: int = info["config"]["num_replicas"]
    advice = (
        "Three copies on three servers survive the loss of any one of them: replicas=3."
        if copies < 3
        else ""
    )
    facts = [Fact(f"The stream has {copies} cop{'y' if copies == 1 else 'ies'}.", advice)]
    others: list[Mapping[str, Any]] = info.get("cluster", {}).get("replicas") or []
    away = [str(peer["name"]) for peer in others if peer.get("offline") or not peer.get("current")]
    if away:
        text = f"Copies that are away or behind: {', '.join(away)}."
        facts.append(Fact(text, "Start these servers, or look at their logs."))
    return facts


async def _sync_facts(address: Address) -> list[Fact]:
    """Only the servers' monitoring says how they sync."""
    if not address.monitors:
        text = "Whether the servers sync before they acknowledge cannot be seen."
        advice = "Name their monitoring in the URL (`&monitor=http://host:8222,…`). " + SYNC_ADVICE
        return [Fact(text, advice)]
    facts: list[Fact] = []
    async with httpx2.AsyncClient(timeout=MONITOR_SECONDS) as client:
        for monitor in address.monitors:
            try:
                answer = await client.get(f"{monitor.rstrip('/')}/varz")
                facts += _server_facts(monitor, answer.json())
            except (httpx2.HTTPError, ValueError) as error:
                text = f"{monitor} does not answer ({type(error).__name__})."
                facts.append(Fact(text, "Look at `http_port` in the server's configuration."))
    return facts


def _server_facts(monitor: str, about: Mapping[str, Any]) -> list[Fact]:
    version = str(about.get("version"))
    facts = [Fact(f"{monitor} is NATS {version}.")]
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < OLDEST_SERVER:
        facts.append(Fact(f"{monitor} is too old.", "Install 2.12 or newer.", is_bad=True))
    if not about.get("jetstream", {}).get("config", {}).get("sync_always"):
        text = f"{monitor} acknowledges before its disk has the data."
        facts.append(Fact(text, SYNC_ADVICE))
    return facts
