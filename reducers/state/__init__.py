"""The state after an action: one function per transition, routed by tables.

record          a session's whole record: the public state, and the private one next to it
session         the tables of a session's public actions, and the reducer of the root
turns tool_calls input_requests properties customizations   transitions, by what they change
status          the status bits of a session
frozen_values   how a frozen value is changed, and when two are the same
chat            what the record keeps for AHP 0.9 and 1.x
client_entries  active clients as both generations of AHP show them
host_channels   the host's own channels: root, known clients, tokens
opening         how a session begins, and pages of its turns
"""
