"""Calls of an MCP server as people see them, for the tests of invocations."""

from typing import Any

from session_server.reducers.calls.rounds import finish, open_round
from session_server.reducers.calls.starting import start
from session_server.schemas.ahp.customizations import McpReady, McpServer
from session_server.schemas.ahp.tool_calls import Completed, ToolCall
from session_server.schemas.ahp.turns import ToolCallPart
from session_server.schemas.errors import Refusal
from session_server.schemas.record import Call, SessionRecord
from tests.reducers import call_records
from tests.reducers.call_records import BY_HOST, asks, sent
from tests.sessions import fold, session

SERVER = McpServer(id="mcp:cloud", uri="mcp:cloud", name="cloud", enabled=True, state=McpReady())


PRIVATE: dict[str, Any] = {
    "params": {"name": "deploy", "arguments": {"token": "s3cret", "to": "oslo"}},
    "private_arguments": ("token",),
}


def call(**fields: Any) -> Call:
    """One that is not in a turn yet."""
    return call_records.call(**{**PRIVATE, "turn_id": "", "started_at": 0, **fields})


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
    leg = getattr(call_records.the_call(record).phase, "leg", 0)
    batch = open_round(record, "c", leg, asks("s", **requests), BY_HOST, held=held)
    return fold(record, *batch)
