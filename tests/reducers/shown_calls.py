"""Calls of an MCP server as people see them, for the tests of invocations."""

from typing import Any

from session_server.reducers.calls.rounds import finish, open_round
from session_server.reducers.calls.starting import start
from session_server.schemas.ahp.customizations import McpReady, McpServer
from session_server.schemas.ahp.tool_calls import Completed, ToolCall
from session_server.schemas.ahp.turns import ToolCallPart
from session_server.schemas.errors import Refusal
from session_server.schemas.mcp import (
    InputRequired,
)
from session_server.schemas.record import Abandoned, Call, Failed, SessionRecord
from tests.reducers.call_records import BY_HOST, sent
from tests.sessions import fold, session

SERVER = McpServer(id="mcp:cloud", uri="mcp:cloud", name="cloud", enabled=True, state=McpReady())


def call(**fields: Any) -> Call:
    return Call(
        **{
            "id": "c",
            "server": "cloud",
            "method": "tools/call",
            "params": {"name": "deploy", "arguments": {"token": "s3cret", "to": "oslo"}},
            "turn_id": "",
            "started_at": 0,
            "private_arguments": ("token",),
            **fields,
        }
    )


def begun(
    record: SessionRecord | None = None, title: str | None = None, **of: Any
) -> SessionRecord:
    record = session() if record is None else record
    batch = start(record, call(**of), title, SERVER, BY_HOST)
    assert not isinstance(batch, Refusal)
    return fold(record, *batch)


def out(**of: Any) -> SessionRecord:
    return sent(begun(**of))


def tool_call(record: SessionRecord, call_id: str = "c") -> ToolCall:
    turns = (*record.public.turns, record.public.active_turn)
    parts = [part for turn in turns if turn is not None for part in turn.response_parts]
    (found,) = [
        part.tool_call
        for part in parts
        if isinstance(part, ToolCallPart) and part.tool_call.tool_call_id == call_id
    ]
    return found


def done(record: SessionRecord, **result: Any) -> Completed:
    shown = tool_call(fold(record, *finish(record, "c", 0, result, BY_HOST)))
    assert isinstance(shown, Completed)
    return shown


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def asking(record: SessionRecord, held: bool = False, **requests: Any) -> SessionRecord:
    required = InputRequired(
        result_type="input_required", input_requests=requests, request_state="s"
    )
    phase = record.private.calls["c"].phase
    assert not isinstance(phase, Abandoned | Failed)
    batch = open_round(record, "c", getattr(phase, "leg", 0), required, BY_HOST, held=held)
    return fold(record, *batch)
