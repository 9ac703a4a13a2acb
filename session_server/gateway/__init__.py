"""MCP servers of ours: a gateway to each configured server, and the tools that ask people.

routes               the routes, which load the rest: at the start if MCP servers are configured,
                     otherwise with the first request
endpoints            the servers behind the routes, and who may use them
server_app           one server over HTTP: sessions of clients, bounds
modern_requests      single requests of 2026-era clients, which need no session
proxy                a configured server as clients see it
client_calls         calls that clients make; client_questions asks their users
ask_tools            tools with which agents ask people
long_requests        requests that are held, with progress; request_state for clients that come back
announcements        changes and log messages that a server reports by itself
gateway_sessions     in which session a call or question is
mcp_callers          who makes a request; mcp_errors, how it is refused
stdio_bridge         from stdin and stdout to HTTP, for `session-server mcp`
"""
