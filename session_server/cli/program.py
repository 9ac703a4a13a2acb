"""The program itself: its name, what all commands share, and the list of them."""

from typing import Annotated

import typer

from session_server import __version__
from session_server.cli.serve import serve

PROGRAM = "session-server"

app = typer.Typer(
    name=PROGRAM,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def session_server(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Hold live agent sessions and let people answer an agent's questions together."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command()(serve)


def main() -> None:
    app(prog_name=PROGRAM)
