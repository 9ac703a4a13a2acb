"""AHP 0.9 and 1.x: what its clients do with the host's messages, and how the host makes them.

`uris` has the spellings of URIs, and `numbering` the numbers of envelopes. `snapshots` and
`envelopes` project a record onto the state and the actions of a version, `root` does so for the
root channel, and `client_actions` is the way back. `client_chat_reducer`, `client_session_reducer`
and `client_tool_call_reducer` are the reducers that clients of these versions run: our Python
client uses them, the host does not.
"""
