"""Share links over HTTP: one session, one role, for a while; an address and a picture of it."""

import asyncio
from typing import Annotated

import segno
from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from session_server.host.errors import no_session
from session_server.host.host import Host
from session_server.identity.addresses import Reachable
from session_server.identity.tokens import new_id
from session_server.reducers.session_names import session_name
from session_server.schemas.limits import SHARES_PER_SESSION
from session_server.schemas.principals import Principal, Role
from session_server.schemas.refusals import RefusalCode
from session_server.schemas.tokens import (
    IssuedToken,
    ShareGiven,
    ShareWanted,
    TokenKind,
    TokenList,
)
from session_server.schemas.wire import Uri
from session_server.web.bodies import JsonBody, json_response
from session_server.web.caller import Owner, TheHost, TheIdentities
from session_server.web.openapi import described
from session_server.web.paths import SessionUri
from session_server.web.problems import ProblemError
from session_server.web.retries import REPLAYED, TheKey
from session_server.web.tokens import NOT_KEPT, shown_name, where_reached

router = APIRouter(prefix="/v1/sessions/{id}/shares", tags=["access"])

ShareId = Annotated[str, Path(description="The id of a share link, as in the list.")]


@router.post("", **described(201, ShareGiven, 404, body=ShareWanted))
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
    _check(host, uri, wanted)
    tokens = identities.tokens
    known = [token for token in tokens.listed(TokenKind.SHARE) if token.sessions == (uri,)]
    replayed = key is not None and key.found(wanted, (token.id for token in known))
    if key is not None and replayed:
        issued = next(token for token in known if token.id == key.name(wanted))
        text = tokens.text_of(issued)
    else:
        _check_number(len(known))
        token_id = new_id() if key is None else key.name(wanted)
        issued = _granted(wanted, who, uri, token_id, host.now())
        text = await tokens.issue(issued)
    headers = NOT_KEPT | (REPLAYED if replayed else {})
    return json_response(await _given(issued, text, where_reached(request)), 201, headers)


@router.get("", **described(200, TokenList, 404))
async def list_shares(
    uri: SessionUri, host: TheHost, _: Owner, identities: TheIdentities
) -> Response:
    """The links of this session that may still be used, without their tokens."""
    if host.record(uri) is None:
        raise no_session(uri)
    shares = identities.tokens.listed(TokenKind.SHARE)
    return json_response(TokenList(items=tuple(s for s in shares if s.sessions == (uri,))))


@router.delete("/{share}", **described(204, None, 404))
async def revoke_share(
    share: ShareId, uri: SessionUri, who: Owner, identities: TheIdentities
) -> Response:
    """Take a link back. Whoever came by it is let go at once."""
    found = identities.tokens.find(share)
    if found is None or found.kind is not TokenKind.SHARE or found.sessions != (uri,):
        raise ProblemError(404, "noShare", "There is no such link; it may be revoked already.")
    await identities.tokens.revoke(share, who.author)
    return Response(status_code=204)


def _check(host: Host, uri: Uri, wanted: ShareWanted) -> None:
    if host.record(uri) is None:
        raise no_session(uri)
    if wanted.role is Role.AGENT:
        words = "A link is for people; give an agent a token of its own."
        raise ProblemError(422, "roleNotShared", words, path="$.role")


def _check_number(known: int) -> None:
    if known >= SHARES_PER_SESSION:
        words = f"This session has {SHARES_PER_SESSION} links already; revoke some first."
        raise ProblemError(422, RefusalCode.LIMIT, words)


def _granted(wanted: ShareWanted, by: Principal, uri: Uri, token_id: str, now: int) -> IssuedToken:
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


async def _given(issued: IssuedToken, text: str, where: Reachable) -> ShareGiven:
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
