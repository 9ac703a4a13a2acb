"""MCP calls that live in sessions. `mcp_client` has the servers; `gateway` and `http` make calls.

service       starts calls, waits for their results, shows and abandons them
driver        sends the legs that records call for, and logs what comes back
replies       sends one leg; reply_kinds, what came back
running_leg   what a server asks, reports and logs while a leg is out
requesters    which clients are connected for a call, and which results were fetched
"""
