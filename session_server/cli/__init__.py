"""The `session-server` command: reads arguments, prints answers, and owns the exit codes.

Nothing else in the package reads a command line. Each module here is one command or one thing that
several of them need.
"""

from session_server.cli.program import app, main

__all__ = ["app", "main"]
