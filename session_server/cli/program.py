"""The program itself: its name, what all commands share, and the list of them.

A command is loaded when it is needed, since each loads much that the others do without.
"""

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from session_server import __version__
from session_server.cli.failures import ExitCode, UsageError
from session_server.cli.host_options import JsonOption, SharedToken, SharedUrl

PROGRAM = "session-server"

MODULES = {
    "serve": "serve",
    "sessions": "sessions",
    "watch": "watch",
    "ask": "ask",
    "answer": "answer",
    "call": "call",
    "share": "access",
    "export": "recordings",
    "replay": "recordings",
    "dispose": "sessions",
    "backup": "stores",
    "migrate": "stores",
    "doctor": "doctor",
    "mcp": "mcp",
    "token": "access",
}
"""Where each command is, under its own name. In the order of the help."""


class Program(TyperGroup):
    """With `--json`, usage errors are printed as JSON too."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """For an unknown name all are loaded: one that is like it is suggested."""
        for name in (cmd_name,) if cmd_name in MODULES else MODULES:
            if name not in self.commands:
                self.add_command(loaded(name))
        return self.commands.get(cmd_name)

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
            from session_server.cli.output import print_error  # noqa: PLC0415

            print_error(UsageError(error.format_message()), as_json=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            sys.exit(ExitCode.FAILED)
        sys.exit(code if isinstance(code, int) else ExitCode.OK)


def loaded(name: str) -> Any:
    command = getattr(import_module(f"session_server.cli.commands.{MODULES[name]}"), name)
    program = typer.Typer(rich_markup_mode="markdown")
    if isinstance(command, typer.Typer):
        program.add_typer(command, name=name)
    elif name == "serve":
        program.command(name)(command)
    else:
        from session_server.cli.http_client import reaching  # noqa: PLC0415

        program.command(name)(reaching(command))
    return typer.main.get_group(program).commands[name]


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


def main() -> None:
    app(prog_name=PROGRAM)
