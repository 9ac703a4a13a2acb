"""Connections to the configured MCP servers."""
