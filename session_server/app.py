"""The composition root: one host, its log, its agents and the doors to it, as an application."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from starlette.websockets import WebSocket

from session_server import __version__
from session_server.agents.demo import open_demo
from session_server.agents.interface import Agent
from session_server.agents.registry import installed_agents
from session_server.agents.turns import AgentTurns
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.host.waiting import Waiting
from session_server.log.opening import open_log
from session_server.transport.endpoint import serve
from session_server.web.caller import caller
from session_server.web.page import include_page
from session_server.web.sessions import router as sessions


def create_app(
    store: str, agents: Mapping[str, Agent] | None = None, *, demo: bool = False
) -> FastAPI:
    """An application of its own: nothing is shared between two of them."""
    known = installed_agents() if agents is None else agents

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        host = Host(await open_log(store), tuple(agent.info for agent in known.values()))
        effects = EffectRunner(host, AgentTurns(host, known))
        await host.start()
        effects.restarted()
        app.state.host = host
        app.state.waiting = Waiting(host)
        if demo:
            open_demo(host)
        try:
            yield
        finally:
            app.state.host = None
            await host.stop()

    app = FastAPI(title="session-server", version=__version__, lifespan=lifespan)
    app.include_router(sessions)
    app.add_api_route("/healthz", healthz, include_in_schema=False)
    app.add_api_route("/readyz", readyz, include_in_schema=False)
    app.add_api_websocket_route("/ahp", ahp)
    include_page(app)
    return app


async def healthz() -> Response:
    """The process runs."""
    return Response("ok", media_type="text/plain")


async def readyz(request: Request) -> Response:
    """The host has read its log and takes work."""
    ready = getattr(request.app.state, "host", None) is not None
    return Response(
        "ready" if ready else "not ready", 200 if ready else 503, media_type="text/plain"
    )


async def ahp(socket: WebSocket) -> None:
    await serve(socket.app.state.host, caller(socket), socket)
