"""What can go wrong with a log, beside the outcomes of `append`.

LogError
├── OpenError                 the log could not be opened
│   ├── UrlError              the URL names no log that is known
│   ├── BackendMissingError   this version or installation lacks the backend
│   ├── InUseError            another process has it open
│   ├── NotWritableError      the file, its folder or the disk takes no writing
│   ├── DataLostError         entries that it had are gone
│   ├── DamagedError          it is not a log, or no longer a whole one
│   └── TooNewError           a newer version has written it
└── FailedError               a log that is open could not do what was asked
"""

from session_server.log.protocol import RefusedBecause


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
