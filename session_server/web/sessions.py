"""Sessions over HTTP: make, list, read, dispose of."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from session_server.host.host import Host
from session_server.host.performing import Settling
from session_server.reducers.session_names import PREFIX, session_name
from session_server.schemas.commands import CreateSessionParams
from session_server.schemas.http import NewSession, SessionList, UnreadableSession
from session_server.schemas.principals import Principal
from session_server.schemas.session import SessionState, SessionSummary
from session_server.schemas.wire import Uri
from session_server.web.bodies import JsonBody, json_response
from session_server.web.caller import Caller, TheHost
from session_server.web.openapi import described
from session_server.web.paths import SessionUri
from session_server.web.problems import RETRY_AFTER, ProblemError
from session_server.web.request_states import visible_channel, visible_record
from session_server.web.retries import REPLAYED, RetryKey, TheKey, new_name

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
    key: TheKey,
    wanted: Annotated[NewSession, Depends(JsonBody(NewSession))],
) -> Response:
    """Make a session: one that only asks (`people`), or one with an agent."""
    uri = None if key is None else _made_before(host, key, wanted)
    replayed = uri is not None
    if uri is None:
        name = new_name(key, wanted)
        uri = wanted.resource or f"{PREFIX}{name}"
        await _create(host, who, uri, wanted, None if key is None else name)
    summary = visible_record(host, who, uri).public.summary
    where = {"Location": f"/v1/sessions/{session_name(uri)}"}
    return json_response(summary, 201, where | (REPLAYED if replayed else {}))


def _made_before(host: Host, key: RetryKey, wanted: NewSession) -> Uri | None:
    named: dict[str, Uri] = {}
    for uri, channel in host.sessions.items():
        record = channel.committed
        if record is not None and record.private.opened_with is not None:
            named[record.private.opened_with] = uri
    if key.found(wanted, named):
        return named[key.name(wanted)]
    if host.is_opening(wanted.resource or f"{PREFIX}{key.name(wanted)}"):
        words = "The first request with this Idempotency-Key is still at work; try again."
        raise ProblemError(409, "stillAtWork", words, RETRY_AFTER)
    return None


async def _create(
    host: Host, who: Principal, uri: Uri, wanted: NewSession, opened_with: str | None
) -> None:
    params = CreateSessionParams(
        channel=uri,
        provider=wanted.provider,
        model=wanted.model,
        agent=wanted.agent,
        working_directory=wanted.working_directory,
        fork=wanted.fork,
    )
    made = Settling()
    host.create_session(
        who,
        params,
        title=wanted.title,
        opened_with=opened_with,
        done=made.succeed,
        failed=made.fail,
    )
    await made.future


@router.get("/{id}", **described(200, SessionState, 404))
async def read_session(uri: SessionUri, host: TheHost, who: Caller) -> Response:
    """The session's public state, as every subscriber has it."""
    return json_response(visible_channel(host, who, uri).shown())


@router.delete("/{id}", **described(204, None, 404))
async def dispose_session(uri: SessionUri, host: TheHost, who: Caller) -> Response:
    """Remove the session and all that is known of it."""
    gone = Settling()
    host.dispose_session(who, uri, done=gone.succeed, failed=gone.fail)
    await gone.future
    return Response(status_code=204)
