"""The peers: what people usually write, doing nothing but deliver the same frame to everyone.

No rules, no state, no log: whatever one client sends, all get a prepared envelope.
"""

import asyncio
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from websockets.asyncio.server import ServerConnection, broadcast, serve

ENVELOPE = (
    '{"jsonrpc":"2.0","method":"action","params":{"channel":"ahp-session:/bench","action":{"type":'
    '"session/inputAnswerChanged","requestId":"r","questionId":"q","answer":{"state":"draft",'
    '"_meta":{"by":{"id":"local"},"at":1794805001836,"via":"person"},"value":{"kind":"text",'
    '"value":"Oslo, or maybe Bergen"}}},"serverSeq":1000000,"origin":{"clientId":"load-12345-0",'
    '"clientSeq":1},"_meta":{"at":1794805001836,"by":{"id":"local"}}}}'
)


def fastapi_loop(port: int) -> None:
    """The loop that every tutorial has."""
    app = FastAPI()
    clients: set[WebSocket] = set()

    @app.websocket("/")
    async def endpoint(socket: WebSocket) -> None:
        await socket.accept()
        clients.add(socket)
        try:
            while True:
                await socket.receive_text()
                for client in tuple(clients):
                    await client.send_text(ENVELOPE)
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            clients.discard(socket)

    uvicorn.run(
        app, host="127.0.0.1", port=port, log_level="critical", ws_per_message_deflate=False
    )


def websockets_broadcast(port: int) -> None:
    clients: set[ServerConnection] = set()

    async def handler(socket: ServerConnection) -> None:
        clients.add(socket)
        try:
            async for _ in socket:
                broadcast(clients, ENVELOPE)
        except Exception:  # noqa: BLE001 - a client that goes away ends its handler
            pass
        finally:
            clients.discard(socket)

    async def main() -> None:
        async with serve(handler, "127.0.0.1", port, compression=None) as server:
            await server.serve_forever()

    asyncio.run(main())


KINDS: dict[str, Any] = {"fastapi": fastapi_loop, "websockets": websockets_broadcast}

if __name__ == "__main__":
    KINDS[sys.argv[1]](int(sys.argv[2]))
