"""A client of the Python SDK 2.x; README.md beside it says what it takes and prints."""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, Implementation

spec: dict[str, Any] = json.loads(sys.argv[1])
asked: list[Any] = []
progress: list[str] = []


def answer(params: Any) -> dict[str, Any]:
    if "match" in spec:
        fields = (getattr(params, "requested_schema", None) or {}).get("properties", {})
        return {
            "action": "accept",
            "content": {k: v for k, v in spec["match"].items() if k in fields} or None,
        }
    position = min(len(asked), len(spec["answers"])) - 1
    picked: dict[str, Any] = spec["answers"][position]
    return picked


async def elicited(_: Any, params: Any) -> ElicitResult:
    asked.append(params.model_dump(by_alias=True, mode="json", exclude_none=True))
    return ElicitResult.model_validate(answer(params))


async def progressed(_: float, __: float | None, message: str | None) -> None:
    progress.append(message or "")


async def one(client: Client, call: list[Any]) -> Any:
    method, *rest = call
    try:
        result = await perform(client, method, rest)
    except MCPError as error:
        return {"error": {"code": error.code, "message": error.message, "data": error.data}}
    except Exception as error:  # noqa: BLE001  the report is the only way out
        return {"error": {"code": None, "message": f"{type(error).__name__}: {error}"}}
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


async def perform(client: Client, method: str, rest: list[Any]) -> Any:
    match method:
        case "tools/call":
            return await client.call_tool(rest[0], rest[1], progress_callback=progressed)
        case "prompts/get":
            return await client.get_prompt(rest[0], rest[1] if len(rest) > 1 else None)
        case "resources/read":
            return await client.read_resource(rest[0])
        case "tools/list":
            return await client.list_tools()
        case "prompts/list":
            return await client.list_prompts()
        case "resources/list":
            return await client.list_resources()
        case "resources/templates/list":
            return await client.list_resource_templates()
        case _:
            raise ValueError(method)


def target() -> Any:
    if "command" in spec:
        program, *arguments = spec["command"]
        return StdioServerParameters(command=program, args=arguments)
    http = httpx2.AsyncClient(headers=spec.get("headers"), timeout=spec.get("timeout", 120))
    return streamable_http_client(spec["url"], http_client=http)


async def main() -> None:
    can_answer = "answers" in spec or "match" in spec
    async with Client(
        target(),
        elicitation_callback=elicited if can_answer else None,
        mode=spec.get("era", "auto"),
        client_info=Implementation(name=spec.get("name", "zoo-client"), version="1"),
        read_timeout_seconds=spec.get("timeout"),
    ) as client:
        calls = spec["calls"]
        if spec.get("parallel"):
            results = await asyncio.gather(*(one(client, call) for call in calls))
        else:
            results = [await one(client, call) for call in calls]
        report = {
            "version": client.protocol_version,
            "server": client.server_info.name if client.server_info else None,
            "instructions": client.instructions,
            "capabilities": client.server_capabilities.model_dump(
                by_alias=True, mode="json", exclude_none=True
            ),
            "asked": asked,
            "progress": progress,
            "results": results,
        }
    print(json.dumps(report))  # noqa: T201


asyncio.run(main())
