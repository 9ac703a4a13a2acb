"""The refusals that every backend knows, in the same words."""

from session_server.log.errors import FailedError
from session_server.log.protocol import Batch, Refused, RefusedBecause, StoredSnapshot
from session_server.schemas.wire import Seq

CLOSED = Refused(RefusedBecause.CLOSED, "The log is closed.")
KNOWN_ID = Refused(RefusedBecause.CONFLICT, "The log has an entry with one of these ids already.")


def conflict(batch: Batch, last: Seq) -> Refused:
    words = f"{batch.channel} ends at {last}, not at {batch.expected}."
    return Refused(RefusedBecause.CONFLICT, words)


def ahead(snapshot: StoredSnapshot, last: Seq) -> FailedError:
    """A snapshot of what never happened, or of a channel that was dropped meanwhile."""
    words = f"{snapshot.channel} ends at {last}, before the snapshot's {snapshot.seq}."
    return FailedError(RefusedBecause.CONFLICT, words)
