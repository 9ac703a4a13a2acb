"""Messages between the nodes of a host. None is stored, and any may be lost."""

from typing import Any

from session_server.schemas.wire import Count, Wire


class NodeMessage(Wire, frozen=True, kw_only=True):
    """`beat` counts heartbeats. `wants`: it may have missed messages and asks for all items.

    `has` are changed items by kind and name; `None` if an item was removed. `number` counts such
    messages, so that a lost one is noticed; with a beat it is the number of the last. The messages
    from `begins` to `ends` list all items of the node. `leaves`: the node stops.
    """

    node: str
    beat: Count | None = None
    wants: bool = False
    leaves: bool = False
    number: Count = 0
    begins: bool = False
    ends: bool = False
    has: dict[str, dict[str, Any]] = {}
