"""`serve`: runs the host."""

import asyncio
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from session_server.agents.demo import DEMO_SESSION
from session_server.app import create_app
from session_server.log.errors import OpenError
from session_server.log.opening import open_log
from session_server.server import run


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks one.")] = 8737,
    store: Annotated[
        str | None, typer.Option(help="Where the log is: `memory:` or `sqlite:///path`.")
    ] = None,
    data_dir: Annotated[Path, typer.Option(help="Folder for the log if no store is named.")] = Path(
        "session-server-data"
    ),
    demo: Annotated[
        bool, typer.Option("--demo", help="Have a session with an open question.")
    ] = False,
) -> None:
    """Run the host."""
    if not ip_address(host).is_loopback:
        typer.echo("Only loopback addresses can be served without a token.", err=True)
        raise typer.Exit(2)
    if store is None:
        data_dir.mkdir(parents=True, exist_ok=True)
        store = f"sqlite:///{data_dir.absolute() / 'sessions.db'}"
    try:
        asyncio.run(check_log(store))
    except OpenError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    if demo:
        typer.echo(f"A session with an open question: {DEMO_SESSION}")
    if not run(create_app(store, demo=demo), host, port):
        raise typer.Exit(1)


async def check_log(store: str) -> None:
    """Opens the log once before the server does, to fail in words and not in a traceback."""
    log = await open_log(store)
    await log.close()
