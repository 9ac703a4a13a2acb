"""Calling MCP servers: configured servers, connections to them, and the driver of calls.

Above stand HTTP, the gateway and agents; below the host, whose log says where each call is.
"""
