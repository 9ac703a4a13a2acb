"""`session-server mcp`: the gateway for clients that start their MCP servers as processes."""

import logging
from typing import Annotated
from urllib.parse import quote

import httpx2
import msgspec
import typer

from session_server.cli.error_mapping import of_response
from session_server.cli.failures import GIVE_TOKEN, OTHER_ROLE, START_ONE, CliError, ExitCode
from session_server.cli.http_client import HTTP_SECONDS, Reach
from session_server.client.connecting import headers_of

NAME_ONE = "`session-server serve --mcp-config mcp.json` configures them."
_REFUSED = {
    401: (ExitCode.NOT_ALLOWED, GIVE_TOKEN),
    403: (ExitCode.NOT_ALLOWED, OTHER_ROLE),
    404: (ExitCode.NOT_FOUND, NAME_ONE),
}


async def mcp(
    reach: Reach,
    server: Annotated[
        str | None,
        typer.Argument(help="Name of a configured MCP server; without it, the ask tools."),
    ] = None,
    session: Annotated[
        str | None, typer.Option(help="Session to ask people in; otherwise one of its own.")
    ] = None,
) -> None:
    """Speak MCP on stdin and stdout, for a client's `mcp.json`.

    The host must be running: questions are answered in its sessions.
    """
    # The SDK takes a while to load, and no other command needs it.
    from session_server.gateway.mcp_callers import SESSION_HEADER  # noqa: PLC0415
    from session_server.gateway.stdio_bridge import Bridge  # noqa: PLC0415

    logging.disable(logging.CRITICAL)  # the SDK logs whole messages, with arguments
    headers = headers_of(reach.token)
    if session is not None:
        headers[SESSION_HEADER] = session
    address = f"{reach.url}/mcp" if server is None else f"{reach.url}/mcp/{quote(server, safe='')}"
    _check(address, headers)
    if not await Bridge(address, f"{reach.url}/healthz", headers).run():
        message = f"The host at {reach.url} stopped answering and did not come back."
        raise CliError(message, ExitCode.UNREACHABLE, START_ONE)


def _check(address: str, headers: dict[str, str]) -> None:
    """Checks access before MCP starts, to fail with a message; any other answer will do."""
    response = httpx2.get(address, headers=headers, timeout=HTTP_SECONDS)
    if response.status_code not in _REFUSED:
        return
    try:
        message: str = msgspec.json.decode(response.content)["error"]["message"]
    except (msgspec.DecodeError, KeyError, TypeError):
        raise of_response(response) from None
    raise CliError(message, *_REFUSED[response.status_code])
