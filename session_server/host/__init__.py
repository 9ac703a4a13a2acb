"""The live host: channels on a log, and the protocol that each client speaks to them.

No socket and no file in here: bytes come in through `Connection.receive` and go out through an
`Outbox`; durability is the log's.

host, lifecycle     all channels of a deployment; how sessions come and go
channels/           one channel: judge, reduce, append, deliver; what its subscribers get
persistence/        the way into the log and back; snapshots, trimming, sessions leaving memory
clients/            who is there, connected or known
connection/         the protocol of one client
async_api           changing a session and waiting for it, from code that can await
effects             running what records call for: turns, calls, summaries
deferred_actions    actions that were put off until a turn ends
deadline_timers     expiring requests and calls when their time has come
session_list        announcing changed summaries of sessions
recordings          sessions as files
nodes, follower     which other nodes are alive; applying what they write to the same log
takeover            resuming unfinished work: after a start, and of lost nodes
host_limits         what an operator may limit
metrics             counters and histograms
timers              the clock, timers, tasks
"""
