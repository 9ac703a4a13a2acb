"""The composition root: one host, its log, its agents and its endpoints, as an application."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from starlette.websockets import WebSocket

from session_server import __version__
from session_server.agents.demo import call_deploy, demo_servers, open_demo
from session_server.agents.interface import Agent
from session_server.agents.turn_runner import AgentTurns, installed_agents
from session_server.calls.service import Calls
from session_server.gateway.routes import McpRoutes
from session_server.host.async_api import StateWaiters
from session_server.host.effects import EffectRunner
from session_server.host.host import Host
from session_server.host.host_limits import HostLimits
from session_server.host.takeover import Takeover
from session_server.http.api import include_api
from session_server.http.dependencies import Services, caller, is_draining, running, services_of
from session_server.http.gate import include_gate, refuse
from session_server.http.page import include_page
from session_server.http.problems import ProblemError
from session_server.http.streaming import OpenStreams
from session_server.identity.credentials import Identities, chosen_subprotocol
from session_server.identity.exposure import binding_of
from session_server.identity.origins import Access
from session_server.identity.signing_key import signing_key
from session_server.identity.tokens import Tokens
from session_server.log import Log, Sync
from session_server.log.opening import open_log, open_shared_log
from session_server.mcp_client.config import ServerConfig, load_servers
from session_server.mcp_client.failpoints import guarded
from session_server.mcp_client.revisions import Revisions
from session_server.schemas.errors import AccessError, RateLimitError
from session_server.settings import Settings, SettingsError
from session_server.transport.endpoint import serve

ONLY_AHP = "This is the AHP WebSocket: connect with ws:// or wss://. The HTTP API is at /v1."

logger = logging.getLogger("session_server.mcp")


def create_app(
    store: str,
    agents: Mapping[str, Agent] | None = None,
    *,
    demo: bool = False,
    settings: Settings | None = None,
    access: Access | None = None,
) -> FastAPI:
    """A new application, which shares nothing with any other.

    Without `access`, the settings decide who may connect, as for `serve`.
    """
    chosen = settings or Settings()
    agents_by_name = installed_agents() if agents is None else agents
    allowed = access or access_of_embedded(chosen)
    is_kept = not store.startswith("memory:")
    key = signing_key(chosen, is_kept=is_kept)
    servers = servers_of(chosen, demo=demo)
    mcp = McpRoutes(caller)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        """Runs from before the log is opened until after its last entry is written."""
        log, is_first = await opened_log(store, chosen)
        host = Host(
            guarded(log),
            tuple(agent.info for agent in agents_by_name.values()),
            limits_of(chosen),
            is_shared=chosen.shared,
            is_first=is_first,
        )
        waiting = StateWaiters(host)
        revisions = Revisions(chosen.data_dir / "mcp-revisions.json" if is_kept else None)
        calls = Calls(host, waiting, servers, revisions)
        turns = AgentTurns(host, agents_by_name, calls)
        takeover = Takeover(host, EffectRunner(host, turns, calls.driver))
        try:
            await host.start()
            calls.open()
            takeover.started()
            tokens = Tokens(host, key)
            tokens.restarted()
            mcp.opened(host, waiting, calls, key.made, chosen)
            if servers:  # the SDK is loaded then, and clients will come
                await mcp.load()
            identities = Identities(allowed, tokens)
            streams = OpenStreams(waiting)
            app.state.services = Services(host, identities, chosen, waiting, calls, streams)
            if demo:
                await open_demo(host)
                calls.driver.spawn(call_deploy(host, calls))
            yield
        finally:
            app.state.services = None
            await calls.close()
            await host.stop()

    app = FastAPI(
        title="session-server",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    include_routes(app, allowed, mcp)
    return app


def access_of_embedded(settings: Settings) -> Access:
    """The same access as under `serve`, except for new tokens, which only `serve` can print."""
    binding = binding_of(settings)
    if binding.token is not None:
        raise SettingsError(
            "connection_token `generate` works only with `serve`, which prints the token. Set a"
            " token of your own, or connection_token_file."
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


def include_routes(app: FastAPI, access: Access, mcp: McpRoutes) -> None:
    include_api(app)
    app.add_api_route("/healthz", healthz, include_in_schema=False)
    app.add_api_route("/readyz", readyz, include_in_schema=False)
    app.add_api_websocket_route("/ahp", ahp)
    app.add_api_websocket_route("/", ahp)  # some clients use an address without a path
    app.add_api_route("/ahp", not_upgraded, include_in_schema=False)
    app.router.routes[:0] = mcp.routes()  # calls are many, and routes are tried in order
    include_page(app)
    include_gate(app, access)


async def opened_log(store: str, settings: Settings) -> tuple[Log, bool]:
    """The log, and whether no other node has it open."""
    sync, folder = Sync(settings.sync), settings.data_dir
    if settings.shared:
        log = await open_shared_log(store, sync=sync, data_dir=folder)
        return log, log.is_first
    is_accepted = settings.accept_data_loss
    return await open_log(store, sync=sync, accept_data_loss=is_accepted, data_dir=folder), True


def limits_of(settings: Settings) -> HostLimits:
    return HostLimits(
        actions_per_second=settings.actions_per_second,
        connections_per_principal=settings.connections_per_principal,
        sessions=settings.max_sessions,
        session_bytes=settings.max_session_bytes,
        state_bytes=settings.max_state_bytes,
        loaded_bytes=settings.max_loaded_bytes,
        idle_seconds=settings.idle_seconds,
        store_seconds=settings.store_seconds,
        node_lease_seconds=settings.node_lease_seconds,
    )


async def healthz() -> Response:
    """The process runs."""
    return Response("ok", media_type="text/plain")


async def readyz(request: Request) -> Response:
    """The host has read its log and can write to it."""
    services = running(request.app)
    if services is None:
        return Response("not ready", 503, media_type="text/plain")
    if is_draining(request.app):
        return Response("stopping", 503, media_type="text/plain")
    reason = services.host.log_status.reason
    if reason is not None:
        return Response(f"read-only: {reason}", 503, media_type="text/plain")
    await services.host.caught_up()
    follower = services.host.follower
    if follower is not None and (follower.failure or follower.is_behind):
        reason = follower.failure or "what other nodes wrote is still being read"
        return Response(f"behind: {reason}", 503, media_type="text/plain")
    return Response("ready", media_type="text/plain")


async def not_upgraded() -> Response:
    """A plain HTTP request to the WebSocket endpoint."""
    raise ProblemError(426, "upgradeRequired", ONLY_AHP, {"Upgrade": "websocket"})


async def ahp(socket: WebSocket) -> None:
    host = services_of(socket).host
    try:
        principal = await caller(socket)
        host.connections.check(principal)
    except (AccessError, RateLimitError) as error:
        await refuse(error, socket.scope, socket.receive, socket.send)
        return
    await serve(host, principal, socket, chosen_subprotocol(socket))
