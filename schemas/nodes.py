"""What the nodes of a host tell each other. None of it is stored, and any of it may be lost."""

from typing import Any

from session_server.schemas.wire import Count, Wire


class NodeMessage(Wire, frozen=True, kw_only=True):
    """`beat` counts up: the node lives. `wants`: it may have missed what others have.

    `has` is what it has at the moment, by kind and name; `None` for what it has no longer. `number`
    counts the messages with such news, so that a lost one is noticed: with a beat, those up to now.
    From `begins` to `ends` it tells all that it has. `leaves`: it stops, and has nothing any more.
    """

    node: str
    beat: Count | None = None
    wants: bool = False
    leaves: bool = False
    number: Count = 0
    begins: bool = False
    ends: bool = False
    has: dict[str, dict[str, Any]] = {}
