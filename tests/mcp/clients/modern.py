"""A client of the Python SDK 2.x; README.md beside it says what it takes and prints.

Tests may also run it in their own process, which saves loading the SDK once more.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, ErrorData, Implementation, PromptReference

HEARD_SECONDS = 60


class Reporter:
    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.asked: list[Any] = []
        self.progress: list[str] = []
        self.heard: list[str] = []

    def answer(self, params: Any) -> dict[str, Any]:
        if "match" in self.spec:
            fields = (getattr(params, "requested_schema", None) or {}).get("properties", {})
            picked = {k: v for k, v in self.spec["match"].items() if k in fields}
            return {"action": "accept", "content": picked or None}
        answers: list[dict[str, Any]] = self.spec["answers"]
        return answers[min(len(self.asked), len(answers)) - 1]

    async def elicited(self, _: Any, params: Any) -> ElicitResult | ErrorData:
        self.asked.append(params.model_dump(by_alias=True, mode="json", exclude_none=True))
        answer = self.answer(params)
        if answer["action"] == "hang":
            await asyncio.Event().wait()
        if answer["action"] == "fail":
            return ErrorData(code=-32603, message="there is no screen")
        return ElicitResult.model_validate(answer)

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        self.progress.append(message or "")

    async def one(self, client: Client, call: list[Any]) -> Any:
        method, *rest = call
        try:
            result = await self.perform(client, method, rest)
        except MCPError as error:
            return {"error": {"code": error.code, "message": error.message, "data": error.data}}
        except Exception as error:  # noqa: BLE001  the report is the only way out
            return {"error": {"code": None, "message": f"{type(error).__name__}: {error}"}}
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def perform(self, client: Client, method: str, rest: list[Any]) -> Any:
        match method:
            case "tools/call":
                return await client.call_tool(rest[0], rest[1], progress_callback=self.progressed)
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
            case "completion/complete":
                prompt = PromptReference(name=rest[0])
                return await client.complete(prompt, {"name": rest[1], "value": rest[2]})
            case _:
                raise ValueError(method)

    async def every(self, client: Client, calls: list[Any]) -> list[Any]:
        if self.spec.get("parallel"):
            return list(await asyncio.gather(*(self.one(client, call) for call in calls)))
        return [await self.one(client, call) for call in calls]

    async def watched(self, client: Client) -> list[Any]:
        """The calls, while it listens; and those for later, when it has heard enough."""
        watch = self.spec["watch"]
        uris = watch["uris"]
        listening = client.listen(tools_list_changed=True, resource_subscriptions=uris)
        async with listening as stream, asyncio.timeout(HEARD_SECONDS):
            results = await self.every(client, self.spec["calls"])
            while len(self.heard) < watch["events"]:
                event = await anext(stream)
                self.heard.append(getattr(event, "uri", "tools"))
        return results + await self.every(client, self.spec.get("later", []))

    @contextlib.asynccontextmanager
    async def target(self) -> AsyncIterator[Any]:
        if "command" in self.spec:
            program, *arguments = self.spec["command"]
            yield StdioServerParameters(command=program, args=arguments)
            return
        timeout = self.spec.get("timeout", 120)
        async with httpx2.AsyncClient(headers=self.spec.get("headers"), timeout=timeout) as http:
            yield streamable_http_client(self.spec["url"], http_client=http)

    async def report(self) -> dict[str, Any]:
        spec = self.spec
        can_answer = "answers" in spec or "match" in spec
        async with (
            self.target() as target,
            Client(
                target,
                elicitation_callback=self.elicited if can_answer else None,
                mode=spec.get("era", "auto"),
                client_info=Implementation(name=spec.get("name", "zoo-client"), version="1"),
                read_timeout_seconds=spec.get("timeout"),
            ) as client,
        ):
            if "watch" in spec:
                results = await self.watched(client)
            else:
                results = await self.every(client, spec["calls"])
            known = client.server_info
            return {
                "version": client.protocol_version,
                "server": known.name if known is not None else None,
                "instructions": client.instructions,
                "capabilities": client.server_capabilities.model_dump(
                    by_alias=True, mode="json", exclude_none=True
                ),
                "asked": self.asked,
                "progress": self.progress,
                "heard": self.heard,
                "results": results,
            }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(Reporter(json.loads(sys.argv[1])).report())))  # noqa: T201
