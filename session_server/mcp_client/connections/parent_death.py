"""A server on stdin and stdout that ends with its host, also when the host is killed.

Run as a program, `parent_death.py HOST COMMAND ARGUMENT…` has Linux tell it when its parent ends
and then becomes the command. Most servers end when their stdin does; this is for those that do not.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    host, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != host:
        return  # it ended before it could be noticed
    try:
        os.execvp(command[0], command)  # noqa: S606 - what the configuration says
    except OSError as error:
        sys.exit(f"{command[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
