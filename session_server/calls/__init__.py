"""MCP calls that live in sessions: started and read (service), driven (driver) and answered.

`mcp_client` below has the servers; `gateway` and `http` above make the calls.
"""
