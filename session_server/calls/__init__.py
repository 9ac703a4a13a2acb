"""MCP calls that live in sessions. `mcp_client` has the servers; `gateway` and `http` make calls.

service       starts calls, waits for their results, shows and abandons them
driver        sends the legs that records call for, and logs what comes back
replies       what came back for one leg
elicitation   questions of 2025-era servers, answered while they wait
requesters    which clients are connected for a call, and which results were fetched
"""
