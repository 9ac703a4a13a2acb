"""The commands, loaded when they are called: see `cli.program`.

serve sessions watch ask answer call access recordings stores doctor mcp
mcp_checks     what `doctor` finds out about MCP servers
"""
