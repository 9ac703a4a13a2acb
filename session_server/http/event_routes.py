"""Watching over HTTP: a session's actions, and the list of sessions, as Server-Sent Events."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import StreamingResponse

from session_server.host.channels.channel import Channel
from session_server.host.host import Host
from session_server.http.bodies import SessionUri
from session_server.http.dependencies import Caller, TheHost, TheStreams
from session_server.http.openapi import described
from session_server.http.request_routes import visible_channel
from session_server.http.streaming import EventOutbox, OpenStreams, SessionOutbox, event_of
from session_server.schemas.ahp.commands import ROOT_CHANNEL, ListSessionsResult
from session_server.schemas.codec import encode
from session_server.schemas.limits import ID_CHARS
from session_server.schemas.principals import Principal
from session_server.schemas.wire import SAFE_INTEGER, Seq

router = APIRouter(prefix="/v1", tags=["events"])

EVENTS = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def _last_seen(
    header: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            max_length=ID_CHARS,
            description="The id of the last event that was seen.",
        ),
    ] = None,
    query: Annotated[
        str | None,
        Query(
            alias="lastEventId",
            max_length=ID_CHARS,
            description="The same, for readers that cannot set headers.",
        ),
    ] = None,
) -> Seq | None:
    """An id that is not one of ours is ignored."""
    text = header or query or ""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(SAFE_INTEGER))
    return int(text) if is_number else None


LastSeen = Annotated[Seq | None, Depends(_last_seen)]


@router.get("/sessions/{id}/events", **described(200, {"type": "string"}, 404, media_type=EVENTS))
async def session_events(
    uri: SessionUri, host: TheHost, streams: TheStreams, who: Caller, seen: LastSeen
) -> StreamingResponse:
    """Every action in the session: what came after `Last-Event-ID`, or a snapshot, then the rest.

    Events: `snapshot` (state and position), `action` (an envelope), `sessionRemoved`, `end`.
    """
    await visible_channel(host, who, uri)
    outbox = SessionOutbox(host)

    async def begin() -> Channel[Any]:
        channel = await visible_channel(host, who, uri)
        since = None
        if seen is not None and host.is_position(seen):
            since = channel.publisher.history.since(seen)
        if since is None:  # it is not in memory any more
            host.counts.snapshots += 1
            outbox.put(event_of("snapshot", encode(host.snapshot(channel)), host.position))
        else:
            host.counts.replays += 1
            for seq, envelope in since:
                outbox.put(event_of("action", envelope, seq))
        return channel

    return _stream(host, streams, who, outbox, begin)


@router.get("/events", **described(200, {"type": "string"}, media_type=EVENTS))
async def list_events(
    host: TheHost, streams: TheStreams, who: Caller, _: LastSeen
) -> StreamingResponse:
    """The list of sessions and its changes. Changes are not kept, so it always begins whole.
    Where access is limited to some sessions, the list has only these.

    Events: `sessions` (all of them), `sessionAdded`, `sessionRemoved`, `sessionSummaryChanged`,
    `action` (of the host: its agents, its number of sessions), `end`.
    """
    outbox = EventOutbox(host)

    async def begin() -> Channel[Any] | None:
        sessions = ListSessionsResult(items=tuple(host.summaries(who)))
        outbox.put(event_of("sessions", encode(sessions), host.position))
        return host.channel(who, ROOT_CHANNEL)

    return _stream(host, streams, who, outbox, begin)


def _stream(
    host: Host,
    streams: OpenStreams,
    who: Principal,
    outbox: EventOutbox,
    begin: Callable[[], Awaitable[Channel[Any] | None]],
) -> StreamingResponse:
    """`begin` sends what comes first, and returns the channel. Without one it is the list, for a
    principal that is limited to some sessions.
    """
    host.connections.check(who)

    async def body() -> AsyncIterator[bytes]:
        # Only from here on is it certain that the end is noticed too.
        host.connections.opened(who, outbox)
        streams.opened(outbox)
        channel: Channel[Any] | None = None
        try:
            channel = await begin()
            if channel is None:
                host.list_watchers.join(who, outbox)
            else:
                channel.publisher.subscribers[outbox] = None
            async for chunk in outbox.chunks():
                yield chunk
        finally:
            host.list_watchers.leave(who, outbox)
            if channel is not None:
                channel.publisher.subscribers.pop(outbox, None)
            streams.closed(outbox)
            host.connections.closed(who, outbox)

    return StreamingResponse(body(), headers=HEADERS, media_type=EVENTS)
