"""A server of both eras with tools of both styles: asking on the connection, and by their result.

Of the Python SDK 2.x or, with `--framework fastmcp`, of FastMCP. Run as a file: on stdin and
stdout, or with `--port` over HTTP. `--only-2026` refuses the handshake of 2025.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ToolAnnotations,
)
from pydantic import BaseModel

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--port", type=int, help="serve HTTP on this port (0 picks one)")
parser.add_argument("--effects", type=Path, help="file with a line per side effect")
parser.add_argument("--framework", choices=["sdk", "fastmcp"], default="sdk")
parser.add_argument("--only-2026", action="store_true")
OPTIONS = parser.parse_args()

server: Any
if OPTIONS.framework == "fastmcp":
    from fastmcp import Context, FastMCP

    Asking: Any = Context
    server = FastMCP("zoo-dual")
else:
    from mcp.server.mcpserver import Context as SdkContext
    from mcp.server.mcpserver import MCPServer

    Asking = SdkContext[Any, Any]
    server = MCPServer("zoo-dual", version="1.0", log_level="CRITICAL")


class City(BaseModel):
    city: str


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def effect(tool: str) -> None:
    """One line for each time that it really happened."""
    if OPTIONS.effects is not None:
        with OPTIONS.effects.open("a") as file:
            file.write(json.dumps({"tool": tool, "pid": os.getpid()}) + "\n")


@server.tool()
async def book(ctx: Asking) -> str:
    """Does something, asks on the connection, and does the rest."""
    effect("begun")
    answer = await ctx.elicit("Which city?", City)
    effect("booked")
    return f"booked {answer.data.city}" if answer.action == "accept" else str(answer.action)


@server.tool()
async def cancel(ctx: Asking) -> str:
    """Another one like it."""
    effect("cancelling")
    answer = await ctx.elicit("Which city?", City)
    effect("cancelled")
    return f"cancelled {answer.data.city}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def look(ctx: Asking) -> str:
    """Asks on the connection, and is harmless."""
    answer = await ctx.elicit("Which city?", City)
    return f"looked at {answer.data.city}"


@server.tool()
def pick(ctx: Asking) -> str | InputRequiredResult:
    """Asks by its result."""
    response = (ctx.input_responses or {}).get("city")
    if response is not None:
        effect("picked")
        return f"picked {response.content['city']}"
    params = ElicitRequestFormParams(message="Which city?", requested_schema=SCHEMA)
    return InputRequiredResult(input_requests={"city": ElicitRequest(params=params)})


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def whereabouts() -> str:
    """Which process this is."""
    return str(os.getpid())


async def refusing_2025(ctx: Any, call_next: Any) -> Any:
    if ctx.method == "initialize":
        from mcp import MCPError  # noqa: PLC0415

        raise MCPError(-32601, "Method not found")
    return await call_next(ctx)


class Announced(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(f"ready http://127.0.0.1:{port}/mcp\n")
        sys.stdout.flush()


def main() -> None:
    if OPTIONS.only_2026:
        server._lowlevel_server.middleware.append(refusing_2025)
    if OPTIONS.port is None:
        server.run("stdio", **({"show_banner": False} if OPTIONS.framework == "fastmcp" else {}))
        return
    app = (
        server.http_app(path="/mcp")
        if OPTIONS.framework == "fastmcp"
        else server.streamable_http_app(host="127.0.0.1")
    )
    Announced(uvicorn.Config(app, "127.0.0.1", OPTIONS.port, log_level="critical")).run()


if __name__ == "__main__":
    main()
