"""A client of the 2025 era (mcp 1.x); README.md beside it says what it takes and prints."""

import asyncio
import contextlib
import json
import sys
from datetime import timedelta

import httpx  # what SDK 1.x uses; httpx2 is not in its environment
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CreateMessageResult,
    ElicitResult,
    Implementation,
    ListRootsResult,
    PromptReference,
    ResourceUpdatedNotification,
    Root,
    TextContent,
    ToolListChangedNotification,
)

spec = json.loads(sys.argv[1])
asked = []
progress = []
heard = []
news = asyncio.Event()

HEARD_SECONDS = 60


def answer(params):
    if "match" in spec:
        fields = (getattr(params, "requestedSchema", None) or {}).get("properties", {})
        picked = {k: v for k, v in spec["match"].items() if k in fields}
        return {"action": "accept", "content": picked or None}
    return spec["answers"][min(len(asked), len(spec["answers"])) - 1]


async def elicited(_, params):
    asked.append(params.model_dump(by_alias=True, mode="json", exclude_none=True))
    return ElicitResult.model_validate(answer(params))


async def sampled(_, params):
    content = TextContent(type="text", text=spec["sample"])
    return CreateMessageResult(role="assistant", content=content, model="none")


async def roots_listed(_):
    return ListRootsResult(roots=[Root(uri=uri) for uri in spec["roots"]])


async def progressed(_, __, message):
    progress.append(message or "")


async def noticed(message):
    told = getattr(message, "root", None)
    if isinstance(told, ToolListChangedNotification):
        heard.append("tools")
    elif isinstance(told, ResourceUpdatedNotification):
        heard.append(str(told.params.uri))
    news.set()


async def watched(session):
    watch = spec["watch"]
    for uri in watch["uris"]:
        await session.subscribe_resource(uri)
    results = [await one(session, call) for call in spec["calls"]]
    async with asyncio.timeout(HEARD_SECONDS):
        while len(heard) < watch["events"]:
            news.clear()
            await news.wait()
    for uri in watch["uris"]:
        await session.unsubscribe_resource(uri)
    return results + [await one(session, call) for call in spec.get("later", [])]


async def one(session, call):
    method, *rest = call
    try:
        result = await perform(session, method, rest)
    except McpError as error:
        told = error.error
        return {"error": {"code": told.code, "message": told.message, "data": told.data}}
    except Exception as error:  # noqa: BLE001  the report is the only way out
        return {"error": {"code": None, "message": f"{type(error).__name__}: {error}"}}
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


async def perform(session, method, rest):
    match method:
        case "tools/call":
            return await session.call_tool(rest[0], rest[1], progress_callback=progressed)
        case "prompts/get":
            return await session.get_prompt(rest[0], rest[1] if len(rest) > 1 else None)
        case "resources/read":
            return await session.read_resource(rest[0])
        case "tools/list":
            return await session.list_tools()
        case "prompts/list":
            return await session.list_prompts()
        case "resources/list":
            return await session.list_resources()
        case "resources/templates/list":
            return await session.list_resource_templates()
        case "completion/complete":
            prompt = PromptReference(type="ref/prompt", name=rest[0])
            return await session.complete(prompt, {"name": rest[1], "value": rest[2]})
        case _:
            raise ValueError(method)


@contextlib.asynccontextmanager
async def streams():
    if "command" in spec:
        program, *arguments = spec["command"]
        async with stdio_client(StdioServerParameters(command=program, args=arguments)) as pair:
            yield pair
        return
    timeout = httpx.Timeout(spec.get("timeout", 120))
    async with (
        httpx.AsyncClient(headers=spec.get("headers"), timeout=timeout) as http,
        streamable_http_client(spec["url"], http_client=http) as (read, write, _),
    ):
        yield read, write


async def main():
    can_answer = "answers" in spec or "match" in spec
    async with (
        streams() as (read, write),
        ClientSession(
            read,
            write,
            read_timeout_seconds=timedelta(seconds=spec.get("timeout", 120)),
            message_handler=noticed,
            elicitation_callback=elicited if can_answer else None,
            sampling_callback=sampled if "sample" in spec else None,
            list_roots_callback=roots_listed if "roots" in spec else None,
            client_info=Implementation(name=spec.get("name", "zoo-client"), version="1"),
        ) as session,
    ):
        hello = await session.initialize()
        calls = spec["calls"]
        if "watch" in spec:
            results = await watched(session)
        elif spec.get("parallel"):
            results = await asyncio.gather(*(one(session, call) for call in calls))
        else:
            results = [await one(session, call) for call in calls]
        report = {
            "version": hello.protocolVersion,
            "server": hello.serverInfo.name,
            "instructions": hello.instructions,
            "capabilities": hello.capabilities.model_dump(
                by_alias=True, mode="json", exclude_none=True
            ),
            "asked": asked,
            "progress": progress,
            "heard": heard,
            "results": results,
        }
    print(json.dumps(report))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
