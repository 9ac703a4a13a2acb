"""Printing: answers to standard output, everything else to standard error."""

import sys
from typing import Any

import msgspec
from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    RenderableType,
    RenderHook,
    RenderResult,
)
from rich.segment import Segment

from session_server.cli.failures import CliError
from session_server.schemas.codec import encode

PIPE_WIDTH = 120

_SHOWN = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    **dict.fromkeys(
        (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
        "\N{REPLACEMENT CHARACTER}",
    ),
}


class Sanitized:
    """Shows control characters as symbols, so that the terminal does not execute them.

    Characters that change the direction of text are among them. Titles, questions and answers can
    come from anyone.
    """

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            is_ours = segment.control is not None
            yield segment if is_ours else Segment(sanitized(segment.text), segment.style)


class _EverythingSanitized(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [Sanitized(renderable) for renderable in renderables]


def sanitized(text: str) -> str:
    return text.translate(_SHOWN)


def _console(*, stderr: bool) -> Console:
    """A pipe gets the text as it is: programs read it."""
    console = Console(stderr=stderr, highlight=False, emoji=False, markup=False)
    if console.is_terminal:
        console.push_render_hook(_EverythingSanitized())
    else:
        console.width = PIPE_WIDTH
    return console


out = _console(stderr=False)
err = _console(stderr=True)


def print_text(text: str, *, on: Console = out) -> None:
    """Prints a text as it is; a pipe gets every character."""
    if on.is_terminal:
        on.print(text, soft_wrap=True)
    else:
        on.file.write(f"{text}\n")
        on.file.flush()


def print_json(value: Any, *, pretty: bool = False) -> None:
    """One line, for programs that read line by line; indented if it is the only output."""
    text = encode(value)
    sys.stdout.write((msgspec.json.format(text) if pretty else text).decode() + "\n")
    sys.stdout.flush()


def print_error(failure: CliError, *, as_json: bool) -> None:
    if as_json:
        report = {"error": str(failure), "exitCode": int(failure.exit_code)}
        if failure.advice:
            report["advice"] = failure.advice
        sys.stderr.write(encode(report).decode() + "\n")
        return
    err.print(str(failure), style="red", soft_wrap=True)
    if failure.advice:
        err.print(failure.advice, soft_wrap=True)
