"""The `session-server` command: reads arguments, prints answers, and owns the exit codes.

Nothing else in the package reads a command line. Each module here is one command or one thing that
several of them need.
"""

import sys
from typing import Any

from session_server.cli.exit_codes import ExitCode

__all__ = ["main"]


def main() -> None:
    """Loads the program only now: who presses Ctrl-C while it loads is understood too."""
    try:
        from session_server.cli.program import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


def __getattr__(name: str) -> Any:
    if name == "app":
        from session_server.cli.program import app  # noqa: PLC0415

        return app
    raise AttributeError(name)
