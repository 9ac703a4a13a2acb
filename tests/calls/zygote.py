"""Server processes in a hurry: a process that has imported everything forks one for each test.

Run as a program it takes lines of JSON: `{"arguments", "environment", "output"}` starts a server
and is answered with its process id, `{"wait": pid}` with how it ended.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.servers import READY


class Zygote:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.calls.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(
        self, store: str, output: Path, *arguments: str, failpoints: str | None = None
    ) -> "Forked":
        environment = {} if failpoints is None else {"SESSION_SERVER_FAILPOINTS": failpoints}
        line = ["serve", "--port", "0", "--store", store, *arguments]
        output.write_text("")
        pid = self._asked(arguments=line, environment=environment, output=str(output))
        return Forked(self, int(pid), output)

    def wait(self, pid: int) -> int:
        return int(self._asked(wait=pid))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _asked(self, **question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


class Forked:
    """A server that was forked; `url` is where it listens."""

    def __init__(self, zygote: Zygote, pid: int, output: Path) -> None:
        self.pid = pid
        self.output = output
        self._zygote = zygote
        self.status: int | None = None

    def url(self) -> str | None:
        """Once it listens; `None` as long as it does not."""
        found = READY.search(self.output.read_text())
        return None if found is None else found[1]

    def kill(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.ended()

    def ended(self) -> int:
        """How it ended, once it has: the number of the signal, as subprocess has it."""
        if self.status is None:
            self.status = self._zygote.wait(self.pid)
        return self.status


def main() -> None:
    from session_server import app, cli  # noqa: F401, PLC0415
    from session_server.calls import failpoints  # noqa: PLC0415

    for line in sys.stdin:
        question = json.loads(line)
        if "wait" in question:
            answer = os.waitstatus_to_exitcode(os.waitpid(question["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                sys.stdin.close()
                become_server(failpoints, **question)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def become_server(
    failpoints: Any, arguments: list[str], environment: dict[str, str], output: str
) -> None:
    from session_server.cli import main as run  # noqa: PLC0415

    os.environ.update(environment)
    failpoints.read_again()
    file = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["session-server", *arguments]
    try:
        run()
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else 1)
    os._exit(0)


if __name__ == "__main__":
    main()
