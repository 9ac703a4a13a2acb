"""The program itself: its name, what all commands share, and the list of them."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from session_server import __version__
from session_server.cli import access
from session_server.cli.access import share
from session_server.cli.answer import answer
from session_server.cli.ask import ask
from session_server.cli.call import call
from session_server.cli.doctor import doctor
from session_server.cli.failures import ExitCode, UsageError
from session_server.cli.http_client import Command, JsonOption, SharedToken, SharedUrl, reaching
from session_server.cli.mcp_bridge import mcp
from session_server.cli.output import print_error
from session_server.cli.recordings import export, replay
from session_server.cli.serve import serve
from session_server.cli.sessions import dispose, sessions
from session_server.cli.stores import backup, migrate
from session_server.cli.watch import watch

PROGRAM = "session-server"


class Program(TyperGroup):
    """With `--json`, usage errors are printed as JSON too."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        extra["windows_expand_args"] = windows_expand_args
        run = partial(super().main, args, prog_name, complete_var, **extra)
        if not standalone_mode or "--json" not in (sys.argv[1:] if args is None else args):
            return run(standalone_mode=standalone_mode)
        try:
            code = run(standalone_mode=False)
        except TyperException as error:
            print_error(UsageError(error.format_message()), as_json=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            sys.exit(ExitCode.FAILED)
        sys.exit(code if isinstance(code, int) else ExitCode.OK)


app = typer.Typer(
    name=PROGRAM,
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",
)


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def session_server(
    context: typer.Context,
    url: SharedUrl = None,
    token: SharedToken = None,
    as_json: JsonOption = False,
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


COMMANDS: tuple[Command, ...] = (
    sessions, watch, ask, answer, call, share, export, replay, dispose, backup, migrate, doctor, mcp
)  # fmt: skip

app.command()(serve)
for command in COMMANDS:
    app.command()(reaching(command))
app.add_typer(access.app, name="token")


def main() -> None:
    app(prog_name=PROGRAM)
