"""An MCP server on stdin and stdout in a hurry: forked from a process that has loaded it already.

`python forking.py serve SOCKET FILE ARGUMENT…` loads the server and waits at the socket;
`python forking.py start SOCKET` is the command of one: it hands its own stdin, stdout and stderr
over, ends when the server does, and takes the server with it when it is killed. Nothing but the
standard library is needed, so that any environment's Python can run it.
"""

import contextlib
import importlib.util
import os
import select
import signal
import socket
import sys
from types import ModuleType

STREAMS = (0, 1, 2)
LOOK_SECONDS = 0.02


def start(path: str) -> None:
    """Returns when the server has ended."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(path)
        socket.send_fds(line, [b"start"], STREAMS)
        for stream in STREAMS:
            os.close(stream)
        line.recv(1)


def serve(path: str, file: str) -> None:
    loaded = load(file)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(path)
        door.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        lines: dict[int, socket.socket] = {}
        while True:
            awaited = [door, sys.stdin, *lines.values()]
            ready, _, _ = select.select(awaited, [], [], LOOK_SECONDS if lines else None)
            if sys.stdin in ready:
                return  # whoever started this is gone
            reap(lines, ready)
            if door in ready:
                line, _ = door.accept()
                lines[forked(line, loaded)] = line


def load(file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("server", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["server"] = module
    spec.loader.exec_module(module)
    return module


def forked(line: socket.socket, loaded: ModuleType) -> int:
    _, files, _, _ = socket.recv_fds(line, 16, len(STREAMS))
    pid = os.fork()
    if pid == 0:
        for stream, file in zip(STREAMS, files, strict=True):
            os.dup2(file, stream)
        os.closerange(STREAMS[-1] + 1, 256)  # also the other servers' streams
        with contextlib.suppress(SystemExit, KeyboardInterrupt):
            loaded.main()
        os._exit(0)
    for file in files:
        os.close(file)
    return pid


def reap(lines: "dict[int, socket.socket]", ready: "list[object]") -> None:
    for pid, line in tuple(lines.items()):
        if line in ready:
            os.kill(pid, signal.SIGKILL)  # its starter was killed
        ended, _ = os.waitpid(pid, 0 if line in ready else os.WNOHANG)
        if ended:
            lines.pop(pid).close()


if __name__ == "__main__":
    role, where, *rest = sys.argv[1:]
    if role == "start":
        start(where)
    else:
        sys.argv = rest
        serve(where, rest[0])
