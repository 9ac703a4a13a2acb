"""Turns over HTTP: say something to a session's agent, and stop it."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from session_server.host.host import Host
from session_server.host.performing import RefusedError, perform, write
from session_server.reducers.batches import Batch, batch_of
from session_server.reducers.rules import judge
from session_server.schemas.actions import TurnCancelled, TurnStarted
from session_server.schemas.http import NewTurn, StartedTurn
from session_server.schemas.messages import USER, Message, MessageOrigin
from session_server.schemas.principals import Principal, Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.refusals import Refusal, RefusalCode
from session_server.schemas.wire import Uri
from session_server.web.bodies import JsonBody, json_response
from session_server.web.caller import Caller, TheHost
from session_server.web.openapi import described
from session_server.web.paths import SessionUri
from session_server.web.request_states import visible_record
from session_server.web.retries import REPLAYED, TheKey, new_name

router = APIRouter(prefix="/v1/sessions/{id}/turns", tags=["turns"])


EXAMPLE = NewTurn(text="Plan a trip")


@router.post("", **described(201, StartedTurn, 404, 409, body=NewTurn, example=EXAMPLE))
async def start_turn(
    uri: SessionUri,
    host: TheHost,
    who: Caller,
    key: TheKey,
    wanted: Annotated[NewTurn, Depends(JsonBody(NewTurn))],
) -> Response:
    """Send a message to the session's agent; the answer is in the session's state and events."""
    turn_id = new_name(key, wanted)
    record = visible_record(host, who, uri)
    replayed = key is not None and key.found(wanted, _known_ids(record))
    if not replayed:
        await _start(host, who, uri, turn_id, wanted.text)
    started = StartedTurn(session=uri, turn_id=turn_id)
    return json_response(started, 201, REPLAYED if replayed else None)


async def _start(host: Host, who: Principal, uri: Uri, turn_id: str, text: str) -> None:
    message = Message(text=text, origin=MessageOrigin(kind=USER))
    action = TurnStarted(turn_id=turn_id, message=message)

    def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
        if turn_id in _known_ids(record):
            return ()  # the same key at the same time
        return judge(who, record, action) or batch_of(record, action, stamp)

    await write(host, uri, plan, by=who.author)


def _known_ids(record: SessionRecord) -> set[str]:
    active = record.public.active_turn
    known = {turn.id for turn in record.public.turns}
    return known if active is None else known | {active.id}


@router.delete("/active", **described(204, None, 404))
async def cancel_turn(uri: SessionUri, host: TheHost, who: Caller) -> Response:
    """Stop the turn in progress; the questions that were open in it are abandoned."""
    active = visible_record(host, who, uri).public.active_turn
    if active is None:
        raise RefusedError(Refusal(code=RefusalCode.NO_TURN, message="No turn is in progress."))
    await perform(host, who, uri, TurnCancelled(turn_id=active.id))
    return Response(status_code=204)
