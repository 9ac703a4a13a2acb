"""MCP servers and clients in a hurry: forked from a process that has loaded what they import.

`python forking.py serve DOOR FILE ARGUMENT…` loads the program's file with these arguments and
waits at the door, an abstract address; `python forking.py start DOOR ARGUMENT…` is the command of
one: it hands over its own streams, environment and folder, ends as the program does, and takes the
program with it when it is killed. Nothing but the standard library is needed, so that any
environment's Python can run it.
"""

import contextlib
import marshal
import os
import runpy
import select
import signal
import socket
import sys

STREAMS = (0, 1, 2)
LONGEST = 1 << 18


def connection() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def start(door: str, arguments: list[str]) -> int:
    """Returns when the program has ended; its exit code."""
    with connection() as line:
        line.connect(f"\0{door}")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
        # pathlib takes longer to load than all else here.
        order = marshal.dumps((arguments, dict(os.environ), os.getcwd()))  # noqa: PTH109
        socket.send_fds(line, [order], STREAMS)
        for stream in STREAMS:
            os.close(stream)
        return (line.recv(1) or b"\1")[0]


def serve(door: str, file: str, arguments: list[str]) -> None:
    sys.path[0] = os.path.dirname(file)  # noqa: PTH120
    sys.argv = [file, *arguments]
    runpy.run_path(file, run_name="loaded")
    with connection() as listener:
        listener.bind(f"\0{door}")
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        running: dict[int, tuple[int, socket.socket]] = {}
        while True:
            starters = {line.fileno(): handle for handle, (_, line) in running.items()}
            ready, _, _ = select.select([listener, sys.stdin, *running, *starters], [], [])
            if sys.stdin in ready:
                return  # whoever started this is gone
            for handle in {starters.get(one, one) for one in ready if isinstance(one, int)}:
                pid, line = running.pop(handle)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)  # if its starter was killed
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(OSError):
                    line.send(bytes([code & 0xFF]))
                os.close(handle)
                line.close()
            if listener in ready:
                line, _ = listener.accept()
                order, files, _, _ = socket.recv_fds(line, LONGEST, len(STREAMS))
                if not order:  # its starter was killed at once
                    line.close()
                    continue
                pid = forked(order, files, file)
                running[os.pidfd_open(pid)] = pid, line


def forked(order: bytes, files: list[int], file: str) -> int:
    pid = os.fork()
    if pid == 0:
        for stream, theirs in zip(STREAMS, files, strict=True):
            os.dup2(theirs, stream)
        os.closerange(STREAMS[-1] + 1, 256)  # also the others' streams
        run(file, *marshal.loads(order))
    for theirs in files:
        os.close(theirs)
    return pid


def run(file: str, arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Never returns."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = [file, *arguments]
    code = 1
    try:
        runpy.run_path(file, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter itself would
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    role, where, *rest = sys.argv[1:]
    if role == "start":
        sys.exit(start(where, rest))
    else:
        serve(where, rest[0], rest[1:])
