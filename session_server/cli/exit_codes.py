"""What the program's exit codes mean. Scripts rely on them: a number never changes its meaning."""

from enum import IntEnum


class ExitCode(IntEnum):
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
    ExitCode.OK: "Done; for `ask` and `answer`: accepted.",
    ExitCode.FAILED: "It failed; the message on standard error says why.",
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
