"""Connections to one MCP server.

connection           one open connection
main_connection      the connection that is kept, its retries, state and tools
pool, shared_connections  connections of the 2025 era, and which call a question is for
http_link            2026-era requests over HTTP, on connections that are kept (http_connections)
response_limits      how much a server may send
transports           its process or URL; parent_death is run in front of a process
"""
