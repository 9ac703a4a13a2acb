"""`serve`: runs the host."""

import asyncio
import errno
import socket

import typer

from session_server.cli.failures import CliError
from session_server.cli.setting_options import named_store, with_settings
from session_server.log import Log, Sync
from session_server.log.opening import open_log, open_shared_log
from session_server.schemas.errors import UnreadableTokensError
from session_server.settings import Settings


@with_settings
def serve(settings: Settings) -> None:
    """Run the host."""
    # The server takes a while to load, and no other command needs it.
    from session_server.app import create_app  # noqa: PLC0415
    from session_server.identity.exposure import binding_of  # noqa: PLC0415
    from session_server.server import run  # noqa: PLC0415

    binding = binding_of(settings)
    if settings.store is None:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    store = named_store(settings)
    try:
        check_address(settings.host, settings.port)
    except OSError as error:
        is_used = error.errno == errno.EADDRINUSE
        reason = "the address is already in use" if is_used else error.strerror
        message = f"Can't listen on {settings.host}:{settings.port}: {reason}."
        raise CliError(message, advice="Choose another port with --port.") from None
    asyncio.run(check_log(settings, store))
    app = create_app(store, demo=settings.demo, settings=settings, access=binding.access)
    if not run(app, settings, binding):
        raise typer.Exit(1)


def check_address(host: str, port: int) -> None:
    """Binds once before the server does, to fail with a message and not with a log line."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind(address)


async def check_log(settings: Settings, store: str) -> None:
    """Opens the log once before the server does, to fail with a message and no traceback."""
    from session_server.host.host import Host  # noqa: PLC0415
    from session_server.schemas.log_entries import TOKENS_CHANNEL  # noqa: PLC0415

    sync = Sync(settings.sync)
    if settings.shared:
        log: Log = await open_shared_log(store, sync=sync)
    else:
        log = await open_log(store, sync=sync, accept_data_loss=settings.accept_data_loss)
    host = Host(log, ())
    try:
        await host.load_all((TOKENS_CHANNEL,))
    finally:
        await log.close()
    if TOKENS_CHANNEL in host.unreadable:
        raise UnreadableTokensError(host.unreadable[TOKENS_CHANNEL])
