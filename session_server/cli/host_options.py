"""The options that say which host a command is for, and how it prints."""

from typing import Annotated

import typer

DEFAULT_URL = "http://127.0.0.1:8737"
PANEL = "Host"

URL_VARIABLE, TOKEN_VARIABLE = "SESSION_SERVER_URL", "SESSION_SERVER_TOKEN"

URL_HELP = f"Address of the host, or a link to its page; {DEFAULT_URL} if not given."
TOKEN_HELP = "Access token."  # noqa: S105

# Options of the program may come from the environment; options of a command take precedence.
SharedUrl = Annotated[
    str | None,
    typer.Option("--url", envvar=URL_VARIABLE, help=URL_HELP, rich_help_panel=PANEL),
]
SharedToken = Annotated[
    str | None,
    typer.Option("--token", envvar=TOKEN_VARIABLE, help=TOKEN_HELP, rich_help_panel=PANEL),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", help=f"{URL_HELP} Or {URL_VARIABLE}.", rich_help_panel=PANEL),
]
TokenOption = Annotated[
    str | None,
    typer.Option("--token", help=f"{TOKEN_HELP} Or {TOKEN_VARIABLE}.", rich_help_panel=PANEL),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=PANEL)]
