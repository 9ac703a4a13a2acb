"""MCP calls: their lifecycle, rounds, recovery, presentation and redaction."""
