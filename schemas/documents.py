"""JSON Schema definitions of the shapes, for the documents that are published of them."""

import inspect
from collections.abc import Iterable
from typing import Any, TypeAlias, get_args

import msgspec

from session_server.schemas.ahp import commands, frames
from session_server.schemas.ahp.actions import Action, ClientAction, HostAction
from session_server.schemas.ahp.customizations import (
    ChildCustomization,
    Customization,
    LoadState,
    McpServerState,
)
from session_server.schemas.ahp.questions import Answer, Question, Value
from session_server.schemas.ahp.session import RootState, SessionState, Status, TerminalClaim
from session_server.schemas.ahp.tool_calls import Contributor, ToolCall, ToolContent
from session_server.schemas.ahp.turn_messages import Attachment
from session_server.schemas.ahp.turns import ResponsePart
from session_server.schemas.errors import (
    AuthRequiredData,
    ErrorCode,
    PermissionDeniedData,
    UnsupportedVersionData,
)
from session_server.schemas.http import RequestState
from session_server.schemas.wire import SAFE_INTEGER, Variant, Wire, members

Schema: TypeAlias = dict[str, Any]

UNIONS: dict[str, tuple[Any, str]] = {
    "Action": (Action, "Any public action, as envelopes carry it."),
    "ClientAction": (ClientAction, "What any client may dispatch."),
    "HostAction": (HostAction, "What only the host or an agent may dispatch."),
    "ClientFrame": (frames.ClientFrame, "What a client may send."),
    "AgentFrame": (frames.AgentFrame, "What a connection of role `agent` may send."),
    "HostNotification": (frames.HostNotification, "What the host sends unasked."),
    "ReconnectResult": (commands.ReconnectResult, "How a client catches up."),
    "Question": (Question, "A typed question of an input request."),
    "Answer": (Answer, "What a question holds: a draft, a submitted answer, or a skip."),
    "Value": (Value, "The value of an answer, in the kind of its question."),
    "ToolCall": (ToolCall, "A tool call in one of its six states."),
    "Contributor": (Contributor, "Where a tool comes from."),
    "TerminalClaim": (TerminalClaim, "Who holds a terminal."),
    "LoadState": (LoadState, "How far a plugin or directory has been loaded."),
    "McpServerState": (McpServerState, "The state of an MCP server."),
}
"""Closed unions, by their name in the documents. A union without one is an error."""

HTTP_UNIONS: dict[str, tuple[Any, str]] = {
    "RequestState": (RequestState, "An input request: open, or ended with its outcome."),
}
"""The same for shapes that only HTTP shows."""

FAMILIES: tuple[type[Variant], ...] = (
    Attachment,
    ChildCustomization,
    Customization,
    ResponsePart,
    ToolContent,
)

RESULTS: dict[type[frames.RequestBase], Any] = {
    frames.Initialize: commands.InitializeResult,
    frames.Ping: None,
    frames.Reconnect: commands.ReconnectResult,
    frames.Subscribe: commands.SubscribeResult,
    frames.CreateSession: None,
    frames.DisposeSession: None,
    frames.ListSessions: commands.ListSessionsResult,
    frames.FetchTurns: commands.FetchTurnsResult,
    frames.Authenticate: commands.AuthenticateResult,
    frames.ResolveSessionConfig: commands.ResolveSessionConfigResult,
    frames.SessionConfigCompletions: commands.SessionConfigCompletionsResult,
    frames.Completions: commands.CompletionsResult,
}
"""What each command answers with."""

ERROR_DATA: dict[ErrorCode, type[Wire]] = {
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: UnsupportedVersionData,
    ErrorCode.AUTH_REQUIRED: AuthRequiredData,
    ErrorCode.PERMISSION_DENIED: PermissionDeniedData,
}


def definitions() -> dict[str, Schema]:
    """Of everything that AHP shows."""
    return _definitions((), UNIONS)


def http_definitions(shapes: Iterable[Any]) -> dict[str, Schema]:
    """The same, and of the shapes that HTTP adds."""
    return _definitions(shapes, UNIONS | HTTP_UNIONS)


def _definitions(more: Iterable[Any], unions: dict[str, tuple[Any, str]]) -> dict[str, Schema]:
    known = [member for family in FAMILIES for member in members(family).values()]
    named = [shape for shape, _ in unions.values()]
    whole = [
        RootState,
        SessionState,
        frames.RejectionNotification,
        frames.Result,
        frames.Failure,
        *ERROR_DATA.values(),
    ]
    shapes = [*named, *known, *whole, *RESULTS.values(), *more]
    _, found = msgspec.json.schema_components(shapes, schema_hook=family_ref)
    made = {
        **{name: _corrected(name, tidied(schema)) for name, schema in found.items()},
        **{name: _union(name, *union) for name, union in unions.items()},
        **{family.__name__: _family(family) for family in FAMILIES},
        "ErrorCode": _error_code(),
        "HostFrame": _host_frame(),
        "Status": _status(),
    }
    return dict(sorted(made.items()))


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def family_ref(family: type) -> Schema:
    return ref(family.__name__)


_UNION_NAMES = {
    frozenset(ref(member.__name__)["$ref"] for member in get_args(shape)): name
    for name, (shape, _) in (UNIONS | HTTP_UNIONS).items()
}


def tidied(schema: Schema) -> Schema:
    """What msgspec wrote, with unions by their names and without redundant keywords."""
    if "discriminator" in schema:
        return ref(_UNION_NAMES[frozenset(schema["discriminator"]["mapping"].values())])
    kept: Schema = {}
    for keyword, value in schema.items():
        kept |= _tidied_keyword(keyword, value)
    return kept


def _tidied_keyword(keyword: str, value: Any) -> Schema:
    match keyword, value:
        case "properties", _:
            return {keyword: {name: tidied(schema) for name, schema in value.items()}}
        case "anyOf", _:
            return {keyword: [tidied(schema) for schema in value]}
        case "items" | "additionalProperties", _:
            return {keyword: tidied(value)}
        case "description", _:
            return {keyword: inspect.cleandoc(value)}
        case "enum", [only]:
            return {"const": only}
        case ("default", None) | ("required", []):
            return {}
        case _:
            return {keyword: value}


def _corrected(name: str, schema: Schema) -> Schema:
    """Adds constraints that the types of the fields do not express."""
    properties = schema.get("properties", {})
    if properties.get("jsonrpc", {}).pop("default", None):
        # A default for the host that builds the frame; on the wire it is never left out.
        schema["required"] = ["jsonrpc", *schema["required"]]
    match name:
        case "Snapshot":
            properties["state"] = {"anyOf": [ref("RootState"), ref("SessionState")]}
        case "SessionSummary" | "SummaryChanges":
            properties["status"] = ref("Status")
        case "RpcError":
            properties["code"] = {"anyOf": [ref("ErrorCode"), {"type": "integer"}]}
            schema["allOf"] = [_error_data(code) for code in ERROR_DATA]
        case _:
            pass
    return schema


def _error_data(code: ErrorCode) -> Schema:
    return {
        "if": {"properties": {"code": {"const": code.value}}},
        "then": {"properties": {"data": ref(ERROR_DATA[code].__name__)}},
    }


def _union(name: str, shape: Any, description: str) -> Schema:
    choices = [ref(member.__name__) for member in get_args(shape)]
    return {"title": name, "description": description, "oneOf": choices}


def _family(family: type[Variant]) -> Schema:
    """The members that are known, and any object with another discriminator."""
    known = members(family)
    tag = {"type": "string", "not": {"enum": list(known)}}
    other = {
        "description": "A kind that this version does not know; it is kept whole.",
        "type": "object",
        "properties": {family.discriminator: tag},
        "required": [family.discriminator],
    }
    choices = [ref(member.__name__) for member in known.values()]
    described = {"description": inspect.cleandoc(family.__doc__)} if family.__doc__ else {}
    return {"title": family.__name__, **described, "anyOf": [*choices, other]}


def _error_code() -> Schema:
    return {
        "title": "ErrorCode",
        "oneOf": [{"title": code.name, "const": code.value} for code in ErrorCode],
    }


def _host_frame() -> Schema:
    # Not `oneOf`: a rejected action that decodes is also a valid notification of an action.
    names = ("HostNotification", "RejectionNotification", "Result", "Failure")
    return {
        "title": "HostFrame",
        "description": "What the host sends.",
        "anyOf": [ref(name) for name in names],
    }


def _status() -> Schema:
    # Iterating a flag leaves out members of more than one bit.
    bits = ", ".join(f"{name} {bit.value}" for name, bit in Status.__members__.items())
    return {
        "title": "Status",
        "description": f"{inspect.cleandoc(Status.__doc__ or '')}\n\n{bits}",
        "type": "integer",
        "minimum": 0,
        "maximum": SAFE_INTEGER,
    }


def relocated(value: Any) -> Any:
    """The same with the definitions where OpenAPI and AsyncAPI keep them."""
    match value:
        case {"$ref": str(target)}:
            return {"$ref": target.replace("#/$defs/", "#/components/schemas/")}
        case dict():
            return {key: relocated(item) for key, item in value.items()}
        case list():
            return [relocated(item) for item in value]
        case _:
            return value
