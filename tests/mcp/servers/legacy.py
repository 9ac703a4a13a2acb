"""A server of the 2025 era (mcp 1.x, protocol 2025-11-25), run in an environment of its own.

It asks with `elicitation/create` while the call is held open. Run as a file: on stdin and stdout,
or with `--port` over HTTP.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import ElicitRequestURLParams, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--port", type=int, help="serve HTTP on this port (0 picks one)")
parser.add_argument("--effects", type=Path, help="file with a line per side effect")
OPTIONS = parser.parse_args()

server = FastMCP("zoo-legacy", instructions="A server of 2025.", log_level="CRITICAL")
signed_in: set[str] = set()
runs: list[str] = []


def effect(tool: str, **what: Any) -> None:
    """One line for each time that it really happened."""
    if OPTIONS.effects is not None:
        with OPTIONS.effects.open("a") as file:
            file.write(json.dumps({"tool": tool, "pid": os.getpid(), **what}) + "\n")


class City(BaseModel):
    city: str = Field(title="City", min_length=1)


class Environment(BaseModel):
    environment: str = Field(
        description="Where to", json_schema_extra={"enum": ["staging", "production"]}
    )


class Approval(BaseModel):
    sure: bool = Field(title="Really?")
    reason: str = Field(default="because", description="Why")


class Window(BaseModel):
    minutes: int = Field(ge=1, le=60, description="How long it may take")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def echo(text: str) -> str:
    """Say it back."""
    return text


@server.tool()
def fail(words: str = "no luck") -> str:
    """End with an error."""
    raise ToolError(words)


@server.tool()
async def count(steps: int, ctx: Context, pause: float = 0.0) -> str:
    """Report progress step by step."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        await asyncio.sleep(pause)
    effect("count", steps=steps)
    return f"counted to {steps}"


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def mirror(ctx: Context) -> str:
    """What the client declares, and which process it talks to."""
    can = ctx.session.client_params.capabilities
    declared = can.model_dump(by_alias=True, mode="json", exclude_none=True)
    return json.dumps({"pid": os.getpid(), "capabilities": declared})


@server.tool()
async def weather(ctx: Context) -> str:
    """One question, then an effect."""
    answer = await ctx.elicit("Which city?", City)
    effect("weather", action=answer.action)
    return f"Sunny in {answer.data.city}" if answer.action == "accept" else answer.action


@server.tool(annotations=ToolAnnotations(idempotentHint=True))
async def forecast(ctx: Context) -> str:
    """Like `weather`, but marked idempotent."""
    answer = await ctx.elicit("Which city?", City)
    effect("forecast", action=answer.action)
    return f"Rain in {answer.data.city}" if answer.action == "accept" else answer.action


@server.tool()
async def maybe(ask: bool, ctx: Context) -> str:
    """One question, if it is to ask."""
    if not ask:
        return "did not ask"
    answer = await ctx.elicit("Which city?", City)
    return f"asked about {answer.data.city}"


@server.tool()
async def until(path: str) -> str:
    """Runs until there is such a file."""
    while not os.path.exists(path):  # noqa: ASYNC110, ASYNC240, PTH110
        await asyncio.sleep(0.02)
    return "it is there"


@server.tool()
async def deploy(service: str, ctx: Context) -> str:
    """Two questions, the second depending on the first."""
    where = await ctx.elicit(f"Where should {service} go?", Environment)
    if where.action != "accept":
        return where.action
    if where.data.environment == "production":
        approved = await ctx.elicit("This is production. Really?", Approval)
        if approved.action != "accept" or not approved.data.sure:
            return f"{service} stays where it is"
    effect("deploy", service=service, environment=where.data.environment)
    return f"{service} is in {where.data.environment}"


@server.tool()
async def release(service: str, ctx: Context) -> str:
    """Three questions for production, each depending on the ones before."""
    where = await ctx.elicit(f"Where should {service} go?", Environment)
    approved = await ctx.elicit("This is production. Really?", Approval)
    words = f"How long may {where.data.environment} take ({approved.data.sure})?"
    within = await ctx.elicit(words, Window)
    effect("release", service=service, environment=where.data.environment)
    return f"{service} is in {where.data.environment} within {within.data.minutes} minutes"


@server.tool()
async def both(ctx: Context) -> str:
    """Two questions at the same time."""
    city, where = await asyncio.gather(
        ctx.elicit("Which city?", City), ctx.elicit("Where to?", Environment)
    )
    effect("both")
    return f"{city.data.city} {where.data.environment}"


@server.tool()
async def unordered(ctx: Context) -> str:
    """Two questions, each time in the other order."""
    runs.append("unordered")
    wanted = [("Which city?", City), ("Where to?", Environment)]
    answers = {}
    for words, form in wanted if len(runs) % 2 else reversed(wanted):
        answers[words] = await ctx.elicit(words, form)
    effect("unordered")
    return f"{answers['Which city?'].data.city} {answers['Where to?'].data.environment}"


@server.tool()
async def visit(ctx: Context) -> str:
    """A URL to be opened; consent is all that comes back."""
    answer = await ctx.elicit_url("Sign in, please.", "https://example.com/in?a=b", "sign-in")
    await ctx.session.send_elicit_complete("sign-in", ctx.request_id)
    effect("visit", action=answer.action)
    return answer.action


@server.tool()
async def gated(ctx: Context) -> str:
    """Fails with -32042 the first time: a URL must be opened before it is called again."""
    if "gated" not in signed_in:
        signed_in.add("gated")
        url = ElicitRequestURLParams(
            mode="url", message="Sign in first.", url="https://example.com/first", elicitationId="g"
        )
        raise UrlElicitationRequiredError([url])
    effect("gated")
    return "past the gate"


@server.tool()
async def sample(ctx: Context) -> str:
    """Asks the client's model instead of a person."""
    words = SamplingMessage(role="user", content=TextContent(type="text", text="Paris?"))
    answer = await ctx.session.create_message([words], max_tokens=5)
    return answer.content.text


@server.tool()
async def folders(ctx: Context) -> str:
    """Asks for the client's roots."""
    return ",".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.prompt()
def greeting(name: str) -> str:
    """A prompt without questions."""
    return f"Greet {name}."


@server.resource("zoo://sign")
def sign() -> str:
    """A resource without questions."""
    return "Do not feed."


class Announced(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(f"ready http://127.0.0.1:{port}/mcp\n")
        sys.stdout.flush()


def main() -> None:
    if OPTIONS.port is None:
        server.run("stdio")
        return
    app = server.streamable_http_app()
    Announced(uvicorn.Config(app, "127.0.0.1", OPTIONS.port, log_level="critical")).run()


if __name__ == "__main__":
    main()
