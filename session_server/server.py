"""Running the application: uvicorn with our protocols under it, and the text that it prints."""

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import uvicorn
from fastapi import FastAPI

from session_server.agents.demo import DEMO_SESSION, DEPLOY_SESSION
from session_server.http.dependencies import Services, running
from session_server.identity.credentials import RedactingFormatter
from session_server.identity.exposure import ALL_ADDRESSES, Binding, netloc_of, reachable
from session_server.log.opening import redacted
from session_server.reducers.texts import session_name
from session_server.schemas.limits import FRAME_BYTES, KEEP_ALIVE_SECONDS
from session_server.settings import Settings
from session_server.transport.admission import Admission, Room, make_room
from session_server.transport.http_protocol import HttpProtocol
from session_server.transport.websocket_protocol import SinkProtocol

logger = logging.getLogger("session_server.server")

GRACE_SECONDS = 5
DRAIN_CHECK_SECONDS = 0.05

GC_THRESHOLDS = (20_000, 20, 50)
"""An action leaves no reference cycles, so the collector's default of every 700 new objects only
costs time: a quarter of all processor time when many people type.
"""


class Server(uvicorn.Server):
    """Prints its addresses once it listens: with port 0, they are known only then."""

    def __init__(
        self,
        config: uvicorn.Config,
        room: Room | None = None,
        banner: "Callable[[list[Address]], str] | None" = None,
    ) -> None:
        super().__init__(config)
        self._room = room
        self._banner = banner or listening

    @property
    def services(self) -> Services:
        assert isinstance(self.config.app, FastAPI)
        services = running(self.config.app)
        assert services is not None
        return services

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            if self._room is not None:
                self._share(self._room)
            gc.freeze()  # collections that look through all loaded modules would pause everyone
            gc.set_threshold(*GC_THRESHOLDS)
            sockets_open = (socket for server in self.servers for socket in server.sockets)
            sys.stdout.write(self._banner([socket.getsockname()[:2] for socket in sockets_open]))
            sys.stdout.flush()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """A requested stop is a success; uvicorn would raise the signal once more."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()

    def _share(self, room: Room) -> None:
        """Limits a principal to half of the connections that the open-file limit allows."""
        connections = self.services.host.connections
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
        """Drains first; a second Ctrl-C ends that. A kept connection that were just closed could
        lose a request that is on its way; so its last answer says that it ends. Then ends streams
        and long polls: the server waits for requests in progress.
        """
        assert isinstance(self.config.app, FastAPI)
        self.config.app.state.is_draining = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self.services.settings.drain_seconds
        while loop.time() < until and not self.force_exit:  # noqa: ASYNC110 - uvicorn sets it
            await asyncio.sleep(DRAIN_CHECK_SECONDS)
        self.services.streams.end()
        await super().shutdown(sockets)  # type: ignore[arg-type]


def run(app: FastAPI, settings: Settings, binding: Binding) -> bool:
    """Serves until it is stopped; returns whether it ever started."""
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

    def text(addresses: list[Address]) -> str:
        return banner(settings, binding, addresses, server.services.calls.servers.names)

    server = Server(config, room, text)
    server.run()
    return server.started


def logging_of(settings: Settings, binding: Binding) -> dict[str, Any]:
    """All log lines go to stderr, with credentials redacted."""
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


Address: TypeAlias = tuple[str, int]

DEMOS = (
    (DEMO_SESSION, "an agent that asks"),
    (DEPLOY_SESSION, "an MCP call that waits for people"),
)


def listening(addresses: Iterable[Address]) -> str:
    return "".join(f"session-server at {_url(address)}\n" for address in addresses)


def banner(
    settings: Settings, binding: Binding, addresses: list[Address], servers: Iterable[str] = ()
) -> str:
    """`servers` are the names of the MCP servers that the gateway offers."""
    where = _where(settings, addresses[0])
    lines: list[tuple[str, str]] = []
    if binding.token is not None:  # it is printed only here; one from the settings is known already
        link = f"{where}/?tkn={binding.token}"
        lines += [("Open", link), ("CLI", f"export SESSION_SERVER_URL='{link}'")]
    elif binding.access.connection_token is None:
        lines.append(("Page", f"{where}/"))
    else:
        lines.append(("Page", f"{where}/?tkn=… with its connection token"))
        if binding.file is not None:
            lines.append(("", f"which is new, in {binding.file}"))
    lines += [
        ("AHP", f"ws{where.removeprefix('http')}/ahp"),
        ("HTTP", f"{where}/docs"),
        ("", f"{where}/v1/sessions"),
        ("MCP", f"{where}/mcp  tools to ask people"),
        *(("", f"{where}/mcp/{name}  gateway to {name}") for name in servers),
        ("Data", redacted(settings.store) if settings.store else f"{settings.data_dir}/"),
    ]
    if reachable(settings, "", 0).warning is not None:
        how = "session-server serve --host 0.0.0.0 --connection-token generate"
        lines.append(("", f"Only this machine can reach it. For phones and others: {how}"))
    if settings.demo:
        lines += [
            ("" if place else "Demo", f"{where}/#/s/{session_name(uri)}  {text}")
            for place, (uri, text) in enumerate(DEMOS)
        ]
    return listening(addresses) + "".join(f"  {name:<4}  {text}\n" for name, text in lines)


def _where(settings: Settings, address: Address) -> str:
    """The address to show: one that others can use, where there is one (not `0.0.0.0`)."""
    if settings.public_url is not None or settings.host in ALL_ADDRESSES:
        return reachable(settings, "", address[1]).url
    return _url(address)


def _url(address: Address) -> str:
    return f"http://{netloc_of(*address)}"
