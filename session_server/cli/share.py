"""`share`: a link to one session, with its picture for a phone."""

import io
from typing import Annotated

import msgspec
import segno
import typer
from rich import box
from rich.table import Table

from session_server.cli.durations import lasting
from session_server.cli.exits import ExitCode
from session_server.cli.naming import SessionArgument, all_sessions, check_name, checked_id, found
from session_server.cli.output import err, out, print_json
from session_server.cli.reach import JSON, Reach, session_path
from session_server.cli.states import when
from session_server.schemas.codec import encode
from session_server.schemas.limits import SHARE_LIFETIME_LIMIT_SECONDS, SHARE_LIFETIME_SECONDS
from session_server.schemas.principals import Role
from session_server.schemas.tokens import IssuedToken, ShareGiven, ShareWanted, TokenList


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
        float,
        typer.Option(
            help="Expires after: 90s, 10m, 2d.",
            parser=lasting(SHARE_LIFETIME_LIMIT_SECONDS),
            metavar="TIME",
        ),
    ] = SHARE_LIFETIME_SECONDS,
    qr: Annotated[bool, typer.Option("--qr/--no-qr", help="Show the link as a QR code.")] = True,
    listing: Annotated[bool, typer.Option("--list", help="List the session's links.")] = False,
    revoke: Annotated[str | None, typer.Option(help="Revoke a link, by its id.")] = None,
) -> ExitCode | None:
    """Create a link that opens one session, in one role, until it expires."""
    check_name(name)
    with reach.http() as http:
        path = f"{session_path(found(all_sessions(http), session).resource)}/shares"
        if listing:
            links = msgspec.json.decode(http.get(path).content, type=TokenList).items
            _list(reach, links)
            return None
        if revoke is not None:
            http.delete(f"{path}/{checked_id(revoke)}")
            tell_revoked(reach, revoke)
            return None
        wanted = ShareWanted(role=role, name=name, expires_in=max(1, round(expires_in)))
        response = http.post(path, content=encode(wanted), headers=JSON)
    given = msgspec.json.decode(response.content, type=ShareGiven)
    if reach.as_json:
        print_json(given, pretty=True)
        return None
    show_link(given.url, given.warning, qr=qr)
    err.print(f"For {role.value}s, until {when(given.expires_at)}.", style="dim", markup=False)
    return None


def _list(reach: Reach, links: tuple[IssuedToken, ...]) -> None:
    if reach.as_json:
        print_json(links, pretty=True)
    else:
        out.print(token_table(links) if links else "There are no links to this session.")


def tell_revoked(reach: Reach, token_id: str) -> None:
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
        _picture(url)
    out.print(url, markup=False, soft_wrap=True)
    if warning is not None:
        err.print(warning, style="yellow", markup=False)


def _picture(url: str) -> None:
    code = segno.make_qr(url, error="l")
    width, _ = code.symbol_size(scale=1, border=2)
    if not out.is_terminal:
        return
    if width > out.width:
        words = f"The terminal is too narrow for a QR code: {out.width} columns of {width}."
        err.print(words, style="dim")
        return
    text = io.StringIO()
    code.terminal(out=text, border=2, compact=True)
    out.file.write(text.getvalue() + "\n")
