"""Wire and state shapes: msgspec Structs and their decoders, without I/O.

ahp/         AHP 0.3.0: state, actions, commands, frames
ahp1/        the versions of AHP after it
http mcp     the shapes of the HTTP API and of MCP
record       a session as the actions in its log make it, public and private
log_entries  what the host's own channels log
nodes        messages between nodes
principals   who acts
errors       error codes, refusals, and the tree of all errors
limits       every bound
codec        decoders and the encoder
documents    the shapes as JSON Schema and AsyncAPI
wire         the base classes of all shapes
"""
