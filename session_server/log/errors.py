"""Errors of a log, next to the outcomes of `append`, and the refusals that every backend shares."""

from session_server.log.protocol import Batch, Refused, RefusedBecause, StoredSnapshot
from session_server.schemas.wire import Seq


class LogError(Exception):
    """`words` are for an operator and may change; `code` is for programs and does not."""

    code: str = "log"
    retry_helps: bool = False

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class OpenError(LogError):
    code = "notOpened"


class UrlError(OpenError):
    code = "url"


class BackendMissingError(OpenError):
    code = "backendMissing"


class InUseError(OpenError):
    """`pid` is the other process, where it is known."""

    code = "inUse"
    retry_helps = True

    def __init__(self, words: str, pid: int | None) -> None:
        super().__init__(words)
        self.pid = pid


class NotWritableError(OpenError):
    code = "notWritable"


class DataLostError(OpenError):
    """It can be opened all the same, by who says so."""

    code = "dataLost"


class DamagedError(OpenError):
    code = "damaged"


class TooNewError(OpenError):
    """`version` is the file's, `known` the highest that this program can read."""

    code = "tooNew"

    def __init__(self, words: str, version: int, known: int) -> None:
        super().__init__(words)
        self.version = version
        self.known = known


class FailedError(LogError):
    """A read found nothing out; a snapshot, trim or drop may be asked for again without harm."""

    def __init__(self, because: RefusedBecause, words: str) -> None:
        super().__init__(words)
        self.because = because
        self.code = because.value
        self.retry_helps = because not in {RefusedBecause.CLOSED, RefusedBecause.CONFLICT}


CLOSED = Refused(RefusedBecause.CLOSED, "The log is closed.")
KNOWN_ID = Refused(RefusedBecause.CONFLICT, "The log has an entry with one of these ids already.")


def conflict(batch: Batch, last: Seq) -> Refused:
    words = f"{batch.channel} ends at {last}, not at {batch.expected}."
    return Refused(RefusedBecause.CONFLICT, words)


def ahead(snapshot: StoredSnapshot, last: Seq) -> FailedError:
    """A snapshot of what never happened, or of a channel that was dropped meanwhile."""
    words = f"{snapshot.channel} ends at {last}, before the snapshot's {snapshot.seq}."
    return FailedError(RefusedBecause.CONFLICT, words)
