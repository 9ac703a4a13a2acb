"""The `session-server` command.

program        the program itself, and which command is in which module
commands/      the commands
failures       errors as messages, advice and exit codes
error_mapping  the failure that each error of the host or the client becomes
host_options   `--url`, `--token` and `--json`
http_client    how a command reaches its host, and how it runs
output         printing for people and for programs
session_names  sessions found by name, or made
setting_options, values, questions, polling: options, values, one-line questions, waiting
fixtures       answering from a file
form/          the form of `answer`
answer_texts, transcript: questions, answers and turns as text
"""

import sys

from session_server.cli.failures import ExitCode

__all__ = ["main"]


def main() -> None:
    """Loads the program here, so that Ctrl-C while it loads is handled too."""
    try:
        from session_server.cli.program import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
