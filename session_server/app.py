"""The composition root: one host, its log, its agents and the doors to it, as an application."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from fastapi import FastAPI, Request, Response
from starlette.websockets import WebSocket

from session_server import __version__
from session_server.agents.demo import open_demo
from session_server.agents.deploy_demo import demo_servers, open_deploy
from session_server.agents.interface import Agent
from session_server.agents.turn_runner import AgentTurns, installed_agents
from session_server.calls.service import Calls
from session_server.gateway.endpoints import include_doors
from session_server.gateway.gateway import Gateway
from session_server.gateway.holding import Patience
from session_server.host.acting import StateWaiters
from session_server.host.connection.rate_limit import Bounds, TooFastError
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.http.access import caller, include_gate, turn_away
from session_server.http.api import include_api
from session_server.http.openapi import operation_name
from session_server.http.page import include_page
from session_server.http.problems import ProblemError
from session_server.http.streaming import OpenStreams
from session_server.identity.binding import binding_of
from session_server.identity.credentials import Identities, chosen_subprotocol
from session_server.identity.errors import TurnedAwayError
from session_server.identity.origins import Access
from session_server.identity.signing_key import SigningKey, signing_key
from session_server.identity.tokens import Tokens
from session_server.log import Sync
from session_server.log.opening import open_log
from session_server.mcp_client.config import ServerConfig, load_servers
from session_server.mcp_client.failpoints import guarded
from session_server.mcp_client.revisions import Revisions
from session_server.settings import Settings, SettingsError
from session_server.transport.endpoint import serve

ONLY_AHP = "AHP is spoken here, over a WebSocket: connect with ws:// or wss://. HTTP is at /v1."

logger = logging.getLogger("session_server.mcp")


class Parts(NamedTuple):
    """What a host is made of, before it lives."""

    store: str
    agents: Mapping[str, Agent]
    settings: Settings
    access: Access
    key: SigningKey
    servers: Mapping[str, ServerConfig]
    demo: bool


def create_app(
    store: str,
    agents: Mapping[str, Agent] | None = None,
    *,
    demo: bool = False,
    settings: Settings | None = None,
    access: Access | None = None,
) -> FastAPI:
    """An application of its own: nothing is shared between two of them.

    Without terms of access the settings decide, as for `serve`.
    """
    chosen = settings or Settings()
    parts = Parts(
        store=store,
        agents=installed_agents() if agents is None else agents,
        settings=chosen,
        access=access or access_of_embedded(chosen),
        key=signing_key(chosen, is_kept=not store.startswith("memory:")),
        servers=servers_of(chosen, demo=demo),
        demo=demo,
    )
    app = FastAPI(
        title="session-server",
        version=__version__,
        lifespan=partial(living, parts),
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=operation_name,
    )
    include_everything(app, parts.access)
    return app


def access_of_embedded(settings: Settings) -> Access:
    """The same terms as under `serve`, which alone can print a token that is new."""
    binding = binding_of(settings)
    if binding.token is not None:
        raise SettingsError(
            "connection_token `generate` works with `serve` alone, which prints the token; set one"
            " of your own, or connection_token_file."
        )
    return binding.access


def servers_of(settings: Settings, *, demo: bool) -> dict[str, ServerConfig]:
    servers = demo_servers() if demo else {}
    if settings.mcp_config is not None:
        loaded = load_servers(settings.mcp_config)
        for warning in loaded.warnings:
            logger.warning("%s", warning)
        servers |= loaded.servers
    return servers


def include_everything(app: FastAPI, access: Access) -> None:
    include_api(app)
    app.add_api_route("/healthz", healthz, include_in_schema=False)
    app.add_api_route("/readyz", readyz, include_in_schema=False)
    app.add_api_websocket_route("/ahp", ahp)
    app.add_api_route("/ahp", not_upgraded, include_in_schema=False)
    include_doors(app, caller)
    include_page(app)
    include_gate(app, access)


@asynccontextmanager
async def living(parts: Parts, app: FastAPI) -> AsyncGenerator[None]:
    """From the first entry that is read from the log to the last that is written."""
    settings = parts.settings
    log = await open_log(
        parts.store, sync=Sync(settings.sync), accept_data_loss=settings.accept_data_loss
    )
    host = Host(
        guarded(log), tuple(agent.info for agent in parts.agents.values()), bounds_of(settings)
    )
    waiting = StateWaiters(host)
    is_kept = not parts.store.startswith("memory:")
    revisions = Revisions(settings.data_dir / "mcp-revisions.json" if is_kept else None)
    calls = Calls(host, waiting, parts.servers, revisions)
    effects = EffectRunner(host, AgentTurns(host, parts.agents, calls), calls.driver)
    await host.start()
    calls.open()
    effects.restarted()
    tokens = Tokens(host, parts.key)
    tokens.restarted()
    app.state.host = host
    app.state.identities = Identities(parts.access, tokens)
    app.state.settings = settings
    app.state.waiting = waiting
    app.state.calls = calls
    patience = Patience(settings.mcp_hold_seconds, settings.mcp_lease_seconds, waiting.over)
    app.state.gateway = Gateway(host, waiting, calls, parts.key.made, patience)
    app.state.streams = OpenStreams(waiting)
    if parts.demo:
        open_demo(host)
        calls.driver.spawn(open_deploy(host, calls))
    try:
        yield
    finally:
        app.state.host = None
        await calls.close()
        await host.stop()


def bounds_of(settings: Settings) -> Bounds:
    return Bounds(
        actions_per_second=settings.actions_per_second,
        connections_per_principal=settings.connections_per_principal,
        sessions=settings.max_sessions,
        session_bytes=settings.max_session_bytes,
        state_bytes=settings.max_state_bytes,
        store_seconds=settings.store_seconds,
    )


async def healthz() -> Response:
    """The process runs."""
    return Response("ok", media_type="text/plain")


async def readyz(request: Request) -> Response:
    """The host has read its log and takes work: what is written can be stored."""
    host: Host | None = getattr(request.app.state, "host", None)
    if host is None:
        words = "not ready"
    elif host.storage.reason is not None:
        words = f"read-only: {host.storage.reason}"
    else:
        return Response("ready", media_type="text/plain")
    return Response(words, 503, media_type="text/plain")


async def not_upgraded() -> Response:
    """A browser's or a program's plain request to where AHP is spoken."""
    raise ProblemError(426, "upgradeRequired", ONLY_AHP, {"Upgrade": "websocket"})


async def ahp(socket: WebSocket) -> None:
    host: Host = socket.app.state.host
    try:
        principal = caller(socket)
        host.connections.check(principal)
    except (TurnedAwayError, TooFastError) as error:
        await turn_away(error, socket.scope, socket.receive, socket.send)
        return
    await serve(host, principal, socket, chosen_subprotocol(socket))
