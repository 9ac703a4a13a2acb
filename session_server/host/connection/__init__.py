"""The AHP protocol of one client, without I/O: frames in, frames out.

protocol       `Connection`: decode, rate limit, then a handshake, a command or an action
handshake      `initialize` and `reconnect`
reconnect      what a client has missed: a replay, or snapshots
commands       what a client can ask for
dispatching    its actions until each has an outcome, and frames that cannot be decoded
subscriptions  the channels that it watches
peer           who it is, and how it is answered
rate_limit     how fast a principal may send, over all its connections
ahp1_client, ahp1_commands   the same for AHP 0.9 and 1.x
"""
