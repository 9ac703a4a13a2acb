"""Tokens and share links over HTTP: issue, list, revoke."""

import asyncio
from typing import Annotated

import segno
from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from session_server.host.errors import no_session
from session_server.host.host import Host
from session_server.http.access import Owner, TheHost, TheIdentities
from session_server.http.bodies import REPLAYED, JsonBody, SessionUri, TheKey, json_response
from session_server.http.openapi import described
from session_server.http.problems import ProblemError
from session_server.identity.binding import Reachable, reachable
from session_server.identity.credentials import is_reserved
from session_server.identity.tokens import new_id
from session_server.reducers.texts import session_name, visible_name
from session_server.schemas.errors import RefusalCode
from session_server.schemas.http import (
    IssuedToken,
    ShareGiven,
    ShareWanted,
    TokenGiven,
    TokenKind,
    TokenList,
    TokenWanted,
)
from session_server.schemas.limits import SHARES_PER_SESSION
from session_server.schemas.principals import Principal, Role
from session_server.schemas.wire import Uri

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


share_router = APIRouter(prefix="/v1/sessions/{id}/shares", tags=["access"])

ShareId = Annotated[str, Path(description="The id of a share link, as in the list.")]


@share_router.post("", **described(201, ShareGiven, 404, body=ShareWanted))
async def share(
    request: Request,
    uri: SessionUri,
    host: TheHost,
    who: Owner,
    key: TheKey,
    identities: TheIdentities,
    wanted: Annotated[ShareWanted, Depends(JsonBody(ShareWanted))],
) -> Response:
    """Make a link that opens this session, in a role, until it expires or is revoked."""
    _check_share(host, uri, wanted)
    tokens = identities.tokens
    known = [token for token in tokens.listed(TokenKind.SHARE) if token.sessions == (uri,)]
    replayed = key is not None and key.found(wanted, (token.id for token in known))
    if key is not None and replayed:
        issued = next(token for token in known if token.id == key.name(wanted))
        text = tokens.text_of(issued)
    else:
        _check_number(len(known))
        token_id = new_id() if key is None else key.name(wanted)
        issued = _share_granted(wanted, who, uri, token_id, host.now())
        text = await tokens.issue(issued)
    headers = NOT_KEPT | (REPLAYED if replayed else {})
    return json_response(await _share_given(issued, text, where_reached(request)), 201, headers)


@share_router.get("", **described(200, TokenList, 404))
async def list_shares(
    uri: SessionUri, host: TheHost, _: Owner, identities: TheIdentities
) -> Response:
    """The links of this session that may still be used, without their tokens."""
    if host.record(uri) is None:
        raise no_session(uri)
    shares = identities.tokens.listed(TokenKind.SHARE)
    return json_response(TokenList(items=tuple(s for s in shares if s.sessions == (uri,))))


@share_router.delete("/{share}", **described(204, None, 404))
async def revoke_share(
    share: ShareId, uri: SessionUri, who: Owner, identities: TheIdentities
) -> Response:
    """Take a link back. Whoever came by it is let go at once."""
    found = identities.tokens.find(share)
    if found is None or found.kind is not TokenKind.SHARE or found.sessions != (uri,):
        raise ProblemError(404, "noShare", "There is no such link; it may be revoked already.")
    await identities.tokens.revoke(share, who.author)
    return Response(status_code=204)


def _check_share(host: Host, uri: Uri, wanted: ShareWanted) -> None:
    if host.record(uri) is None:
        raise no_session(uri)
    if wanted.role is Role.AGENT:
        words = "A link is for people; give an agent a token of its own."
        raise ProblemError(422, "roleNotShared", words, path="$.role")


def _check_number(known: int) -> None:
    if known >= SHARES_PER_SESSION:
        words = f"This session has {SHARES_PER_SESSION} links already; revoke some first."
        raise ProblemError(422, RefusalCode.LIMIT, words)


def _share_granted(
    wanted: ShareWanted, by: Principal, uri: Uri, token_id: str, now: int
) -> IssuedToken:
    return IssuedToken(
        id=token_id,
        kind=TokenKind.SHARE,
        principal_id=f"share:{token_id}",
        role=wanted.role,
        name=None if wanted.name is None else shown_name(wanted.name),
        sessions=(uri,),
        created_at=now,
        created_by=by.author,
        expires_at=now + wanted.expires_in * 1000,
    )


async def _share_given(issued: IssuedToken, text: str, where: Reachable) -> ShareGiven:
    assert issued.sessions is not None
    assert issued.expires_at is not None
    url = f"{where.url}/?tkn={text}#/s/{session_name(issued.sessions[0])}"
    return ShareGiven(
        id=issued.id,
        url=url,
        token=text,
        role=issued.role,
        expires_at=issued.expires_at,
        qr=await asyncio.to_thread(picture, url),
        warning=where.warning,
    )


def picture(url: str) -> str:
    """Takes as long as thousands of actions do, so never on the event loop."""
    return segno.make_qr(url).svg_inline(omitsize=True, light="#fff")
