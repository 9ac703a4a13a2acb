"""The log over SQLite: one file, one process, many batches to a commit.

log       what the event loop sees
writer    the one thread that writes: what is asked for during a commit goes into the next one
store     what it does to the database, a transaction at a time
positions where every channel ends, in memory
reading   what the reading connection is asked
database  the file and its connections; whether entries that it had are missing
claim     the file next to it: who has it open, and how far it had come
schema    tables, migrations, checksums
faults    what SQLite's errors mean for a batch and for the log
backup    copying and examining a database while a host writes to it
"""

from session_server.log.sqlite.log import SqliteLog

__all__ = ["SqliteLog"]
