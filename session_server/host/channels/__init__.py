"""One channel of a host.

channel        what becomes of a change: judged, reduced, appended, delivered
changes        what changes a channel: an action of a client, or a plan of the host
channel_host   what a channel needs from its host, and the verdicts of the log
channel_kinds  what a channel reduces and shows, by its kind
state_size     how large a state may become
publisher      what subscribers get: envelopes, snapshots, replays
history        envelopes kept for clients that reconnect
messages       messages on their way to outboxes
ahp1_views     what AHP 0.9 and 1.x clients see
"""
