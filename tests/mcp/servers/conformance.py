"""What the official conformance suite expects of a server that speaks both eras.

Names and shapes are the suite's. Its scenarios of 2025 have tools that ask on the connection, those
of 2026 tools that return their questions. Run as a file: on stdin and stdout, or with `--port` over
HTTP.
"""

import argparse
import asyncio
import base64
import json
import sys
import warnings
from typing import Annotated, Any

import uvicorn
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolResult,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    JSONRPCMessage,
    ListRootsRequest,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import Field
from starlette.types import ASGIApp, Receive, Scope, Send

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--port", type=int, help="serve HTTP on this port (0 picks one)")
OPTIONS = parser.parse_args()

server = MCPServer("conformance", version="1.0", log_level="CRITICAL")
Asking = Context[Any, Any]


def ask(message: str, field: str, type_: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": type_}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=9))


def answer(ctx: Asking, key: str) -> dict[str, Any] | None:
    response = (ctx.input_responses or {}).get(key)
    if isinstance(response, ElicitResult) and response.action == "accept":
        return dict(response.content or {})
    return None


@server.tool(name="test_input_required_result_elicitation")
def elicitation(ctx: Asking) -> str | InputRequiredResult:
    """Ask for a name."""
    name = answer(ctx, "user_name")
    if name is not None:
        return f"Hello, {name.get('name')}!"
    return InputRequiredResult(input_requests={"user_name": ask("What is your name?", "name")})


@server.tool(name="test_input_required_result_sampling")
def sampled(ctx: Asking) -> str | InputRequiredResult:
    """Ask a model."""
    response = (ctx.input_responses or {}).get("capital_question")
    if response is not None:
        return str(getattr(response, "content", None))
    asked = sampling("What is the capital of France?")
    return InputRequiredResult(input_requests={"capital_question": asked})


@server.tool(name="test_input_required_result_list_roots")
def roots(ctx: Asking) -> str | InputRequiredResult:
    """Ask for the roots."""
    response = (ctx.input_responses or {}).get("client_roots")
    if response is not None:
        return ", ".join(str(root.uri) for root in getattr(response, "roots", []))
    return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})


@server.tool(name="test_input_required_result_request_state")
def state(ctx: Asking) -> str | InputRequiredResult:
    """Ask with a state."""
    if answer(ctx, "confirm") is not None and ctx.request_state == "confirming":
        return "state-ok"
    asked = ask("Please confirm", "ok", "boolean")
    return InputRequiredResult(input_requests={"confirm": asked}, request_state="confirming")


@server.tool(name="test_input_required_result_multiple_inputs")
def several(ctx: Asking) -> str | InputRequiredResult:
    """Ask three things at once."""
    given = ctx.input_responses or {}
    if {"user_name", "greeting", "client_roots"} <= given.keys() and ctx.request_state:
        return "all three"
    asked = {
        "user_name": ask("What is your name?", "name"),
        "greeting": sampling("Generate a greeting"),
        "client_roots": ListRootsRequest(),
    }
    return InputRequiredResult(input_requests=asked, request_state="several")


@server.tool(name="test_input_required_result_multi_round")
def rounds(ctx: Asking) -> str | InputRequiredResult:
    """Ask in two rounds."""
    colour = answer(ctx, "step2")
    if colour is not None and ctx.request_state and ctx.request_state.startswith("second:"):
        return f"{ctx.request_state.removeprefix('second:')} likes {colour.get('color')}"
    name = answer(ctx, "step1")
    if name is not None and ctx.request_state == "first":
        asked = ask("Step 2: What is your favorite color?", "color")
        told = f"second:{name.get('name')}"
        return InputRequiredResult(input_requests={"step2": asked}, request_state=told)
    asked = ask("Step 1: What is your name?", "name")
    return InputRequiredResult(input_requests={"step1": asked}, request_state="first")


@server.tool(name="test_input_required_result_tampered_state")
def tampered(ctx: Asking) -> str | InputRequiredResult:
    """Ask with a state that must come back unchanged."""
    if ctx.request_state == "sealed":
        return "untouched"
    asked = ask("Please confirm", "ok", "boolean")
    return InputRequiredResult(input_requests={"confirm": asked}, request_state="sealed")


@server.tool(name="test_input_required_result_capabilities")
def capabilities(ctx: Asking) -> str | InputRequiredResult:
    """Asks only for what the client says it can do."""
    can = ctx.client_capabilities
    asked: dict[str, Any] = {}
    if can is not None and can.sampling is not None:
        asked["sampling"] = sampling("Hello?")
    if can is not None and can.elicitation is not None:
        asked["elicitation"] = ask("What is your name?", "name")
    if not asked or ctx.input_responses:
        return "nothing to ask"
    return InputRequiredResult(input_requests=asked)


@server.prompt(name="test_input_required_result_prompt")
def prompt(ctx: Asking) -> str | InputRequiredResult:
    """A prompt that asks for its context."""
    context = answer(ctx, "user_context")
    if context is not None:
        return f"Use {context.get('context')}."
    asked = ask("What context should the prompt use?", "context")
    return InputRequiredResult(input_requests={"user_context": asked})


# Scenarios of both eras, and those of 2025, whose tools ask on the connection

warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAA"
    "AABJRU5ErkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
PAUSE = 0.05
RETRY_MS = 50


def embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=kind, text=text))


@server.tool(name="test_simple_text")
def simple_text() -> str:
    """Say one thing."""
    return "This is a simple text response for testing."


@server.tool(name="test_image_content")
def image() -> CallToolResult:
    """Show one point."""
    return CallToolResult(content=[ImageContent(data=PNG, mime_type="image/png")])


@server.tool(name="test_audio_content")
def audio() -> CallToolResult:
    """Play nothing."""
    return CallToolResult(content=[AudioContent(data=WAV, mime_type="audio/wav")])


@server.tool(name="test_embedded_resource")
def embedded_resource() -> CallToolResult:
    """Hand out a resource."""
    text = "This is an embedded resource content."
    return CallToolResult(content=[embedded("test://embedded-resource", "text/plain", text)])


@server.tool(name="test_multiple_content_types")
def mixed() -> CallToolResult:
    """Some of everything."""
    return CallToolResult(
        content=[
            TextContent(text="Multiple content types test:"),
            ImageContent(data=PNG, mime_type="image/png"),
            embedded(
                "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
            ),
        ]
    )


@server.tool(name="test_error_handling")
def failing() -> str:
    """Never works."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool(name="test_tool_with_logging")
async def logging(ctx: Asking) -> str:
    """Say what it is doing."""
    await ctx.info("Tool execution started")
    await asyncio.sleep(PAUSE)
    await ctx.info("Tool processing data")
    await asyncio.sleep(PAUSE)
    await ctx.info("Tool execution completed")
    return "It was logged."


async def set_level(ctx: Any, params: SetLevelRequestParams) -> EmptyResult:
    del ctx, params
    return EmptyResult()


# The SDK's own class offers no logging, although its tools log.
server._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)


@server.tool(name="test_tool_with_progress")
async def progress(ctx: Asking) -> str:
    """Say how far it is."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await asyncio.sleep(PAUSE)
    return "It was reported."


@server.tool(name="test_sampling")
async def sampling_on_the_connection(prompt: str, ctx: Asking) -> str:
    """Ask the client's model."""
    words = SamplingMessage(role="user", content=TextContent(text=prompt))
    answer = await ctx.session.create_message([words], max_tokens=100)
    return f"LLM response: {getattr(answer.content, 'text', '')}"


async def elicited(ctx: Asking, message: str, properties: dict[str, Any], *required: str) -> str:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    answer = await ctx.session.elicit_form(message, schema, ctx.request_id)
    return f"action={answer.action}, content={answer.content}"


@server.tool(name="test_elicitation")
async def elicitation_on_the_connection(message: str, ctx: Asking) -> str:
    """Ask the client's user."""
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    return f"User response: {await elicited(ctx, message, fields, *fields)}"


@server.tool(name="test_elicitation_sep1034_defaults")
async def defaults(ctx: Asking) -> str:
    """Ask with a default for every kind."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    }
    return f"Elicitation completed: {await elicited(ctx, 'Please review', fields)}"


@server.tool(name="test_elicitation_sep1330_enums")
async def enums(ctx: Asking) -> str:
    """Ask with every kind of choice."""
    names = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
    fields = {
        "untitledSingle": {"type": "string", "enum": names},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": names, "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": names}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return f"Elicitation completed: {await elicited(ctx, 'Please choose', fields)}"


@server.tool(name="test_reconnection")
async def reconnection(ctx: Asking) -> str:
    """End the stream of the request before its answer (SEP-1699)."""
    await ctx.close_sse_stream()
    await asyncio.sleep(PAUSE)
    return "It was resumed."


@server.tool(name="test_custom_header")
def custom_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Take an argument that is sent as a header too (SEP-2243)."""
    return region


@server.tool(name="json_schema_2020_12_tool")
def json_schema() -> str:
    """Have a schema with keywords of JSON Schema 2020-12."""
    return "It was called."


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
# The SDK derives schemas from signatures, which cannot express this one.
made = server._tool_manager.get_tool("json_schema_2020_12_tool")
made.parameters = SCHEMA


# Changes, and what a client must declare


@server.tool(name="test_trigger_tool_change")
async def change_tools(ctx: Asking) -> str:
    """Announce that the tools have changed."""
    await ctx.notify_tools_changed()
    return "It was announced."


@server.tool(name="test_trigger_prompt_change")
async def change_prompts(ctx: Asking) -> str:
    """Announce that the prompts have changed."""
    await ctx.notify_prompts_changed()
    return "It was announced."


@server.tool(name="test_missing_capability")
def missing_capability(ctx: Asking) -> str:
    """Need a client with a model."""
    declared = ctx.client_capabilities
    if declared is None or declared.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Sampling is needed", needed)
    return "It was declared."


async def subscribe(ctx: Any, params: Any) -> EmptyResult:
    del ctx, params
    return EmptyResult()


for method, shape in (
    ("resources/subscribe", SubscribeRequestParams),
    ("resources/unsubscribe", UnsubscribeRequestParams),
):
    server._lowlevel_server.add_request_handler(method, shape, subscribe)


@server.resource("test://static-text", description="A text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary", description="A picture", mime_type="image/png")
def static_binary() -> bytes:
    return base64.b64decode(PNG)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002 - the suite's name
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt(name="test_simple_prompt", description="A prompt")
def simple_prompt() -> str:
    return "This is a simple prompt for testing."


@server.prompt(name="test_prompt_with_arguments", description="A prompt with arguments")
def prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt(name="test_prompt_with_embedded_resource", description="A prompt with a resource")
def prompt_with_resource(resourceUri: str) -> list[Any]:  # noqa: N803 - the suite's name
    text = "Embedded resource content for testing."
    return [
        UserMessage(embedded(resourceUri, "text/plain", text)),
        UserMessage("Please process the embedded resource above."),
    ]


@server.prompt(name="test_prompt_with_image", description="A prompt with a picture")
def prompt_with_image() -> list[Any]:
    return [
        UserMessage(ImageContent(data=PNG, mime_type="image/png")),
        UserMessage("Please analyze the image above."),
    ]


@server.completion()
async def completions(*_: Any) -> Completion:
    return Completion(values=["paris", "park", "party"], total=3, has_more=False)


class Events(EventStore):
    """Keeps what was sent on streams, so that a client can resume one."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        start = int(last_event_id)
        stream = self._events[start - 1][0]
        for number, (of, message) in enumerate(self._events[start:], start + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def with_trimmed_headers(app: ASGIApp) -> ASGIApp:
    """RFC 9110, 5.5: white space around a value does not belong to it. The SDK compares it."""

    async def trimmed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [(name, value.strip()) for name, value in scope["headers"]]
        await app(scope, receive, send)

    return trimmed


class Announced(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(f"ready http://127.0.0.1:{port}/mcp\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if OPTIONS.port is None:
        server.run("stdio")
    else:
        app = with_trimmed_headers(
            server.streamable_http_app(
                host="127.0.0.1", event_store=Events(), retry_interval=RETRY_MS
            )
        )
        Announced(uvicorn.Config(app, "127.0.0.1", OPTIONS.port, log_level="critical")).run()
