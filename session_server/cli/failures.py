"""Errors as the command line shows them: a message, advice on what to do next, an exit code."""

from enum import IntEnum

from session_server.schemas.errors import SessionServerError

START_ONE = "Start one with `session-server serve`, or name another with --url."
GIVE_TOKEN = "Give a token with --token or SESSION_SERVER_TOKEN."  # noqa: S105
OTHER_ROLE = "Ask the owner of the host for a token with a wider role."
LIST_THEM = "`session-server sessions` lists all sessions."


class ExitCode(IntEnum):
    """Scripts rely on them: a number never changes its meaning."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DECLINED = 3
    CANCELLED = 4
    TIMED_OUT = 5
    UNREACHABLE = 6
    NOT_ALLOWED = 7
    NOT_FOUND = 8
    UNANSWERED = 9
    NO = 10
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "Done; for `ask`, and for the form of `answer`: accepted.",
    ExitCode.FAILED: "Failed; the reason is on standard error.",
    ExitCode.USAGE: "The command line, a question or a file is not valid.",
    ExitCode.DECLINED: "A person declined; for a message without questions, that is the no.",
    ExitCode.CANCELLED: "The question was closed without an answer: cancelled, withdrawn, or gone "
    "with its turn.",
    ExitCode.TIMED_OUT: "Timed out: the question's deadline, or `--wait`.",
    ExitCode.UNREACHABLE: "Can't reach a server at the address.",
    ExitCode.NOT_ALLOWED: "A token is required, or the given one is not valid or not sufficient.",
    ExitCode.NOT_FOUND: "There is no such session, question or token.",
    ExitCode.UNANSWERED: "A question was left open: a fixture has no answer for it, or more than "
    "one, or the person who was answering left.",
    ExitCode.NO: "The only question of an `ask` was a yes/no question, and the answer is not yes.",
    ExitCode.INTERRUPTED: "Stopped with Ctrl-C.",
}


class CliError(SessionServerError):
    """A command failed; `advice` is the next thing to try."""

    code = "failed"

    def __init__(
        self, message: str, exit_code: ExitCode = ExitCode.FAILED, advice: str = ""
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.advice = advice


class UsageError(CliError):
    """The command line, a question or a file is not valid."""

    code = "usage"

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message, ExitCode.USAGE, advice)
