"""The shapes of AHP 0.3.0.

session turns turn_messages tool_calls questions customizations   the state, by its parts
actions    what changes it
envelopes  accepted and refused actions on their way to clients
commands   parameters and results of commands
frames     the JSON-RPC frames around all of these
"""
