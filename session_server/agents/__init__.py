"""What runs behind a session: a small interface, a registry, and a demo.

An agent handles one turn at a time. Everything it says and asks is written to the session's log, so
that an agent which can resume goes on after a restart where its words and questions left off.
"""

from session_server.agents.interface import Agent, TurnContext

__all__ = ["Agent", "TurnContext"]
