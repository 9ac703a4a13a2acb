"""Pure functions over the shapes of `schemas`.

state/     the state after an action
rules/     whether an action is allowed
forms/     MCP schemas as questions, answers, defaults, and what would be sent
calls/     MCP calls: lifecycle, rounds, recovery, redaction
wire/      the record as the versions of AHP show it
batches    all actions that one action brings
deadlines  when requests end by themselves
effects    the work that a record calls for
outlines   what is kept of a session that is not in memory
texts      names and notes as people read them
"""
