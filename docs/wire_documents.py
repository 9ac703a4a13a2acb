"""The documents of the wire: a JSON Schema of its shapes, and AsyncAPI's description of `/ahp`."""

from typing import get_args

import msgspec

from session_server.schemas.ahp.commands import PROTOCOL_VERSION
from session_server.schemas.ahp.frames import (
    AgentDispatchAction,
    ClientFrame,
    Failure,
    HostNotification,
    RejectionNotification,
    RequestBase,
)
from session_server.schemas.documents import (
    RESULTS,
    Schema,
    definitions,
    family_ref,
    ref,
    relocated,
    tidied,
)
from session_server.schemas.wire import Wire

CLIENT_FRAMES: tuple[type[Wire], ...] = (*get_args(ClientFrame), AgentDispatchAction)
HOST_FRAMES: tuple[type[Wire], ...] = (
    *get_args(HostNotification),
    RejectionNotification,
    Failure,
)


def json_schema() -> Schema:
    """A JSON Schema 2020-12 document: one entry of `$defs` for every shape, by its plain name."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:session-server:ahp:{PROTOCOL_VERSION}",
        "title": f"AHP {PROTOCOL_VERSION}, as session-server speaks it",
        "description": (
            "Every shape that clients meet. An optional field is left out when there is nothing to"
            " say, and null is read as left out. Fields that are not listed are ignored."
        ),
        "$defs": definitions(),
    }


def asyncapi() -> Schema:
    """An AsyncAPI 3.0 document of the WebSocket endpoint, seen from the host."""
    messages = {
        **{frame.__name__: _message(frame) for frame in (*CLIENT_FRAMES, *HOST_FRAMES)},
        **{_result_name(request): _result_message(request) for request in RESULTS},
    }
    document = {
        "asyncapi": "3.0.0",
        "id": "urn:session-server:host",
        "info": _info(),
        "defaultContentType": "application/json",
        "servers": {"plain": _server("ws"), "secure": _server("wss")},
        "channels": {"ahp": _channel(messages)},
        "operations": {
            **{_operation_name(frame): _operation("receive", frame) for frame in CLIENT_FRAMES},
            **{_operation_name(frame): _operation("send", frame) for frame in HOST_FRAMES},
        },
        "components": {
            "messages": messages,
            "schemas": definitions(),
            "correlationIds": {"request": {"location": "$message.payload#/id"}},
            "securitySchemes": _security_schemes(),
        },
    }
    made: Schema = relocated(document)
    return made


# Messages and operations


def _info() -> Schema:
    return {
        "title": "session-server",
        "version": PROTOCOL_VERSION,
        "description": (
            f"The Agent Host Protocol {PROTOCOL_VERSION}: one JSON-RPC 2.0 message per WebSocket"
            " text frame. The version is the protocol's."
        ),
        "license": {"name": "MIT"},
    }


def _server(protocol: str) -> Schema:
    return {
        "host": "{address}",
        "protocol": protocol,
        "description": "A host on loopback may ask for no credential.",
        "variables": {"address": {"description": "Where the host listens: a name and a port."}},
        "security": [
            {"$ref": f"#/components/securitySchemes/{name}"} for name in _security_schemes()
        ],
    }


def _security_schemes() -> Schema:
    return {
        "query": {"type": "httpApiKey", "in": "query", "name": "tkn"},
        "bearer": {"type": "http", "scheme": "bearer"},
    }


def _channel(messages: dict[str, Schema]) -> Schema:
    return {
        "address": "/ahp",
        "title": "AHP",
        "description": "One connection of one client; AHP's own channels are named in `params`.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
    }


def _method(frame: type[Wire]) -> str:
    return str(frame.__struct_config__.tag or frame.__name__)


def _message(frame: type[Wire]) -> Schema:
    message = {"name": frame.__name__, "title": _method(frame), "payload": ref(frame.__name__)}
    return message | _correlation() if "id" in frame.__struct_fields__ else message


def _result_name(request: type[RequestBase]) -> str:
    return f"{request.__name__}Result"


def _result_message(request: type[RequestBase]) -> Schema:
    (result,), _ = msgspec.json.schema_components([RESULTS[request]], schema_hook=family_ref)
    return {
        "name": _result_name(request),
        "title": f"Result of {_method(request)}",
        "payload": {"allOf": [ref("Result"), {"properties": {"result": tidied(result)}}]},
        **_correlation(),
    }


def _correlation() -> Schema:
    return {"correlationId": {"$ref": "#/components/correlationIds/request"}}


def _operation_name(frame: type[Wire]) -> str:
    return frame.__name__[0].lower() + frame.__name__[1:]


def _operation(action: str, frame: type[Wire]) -> Schema:
    operation = {"action": action, "title": _method(frame), **_messages(frame.__name__)}
    if issubclass(frame, RequestBase):
        operation["reply"] = _messages(_result_name(frame), "Failure")
    return operation


def _messages(*names: str) -> Schema:
    return {
        "channel": {"$ref": "#/channels/ahp"},
        "messages": [{"$ref": f"#/channels/ahp/messages/{name}"} for name in names],
    }
