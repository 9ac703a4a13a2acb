"""Running the application: uvicorn with our WebSocket protocol under it."""

import sys

import uvicorn
from fastapi import FastAPI

from session_server.schemas.limits import FRAME_BYTES
from session_server.transport.sink import SinkProtocol

GRACE_SECONDS = 5


class Server(uvicorn.Server):
    """Says where it listens once it does: with port 0, only then is it known."""

    def announce(self) -> None:
        for server in self.servers:
            for socket in server.sockets:
                address, port = socket.getsockname()[:2]
                where = f"[{address}]" if ":" in address else address
                sys.stdout.write(
                    f"session-server at http://{where}:{port}\n"
                    f"  AHP   ws://{where}:{port}/ahp\n"
                    f"  HTTP  http://{where}:{port}/docs\n"
                    f"        http://{where}:{port}/v1/sessions\n"
                )
                sys.stdout.flush()

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            self.announce()


def run(app: FastAPI, host: str, port: int) -> bool:
    """Serves until it is told to stop; whether it ever started."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        ws=SinkProtocol,
        ws_max_size=FRAME_BYTES,
        ws_per_message_deflate=False,
        log_level="warning",
        lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = Server(config)
    server.run()
    return server.started
