"""What stays of a session that leaves memory, and when it may."""

import msgspec
import pytest
from hypothesis import given

from session_server.reducers.ahp1.snapshots import Variant, session_summary
from session_server.reducers.effects import effects_after_restart
from session_server.reducers.outlines import is_at_rest, outline_of
from session_server.reducers.state.status import listed
from session_server.schemas.ahp.actions import ModelChanged
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.ahp.session import ActiveClient, Lifecycle, ModelSelection
from session_server.schemas.ahp.turn_messages import PendingMessage
from session_server.schemas.codec import decode_outline, encode
from session_server.schemas.log_entries import Spelling
from session_server.schemas.record import Deferred, Finished, PrivateState, SessionRecord
from tests.reducers.call_records import call
from tests.sessions import in_turn, session, user_message
from tests.strategies import shapes

replace = msgspec.structs.replace

VARIANTS = [Variant(marks, spelling) for marks in (False, True) for spelling in Spelling]


def private(record: SessionRecord, **fields: object) -> SessionRecord:
    return replace(record, private=replace(record.private, **fields))


def test_a_session_in_which_nothing_is_open_is_at_rest() -> None:
    assert is_at_rest(session())
    assert is_at_rest(session(lifecycle=Lifecycle.CREATION_FAILED))
    done = call(phase=Finished(result={}, at=1))
    assert is_at_rest(private(session(), calls={"c": done}))


@pytest.mark.parametrize(
    "busy",
    [
        in_turn(),
        session(lifecycle=Lifecycle.CREATING),
        session(input_requests=(InputRequest(id="r"),)),
        session(queued_messages=(PendingMessage(id="m", message=user_message()),)),
        session(active_client=ActiveClient(client_id="laptop", tools=())),
        private(session(), calls={"c": call()}),
        private(session(), deferred=(Deferred(change=ModelChanged(model=ModelSelection(id="m"))),)),
    ],
)
def test_what_is_open_or_due_keeps_a_session_in_memory(busy: SessionRecord) -> None:
    assert not is_at_rest(busy)


def test_in_a_recording_nothing_is_due_but_a_turn_is_shown_in_lists() -> None:
    asking = session(input_requests=(InputRequest(id="r"),))
    assert is_at_rest(private(asking, is_recording=True))
    assert not is_at_rest(private(in_turn(), is_recording=True))


@given(shapes(SessionRecord))
def test_what_is_at_rest_calls_for_no_work_and_is_listed_alike(record: SessionRecord) -> None:
    quiet = replace(record, public=replace(record.public, active_turn=None))
    for one in (record, quiet, private(quiet, is_recording=True)):
        if not is_at_rest(one):
            continue
        assert effects_after_restart(one) == ()
        outline = decode_outline(encode(outline_of(one, 7)))
        assert outline.size == 7
        assert outline.calls == tuple(one.private.calls)
        assert listed(outline.record.public) == listed(one.public)
        for variant in VARIANTS:
            assert session_summary(outline.record, variant) == session_summary(one, variant)
        kept, whole = outline.record.private, one.private
        assert kept == PrivateState(opened_with=whole.opened_with, is_recording=whole.is_recording)
