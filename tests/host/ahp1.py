"""Clients of AHP 0.9 and 1.x at a host without sockets, each with mirrors of what it watches."""

from typing import Any

from websockets.asyncio.client import ClientConnection

from session_server.host.host import Host
from session_server.reducers.ahp1.uris import chat_uri
from session_server.schemas.principals import Principal
from tests.ahp.ahp1_mirror import reducer_of
from tests.ahp.client import SESSION, AhpClient, SocketClient
from tests.host.harness import ANA, Client

VSCODE = {"name": "vscode-agents-window"}
CHAT = chat_uri(SESSION)


class Mirrors(AhpClient):
    """A client that keeps, by channel, what standard reducers make of all that it was sent."""

    mirrors: dict[str, Any]
    last_number: int

    async def open_with(
        self, client_id: str = "editor", *channels: str, version: str = "1.0.0", **params: Any
    ) -> Any:
        result = await self.call(
            "initialize",
            protocolVersions=[version],
            clientId=client_id,
            initialSubscriptions=list(channels),
            **params,
        )
        self.take_snapshots(result.get("snapshots", ()))
        return result

    async def watch(self, channel: str) -> Any:
        result = await self.call("subscribe", channel)
        self.take_snapshots([result["snapshot"]] if "snapshot" in result else [])
        return result

    async def resume(self, other: "Mirrors") -> Any:
        """Comes back as another client, with its mirrors and its position."""
        self.mirrors, self.last_number = dict(other.mirrors), other.last_number
        result = await self.reconnect(other.client_id, other.last_number, *other.mirrors)
        if result["type"] == "snapshot":
            self.take_snapshots(result["snapshots"])
        else:
            for envelope in result["actions"]:
                self.reduce(envelope)
        return result

    def take_snapshots(self, snapshots: Any) -> None:
        for snapshot in snapshots:
            self.mirrors[snapshot["resource"]] = snapshot["state"]
            self.last_number = max(self.last_number, snapshot["fromSeq"])

    def reduce(self, envelope: dict[str, Any]) -> None:
        channel = envelope["channel"]
        if channel in self.mirrors:
            reduce = reducer_of(channel)
            self.mirrors[channel] = reduce(self.mirrors[channel], envelope["action"])
        self.last_number = max(self.last_number, envelope["serverSeq"])

    def follow(self, frame: dict[str, Any]) -> None:
        if frame.get("method") == "action" and "rejectionReason" not in frame["params"]:
            self.reduce(frame["params"])

    async def is_up_to_date(self) -> bool:
        """Whether somebody who comes now would be shown the same, while nothing happens."""
        await self.call("ping")
        seen = dict(self.mirrors)
        return seen == {channel: await self.fresh(channel) for channel in seen}

    async def fresh(self, channel: str) -> Any:
        await self.call("unsubscribe", channel)
        return (await self.call("subscribe", channel))["snapshot"]["state"]


class Ahp1Client(Mirrors, Client):
    """At a host in the same process."""

    def __init__(self, host: Host, principal: Principal = ANA) -> None:
        self.mirrors, self.last_number = {}, 0
        Client.__init__(self, host, principal)

    def send(self, message: Any) -> None:
        super().send(message)
        self.follow(self.received[-1])


class Ahp1SocketClient(Mirrors, SocketClient):
    """At a real server."""

    def __init__(self, socket: ClientConnection) -> None:
        self.mirrors, self.last_number = {}, 0
        SocketClient.__init__(self, socket)

    async def _more(self) -> None:
        await super()._more()
        self.follow(self.received[-1])


async def opened(
    host: Host,
    client_id: str = "editor",
    *channels: str,
    version: str = "1.0.0",
    principal: Principal = ANA,
    **params: Any,
) -> Ahp1Client:
    client = Ahp1Client(host, principal)
    result = await client.open_with(client_id, *channels, version=version, **params)
    assert result.get("protocolVersion") == version, result
    return client
