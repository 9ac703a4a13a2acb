"""The page on every command and option, from the program itself; part of `docs/build.py`."""

from collections.abc import Iterator
from typing import Any

import typer

from session_server.cli.failures import MEANINGS, ExitCode
from session_server.cli.program import app

SHARED = ("url", "token", "as_json", "help")


def cli_page() -> str:
    program = typer.main.get_command(app)
    lines = [
        "# Commands",
        "",
        "<!-- Written by docs/build.py. -->",
        "",
        "Every command and its options. [The guide](../cli.md) says how to use them.",
        "",
        "## Options of every command",
        "",
        "Before or after the name of the command; `serve` has [settings](settings.md) instead.",
        "",
        *options(param for param in program.params if param.name in SHARED),
        "## Exit codes",
        "",
        *table(("Code", "Name", "Meaning"), exit_codes()),
    ]
    for name, command in sorted(commands(program)):
        lines += section(name, command)
    return "\n".join(lines).rstrip() + "\n"


def exit_codes() -> Iterator[tuple[str, ...]]:
    for code in ExitCode:
        yield f"`{code.value}`", f"`{code.name}`", MEANINGS[code]


def commands(group: Any, prefix: str = "session-server") -> Iterator[tuple[str, Any]]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def section(name: str, command: Any) -> list[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([name, *(shown_argument(a) for a in arguments)])
    lines = [f"## `{usage}`", "", *paragraphs(command.help or ""), ""]
    if name.endswith(" serve"):
        return [*lines, "Its options are the [settings](settings.md), and `--config FILE`.", ""]
    if arguments:
        rows = ((f"`{argument.name.upper()}`", help_text(argument)) for argument in arguments)
        lines += table(("Argument", "Meaning"), rows)
    return [*lines, *options(p for p in command.params if p.name not in SHARED)]


def shown_argument(argument: Any) -> str:
    name = argument.name.upper()
    return name if argument.required else f"[{name}]"


def paragraphs(text: str) -> list[str]:
    """One line each, with empty ones between."""
    lines: list[str] = []
    for part in text.split("\n\n"):
        lines += ["", " ".join(part.split())]
    return lines[1:]


def options(params: Any) -> list[str]:
    rows = [
        (", ".join(f"`{flag}`" for flag in (*p.opts, *p.secondary_opts)), help_text(p))
        for p in params
        if p.param_type_name == "option" and not p.hidden
    ]
    return table(("Option", "Meaning"), iter(rows)) if rows else []


def help_text(param: Any) -> str:
    text = param.help or ""
    variable = getattr(param, "envvar", None)
    return f"{text} Or `{variable}`." if variable else text


def table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    cells = [heads, tuple("---" for _ in heads), *rows]
    return [*(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in row)} |" for row in cells), ""]
