"""The log over NATS JetStream: a stream per host, a subject per channel, a batch per message.

- `jetstream_log`: the log itself: opening, appending;
- `reading`, `retention`: reading entries and snapshots; trimming, dropping, adopting;
- `claim`: who has the log open;
- `tail`: applies the stream to an index, and stores what is added;
- `index`: what the stream holds, in memory;
- `messages`: how batches, snapshots and records look in the stream;
- `servers`: the connection: requests, publishing, reading by position;
- `stream_config`: from a URL to a stream that keeps what it is given;
- `examination`: settings of the servers that endanger what is stored, for `doctor`.
"""

from session_server.log.nats.jetstream_log import NatsLog

__all__ = ["NatsLog"]
