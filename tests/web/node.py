"""Node processes that run the page's modules."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.npm_modules import ROOT, node

HERE = Path(__file__).resolve().parent
DEADLINE = 60
NO_CHATTER = (
    "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
    "--disable-warning=ExperimentalWarning",
)


def run_tests(*names: str, deadline: float = DEADLINE) -> str:
    """Runs `node --test` on files of this folder; what it says if they fail."""
    files = [str(HERE / name) for name in names]
    return run("--test", "--test-reporter=spec", *files, deadline=deadline)


def run(*arguments: str, deadline: float = DEADLINE) -> str:
    done = subprocess.run(
        [node(), *NO_CHATTER, "--experimental-websocket", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=deadline,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


class Lines:
    """A long-lived process that answers each line of JSON with one."""

    def __init__(self, script: str) -> None:
        self._process = subprocess.Popen(
            [node(), *NO_CHATTER, str(HERE / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, question: bytes | str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        text = question if isinstance(question, str) else question.decode()
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline(), parse_int=float)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=DEADLINE)
        self._process.stdout.close()
