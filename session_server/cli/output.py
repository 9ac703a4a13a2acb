"""Where words go: answers to standard output, everything else to standard error."""

import sys
from typing import Any

import msgspec
from rich.console import Console

from session_server.cli.trouble import Trouble
from session_server.schemas.codec import encode

PIPE_WIDTH = 120


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


out = _console(stderr=False)
err = _console(stderr=True)


def print_json(value: Any, *, pretty: bool = False) -> None:
    """One line for programs that read line by line; indented where it is the only thing said."""
    text = encode(value)
    sys.stdout.write((msgspec.json.format(text) if pretty else text).decode() + "\n")
    sys.stdout.flush()


def complain(trouble: Trouble, *, as_json: bool) -> None:
    if as_json:
        said = {"error": str(trouble), "exitCode": int(trouble.code)}
        if trouble.advice:
            said["advice"] = trouble.advice
        sys.stderr.write(encode(said).decode() + "\n")
        return
    err.print(str(trouble), style="red", markup=False, soft_wrap=True)
    if trouble.advice:
        err.print(trouble.advice, markup=False, soft_wrap=True)
