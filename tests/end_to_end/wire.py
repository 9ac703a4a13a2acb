"""A bare AHP client on a real socket: frames as they are, nothing clever."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect

ROOT = "ahp-root://"
PATIENCE = 30.0


class WireClient:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.received: list[dict[str, Any]] = []
        self._id = 0
        self._seq = 0

    @classmethod
    async def open(cls, url: str) -> "WireClient":
        return cls(await connect(url, compression=None, max_queue=None))

    async def call(self, method: str, channel: str = ROOT, **params: Any) -> Any:
        self._id += 1
        wanted = self._id
        params = {"channel": channel, **params}
        await self.send({"jsonrpc": "2.0", "id": wanted, "method": method, "params": params})
        answer = await self.until(lambda frame: frame.get("id") == wanted)
        return answer["result"] if "result" in answer else answer["error"]

    async def initialize(self, client_id: str, *subscriptions: str) -> Any:
        return await self.call(
            "initialize",
            protocolVersions=["0.3.0"],
            clientId=client_id,
            initialSubscriptions=list(subscriptions),
        )

    async def dispatch(self, channel: str, action: dict[str, Any]) -> int:
        self._seq += 1
        params = {"channel": channel, "clientSeq": self._seq, "action": action}
        await self.send({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})
        return self._seq

    async def send(self, frame: Any) -> None:
        await self.socket.send(msgspec.json.encode(frame), text=True)

    async def once(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The same, but it may have been read before."""
        for frame in self.received:
            if wanted(frame):
                return frame
        return await self.until(wanted)

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Reads on until a frame fits; everything read is kept in `received`."""
        async with asyncio.timeout(PATIENCE):
            while True:
                frame: dict[str, Any] = msgspec.json.decode(await self.socket.recv())
                self.received.append(frame)
                if wanted(frame):
                    return frame

    async def close(self) -> None:
        await self.socket.close()
