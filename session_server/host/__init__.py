"""The live host: channels on a log, and the protocol that each client speaks to them.

No socket and no file in here: bytes come in through `Connection.receive` and go out through an
`Outbox`; durability is the log's.

host, lifecycle     all channels of a deployment; how sessions come and go
loaded_sessions     which of them are in memory
changes, channel    what changes a channel, and how: judge, reduce, append, deliver
channel_host        what a channel needs from outside, and the verdicts of the log
channel_kinds       what a channel folds and shows, by its kind
log_writer          the way into the log, and outcomes in its order
folding             reading channels from the log
following           what other nodes write to the same log
nodes               which other nodes are alive, and what each of them publishes
publisher           what subscribers get: envelopes, snapshots, replays
messages, history   messages to outboxes; envelopes kept for clients that reconnect
effects             running what records call for: turns, calls, summaries
deadline_timers     expiring requests and calls when their time has come
takeover            resuming unfinished work: after a start, and of lost nodes
deferred_actions    actions that were put off until a turn ends
awaiting            acting and waiting from code that can await
connection/         the protocol of one client
known_clients, open_connections, active_clients, askers, presence   who is there
session_list, list_watchers   news of sessions, and who gets it
ahp1_views          what AHP 0.9 and 1.x clients see
recordings          sessions as files
storage, upkeep     whether the log works; snapshots and trimming
bounds              what an operator may limit
state_size, metrics sizes of states, and counters
timers              the clock, timers, tasks
"""
