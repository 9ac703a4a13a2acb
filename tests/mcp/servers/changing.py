"""A server of the Python SDK, revision 2026-07-28, whose tools and resources change while it runs.

Its lists come in pages, and its prompt's argument can be completed. On stdin and stdout, or with
`--port` over HTTP.
"""

import argparse
import asyncio
import os
import sys
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
)

tools = ["grow", "touch"]
touched: list[str] = []
bus = InMemorySubscriptionBus()


async def list_tools(_: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
    """One tool a page."""
    at = int(params.cursor) if params is not None and params.cursor else 0
    page = [Tool(name=name, input_schema={"type": "object"}) for name in tools[at : at + 1]]
    return ListToolsResult(tools=page, next_cursor=str(at + 1) if at + 1 < len(tools) else None)


async def call_tool(_: Any, params: CallToolRequestParams) -> CallToolResult:
    arguments = params.arguments or {}
    if params.name == "grow":
        tools.append(arguments["name"])
        await bus.publish(ToolsListChanged())
    elif params.name == "touch":
        touched.append(arguments["uri"])
        await bus.publish(ResourceUpdated(arguments["uri"]))
    elif params.name == "end":
        os._exit(1)
    return CallToolResult(content=[TextContent(text=params.name)])


async def list_resources(_: Any, __: Any) -> ListResourcesResult:
    return ListResourcesResult(resources=[Resource(uri="zoo://tap", name="tap")])


async def read_resource(_: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
    text = f"touched {len(touched)} times"
    return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text=text)])


async def list_prompts(_: Any, __: Any) -> ListPromptsResult:
    argument = PromptArgument(name="animal")
    return ListPromptsResult(prompts=[Prompt(name="feed", arguments=[argument])])


async def get_prompt(_: Any, __: Any) -> GetPromptResult:
    return GetPromptResult(messages=[])


async def complete(_: Any, params: CompleteRequestParams) -> CompleteResult:
    known = [name for name in ("lion", "lynx", "newt") if name.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=known))


server: Server[Any] = Server(
    "zoo-changing",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_subscriptions_listen=ListenHandler(bus),
)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


class Announced(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(f"ready http://127.0.0.1:{port}/mcp\n")
        sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, help="serve HTTP on this port (0 picks one)")
    port = parser.parse_args().port
    if port is None:
        asyncio.run(main())
    else:
        app = server.streamable_http_app()
        Announced(uvicorn.Config(app, "127.0.0.1", port, log_level="critical")).run()
