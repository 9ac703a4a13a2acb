"""MCP servers of ours: a gateway to each configured server, and the tools that ask people.

Above stands the composition root; below are calls, which drive what is passed on, and the host.
"""
