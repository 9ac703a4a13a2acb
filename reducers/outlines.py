"""Sessions that can leave memory, and what is kept of them meanwhile."""

from session_server.reducers.batches import has_open_work
from session_server.reducers.state.chat import chat_of
from session_server.reducers.state.status import listed
from session_server.schemas.ahp.session import Lifecycle, SessionState
from session_server.schemas.record import ChatRecord, Outline, PrivateState, SessionRecord


def is_at_rest(record: SessionRecord) -> bool:
    """Whether nothing is open, due or waiting: the session changes only by an action from outside.

    In a recording nothing ever happens by itself.
    """
    public, private = record.public, record.private
    if public.active_turn is not None:
        return False
    return private.is_recording or not (
        public.lifecycle is Lifecycle.CREATING
        or public.queued_messages
        or private.deferred
        or has_open_work(record)
        or chat_of(record).clients
    )


def outline_of(record: SessionRecord, size: int) -> Outline:
    """Of a session at rest. Lists of sessions show the same of it as of the whole record."""
    public, private, chat = record.public, record.private, chat_of(record)
    return Outline(
        record=SessionRecord(
            public=SessionState(
                summary=listed(public),
                lifecycle=public.lifecycle,
                turns=(),
            ),
            private=PrivateState(
                opened_with=private.opened_with, is_recording=private.is_recording
            ),
            chat=ChatRecord(modified_at=chat.modified_at, failed=chat.failed, needed=chat.needed),
        ),
        calls=tuple(private.calls),
        size=size,
    )
