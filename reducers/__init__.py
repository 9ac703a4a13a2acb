"""Pure functions over the shapes of `schemas`.

state/     the state after an action
rules/     whether an action is allowed
forms/     MCP schemas as questions, answers, defaults, and what would be sent
calls/     MCP calls: lifecycle, rounds, recovery, redaction
ahp1/      the record as AHP 0.9 and 1.x show it
batches    all actions that become durable together with an accepted one
deadlines  when requests expire, and what that does
effects    the work that a record calls for
outlines   the summary kept of a session that is not in memory
texts      names and notes as people read them
version_negotiation   which version of AHP a connection speaks
"""
