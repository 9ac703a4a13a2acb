"""A server of the Python SDK, revision 2026-07-28 (2025-era clients are served too).

Resolver-style questions, hand-made rounds, dependent rounds, sealed state, side effects that are
counted. Run as a file: on stdin and stdout, or with `--port` over HTTP.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import uvicorn
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.request_state import RequestStateSecurity
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

READ_ONLY = ToolAnnotations(read_only_hint=True)


class Options(argparse.Namespace):
    port: int | None
    ttl: float
    key: str | None
    effects: Path | None
    name: str
    extra_key: bool
    token: str | None


def options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, help="serve HTTP on this port (0 picks one)")
    parser.add_argument("--ttl", type=float, default=600.0, help="seconds that a state is good for")
    parser.add_argument("--key", help="32 characters or more: states outlive the process")
    parser.add_argument("--effects", type=Path, help="file with a line per side effect")
    parser.add_argument("--name", default="zoo-modern")
    parser.add_argument(
        "--extra-key", action="store_true", help="`pair` asks one question more, as if upgraded"
    )
    parser.add_argument("--token", help="credential that every request over HTTP has to bring")
    return parser.parse_args(namespace=Options())


OPTIONS = options()
SECURITY = (
    RequestStateSecurity(keys=[OPTIONS.key], ttl=OPTIONS.ttl)
    if OPTIONS.key
    else RequestStateSecurity.ephemeral(ttl=OPTIONS.ttl)
)
server = MCPServer(
    OPTIONS.name,
    version="1.0",
    instructions="A server for tests.",
    request_state_security=SECURITY,
    log_level="CRITICAL",
)


def effect(tool: str, **what: Any) -> None:
    """One line for each time that it really happened."""
    if OPTIONS.effects is not None:
        with OPTIONS.effects.open("a") as file:
            file.write(json.dumps({"tool": tool, "pid": os.getpid(), **what}) + "\n")


def form(message: str, properties: dict[str, Any], required: list[str]) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": required}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def content_of(ctx: Context[Any, Any], key: str) -> dict[str, Any] | None:
    """What was accepted under this key, or nothing."""
    response = (ctx.input_responses or {}).get(key)
    if isinstance(response, ElicitResult) and response.action == "accept":
        return dict(response.content or {})
    return None


# Without questions.


@server.tool(title="Say it back", annotations=READ_ONLY)
def echo(text: str) -> str:
    """Say it back."""
    return text


@server.tool()
def fail(words: str = "no luck") -> str:
    """End with an error."""
    raise ToolError(words)


@server.tool()
async def count(steps: int, ctx: Context[Any, Any], pause: float = 0.0) -> str:
    """Report progress step by step."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        await asyncio.sleep(pause)
    return f"counted to {steps}"


@server.tool(name="effects", annotations=READ_ONLY)
def effects_so_far(tool: str) -> int:
    """How often a tool has had its effect."""
    if OPTIONS.effects is None or not OPTIONS.effects.exists():
        return 0
    return sum(json.loads(line)["tool"] == tool for line in OPTIONS.effects.open())


@server.tool(annotations=READ_ONLY)
def mirror(ctx: Context[Any, Any]) -> str:
    """What the client declares, and which process it talks to."""
    can = ctx.client_capabilities
    declared = {} if can is None else can.model_dump(by_alias=True, mode="json", exclude_none=True)
    return json.dumps({"pid": os.getpid(), "capabilities": declared})


# Questions asked by resolvers: the SDK keeps the answers in its sealed state.


class City(BaseModel):
    city: str = Field(title="City", min_length=1)


class Environment(BaseModel):
    environment: Literal["staging", "production"] = Field(description="Where to")


class Approval(BaseModel):
    sure: bool = Field(title="Really?")
    reason: str = Field(default="", description="Why")


class Window(BaseModel):
    minutes: int = Field(ge=1, le=60, description="How long it may take")


def which_city() -> Elicit[City]:
    return Elicit("Which city?", City)


def which_environment(service: str) -> Elicit[Environment]:
    return Elicit(f"Where should {service} go?", Environment)


def approval(
    where: Annotated[Environment, Resolve(which_environment)],
) -> Elicit[Approval] | Approval:
    """Asked for production only: a round that depends on the one before."""
    if where.environment == "production":
        return Elicit("This is production. Really?", Approval)
    return Approval(sure=True)


def window(
    where: Annotated[Environment, Resolve(which_environment)],
    approved: Annotated[Approval, Resolve(approval)],
) -> Elicit[Window]:
    return Elicit(f"How long may {where.environment} take ({approved.sure})?", Window)


@server.tool()
def weather(city: Annotated[City, Resolve(which_city)]) -> str:
    """One question, then an effect. Declining or cancelling ends the call."""
    effect("weather", city=city.city)
    return f"Sunny in {city.city}"


@server.tool()
def survey(city: Annotated[ElicitationResult[City], Resolve(which_city)]) -> str:
    """One question; says which of the three answers it got."""
    effect("survey", action=city.action)
    return f"{city.action}: {city.data.city}" if city.action == "accept" else city.action


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def forecast(city: Annotated[City, Resolve(which_city)]) -> str:
    """Like `weather`, but marked idempotent."""
    effect("forecast", city=city.city)
    return f"Rain in {city.city}"


@server.tool()
def deploy(
    service: str,
    where: Annotated[Environment, Resolve(which_environment)],
    approved: Annotated[Approval, Resolve(approval)],
) -> str:
    """One round for staging, two for production."""
    if not approved.sure:
        return f"{service} stays where it is"
    effect("deploy", service=service, environment=where.environment)
    return f"{service} is in {where.environment}"


@server.tool()
def release(
    service: str,
    where: Annotated[Environment, Resolve(which_environment)],
    approved: Annotated[Approval, Resolve(approval)],
    within: Annotated[Window, Resolve(window)],
) -> str:
    """Three rounds for production, each depending on the ones before."""
    effect("release", service=service, environment=where.environment, sure=approved.sure)
    return f"{service} is in {where.environment} within {within.minutes} minutes"


# Rounds made by hand.


@server.tool()
def pair(ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """Two questions at once, and a state of its own that the answers are checked against."""
    name, age = content_of(ctx, "name"), content_of(ctx, "age")
    extra = content_of(ctx, "extra") if OPTIONS.extra_key else {}
    if name is not None and age is not None and extra is not None and ctx.request_state:
        effect("pair", name=name["name"], age=age["age"])
        return f"{name['name']} is {age['age']}" + (f", {extra['extra']}" if extra else "")
    text = {"type": "string", "minLength": 1}
    asked = {
        "name": form("Your name?", {"name": text}, ["name"]),
        "age": form("Your age?", {"age": {"type": "integer", "minimum": 0}}, ["age"]),
    }
    if OPTIONS.extra_key:
        asked["extra"] = form("Anything else?", {"extra": text}, ["extra"])
    return InputRequiredResult(input_requests=asked, request_state="pair:open")


@server.tool()
def stateless(ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """A round without any state: the retry may hold none either."""
    answer = content_of(ctx, "colour")
    if answer is not None:
        effect("stateless", state=ctx.request_state)
        return f"{answer['colour']}, state {ctx.request_state!r}"
    colours = {"colour": {"type": "string", "enum": ["red", "green"]}}
    return InputRequiredResult(input_requests={"colour": form("A colour?", colours, ["colour"])})


@server.tool()
def ladder(rounds: int, ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """As many rounds as are asked for; each answer travels on in the state."""
    so_far: list[str] = json.loads(ctx.request_state) if ctx.request_state else []
    answer = content_of(ctx, f"step{len(so_far) + 1}")
    if answer is not None:
        so_far.append(answer["text"])
    if len(so_far) >= rounds:
        effect("ladder", answers=so_far)
        return " ".join(so_far)
    step = form(f"Step {len(so_far) + 1} of {rounds}", {"text": {"type": "string"}}, ["text"])
    return InputRequiredResult(
        input_requests={f"step{len(so_far) + 1}": step}, request_state=json.dumps(so_far)
    )


@server.tool()
def visit(ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """A URL to be opened; consent is all that comes back."""
    response = (ctx.input_responses or {}).get("consent")
    if isinstance(response, ElicitResult):
        effect("visit", action=response.action)
        return f"{response.action} {json.dumps(response.content)}"
    params = ElicitRequestURLParams(message="Sign in, please.", url="https://example.com/in?a=b")
    return InputRequiredResult(
        input_requests={"consent": ElicitRequest(params=params)}, request_state="visit"
    )


@server.tool()
def busy(times: int, ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """Answered with a state alone, this many times."""
    done = int(ctx.request_state or 0)
    if done < times:
        return InputRequiredResult(request_state=str(done + 1))
    effect("busy", times=done)
    return f"ready after {done}"


@server.tool()
def vault(secret: str, ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """Holds its secret argument in its state; neither may ever be shown."""
    answer = content_of(ctx, "open")
    if answer is not None and ctx.request_state == f"state-of-{secret}":
        effect("vault", opened=answer["sure"])
        return f"opened: {answer['sure']}"
    asked = form("Open the vault?", {"sure": {"type": "boolean"}}, ["sure"])
    return InputRequiredResult(input_requests={"open": asked}, request_state=f"state-of-{secret}")


@server.tool()
def every_kind(ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """A form with every kind of property."""
    answer = content_of(ctx, "form")
    if answer is not None:
        return json.dumps(answer, sort_keys=True)
    properties = {
        "text": {"type": "string", "title": "Text", "maxLength": 20, "default": "hello"},
        "email": {"type": "string", "format": "email"},
        "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"},
        "number": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        "whole": {"type": "integer", "default": 3},
        "flag": {"type": "boolean", "default": True},
        "plain": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "titled": {"type": "string", "oneOf": [{"const": "x", "title": "An x"}, {"const": "y"}]},
        "legacy": {"type": "string", "enum": ["p", "q"], "enumNames": ["Pea", "Queue"]},
        "many": {"type": "array", "items": {"enum": ["1", "2", "3"]}, "maxItems": 2},
    }
    asked = form("One of each", properties, ["email"])
    return InputRequiredResult(input_requests={"form": asked}, request_state="form")


@server.tool()
def nested() -> InputRequiredResult:
    """A form that cannot be shown."""
    inner = {"type": "object", "properties": {"deep": {"type": "string"}}}
    return InputRequiredResult(input_requests={"in": form("Deep", {"inner": inner}, [])})


@server.tool()
def sample(ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """Asks the client's model instead of a person."""
    if ctx.input_responses:
        return "sampled"
    words = SamplingMessage(role="user", content=TextContent(text="Paris?"))
    params = CreateMessageRequestParams(messages=[words], max_tokens=5)
    return InputRequiredResult(input_requests={"model": CreateMessageRequest(params=params)})


@server.tool()
def folders(ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """Asks for the client's roots."""
    if ctx.input_responses:
        roots = ctx.input_responses["roots"]
        return ",".join(str(root.uri) for root in getattr(roots, "roots", []))
    return InputRequiredResult(input_requests={"roots": ListRootsRequest()})


# Prompts and resources.


@server.prompt()
def greeting(name: str) -> str:
    """A prompt without questions."""
    return f"Greet {name}."


@server.prompt()
def brief(ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """A prompt that asks for its subject."""
    answer = content_of(ctx, "subject")
    if answer is not None:
        return f"Write about {answer['subject']}."
    asked = form("About what?", {"subject": {"type": "string"}}, ["subject"])
    return InputRequiredResult(input_requests={"subject": asked}, request_state="brief")


@server.resource("zoo://sign")
def sign() -> str:
    """A resource without questions."""
    return "Do not feed."


@server.resource("zoo://cage/{animal}")
def cage(animal: str, ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """A resource that asks for a key first."""
    answer = content_of(ctx, "key")
    if answer is not None:
        return f"{animal} behind {answer['key']}"
    asked = form("The key?", {"key": {"type": "string"}}, ["key"])
    return InputRequiredResult(input_requests={"key": asked}, request_state="cage")


async def take_for_task(ctx: Any, call_next: Any) -> Any:
    """The tasks extension, which nobody declared: a result of a type that is not spoken."""
    if ctx.method == "tools/call" and (ctx.params or {}).get("name") == "task":
        now = "2026-01-01T00:00:00Z"
        times = {"createdAt": now, "lastUpdatedAt": now, "ttlMs": 1000}
        return {"resultType": "task", "taskId": "t1", "status": "working", **times}
    return await call_next(ctx)


@server.tool()
def task() -> str:
    """Answered as a task."""
    return "never reached"


server.middleware.append(take_for_task)


def announce(url: str) -> None:
    sys.stdout.write(f"ready {url}\n")
    sys.stdout.flush()


class Announced(uvicorn.Server):
    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        announce(f"http://127.0.0.1:{port}/mcp")


def behind_a_gate(app: Any) -> Any:
    """As servers with OAuth answer: who brings no token, or another, is told which one to get."""

    async def gate(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization")
        if scope["type"] != "http" or OPTIONS.token is None or given == wanted:
            await app(scope, receive, send)
            return
        challenge = (b"www-authenticate", b'Bearer error="invalid_token", scope="zoo:feed zoo:see"')
        await send({"type": "http.response.start", "status": 401, "headers": [challenge]})
        await send({"type": "http.response.body", "body": b"no"})

    wanted = f"Bearer {OPTIONS.token}".encode()
    return gate


def main() -> None:
    if OPTIONS.port is None:
        server.run("stdio")
        return
    app = behind_a_gate(server.streamable_http_app(host="127.0.0.1"))
    config = uvicorn.Config(app, "127.0.0.1", OPTIONS.port, log_level="warning")
    Announced(config).run()


if __name__ == "__main__":
    main()
