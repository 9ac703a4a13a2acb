"""The log over SQLite: one file, one process, many batches to a commit.

`log` is what the loop sees; below it `writer` and `reading`, then `store`, then `database`.
"""

from session_server.log.sqlite.log import SqliteLog

__all__ = ["SqliteLog"]
