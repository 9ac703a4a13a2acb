"""Tokens over HTTP: an owner gives them, lists them and takes them back."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from session_server.host.errors import no_session
from session_server.host.host import Host
from session_server.identity.addresses import Reachable, reachable
from session_server.identity.identities import is_reserved
from session_server.identity.tokens import new_id
from session_server.reducers.words import visible_name
from session_server.schemas.principals import Principal
from session_server.schemas.tokens import (
    IssuedToken,
    TokenGiven,
    TokenKind,
    TokenList,
    TokenWanted,
)
from session_server.web.bodies import JsonBody, json_response
from session_server.web.caller import Owner, TheHost, TheIdentities
from session_server.web.openapi import described
from session_server.web.problems import ProblemError
from session_server.web.retries import REPLAYED, TheKey

router = APIRouter(prefix="/v1/tokens", tags=["access"])

NOT_KEPT = {"Cache-Control": "no-store"}
"""For answers that hold the text of a token."""

TokenId = Annotated[str, Path(description="The id of a token, as in the list.")]


@router.post("", **described(201, TokenGiven, 404, body=TokenWanted))
async def issue_token(
    request: Request,
    host: TheHost,
    who: Owner,
    key: TheKey,
    identities: TheIdentities,
    wanted: Annotated[TokenWanted, Depends(JsonBody(TokenWanted))],
) -> Response:
    """Give somebody access. The token's text is in this answer and nowhere else."""
    _check(host, wanted)
    tokens = identities.tokens
    ids = (token.id for token in tokens.listed(TokenKind.TOKEN))
    if key is not None and key.found(wanted, ids):
        known = tokens.find(key.name(wanted))
        assert known is not None
        given = _given(request, tokens.text_of(known), known)
        return json_response(given, 201, NOT_KEPT | REPLAYED)
    issued = _granted(wanted, who, new_id() if key is None else key.name(wanted), host.now())
    text = await tokens.issue(issued)
    return json_response(_given(request, text, issued), 201, NOT_KEPT)


@router.get("", **described(200, TokenList))
async def list_tokens(_: Owner, identities: TheIdentities) -> Response:
    """Every token that may still be used, without its text. Share links have lists of their own."""
    return json_response(TokenList(items=tuple(identities.tokens.listed(TokenKind.TOKEN))))


@router.delete("/{token}", **described(204, None, 404))
async def revoke_token(token: TokenId, who: Owner, identities: TheIdentities) -> Response:
    """Take a token back. Whoever is connected with it is let go at once."""
    found = identities.tokens.find(token)
    if found is None or found.kind is not TokenKind.TOKEN:
        raise ProblemError(404, "noToken", "There is no such token; it may be revoked already.")
    await identities.tokens.revoke(token, who.author)
    return Response(status_code=204)


def where_reached(request: Request) -> Reachable:
    settings = request.app.state.settings
    server: tuple[str, int | None] | None = request.scope.get("server")
    port = settings.port if server is None or server[1] is None else server[1]
    where = reachable(settings, request.headers.get("host", ""), port, request.url.scheme)
    if settings.public_url is not None:
        return where
    return where._replace(url=where.url + request.scope.get("root_path", ""))  # where it is mounted


def _given(request: Request, text: str, issued: IssuedToken) -> TokenGiven:
    where = where_reached(request)
    url = f"{where.url}/?tkn={text}"
    return TokenGiven(token=text, issued=issued, url=url, warning=where.warning)


def shown_name(name: str) -> str:
    """A name as others see it; one that nobody can see is refused."""
    shown = visible_name(name)
    if not shown:
        words = "A name needs at least one character that can be seen."
        raise ProblemError(422, "invisibleName", words, path="$.name")
    return shown


def _check(host: Host, wanted: TokenWanted) -> None:
    shown_name(wanted.name)
    if wanted.id is not None and (is_reserved(wanted.id) or visible_name(wanted.id) != wanted.id):
        words = (
            "This id is one that the host gives itself, or has characters that are not seen; choose"
            " another, or leave it out."
        )
        raise ProblemError(422, "reservedId", words, path="$.id")
    for uri in wanted.sessions or ():
        if host.record(uri) is None:
            raise no_session(uri)


def _granted(wanted: TokenWanted, by: Principal, token_id: str, now: int) -> IssuedToken:
    return IssuedToken(
        id=token_id,
        kind=TokenKind.TOKEN,
        principal_id=wanted.id or f"token:{token_id}",
        role=wanted.role,
        policy=wanted.policy,
        name=shown_name(wanted.name),
        sessions=wanted.sessions,
        created_at=now,
        created_by=by.author,
        expires_at=None if wanted.expires_in is None else now + wanted.expires_in * 1000,
    )
