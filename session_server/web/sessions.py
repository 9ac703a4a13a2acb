"""Sessions over HTTP: make one, list them."""

import asyncio
import uuid

import msgspec
from fastapi import APIRouter, Request, Response

from session_server.host.errors import CommandError
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.commands import CreateSessionParams, ListSessionsResult
from session_server.schemas.errors import DecodingError, ErrorCode
from session_server.schemas.wire import Uri, Wire
from session_server.web.caller import Caller, TheHost

router = APIRouter(prefix="/v1")

STATUS = {
    ErrorCode.SESSION_EXISTS: 409,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.PROVIDER_NOT_FOUND: 422,
    ErrorCode.INVALID_PARAMS: 422,
}


class NewSession(Wire, frozen=True, kw_only=True):
    """All of it may be left out: then the host picks the URI, and the session only asks."""

    resource: Uri | None = None
    provider: str = "people"
    title: str | None = None


decode_new_session: Decoder[NewSession] = Decoder(NewSession)


@router.get("/sessions")
async def list_sessions(host: TheHost, who: Caller) -> Response:
    return _json(ListSessionsResult(items=tuple(host.summaries(who))))


@router.post("/sessions", status_code=201)
async def create_session(request: Request, host: TheHost, who: Caller) -> Response:
    try:
        wanted = decode_new_session(await request.body() or b"{}")
    except DecodingError as error:
        return _problem(400, str(error))
    uri = wanted.resource or f"ahp-session:/{uuid.uuid4()}"
    made: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    try:
        host.create_session(
            who,
            CreateSessionParams(channel=uri, provider=wanted.provider),
            title=wanted.title,
            done=lambda: made.set_result(None),
            failed=made.set_result,
        )
    except CommandError as error:
        return _problem(STATUS.get(ErrorCode(error.error.code), 400), error.error.message)
    words = await made
    record = host.record(uri)
    if words is not None or record is None:
        return _problem(503, words or "The session is gone already.")
    return _json(record.public.summary, status=201)


def _json(value: msgspec.Struct, status: int = 200) -> Response:
    return Response(encode(value), status, media_type="application/json")


def _problem(status: int, detail: str) -> Response:
    """RFC 9457."""
    body = msgspec.json.encode({"status": status, "title": detail})
    return Response(body, status, media_type="application/problem+json")
