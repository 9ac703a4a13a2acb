"""Running the application: uvicorn with our WebSocket protocol under it."""

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from session_server.identity.addresses import reachable
from session_server.identity.binding import Binding
from session_server.identity.redaction import RedactingFormatter
from session_server.schemas.limits import FRAME_BYTES
from session_server.settings import Settings
from session_server.transport.sink import SinkProtocol

GRACE_SECONDS = 5


def _nothing_more(_: int) -> str:
    return ""


class Server(uvicorn.Server):
    """Says where it listens once it does: with port 0, only then is it known."""

    way_in: Callable[[int], str] = staticmethod(_nothing_more)

    def announce(self) -> None:
        ports: set[int] = set()
        for server in self.servers:
            for socket in server.sockets:
                address, port = socket.getsockname()[:2]
                where = f"[{address}]" if ":" in address else address
                sys.stdout.write(
                    f"session-server at http://{where}:{port}\n"
                    f"  Page  http://{where}:{port}/\n"
                    f"  AHP   ws://{where}:{port}/ahp\n"
                    f"  HTTP  http://{where}:{port}/docs\n"
                    f"        http://{where}:{port}/v1/sessions\n"
                )
                ports.add(port)
        sys.stdout.write("".join(self.way_in(port) for port in ports))
        sys.stdout.flush()

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            gc.freeze()  # looking through all that was loaded, again and again, would stop everyone
            self.announce()

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Streams and long polls end first: the server waits for whatever is in progress."""
        self.config.app.state.streams.end()  # type: ignore[union-attr]
        await super().shutdown(sockets)  # type: ignore[arg-type]


def run(app: FastAPI, settings: Settings, binding: Binding) -> bool:
    """Serves until it is told to stop; whether it ever started."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        ws=SinkProtocol,
        ws_max_size=FRAME_BYTES,
        ws_per_message_deflate=False,
        log_level=settings.log_level,
        log_config=logging_of(settings, binding),
        lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = Server(config)
    server.way_in = partial(way_in, settings, binding)
    server.run()
    return server.started


def way_in(settings: Settings, binding: Binding, port: int) -> str:
    """A new token is told this once; one that was given is known to whoever gave it."""
    if binding.token is not None:
        where = reachable(settings, "", port)
        return f"  Open  {where.url}/?tkn={binding.token}\n"
    if binding.file is not None:
        return f"  Its connection token is new, in {binding.file}\n"
    if binding.access.connection_token is not None:
        return "  It wants its connection token: ?tkn=… in the address, or a bearer header\n"
    return ""


def logging_of(settings: Settings, binding: Binding) -> dict[str, Any]:
    """Everything that anybody logs goes to stderr, and through the redaction."""
    token = binding.access.connection_token
    known = () if token is None else (token,)
    level = settings.log_level.upper()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"redacting": {"()": RedactingFormatter, "known": known}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "redacting"}},
        "root": {"handlers": ["stderr"], "level": level},
    }
