"""Agents: the programs that answer turns.

interface      what an agent implements, and what it is given
turn_runner    the installed agents, and one task per running turn
demo           the built-in agents, and what `serve --demo` opens
deploy_server  the MCP server of the demo, a program of its own

Everything an agent says and asks is written to the session's log, so that an agent that can resume
goes on after a restart where it was.
"""

from session_server.agents.interface import Agent, TurnContext

__all__ = ["Agent", "TurnContext"]
