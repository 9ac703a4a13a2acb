"""The log: what makes an action durable and gives it its place in the host's one order.

protocol   what every log promises: shapes, outcomes, errors
memory     the reference, for tests and throw-away runs
sqlite/    one file, one process: the default
postgres/  nats/   several nodes on one log
opening    from a URL to a log
progress   results of appends, and following new entries
shared_loss_detection  how far a shared log had come, kept outside of it, so that a lost end is
           noticed (SQLite has its claim)
migration  copying a log to another backend
"""

from session_server.log.protocol import (
    AppendResult,
    Batch,
    Durable,
    Entry,
    Epoch,
    Log,
    NewEntry,
    Refused,
    RefusedBecause,
    StoredSnapshot,
    Sync,
    Unknown,
)

__all__ = [
    "AppendResult",
    "Batch",
    "Durable",
    "Entry",
    "Epoch",
    "Log",
    "NewEntry",
    "Refused",
    "RefusedBecause",
    "StoredSnapshot",
    "Sync",
    "Unknown",
]
