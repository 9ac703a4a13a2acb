"""Connections to the configured MCP servers, which `calls` and `gateway` use.

config               the entries of an `mcp.json`
configured_servers   all servers by name; without any, the MCP SDK is not loaded
servers              each server: lends connections to calls, in the revision that they need
connections/         what is open: connections, their pool, transports
sdk                  what changes messages of the MCP SDK, or reaches into it
server_credentials   credentials, hidden where a server repeats them
notifications        changes and log messages that a server reports by itself
progress             progress and log messages of calls
revisions            which revision each tool needs
server_states        states of servers, as sessions show them
failures             why a server cannot be used
failpoints           places where a test can have the process die
"""
