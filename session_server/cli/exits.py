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
    ExitCode.FAILED: "It did not work; the words on standard error say why.",
    ExitCode.USAGE: "The command line, a question or a file cannot be understood.",
    ExitCode.DECLINED: "A person declined; where a message alone is asked, that is the no.",
    ExitCode.CANCELLED: "The question was closed without an answer: cancelled, withdrawn, or gone "
    "with its turn.",
    ExitCode.TIMED_OUT: "The time given was over: a question's deadline, or `--wait`.",
    ExitCode.UNREACHABLE: "No host answers at the address.",
    ExitCode.NOT_ALLOWED: "The host wants a token, does not know this one, or it does not suffice.",
    ExitCode.NOT_FOUND: "There is no such session, question or token.",
    ExitCode.UNANSWERED: "A question was left open: a fixture has no answer for it, or more than "
    "one, or whoever was to answer left.",
    ExitCode.NO: "The only question of an `ask` was a yes/no question, and the answer is not yes.",
    ExitCode.INTERRUPTED: "Stopped with Ctrl-C.",
}
