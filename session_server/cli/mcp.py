"""`session-server mcp`: the gateway for clients that start their MCP servers as processes."""

import logging
from typing import Annotated
from urllib.parse import quote

import typer

from session_server.cli.reach import Reach
from session_server.client.connecting import headers_of


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
    from session_server.gateway.bridge import Bridge  # noqa: PLC0415
    from session_server.gateway.visitors import SESSION_HEADER  # noqa: PLC0415

    logging.disable(logging.CRITICAL)  # the SDK logs whole messages, with arguments
    with reach.http() as http:
        http.get("/readyz")
    headers = headers_of(reach.token)
    if session is not None:
        headers[SESSION_HEADER] = session
    path = "/mcp" if server is None else f"/mcp/{quote(server, safe='')}"
    await Bridge(f"{reach.url}{path}", f"{reach.url}/readyz", headers).run()
