"""`call`: calls a tool of a configured MCP server, waits while people answer, prints the result."""

import sys
from typing import Annotated, Any
from urllib.parse import quote

import httpx2
import msgspec
import typer

from session_server.backoff import Backoff
from session_server.cli.failures import CliError, ExitCode, UsageError
from session_server.cli.http_client import JSON, Reach, session_path
from session_server.cli.output import err, out, print_json, print_text
from session_server.cli.polling import (
    Deadline,
    WaitOption,
    lease_option,
    polled,
    withdrawn_when_interrupted,
)
from session_server.cli.session_names import (
    print_started,
    print_where,
    session_option,
    session_to_ask_in,
)
from session_server.reducers.calls.presentation import shown_content
from session_server.schemas.ahp.tool_calls import ResourceContent, TextContent
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.http import CallState, CallView, NewCall
from session_server.schemas.limits import LEASE_SECONDS
from session_server.schemas.mcp import CallMethod

decode_call: Decoder[CallView] = Decoder(CallView)

LOOKS = (0.25, 5.0)
"""The first and the longest time between two looks at what it asks."""


def call(
    reach: Reach,
    server: Annotated[str, typer.Argument(help="Name of the server in the host's mcp.json.")],
    tool: Annotated[
        str, typer.Argument(help="Name of the tool or prompt, or URI of the resource.")
    ],
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            "-a",
            help="An argument: NAME=TEXT, or NAME:=JSON for numbers, yes-no, lists and objects."
            " Can be given several times.",
        ),
    ] = None,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Get a prompt instead of calling a tool.")
    ] = False,
    resource: Annotated[
        bool, typer.Option("--resource", help="Read a resource instead of calling a tool.")
    ] = False,
    session: Annotated[str | None, session_option("call", "one per server")] = None,
    wait: WaitOption = None,
    lease: Annotated[float, lease_option("result", "--no-wait")] = LEASE_SECONDS,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Call, and do not wait.")] = False,
) -> ExitCode:
    """Call a tool of an MCP server; when it asks, the people in the session answer.

    Prints the text of the result. The same call again, while it is open or its result was not
    fetched, goes on where it was. Exits with 1 if the tool reports an error or the call fails, with
    5 on timeout. Ctrl-C abandons the call.

    For example: `session-server call ops deploy --arg service=web`
    """
    wanted = NewCall(
        server=server,
        method=_method(prompt=prompt, resource=resource),
        params=_params(tool, arguments_of(arg or []), is_resource=resource),
        lease=None if no_wait else lease,
    )
    with reach.http() as http:
        with session_to_ask_in(http, session or f"call-{server}", f"Calls to {server}") as uri:
            path = f"{session_path(uri)}/calls"
            view = decode_call(http.post(path, content=encode(wanted), headers=JSON).content)
        if no_wait:
            return print_started(reach, "Called", view)
        with withdrawn_when_interrupted(
            http, _path(view), "The call was abandoned.", on_sigterm=False
        ):
            view = _awaited(reach, http, view, wait)
    return _report(reach, view, wait)


def arguments_of(given: list[str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for word in given:
        name, equals, value = word.partition("=")
        is_json = name.endswith(":")
        if not equals or not name.rstrip(":"):
            raise UsageError(f"{word!r} is not an argument.", "Write NAME=TEXT or NAME:=JSON.")
        try:
            arguments[name.removesuffix(":")] = msgspec.json.decode(value) if is_json else value
        except msgspec.DecodeError:
            raise UsageError(f"The value of {word!r} is not JSON.") from None
    return arguments


def _method(*, prompt: bool, resource: bool) -> CallMethod:
    if prompt and resource:
        raise UsageError("Give --prompt or --resource, not both.")
    return "prompts/get" if prompt else "resources/read" if resource else "tools/call"


def _params(target: str, arguments: dict[str, Any], *, is_resource: bool) -> dict[str, Any]:
    if not is_resource:
        return {"name": target, "arguments": arguments}
    if arguments:
        raise UsageError("A resource has no arguments. Leave them out.")
    return {"uri": target}


# Waiting


def _awaited(reach: Reach, http: httpx2.Client, view: CallView, wait: float | None) -> CallView:
    """Waits until it has ended or the time is up, and prints what it waits for."""
    deadline = Deadline(wait)
    printed: tuple[str, ...] = ()
    backoff = Backoff(*LOOKS)
    while view.is_open and (left := deadline.left(backoff.pause())):
        if view.requests and view.requests != printed:
            printed = view.requests
            asked = "a question" if len(printed) == 1 else f"{len(printed)} questions"
            print_where(reach, f"It asks {asked}", view.session)
        view = polled(http, _path(view), left, decode_call) or view
    return view


def _path(view: CallView) -> str:
    return f"/v1/calls/{quote(view.id, safe='')}"


# Printing


def _report(reach: Reach, view: CallView, wait: float | None) -> ExitCode:
    if reach.as_json:
        print_json(view, pretty=True)
    if view.is_open:
        message = f"It has not finished within {wait:g} s. It is still running."
        raise CliError(
            message, ExitCode.TIMED_OUT, "Run the same command again to wait for its result."
        )
    if view.state is CallState.ABANDONED:
        reason = view.reason or "no reason was given."
        raise CliError(f"The call was abandoned: {reason}", ExitCode.CANCELLED)
    if view.result is None:
        reason = "no reason was given" if view.error is None else view.error.message
        raise CliError(f"{view.server}/{view.target} failed: {reason}.")
    is_error = view.result.get("isError") is True
    if not reach.as_json:
        for line in result_lines(view.result):
            print_text(line, on=err if is_error else out)
    return ExitCode.FAILED if is_error else ExitCode.OK


def result_lines(result: dict[str, Any]) -> list[str]:
    """The whole texts, since programs read them."""
    lines: list[str] = []
    for piece in shown_content(result, room=sys.maxsize):
        match piece:
            case TextContent(text=text):
                lines.append(text)
            case ResourceContent(uri=uri):
                lines.append(uri)
            case _:
                lines.append(f"({getattr(piece, 'content_type', 'something')}; see --json)")
    return lines
