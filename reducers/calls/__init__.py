"""MCP calls as a session's log records them.

starting          who may start a call, and when a request joins an earlier one
lifecycle         the phases of a call, and the transitions between them
rounds            what a call does next: opening a round, finishing, failing
recovery          calls that were cut off: crash, lost connection, expired state
input_required    results that ask for more, and the retry that answers them
client_answers    questions that go to the MCP client instead of the session
presentation      a call as people and programs see it
redaction         private arguments, hidden in what is shown
export_redaction  the same for sessions that are exported
"""
