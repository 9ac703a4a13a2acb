"""What came back for one leg of a call: a result, a round, a refusal, or no answer at all."""

from typing import Any, NamedTuple, TypeAlias

from session_server.mcp_client.config import Era
from session_server.schemas.mcp import InputRequired
from session_server.schemas.record import FailureKind
from session_server.schemas.wire import Json


class Completed(NamedTuple):
    result: dict[str, Any]


class Asks(NamedTuple):
    """`raw`: the questions as the server asked them."""

    required: InputRequired
    raw: dict[str, Any] | None = None


class Expired(NamedTuple):
    """The server no longer knows the state that it gave out."""


class Rejected(NamedTuple):
    kind: FailureKind
    reason: str
    data: Json = None


class Unsent(NamedTuple):
    """It never left or was turned away, so it did not run.

    `is_general`: nothing else would fare better, so the server has to be connected to anew.
    """

    reason: str
    is_general: bool = False


class Lost(NamedTuple):
    """It left and no answer came: it may have run."""


class OtherRevision(NamedTuple):
    """The tool cannot ask in the revision of the connection, and has got as far as its question.

    `has_only_asked`: it returned its questions, as it does whenever it is called.
    """

    era: Era
    failure: "Completed | Rejected"
    has_only_asked: bool = False


Reply: TypeAlias = Completed | Asks | Expired | Rejected | Unsent | Lost | OtherRevision
