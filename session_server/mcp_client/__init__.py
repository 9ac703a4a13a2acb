"""Connections to the configured MCP servers, which `calls` and `gateway` use.

config               the entries of an `mcp.json`
configured_servers   all servers by name; without any, the MCP SDK is not loaded
servers              each server: lends connections to calls, in the revision that they need
main_connection      the connection that is kept, its retries, state and tools
pool, shared_connections  connections of the 2025 era, and which call a question is for
connections          one open connection
http_link            2026-era requests over HTTP, on connections that are kept (http_connections)
transports           its process or URL; parent_death is run in front of a process
sdk                  what changes messages of the MCP SDK, or reaches into it
http_bounds          how much a server may send
server_credentials   credentials, hidden where a server repeats them
notifications        changes and log messages that a server reports by itself
progress             progress and log messages of calls
revisions            which revision each tool needs
server_states        states of servers, as sessions show them
failures             why a server cannot be used
failpoints           places where a test can have the process die
"""
