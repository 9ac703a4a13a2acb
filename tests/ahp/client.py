"""The AHP client of the tests: frames as they are, nothing clever.

`SocketClient` is at a real server; `tests.host.harness` has one in the same process as its host.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from tests.effort import PATIENCE

ROOT = "ahp-root://"
SESSION = "ahp-session:/1"


class AhpClient:
    """`received` is every frame so far."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.client_id = ""
        self._id = 0
        self._seq = 0

    def say(self, frame: Any) -> None:
        raise NotImplementedError

    async def _more(self) -> None:
        """Returns when there may be another frame."""
        raise NotImplementedError

    # Speaking

    async def call(self, method: str, channel: str = ROOT, **params: Any) -> Any:
        """The result, or the error as `{"code": …}`."""
        self._id += 1
        self.client_id = params.get("clientId", self.client_id)
        self.ask(self._id, method, channel, **params)
        answer = await self.answer(self._id)
        return answer["result"] if "result" in answer else answer["error"]

    def ask(self, request_id: Any, method: str, channel: str = ROOT, **params: Any) -> None:
        """Without waiting for the answer."""
        params = {"channel": channel, **params}
        self.say({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    async def initialize(self, client_id: str = "laptop", *subscriptions: str) -> Any:
        return await self.call(
            "initialize",
            protocolVersions=["0.3.0"],
            clientId=client_id,
            initialSubscriptions=list(subscriptions),
        )

    async def reconnect(self, client_id: str, last_seen: int, *subscriptions: str) -> Any:
        return await self.call(
            "reconnect",
            clientId=client_id,
            lastSeenServerSeq=last_seen,
            subscriptions=list(subscriptions),
        )

    def notify(self, method: str, channel: str, **params: Any) -> None:
        self.say({"jsonrpc": "2.0", "method": method, "params": {"channel": channel, **params}})

    def dispatch(self, action: dict[str, Any], channel: str = SESSION) -> int:
        """Its `clientSeq`."""
        self._seq += 1
        self.notify("dispatchAction", channel, clientSeq=self._seq, action=action)
        return self._seq

    async def act(self, action: dict[str, Any], channel: str = SESSION) -> dict[str, Any]:
        """Dispatcher, and waits for the envelope that confirms or rejects it."""
        return await self.echo(self.dispatch(action, channel), action["type"])

    # Listening

    async def answer(self, request_id: Any) -> dict[str, Any]:
        return await self.wait_for(lambda frame: frame.get("id") == request_id)

    async def echo(self, client_seq: int, kind: str | None = None) -> dict[str, Any]:
        """The envelope of an action of our own; others of its batch may carry our origin too."""
        mine = {"clientId": self.client_id, "clientSeq": client_seq}

        def is_mine(frame: dict[str, Any]) -> bool:
            params = frame.get("params", {})
            is_kind = kind is None or params.get("action", {}).get("type") == kind
            return params.get("origin") == mine and is_kind

        envelope: dict[str, Any] = (await self.wait_for(is_mine))["params"]
        return envelope

    async def wait_for(self, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The first frame that fits, of those that came and of those to come."""
        return await self._first(0, wanted)

    async def until(self, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The first frame that fits, of those to come."""
        return await self._first(len(self.received), wanted)

    async def _first(self, seen: int, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            while True:
                for frame in self.received[seen:]:
                    if wanted(frame):
                        return frame
                seen = len(self.received)
                await self._more()

    async def wait_for_action(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The envelope of an action of this kind, and with these fields."""
        wanted = {"type": kind, **fields}.items()
        frame = await self.wait_for(
            lambda f: f.get("method") == "action" and wanted <= f["params"]["action"].items()
        )
        envelope: dict[str, Any] = frame["params"]
        return envelope

    async def wait_for_title(self, title: str) -> None:
        await self.wait_for_action("session/titleChanged", title=title)

    def envelopes(self) -> list[dict[str, Any]]:
        return [
            frame["params"]
            for frame in self.received
            if frame.get("method") == "action" and "rejectionReason" not in frame["params"]
        ]


class SocketClient(AhpClient):
    def __init__(self, socket: ClientConnection) -> None:
        super().__init__()
        self.socket = socket

    @classmethod
    async def open(cls, url: str, **options: Any) -> "SocketClient":
        return cls(await connect(url, compression=None, max_queue=None, **options))

    @classmethod
    async def joined(cls, url: str, client_id: str, *subscriptions: str) -> "SocketClient":
        client = await cls.open(url)
        await client.initialize(client_id, *subscriptions)
        return client

    def say(self, frame: Any) -> None:
        """Into the buffer of the transport, as `send` of the socket does before it waits."""
        self.socket.protocol.send_text(msgspec.json.encode(frame))
        self.socket.send_data()

    async def _more(self) -> None:
        self.received.append(msgspec.json.decode(await self.socket.recv()))

    async def close(self) -> None:
        await self.socket.close()
