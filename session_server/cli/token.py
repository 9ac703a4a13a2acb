"""`token`: who may come in, and as what."""

from typing import Annotated

import msgspec
import typer

from session_server.cli.durations import lasting
from session_server.cli.naming import all_sessions, check_name, checked_id, found
from session_server.cli.output import err, out, print_json
from session_server.cli.reach import JSON, Reach, reaching
from session_server.cli.share import show_link, tell_revoked, token_table
from session_server.cli.states import when
from session_server.schemas.codec import encode
from session_server.schemas.limits import TOKEN_LIFETIME_LIMIT_SECONDS
from session_server.schemas.principals import Role
from session_server.schemas.tokens import TokenGiven, TokenList, TokenWanted

app = typer.Typer(help="Create, list and revoke access tokens.", no_args_is_help=True)


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
        typer.Option(
            help="Expires after: 10m, 2d; valid until revoked if not given.",
            parser=lasting(TOKEN_LIFETIME_LIMIT_SECONDS),
            metavar="TIME",
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
        known = all_sessions(http) if session else ()
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
    err.print(f"Token for programs: {given.token}", markup=False, soft_wrap=True)
    expires = given.issued.expires_at
    until = "until revoked" if expires is None else f"until {when(expires)}"
    err.print(f"For {name}, as {role.value}, {until}. It is not shown again.", markup=False)
    err.print(f"Revoke it with: session-server token revoke {given.issued.id}", markup=False)


def list_tokens(reach: Reach) -> None:
    """List the valid tokens."""
    with reach.http() as http:
        tokens = msgspec.json.decode(http.get("/v1/tokens").content, type=TokenList).items
    if reach.as_json:
        print_json(tokens, pretty=True)
    else:
        out.print(token_table(tokens) if tokens else "There are no tokens.")


def revoke(
    reach: Reach,
    token_id: Annotated[str, typer.Argument(help="The id of the token, as listed.", metavar="ID")],
) -> None:
    """Revoke a token. Anyone using it is disconnected at once."""
    with reach.http() as http:
        http.delete(f"/v1/tokens/{checked_id(token_id)}")
    tell_revoked(reach, token_id)


app.command("create")(reaching(create))
app.command("list")(reaching(list_tokens))
app.command("revoke")(reaching(revoke))
