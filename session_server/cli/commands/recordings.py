"""`export` and `replay`: a session as a file, and a file as a recording to watch."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from session_server.cli.commands.sessions import as_json
from session_server.cli.failures import CliError, UsageError
from session_server.cli.fixtures import read_bytes
from session_server.cli.http_client import Reach, session_path
from session_server.cli.output import err, out, print_json
from session_server.cli.session_names import (
    SessionArgument,
    found_uri,
    is_there,
    page_of,
    short_name,
)
from session_server.cli.values import time_option
from session_server.reducers.texts import session_uri
from session_server.schemas.ahp.session import SessionSummary
from session_server.schemas.wire import Millis

STDOUT = Path("-")
JSON_LINES = {"Content-Type": "application/x-ndjson"}


class Moment(msgspec.Struct):
    at: Millis = 0


class Head(msgspec.Struct):
    """The fields of a recording's line that are needed to play it in real time."""

    kind: str
    session: str | None = None
    damaged: bool = False
    stamp: Moment = msgspec.field(default_factory=Moment)


def export(
    reach: Reach,
    session: SessionArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; standard output if not given.")
    ] = STDOUT,
) -> None:
    """Write a session as one file: every entry of its log, in JSON lines, without secrets."""
    with reach.http() as http:
        uri = found_uri(http, session)
        recording = http.get(f"{session_path(uri)}/export", timeout=None).content
    last = recording.rstrip(b"\n").rpartition(b"\n")[2]
    end = _head(last)
    if end is None or end.kind != "end":
        raise CliError("The connection to the host broke before the end.", advice="Try again.")
    if end.damaged:
        err.print("What follows in the session's log is damaged and not in the file.")
    if output == STDOUT:
        sys.stdout.buffer.write(recording)
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(recording)
    except OSError as error:
        raise CliError(f"{output} cannot be written: {error.strerror}.") from None
    if reach.as_json:
        print_json({"file": str(output), "bytes": len(recording), "session": uri})
    else:
        err.print(f"{output}: {len(recording.splitlines()):,} lines")


def replay(
    reach: Reach,
    file: Annotated[Path, typer.Argument(help="A file that `export` wrote; `-` is stdin.")],
    speed: Annotated[
        float | None,
        typer.Option(
            help="Play it in real time: 1 as it was, 10 ten times as fast. At once if not given.",
            min=0.001,
        ),
    ] = None,
    as_name: Annotated[
        str | None,
        typer.Option(
            "--as", help="Name of the session to play it into; the recorded one if not given."
        ),
    ] = None,
    idle_limit: Annotated[
        float | None, time_option("With --speed: no pause is longer than this.")
    ] = None,
) -> None:
    """Play a file back as a session that can be watched; nothing in it runs or is sent again."""
    lines = [line for line in read_bytes(file).split(b"\n") if line.strip()]
    head = _head(lines[0]) if lines else None
    if head is None or head.kind != "cassette" or head.session is None:
        raise _not_a_recording(file)
    name = head.session
    if as_name is not None:
        name = session_uri(as_name)
        lines = _renamed(file, lines, name)
    if idle_limit is not None and speed is None:
        raise UsageError("--idle-limit needs --speed.")
    with reach.http() as http:
        # Checked before the upload: a host cannot interrupt a slow upload with an error.
        if is_there(http, name):
            message = f"There is a session {short_name(name)} already."
            raise CliError(message, advice="Play the recording under another name with --as NAME.")
        content: bytes | Iterator[bytes] = b"\n".join(lines)
        params: dict[str, str] = {}
        if speed is not None:
            err.print(f"Watch it with: session-server watch {short_name(name)}")
            content, params = _in_time(lines, speed, idle_limit), {"live": "true"}
        response = http.post(
            "/v1/replay", content=content, params=params, headers=JSON_LINES, timeout=None
        )
    summary = msgspec.json.decode(response.content, type=SessionSummary)
    if reach.as_json:
        print_json(as_json(summary), pretty=True)
    else:
        out.print(f"Replay finished: {page_of(reach, name)}")


def _renamed(file: Path, lines: list[bytes], name: str) -> list[bytes]:
    """The name is in the header, and in the record of the first entry."""
    try:
        header, opening = (msgspec.json.decode(line) for line in lines[:2])
        header["session"] = name
        opening["action"]["record"]["public"]["summary"]["resource"] = name
    except (msgspec.DecodeError, ValueError, KeyError, TypeError):
        raise _not_a_recording(file) from None
    return [msgspec.json.encode(header), msgspec.json.encode(opening), *lines[2:]]


def _not_a_recording(file: Path) -> UsageError:
    return UsageError(f"{file} is not a session recording.", "Create one with `export`.")


def _head(line: bytes) -> Head | None:
    try:
        return msgspec.json.decode(line, type=Head)
    except msgspec.MsgspecError:
        return None


def _in_time(lines: list[bytes], speed: float, limit: float | None) -> Iterator[bytes]:
    """Yields each line at its time."""
    before: int | None = None
    for number, line in enumerate(lines, 1):
        head = _head(line)
        if head is not None and head.kind == "entry":
            if before is not None:
                pause = max(0, head.stamp.at - before) / 1000 / speed
                time.sleep(pause if limit is None else min(pause, limit))
            before = head.stamp.at
        if err.is_terminal:
            err.file.write(f"\r{number}/{len(lines)} ")
            err.file.write("\n" if number == len(lines) else "")
            err.file.flush()
        yield line + b"\n"
