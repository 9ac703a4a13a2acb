"""Tokens and share links over HTTP: issue, list, revoke."""

import asyncio
from collections.abc import Iterable
from typing import Annotated

import segno
from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from session_server.host.host import Host
from session_server.http.bodies import JsonBody, SessionUri, json_response
from session_server.http.dependencies import Owner, TheHost, TheIdentities, services_of
from session_server.http.idempotency import REPLAYED, IdempotencyKey, TheIdempotencyKey
from session_server.http.openapi import described
from session_server.http.problems import ProblemError
from session_server.identity.credentials import is_reserved
from session_server.identity.exposure import Reachable, reachable
from session_server.identity.tokens import Tokens, new_id
from session_server.reducers.texts import session_name, visible_name
from session_server.schemas.errors import RefusalCode, no_session
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
from session_server.schemas.principals import Role
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
    key: TheIdempotencyKey,
    identities: TheIdentities,
    wanted: Annotated[TokenWanted, Depends(JsonBody(TokenWanted))],
) -> Response:
    """Create a token. Its text is in this answer and nowhere else."""
    name = shown_name(wanted.name)
    if wanted.id is not None and (is_reserved(wanted.id) or visible_name(wanted.id) != wanted.id):
        message = (
            "This id is reserved for the host, or has invisible characters; choose another or none."
        )
        raise ProblemError(422, "reservedId", message, path="$.id")
    for uri in wanted.sessions or ():
        _check_session(host, uri)
    tokens, headers = identities.tokens, NOT_KEPT | REPLAYED
    issued = _issued_before(key, wanted, tokens.listed(TokenKind.TOKEN))
    if issued is None:
        token_id, now, headers = _new_id(key, wanted), host.now(), NOT_KEPT
        issued = IssuedToken(
            id=token_id,
            kind=TokenKind.TOKEN,
            principal_id=wanted.id or f"token:{token_id}",
            role=wanted.role,
            policy=wanted.policy,
            name=name,
            sessions=wanted.sessions,
            created_at=now,
            created_by=who.author,
            expires_at=None if wanted.expires_in is None else now + wanted.expires_in * 1000,
        )
        await tokens.issue(issued)
    text, where = tokens.text_of(issued), where_reached(request)
    url = f"{where.url}/?tkn={text}"
    given = TokenGiven(token=text, issued=issued, url=url, warning=where.warning)
    return json_response(given, 201, headers)


def _issued_before(
    key: IdempotencyKey | None, wanted: TokenWanted | ShareWanted, known: Iterable[IssuedToken]
) -> IssuedToken | None:
    by_id = {token.id: token for token in known}
    return by_id[key.name(wanted)] if key is not None and key.found(wanted, by_id) else None


def _new_id(key: IdempotencyKey | None, wanted: TokenWanted | ShareWanted) -> str:
    return new_id() if key is None else key.name(wanted)


@router.get("", **described(200, TokenList))
async def list_tokens(_: Owner, identities: TheIdentities) -> Response:
    """Every valid token, without its text. Share links are listed per session."""
    return json_response(TokenList(items=tuple(identities.tokens.listed(TokenKind.TOKEN))))


@router.delete("/{token}", **described(204, None, 404))
async def revoke_token(token: TokenId, who: Owner, identities: TheIdentities) -> Response:
    """Revoke a token. Anyone using it is disconnected at once."""
    found = identities.tokens.find(token)
    if found is None or found.kind is not TokenKind.TOKEN:
        raise ProblemError(404, "noToken", "There is no such token; it may be revoked already.")
    await identities.tokens.revoke(token, who.author)
    return Response(status_code=204)


def where_reached(request: Request) -> Reachable:
    settings = services_of(request).settings
    server: tuple[str, int | None] | None = request.scope.get("server")
    port = settings.port if server is None or server[1] is None else server[1]
    where = reachable(settings, request.headers.get("host", ""), port, request.url.scheme)
    if settings.public_url is not None:
        return where
    return where._replace(url=where.url + request.scope.get("root_path", ""))  # where it is mounted


def shown_name(name: str) -> str:
    """A name as others see it; one without visible characters is refused."""
    shown = visible_name(name)
    if not shown:
        message = "A name needs at least one visible character."
        raise ProblemError(422, "invisibleName", message, path="$.name")
    return shown


def _check_session(host: Host, uri: Uri) -> None:
    if uri not in host.sessions:
        raise no_session(uri)


share_router = APIRouter(prefix="/v1/sessions/{id}/shares", tags=["access"])

ShareId = Annotated[str, Path(description="The id of a share link, as in the list.")]


@share_router.post("", **described(201, ShareGiven, 404, body=ShareWanted))
async def share(
    request: Request,
    uri: SessionUri,
    host: TheHost,
    who: Owner,
    key: TheIdempotencyKey,
    identities: TheIdentities,
    wanted: Annotated[ShareWanted, Depends(JsonBody(ShareWanted))],
) -> Response:
    """Create a link that opens this session, in a role, until it expires or is revoked."""
    _check_session(host, uri)
    if wanted.role is Role.AGENT:
        message = "A link is for people; give an agent a token of its own."
        raise ProblemError(422, "roleNotShared", message, path="$.role")
    tokens, headers = identities.tokens, NOT_KEPT | REPLAYED
    known = _shares_of(tokens, uri)
    issued = _issued_before(key, wanted, known)
    if issued is None:
        if len(known) >= SHARES_PER_SESSION:
            message = f"This session has {SHARES_PER_SESSION} links already; revoke some first."
            raise ProblemError(422, RefusalCode.LIMIT, message)
        token_id, now, headers = _new_id(key, wanted), host.now(), NOT_KEPT
        issued = IssuedToken(
            id=token_id,
            kind=TokenKind.SHARE,
            principal_id=f"share:{token_id}",
            role=wanted.role,
            name=None if wanted.name is None else shown_name(wanted.name),
            sessions=(uri,),
            created_at=now,
            created_by=who.author,
            expires_at=now + wanted.expires_in * 1000,
        )
        await tokens.issue(issued)
    text, where = tokens.text_of(issued), where_reached(request)
    url = f"{where.url}/?tkn={text}#/s/{session_name(uri)}"
    assert issued.expires_at is not None
    given = ShareGiven(
        id=issued.id,
        url=url,
        token=text,
        role=issued.role,
        expires_at=issued.expires_at,
        qr=await asyncio.to_thread(qr_code, url),
        warning=where.warning,
    )
    return json_response(given, 201, headers)


def _shares_of(tokens: Tokens, uri: Uri) -> tuple[IssuedToken, ...]:
    return tuple(token for token in tokens.listed(TokenKind.SHARE) if token.sessions == (uri,))


@share_router.get("", **described(200, TokenList, 404))
async def list_shares(
    uri: SessionUri, host: TheHost, _: Owner, identities: TheIdentities
) -> Response:
    """The valid links of this session, without their tokens."""
    _check_session(host, uri)
    return json_response(TokenList(items=_shares_of(identities.tokens, uri)))


@share_router.delete("/{share}", **described(204, None, 404))
async def revoke_share(
    share: ShareId, uri: SessionUri, who: Owner, identities: TheIdentities
) -> Response:
    """Revoke a link. Anyone using it is disconnected at once."""
    found = identities.tokens.find(share)
    if found is None or found.kind is not TokenKind.SHARE or found.sessions != (uri,):
        raise ProblemError(404, "noShare", "There is no such link; it may be revoked already.")
    await identities.tokens.revoke(share, who.author)
    return Response(status_code=204)


def qr_code(url: str) -> str:
    """As slow as thousands of actions, so never on the event loop."""
    return segno.make_qr(url).svg_inline(omitsize=True, light="#fff")
