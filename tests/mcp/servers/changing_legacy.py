"""What changing.py is, of the 2025 era (mcp 1.x, protocol 2025-11-25)."""

import asyncio
from typing import Any

from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    Completion,
    ListToolsRequest,
    ListToolsResult,
    Prompt,
    PromptArgument,
    Resource,
    ServerCapabilities,
    TextContent,
    Tool,
)

tools = ["grow", "touch"]
watched: set[str] = set()
touched: list[str] = []
server: Server[Any, Any] = Server("zoo-changing-legacy")


@server.list_tools()
async def list_tools(request: ListToolsRequest) -> ListToolsResult:
    """One tool a page."""
    at = int(request.params.cursor) if request.params and request.params.cursor else 0
    page = [Tool(name=name, inputSchema={"type": "object"}) for name in tools[at : at + 1]]
    return ListToolsResult(tools=page, nextCursor=str(at + 1) if at + 1 < len(tools) else None)


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> list[TextContent]:
    session = server.request_context.session
    if name == "grow":
        tools.append(arguments["name"])
        await session.send_tool_list_changed()
    elif name == "touch":
        touched.append(arguments["uri"])
        if arguments["uri"] in watched:
            await session.send_resource_updated(arguments["uri"])
    return [TextContent(type="text", text=name)]


@server.list_resources()
async def list_resources() -> list[Resource]:
    return [Resource(uri="zoo://tap", name="tap")]


@server.read_resource()
async def read_resource(_: Any) -> str:
    return f"touched {len(touched)} times"


@server.subscribe_resource()
async def subscribe(uri: Any) -> None:
    if not str(uri).startswith("zoo://"):
        raise ValueError(f"{uri} cannot be watched")
    watched.add(str(uri))


@server.unsubscribe_resource()
async def unsubscribe(uri: Any) -> None:
    watched.discard(str(uri))


@server.list_prompts()
async def list_prompts() -> list[Prompt]:
    return [Prompt(name="feed", arguments=[PromptArgument(name="animal")])]


@server.completion()
async def complete(_: Any, argument: Any, __: Any) -> Completion:
    known = [name for name in ("lion", "lynx", "newt") if name.startswith(argument.value)]
    return Completion(values=known)


def capabilities() -> ServerCapabilities:
    """This SDK never says that it can be subscribed to."""
    found = server.get_capabilities(NotificationOptions(tools_changed=True), {})
    found.resources.subscribe = True
    return found


async def main() -> None:
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    options.capabilities = capabilities()
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


if __name__ == "__main__":
    asyncio.run(main())
