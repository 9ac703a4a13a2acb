"""What the official conformance suite expects of a server, for its input-required scenarios.

Their names and shapes are the suite's. Run as a file: on stdin and stdout, or with `--port` over
HTTP.
"""

import argparse
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

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
    name = answer(ctx, "user_name")
    if name is not None:
        return f"Hello, {name.get('name')}!"
    return InputRequiredResult(input_requests={"user_name": ask("What is your name?", "name")})


@server.tool(name="test_input_required_result_sampling")
def sampled(ctx: Asking) -> str | InputRequiredResult:
    response = (ctx.input_responses or {}).get("capital_question")
    if response is not None:
        return str(getattr(response, "content", None))
    asked = sampling("What is the capital of France?")
    return InputRequiredResult(input_requests={"capital_question": asked})


@server.tool(name="test_input_required_result_list_roots")
def roots(ctx: Asking) -> str | InputRequiredResult:
    response = (ctx.input_responses or {}).get("client_roots")
    if response is not None:
        return ", ".join(str(root.uri) for root in getattr(response, "roots", []))
    return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})


@server.tool(name="test_input_required_result_request_state")
def state(ctx: Asking) -> str | InputRequiredResult:
    if answer(ctx, "confirm") is not None and ctx.request_state == "confirming":
        return "state-ok"
    asked = ask("Please confirm", "ok", "boolean")
    return InputRequiredResult(input_requests={"confirm": asked}, request_state="confirming")


@server.tool(name="test_input_required_result_multiple_inputs")
def several(ctx: Asking) -> str | InputRequiredResult:
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
    context = answer(ctx, "user_context")
    if context is not None:
        return f"Use {context.get('context')}."
    asked = ask("What context should the prompt use?", "context")
    return InputRequiredResult(input_requests={"user_context": asked})


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
        app = server.streamable_http_app(host="127.0.0.1")
        Announced(uvicorn.Config(app, "127.0.0.1", OPTIONS.port, log_level="critical")).run()
