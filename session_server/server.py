"""Running the application: uvicorn with our HTTP and WebSocket protocols under it."""

import gc
import logging
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from session_server.banner import Address, banner, listening
from session_server.identity.binding import Binding
from session_server.identity.credentials import RedactingFormatter
from session_server.schemas.limits import FRAME_BYTES, KEEP_ALIVE_SECONDS
from session_server.settings import Settings
from session_server.transport.admission import Admission, Room, make_room
from session_server.transport.http_protocol import HttpProtocol
from session_server.transport.websocket_protocol import SinkProtocol

logger = logging.getLogger("session_server.server")

GRACE_SECONDS = 5


class Server(uvicorn.Server):
    """Says where it listens once it does: with port 0, only then is it known."""

    banner: Callable[[list[Address]], str] = staticmethod(listening)
    room: Room | None = None

    def announce(self) -> None:
        sockets = (socket for server in self.servers for socket in server.sockets)
        sys.stdout.write(self.banner([socket.getsockname()[:2] for socket in sockets]))
        sys.stdout.flush()

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            if self.room is not None:
                self._share(self.room)
            gc.freeze()  # looking through all that was loaded, again and again, would stop everyone
            self.announce()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """A stop that was asked for is a success: uvicorn would raise the signal once more."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()

    def _share(self, room: Room) -> None:
        """One principal takes at most half of the connections that fit."""
        connections = self.config.app.state.host.connections  # type: ignore[union-attr]
        most = max(1, room.connections // 2)
        if connections.per_principal > most:
            logger.warning(
                "the limit on open files leaves room for %d connections, %d for each principal;"
                " raise it (ulimit -n) for more",
                room.connections,
                most,
            )
            connections.per_principal = most

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Streams and long polls end first: the server waits for whatever is in progress."""
        self.config.app.state.streams.end()  # type: ignore[union-attr]
        await super().shutdown(sockets)  # type: ignore[arg-type]


def run(app: FastAPI, settings: Settings, binding: Binding) -> bool:
    """Serves until it is told to stop; whether it ever started."""
    room = make_room()
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=partial(HttpProtocol, Admission(room.connections)),  # type: ignore[arg-type]
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        backlog=room.backlog,
        ws=SinkProtocol,
        ws_max_size=FRAME_BYTES,
        ws_per_message_deflate=False,
        log_level=settings.log_level,
        log_config=logging_of(settings, binding),
        lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = Server(config)
    server.room = room
    server.banner = lambda addresses: banner(
        settings, binding, addresses, app.state.calls.servers.names
    )
    server.run()
    return server.started


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
