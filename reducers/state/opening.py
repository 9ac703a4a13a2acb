"""How a session begins: from what a client asked for, or from the history of another."""

import msgspec

from session_server.reducers.rules.session_rules import check_selection
from session_server.reducers.state.turns import active_turn, turns_up_to
from session_server.reducers.texts import visible_name
from session_server.schemas.ahp.actions import Ready
from session_server.schemas.ahp.commands import CreateSessionParams
from session_server.schemas.ahp.session import Lifecycle, SessionState, SessionSummary, Status
from session_server.schemas.ahp.turns import Turn
from session_server.schemas.errors import CommandError, ErrorCode
from session_server.schemas.limits import ID_CHARS
from session_server.schemas.principals import Stamp
from session_server.schemas.record import PrivateState, SessionRecord
from session_server.schemas.wire import Uri

UNTITLED = "New session"
RESERVED_PREFIXES = ("ahp-", "session-server:")
SESSION_SCHEME = "ahp-session:"


def check_uri(uri: Uri) -> None:
    """Any scheme is allowed, except for those reserved by the protocol and the host."""
    scheme, colon, path = uri.partition(":")
    if not colon or not scheme or not path or len(uri) > ID_CHARS:
        raise CommandError(ErrorCode.INVALID_PARAMS, f"{uri[:ID_CHARS]!r} is not a session URI.")
    if uri.lower().startswith(RESERVED_PREFIXES) and not uri.startswith(SESSION_SCHEME):
        raise CommandError(ErrorCode.INVALID_PARAMS, f"{scheme}: is not for sessions.")


def check_selections(params: CreateSessionParams) -> None:
    chosen = {
        "model": params.model,
        "agent": params.agent,
        "working directory": params.working_directory,
    }
    for name, value in chosen.items():
        refusal = check_selection(name, value)
        if refusal is not None:
            raise CommandError(ErrorCode.INVALID_PARAMS, refusal.message)


def opening_record(
    params: CreateSessionParams,
    provider: str,
    at: int,
    source: SessionRecord | None,
    opened_with: str | None = None,
) -> SessionRecord:
    """A fork brings the turns of its source up to and including the named one."""
    summary = SessionSummary(
        resource=params.channel,
        provider=provider,
        title=UNTITLED if source is None else source.public.summary.title,
        status=int(Status.IDLE),
        created_at=at,
        modified_at=at,
        model=params.model,
        agent=params.agent,
        working_directory=params.working_directory,
    )
    turns: tuple[Turn, ...] = ()
    if source is not None and params.fork is not None:
        turns = _forked_turns(source.public, params.fork.turn_id)
    return SessionRecord(
        public=SessionState(
            summary=summary,
            lifecycle=Lifecycle.CREATING,
            turns=turns,
            active_client=params.active_client,
        ),
        private=PrivateState(opened_with=opened_with),
    )


def _forked_turns(state: SessionState, turn_id: str) -> tuple[Turn, ...]:
    turns = turns_up_to(state, turn_id)
    if turns is not None:
        return turns
    if active_turn(state, turn_id) is not None:
        raise CommandError(ErrorCode.TURN_IN_PROGRESS, "That turn is not over; fork it afterwards.")
    raise CommandError(ErrorCode.INVALID_PARAMS, f"There is no turn {turn_id} to fork from.")


def page_of_turns(
    turns: tuple[Turn, ...], before: str | None, limit: int
) -> tuple[tuple[Turn, ...], bool]:
    """The latest turns before one, oldest first, and whether there are more."""
    end = len(turns)
    if before is not None:
        end = next((i for i, turn in enumerate(turns) if turn.id == before), 0)
    start = max(0, end - limit)
    return turns[start:end], start > 0


def retitled(record: SessionRecord, title: str | None) -> SessionRecord:
    if title is None:
        return record
    public = record.public
    summary = msgspec.structs.replace(public.summary, title=visible_name(title))
    return msgspec.structs.replace(record, public=msgspec.structs.replace(public, summary=summary))


def readiness(record: SessionRecord, _: Stamp) -> tuple[Ready, ...]:
    """A session that is being created is ready as soon as its opening is durable."""
    is_due = record.public.lifecycle is Lifecycle.CREATING and not is_recording(record)
    return (Ready(),) if is_due else ()


def is_recording(record: object) -> bool:
    """Whether the session was played back from a recording, and so is read-only."""
    return isinstance(record, SessionRecord) and record.private.is_recording
