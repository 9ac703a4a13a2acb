"""`share` and `token`: links to one session, and who may come in."""

import io
from typing import Annotated

import httpx2
import msgspec
import segno
import typer
from rich import box
from rich.table import Table

from session_server.cli.commands.sessions import when
from session_server.cli.http_client import JSON, Reach, reaching, session_path
from session_server.cli.output import err, out, print_json
from session_server.cli.session_names import (
    SessionArgument,
    check_name,
    checked_id,
    found,
    session_list,
)
from session_server.cli.values import time_option
from session_server.schemas.codec import encode
from session_server.schemas.http import (
    IssuedToken,
    ShareGiven,
    ShareWanted,
    TokenGiven,
    TokenList,
    TokenWanted,
)
from session_server.schemas.limits import (
    SHARE_LIFETIME_LIMIT_SECONDS,
    SHARE_LIFETIME_SECONDS,
    TOKEN_LIFETIME_LIMIT_SECONDS,
)
from session_server.schemas.principals import Role


def share(
    reach: Reach,
    session: SessionArgument,
    role: Annotated[
        Role, typer.Option(help="Role to grant: answerer, observer or owner.")
    ] = Role.ANSWERER,
    name: Annotated[
        str | None, typer.Option(help="Name of the person it is for, shown next to their answers.")
    ] = None,
    expires_in: Annotated[
        float, time_option("Expires after: 90s, 10m, 2d.", SHARE_LIFETIME_LIMIT_SECONDS)
    ] = SHARE_LIFETIME_SECONDS,
    qr: Annotated[bool, typer.Option("--qr/--no-qr", help="Show the link as a QR code.")] = True,
    listing: Annotated[bool, typer.Option("--list", help="List the session's links.")] = False,
    revoke: Annotated[str | None, typer.Option(help="Revoke a link, by its id.")] = None,
) -> None:
    """Create a link that opens one session, in one role, until it expires."""
    check_name(name)
    with reach.http() as http:
        path = f"{session_path(found(session_list(http).items, session).resource)}/shares"
        if listing:
            _list(reach, http, path, "There are no links to this session.")
            return
        if revoke is not None:
            _revoke(reach, http, path, revoke)
            return
        wanted = ShareWanted(role=role, name=name, expires_in=max(1, round(expires_in)))
        response = http.post(path, content=encode(wanted), headers=JSON)
    given = msgspec.json.decode(response.content, type=ShareGiven)
    if reach.as_json:
        print_json(given, pretty=True)
        return
    show_link(given.url, given.warning, qr=qr)
    err.print(f"For {role.value}s, until {when(given.expires_at)}.", style="dim")


def _list(reach: Reach, http: httpx2.Client, path: str, if_none: str) -> None:
    tokens = msgspec.json.decode(http.get(path).content, type=TokenList).items
    if reach.as_json:
        print_json(tokens, pretty=True)
    else:
        out.print(token_table(tokens) if tokens else if_none)


def _revoke(reach: Reach, http: httpx2.Client, path: str, token_id: str) -> None:
    http.delete(f"{path}/{checked_id(token_id)}")
    if reach.as_json:
        print_json({"id": token_id, "state": "revoked"}, pretty=True)
    else:
        err.print("Revoked. Anyone using it has been disconnected.")


def token_table(tokens: tuple[IssuedToken, ...]) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("Id", "Name", "Role", "Sessions", "Until"):
        grid.add_column(column, overflow="fold")
    for token in tokens:
        until = "no end" if token.expires_at is None else when(token.expires_at)
        who = f"{token.role} (policy)" if token.policy else str(token.role)
        grid.add_row(token.id, token.name or "", who, ", ".join(token.sessions or ("all",)), until)
    return grid


def show_link(url: str, warning: str | None, *, qr: bool) -> None:
    """A QR code is for other devices: a link that works only here has none."""
    if qr and warning is None:
        _print_qr_code(url)
    out.print(url, soft_wrap=True)
    if warning is not None:
        err.print(warning, style="yellow")


def _print_qr_code(url: str) -> None:
    code = segno.make_qr(url, error="l")
    width, _ = code.symbol_size(scale=1, border=2)
    if not out.is_terminal:
        return
    if width > out.width:
        message = f"The terminal is too narrow for a QR code: {out.width} columns of {width}."
        err.print(message, style="dim")
        return
    text = io.StringIO()
    code.terminal(out=text, border=2, compact=True)
    out.file.write(text.getvalue() + "\n")


token = typer.Typer(help="Create, list and revoke access tokens.", no_args_is_help=True)


def create(
    reach: Reach,
    name: Annotated[str, typer.Argument(help="Who it is for; shown next to what they do.")],
    role: Annotated[
        Role, typer.Option(help="Role to grant: owner, agent, answerer or observer.")
    ] = Role.ANSWERER,
    session: Annotated[
        list[str] | None,
        typer.Option(help="Only for this session. Can be given several times."),
    ] = None,
    expires_in: Annotated[
        float | None,
        time_option(
            "Expires after: 10m, 2d; valid until revoked if not given.",
            TOKEN_LIFETIME_LIMIT_SECONDS,
        ),
    ] = None,
    policy: Annotated[
        bool,
        typer.Option("--policy", help="For a program: what it answers is never a person's."),
    ] = False,
    qr: Annotated[bool, typer.Option("--qr/--no-qr", help="Show the link as a QR code.")] = True,
) -> None:
    """Create a token for a person or a program, and a link that opens the page with it.

    Both are shown only once. The link goes to standard output; `--json` prints both.
    """
    check_name(name)
    with reach.http() as http:
        known = session_list(http).items if session else ()
        wanted = TokenWanted(
            name=name,
            role=role,
            policy=policy,
            sessions=tuple(found(known, word).resource for word in session or ()) or None,
            expires_in=None if expires_in is None else max(1, round(expires_in)),
        )
        response = http.post("/v1/tokens", content=encode(wanted), headers=JSON)
    given = msgspec.json.decode(response.content, type=TokenGiven)
    if reach.as_json:
        print_json(given, pretty=True)
        return
    show_link(given.url, given.warning, qr=qr)
    err.print(f"Token for programs: {given.token}", soft_wrap=True)
    expires = given.issued.expires_at
    until = "until revoked" if expires is None else f"until {when(expires)}"
    err.print(f"For {name}, as {role.value}, {until}. It is not shown again.")
    err.print(f"Revoke it with: session-server token revoke {given.issued.id}")


def list_tokens(reach: Reach) -> None:
    """List the valid tokens."""
    with reach.http() as http:
        _list(reach, http, "/v1/tokens", "There are no tokens.")


def revoke(
    reach: Reach,
    token_id: Annotated[str, typer.Argument(help="The id of the token, as listed.", metavar="ID")],
) -> None:
    """Revoke a token. Anyone using it is disconnected at once."""
    with reach.http() as http:
        _revoke(reach, http, "/v1/tokens", token_id)


token.command("create")(reaching(create))
token.command("list")(reaching(list_tokens))
token.command("revoke")(reaching(revoke))
