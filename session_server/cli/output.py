"""Where words go: answers to standard output, everything else to standard error."""

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

from session_server.cli.failures import Trouble
from session_server.schemas.codec import encode

PIPE_WIDTH = 120

_SHOWN = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    **dict.fromkeys(
        (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
        "\N{REPLACEMENT CHARACTER}",
    ),
}


class Harmless:
    """Shows control characters instead of sending them: a terminal would do what they say.

    Characters that turn the direction of writing are among them. Titles, questions and answers come
    from anybody.
    """

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            is_ours = segment.control is not None
            yield segment if is_ours else Segment(harmless(segment.text), segment.style)


class _EverythingHarmless(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [Harmless(renderable) for renderable in renderables]


def harmless(text: str) -> str:
    return text.translate(_SHOWN)


def _console(*, stderr: bool) -> Console:
    """What goes into a pipe goes as it is: programs read it."""
    console = Console(stderr=stderr, highlight=False, emoji=False)
    if console.is_terminal:
        console.push_render_hook(_EverythingHarmless())
    else:
        console.width = PIPE_WIDTH
    return console


out = _console(stderr=False)
err = _console(stderr=True)


def tell(text: str, *, on: Console = out) -> None:
    """What somebody said, and nothing else: a pipe gets every character of it."""
    if on.is_terminal:
        on.print(text, markup=False, soft_wrap=True)
    else:
        on.file.write(f"{text}\n")
        on.file.flush()


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
