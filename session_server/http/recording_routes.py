"""Cassettes over HTTP: a session as a file, and a file as a recording."""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from session_server.host.recordings import CassetteError, exported, played, replayed
from session_server.http.bodies import SessionUri, chunks_of, json_response, media_type
from session_server.http.dependencies import Caller, Owner, TheHost
from session_server.http.openapi import described
from session_server.http.problems import ProblemError
from session_server.http.request_routes import visible_record
from session_server.reducers.texts import session_name
from session_server.schemas.ahp.session import SessionSummary
from session_server.schemas.errors import NotAllowedError
from session_server.schemas.limits import CASSETTE_BYTES
from session_server.schemas.principals import Role

router = APIRouter(prefix="/v1", tags=["cassettes"])

JSON_LINES = "application/x-ndjson"
TEXT = {"type": "string"}
CHUNK_BYTES = 65_536

Live = Annotated[
    bool, Query(description="Play each line as it arrives, instead of all of it at the end.")
]


@router.get("/sessions/{id}/export", **described(200, TEXT, 404, 409, media_type=JSON_LINES))
async def export_session(uri: SessionUri, host: TheHost, who: Caller) -> Response:
    """The session as a cassette: every entry of its log, one per line, without secrets.

    Of a damaged session, what can be read up to the damage.
    """
    if uri not in host.unreadable or not who.reaches(uri):
        await visible_record(host, who, uri)
    if who.role is not Role.OWNER:
        raise NotAllowedError("A cassette holds what only the log knows; it is the owner's.")
    lines = await exported(host, uri)
    file = f'attachment; filename="{session_name(uri)}.jsonl"'
    headers = {"Content-Disposition": file}
    return StreamingResponse(_chunks(lines), 200, headers, media_type=JSON_LINES)


async def _chunks(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Not line by line: each piece costs a turn of the loop."""
    piece = bytearray()
    for line in lines:
        piece += line
        if len(piece) >= CHUNK_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


BODY = {"requestBody": {"content": {JSON_LINES: {"schema": TEXT}}, "required": True}}


@router.post("/replay", **described(201, SessionSummary, 409, 413, 415), openapi_extra=BODY)
async def replay_session(
    request: Request, host: TheHost, who: Owner, *, live: Live = False
) -> Response:
    """Play a cassette back into a session that does not exist yet. It can then be watched."""
    if media_type(request) != JSON_LINES:
        message = f"Send a cassette, with the header Content-Type: {JSON_LINES}."
        raise ProblemError(415, "unsupportedMediaType", message)
    play = played if live else replayed
    try:
        uri = await play(host, _lines(request))
    except CassetteError as error:
        raise ProblemError(422, "badCassette", str(error)) from None
    summary = (await visible_record(host, who, uri)).public.summary
    return json_response(summary, 201, {"Location": f"/v1/sessions/{session_name(uri)}"})


async def _lines(request: Request) -> AsyncIterator[bytes]:
    begun: list[bytes] = []  # the pieces of an incomplete line, joined only once
    async for chunk in chunks_of(request, CASSETTE_BYTES):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = b"".join((*begun, end))
            begun.clear()
            if line.strip():
                yield line
        begun.append(rest)
    if last := b"".join(begun).strip():
        yield last
