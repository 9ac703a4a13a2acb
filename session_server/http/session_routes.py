"""Sessions over HTTP: create, list, read and dispose of them; start and cancel turns; export
recordings, and play them back.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from session_server.host.async_api import Completion, perform, write
from session_server.host.host import Host
from session_server.host.recordings import CassetteError, exported, played, replayed
from session_server.http.bodies import JsonBody, SessionUri, chunks_of, json_response, media_type
from session_server.http.dependencies import Caller, Owner, TheHost
from session_server.http.idempotency import REPLAYED, IdempotencyKey, TheIdempotencyKey, new_name
from session_server.http.openapi import described
from session_server.http.problems import RETRY_AFTER, ProblemError
from session_server.http.request_routes import visible_channel, visible_record
from session_server.reducers.batches import Batch, judged_batch
from session_server.reducers.texts import session_name
from session_server.schemas.ahp.actions import TurnCancelled, TurnStarted
from session_server.schemas.ahp.commands import SESSION_PREFIX, CreateSessionParams
from session_server.schemas.ahp.session import SessionState, SessionSummary
from session_server.schemas.ahp.turn_messages import USER, Message, MessageOrigin
from session_server.schemas.errors import NotAllowedError, Refusal, RefusalCode, RefusedError
from session_server.schemas.http import (
    NewSession,
    NewTurn,
    SessionList,
    StartedTurn,
    UnreadableSession,
)
from session_server.schemas.limits import CASSETTE_BYTES
from session_server.schemas.principals import Role, Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.get("", **described(200, SessionList))
async def list_sessions(host: TheHost, who: Caller) -> Response:
    """Every session that the caller may see, and those that are damaged and cannot be opened."""
    unreadable = tuple(
        UnreadableSession(session=uri, reason=reason)
        for uri, reason in host.unreadable.items()
        if who.reaches(uri)
    )
    return json_response(SessionList(items=tuple(host.summaries(who)), unreadable=unreadable))


EXAMPLE = NewSession(title="Deploy 1.4")


@router.post("", **described(201, SessionSummary, 404, 409, body=NewSession, example=EXAMPLE))
async def create_session(
    host: TheHost,
    who: Caller,
    key: TheIdempotencyKey,
    wanted: Annotated[NewSession, Depends(JsonBody(NewSession))],
) -> Response:
    """Make a session: one that only asks (`people`), or one with an agent."""
    uri = None if key is None else _made_before(host, key, wanted)
    is_replayed = uri is not None
    if uri is None:
        name = new_name(key, wanted)
        uri = wanted.resource or f"{SESSION_PREFIX}{name}"
        params = CreateSessionParams(
            channel=uri,
            provider=wanted.provider,
            model=wanted.model,
            agent=wanted.agent,
            working_directory=wanted.working_directory,
            fork=wanted.fork,
        )
        if wanted.fork is not None:
            await host.loaded.loaded(wanted.fork.session)
        made = Completion()
        host.lifecycle.create(
            who,
            params,
            title=wanted.title,
            opened_with=None if key is None else name,
            done=made.succeed,
            failed=made.fail,
        )
        await made.future
    summary = (await visible_record(host, who, uri)).public.summary
    where = {"Location": f"/v1/sessions/{session_name(uri)}"}
    return json_response(summary, 201, where | (REPLAYED if is_replayed else {}))


def _made_before(host: Host, key: IdempotencyKey, wanted: NewSession) -> Uri | None:
    named: dict[str, Uri] = {}
    for uri, channel in host.sessions.items():
        record = channel.overview
        if record is not None and record.private.opened_with is not None:
            named[record.private.opened_with] = uri
    if key.found(wanted, named):
        return named[key.name(wanted)]
    if host.lifecycle.is_opening(wanted.resource or f"{SESSION_PREFIX}{key.name(wanted)}"):
        message = "The first request with this Idempotency-Key is still in progress; try again."
        raise ProblemError(409, "stillAtWork", message, RETRY_AFTER)
    return None


@router.get("/{id}", **described(200, SessionState, 404))
async def read_session(uri: SessionUri, host: TheHost, who: Caller) -> Response:
    """The session's public state, as every subscriber has it."""
    return json_response((await visible_channel(host, who, uri)).snapshot())


@router.delete("/{id}", **described(204, None, 404))
async def dispose_session(uri: SessionUri, host: TheHost, who: Caller) -> Response:
    """Delete the session and its history."""
    gone = Completion()
    host.lifecycle.dispose(who, uri, done=gone.succeed, failed=gone.fail)
    await gone.future
    return Response(status_code=204)


turn_router = APIRouter(prefix="/v1/sessions/{id}/turns", tags=["turns"])


TURN_EXAMPLE = NewTurn(text="Plan a trip")


@turn_router.post("", **described(201, StartedTurn, 404, 409, body=NewTurn, example=TURN_EXAMPLE))
async def start_turn(
    uri: SessionUri,
    host: TheHost,
    who: Caller,
    key: TheIdempotencyKey,
    wanted: Annotated[NewTurn, Depends(JsonBody(NewTurn))],
) -> Response:
    """Send a message to the session's agent; the answer is in the session's state and events."""
    turn_id = new_name(key, wanted)
    message = Message(text=wanted.text, origin=MessageOrigin(kind=USER))
    action = TurnStarted(turn_id=turn_id, message=message)

    def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
        if turn_id in _known_ids(record):
            return ()  # the same key at the same time
        return judged_batch(who, record, action, stamp)

    record = await visible_record(host, who, uri)
    is_replayed = key is not None and key.found(wanted, _known_ids(record))
    if not is_replayed:
        await write(host, uri, plan, by=who.author)
    started = StartedTurn(session=uri, turn_id=turn_id)
    return json_response(started, 201, REPLAYED if is_replayed else None)


def _known_ids(record: SessionRecord) -> set[str]:
    active = record.public.active_turn
    known = {turn.id for turn in record.public.turns}
    return known if active is None else known | {active.id}


@turn_router.delete("/active", **described(204, None, 404))
async def cancel_turn(uri: SessionUri, host: TheHost, who: Caller) -> Response:
    """Stop the turn in progress; the questions that were open in it are abandoned."""
    active = (await visible_record(host, who, uri)).public.active_turn
    if active is None:
        raise RefusedError(Refusal(code=RefusalCode.NO_TURN, message="No turn is in progress."))
    await perform(host, who, uri, TurnCancelled(turn_id=active.id))
    return Response(status_code=204)


recording_router = APIRouter(prefix="/v1", tags=["recordings"])

JSON_LINES = "application/x-ndjson"
TEXT = {"type": "string"}
CHUNK_BYTES = 65_536

Live = Annotated[
    bool, Query(description="Play each line as it arrives, instead of all of it at the end.")
]


@recording_router.get(
    "/sessions/{id}/export", **described(200, TEXT, 404, 409, media_type=JSON_LINES)
)
async def export_session(uri: SessionUri, host: TheHost, who: Caller) -> Response:
    """The session as a recording: every entry of its log, one per line, without secrets.

    Of a damaged session, what can be read up to the damage.
    """
    if uri not in host.unreadable or not who.reaches(uri):
        await visible_record(host, who, uri)
    if who.role is not Role.OWNER:
        raise NotAllowedError("Only an owner can export a session.")
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


@recording_router.post(
    "/replay", **described(201, SessionSummary, 409, 413, 415), openapi_extra=BODY
)
async def replay_session(
    request: Request, host: TheHost, who: Owner, *, live: Live = False
) -> Response:
    """Play a recording back into a session that does not exist yet. It can then be watched."""
    if media_type(request) != JSON_LINES:
        message = f"Send a recording, with the header Content-Type: {JSON_LINES}."
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
