"""The log over PostgreSQL: a schema per host, many batches to a transaction.

- `log`: what the event loop sees;
- `worker`: tasks with a connection of their own; one writes groups of batches, another reads, and
  a third notices what other nodes wrote;
- `queries`: what is asked of the server;
- `link`: a connection that is made again when it is lost;
- `epochs`: whether the database is the one that was known, with everything that was in it;
- `schema`: tables and migrations;
- `functions`: what runs in the database; `append` assigns the seqs;
- `address`: from a URL to connection parameters;
- `faults`: what PostgreSQL's errors mean for a batch and for the log;
- `examination`: whether a server can hold a log, and settings that endanger what is stored.
"""

from session_server.log.postgres.log import PostgresLog

__all__ = ["PostgresLog"]
