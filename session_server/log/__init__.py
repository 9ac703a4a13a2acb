"""The log: what makes an action durable and gives it its place in the host's one order.

Above it stands the host, which knows only this Protocol; below, one backend per URL scheme.
"""

from session_server.log.protocol import (
    Batch,
    Durable,
    Entry,
    Epoch,
    Log,
    NewEntry,
    Outcome,
    Refused,
    RefusedBecause,
    StoredSnapshot,
    Sync,
    Unknown,
)

__all__ = [
    "Batch",
    "Durable",
    "Entry",
    "Epoch",
    "Log",
    "NewEntry",
    "Outcome",
    "Refused",
    "RefusedBecause",
    "StoredSnapshot",
    "Sync",
    "Unknown",
]
