"""`serve`: runs the host."""

import asyncio
import errno
import socket

import typer

from session_server.cli.setting_options import named_store, with_settings
from session_server.log import Sync
from session_server.log.errors import LogError
from session_server.log.opening import open_log
from session_server.settings import Settings


@with_settings
def serve(settings: Settings) -> None:
    """Run the host."""
    # The server takes a while to load, and no other command needs it.
    from session_server.app import create_app  # noqa: PLC0415
    from session_server.host.errors import StartError  # noqa: PLC0415
    from session_server.identity.binding import binding_of  # noqa: PLC0415
    from session_server.mcp_client.errors import ConfigError  # noqa: PLC0415
    from session_server.server import run  # noqa: PLC0415

    binding = binding_of(settings)
    store = store_of(settings)
    try:
        check_address(settings.host, settings.port)
    except OSError as error:
        is_used = error.errno == errno.EADDRINUSE
        reason = "the address is already in use" if is_used else error.strerror
        message = f"Can't listen on {settings.host}:{settings.port}: {reason}."
        typer.echo(f"{message} Choose another port with --port.", err=True)
        raise typer.Exit(1) from None
    try:
        asyncio.run(
            check_log(store, Sync(settings.sync), accept_data_loss=settings.accept_data_loss)
        )
    except (LogError, StartError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    try:
        app = create_app(store, demo=settings.demo, settings=settings, access=binding.access)
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if not run(app, settings, binding):
        raise typer.Exit(1)


def store_of(settings: Settings) -> str:
    if settings.store is None:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    return named_store(settings)


def check_address(host: str, port: int) -> None:
    """Tries it once before the server does, to fail in words and not in a log line."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind(address)


async def check_log(store: str, sync: Sync, *, accept_data_loss: bool = False) -> None:
    """Opens the log once before the server does, to fail in words and not in a traceback."""
    from session_server.host.channel_kinds import TOKENS_CHANNEL  # noqa: PLC0415
    from session_server.host.errors import tokens_unreadable  # noqa: PLC0415
    from session_server.host.host import Host  # noqa: PLC0415

    log = await open_log(store, sync=sync, accept_data_loss=accept_data_loss)
    host = Host(log, ())
    try:
        await host.load((TOKENS_CHANNEL,))
    finally:
        await log.close()
    if TOKENS_CHANNEL in host.unreadable:
        raise tokens_unreadable(host.unreadable[TOKENS_CHANNEL])
