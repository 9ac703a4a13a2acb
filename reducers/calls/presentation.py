"""How a call shows: as a tool call in its turn, and as a view over HTTP and to the gateway.

`starting` and `rounds` put these actions into the batch that changes the call itself.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from session_server.reducers.calls.redaction import masked, shown_arguments
from session_server.reducers.state.turns import tool_call
from session_server.schemas.ahp.actions import (
    SessionAction,
    ToolCallComplete,
    ToolCallContentChanged,
    ToolCallReady,
    ToolCallStart,
)
from session_server.schemas.ahp.tool_calls import (
    ConfirmationReason,
    EmbeddedResourceContent,
    McpContributor,
    ResourceContent,
    Running,
    TextContent,
    ToolContent,
    ToolError,
    ToolResult,
)
from session_server.schemas.http import CallState, CallView
from session_server.schemas.limits import SHOWN_DATA_CHARS, SHOWN_INPUT_CHARS, SHOWN_TEXT_CHARS
from session_server.schemas.record import (
    Abandoned,
    Call,
    CallError,
    Failed,
    Finished,
    Sent,
    SessionRecord,
    ToSend,
    Uncertain,
    Waiting,
)

Shown = tuple[SessionAction, ...]


def customization_id(server: str) -> str:
    """How sessions refer to a configured server."""
    return f"mcp:{server}"


def invocation(call: Call, title: str | None) -> Shown:
    """Starts and confirms the tool call at once: it was allowed when the call was made."""
    contributor = McpContributor(customization_id=customization_id(call.server))
    on_call: dict[str, Any] = {"turn_id": call.turn_id, "tool_call_id": call.id}
    start = ToolCallStart(
        **on_call, tool_name=call.target, display_name=title or call.target, contributor=contributor
    )
    ready = ToolCallReady(
        **on_call,
        invocation_message=f"Calling {call.server}/{call.target}",
        tool_input=_cut(shown_arguments(call), SHOWN_INPUT_CHARS),
        confirmed=ConfirmationReason.NOT_NEEDED,
    )
    return (start, ready)


def progress(record: SessionRecord, call: Call, text: str) -> Shown:
    """The latest progress message replaces the one before."""
    if not _is_running(record, call):
        return ()
    shown = TextContent(text=_cut(masked(call, text), SHOWN_TEXT_CHARS))
    return (ToolCallContentChanged(turn_id=call.turn_id, tool_call_id=call.id, content=(shown,)),)


def finished(record: SessionRecord, call: Call, result: Mapping[str, Any]) -> Shown:
    result = masked(call, dict(result))
    content = shown_content(result)
    success = result.get("isError") is not True
    name, structured = f"{call.server}/{call.target}", result.get("structuredContent")
    shown = ToolResult(
        success=success,
        past_tense_message=f"Called {name}" if success else f"{name} reported an error",
        content=content or None,
        structured_content=structured if _is_small_object(structured) else None,
        error=None
        if success
        else ToolError(message=_first_text(content) or "It failed without a message."),
    )
    return _ended(record, call, shown)


def failed(record: SessionRecord, call: Call, error: CallError) -> Shown:
    text = _cut(masked(call, error.message), SHOWN_TEXT_CHARS)
    return _without_result(record, call, "failed", ToolError(message=text, code=error.kind))


def abandoned(record: SessionRecord, call: Call, reason: str) -> Shown:
    error = ToolError(message=reason, code="abandoned")
    return _without_result(record, call, "was abandoned", error)


def _without_result(record: SessionRecord, call: Call, ending: str, error: ToolError) -> Shown:
    message = f"{call.server}/{call.target} {ending}"
    return _ended(record, call, ToolResult(success=False, past_tense_message=message, error=error))


def shown_content(
    result: Mapping[str, Any], room: int = SHOWN_TEXT_CHARS
) -> tuple[ToolContent, ...]:
    """A result as people see it; a part that is too large is replaced by a note."""
    shown: list[ToolContent] = []
    for block in _blocks(result):
        piece = _piece(block)
        if isinstance(piece, TextContent):
            if room <= 0:
                continue
            piece = TextContent(text=_cut(piece.text, room))
            room -= len(piece.text)
        shown.append(piece)
    return tuple(shown)


def _blocks(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The content of a tool's result, a prompt's messages, or a resource's contents."""
    yield from _listed(result.get("content"))
    for message in _listed(result.get("messages")):
        content = message.get("content")
        yield from _listed(content if isinstance(content, list) else [content])
    for resource in _listed(result.get("contents")):
        yield {"type": "resource", "resource": resource}


def _listed(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _piece(block: Mapping[str, Any]) -> ToolContent:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextContent(text=text)
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(kind)}:
            return _embedded(data, kind)
        case {"type": "resource_link", "uri": str(uri)}:
            return ResourceContent(uri=uri, content_type=_kind(block))
        case {"type": "resource", "resource": {"text": str(text)}}:
            return TextContent(text=text)
        case {"type": "resource", "resource": {"blob": str(data)} as resource}:
            return _embedded(data, _kind(resource) or "application/octet-stream")
        case _:
            return TextContent(text=f"(content of type {block.get('type')!r})")


def _kind(block: Mapping[str, Any]) -> str | None:
    kind = block.get("mimeType")
    return kind if isinstance(kind, str) else None


def _embedded(data: str, kind: str) -> ToolContent:
    if len(data) <= SHOWN_DATA_CHARS:
        return EmbeddedResourceContent(data=data, content_type=kind)
    return TextContent(text=f"({kind}, too big to be shown here)")


def _is_small_object(value: Any) -> bool:
    return isinstance(value, dict) and len(msgspec.json.encode(value)) <= SHOWN_TEXT_CHARS


def _first_text(content: tuple[ToolContent, ...]) -> str | None:
    return next((piece.text for piece in content if isinstance(piece, TextContent)), None)


def _ended(record: SessionRecord, call: Call, result: ToolResult) -> Shown:
    if not _is_running(record, call):
        return ()
    return (ToolCallComplete(turn_id=call.turn_id, tool_call_id=call.id, result=result),)


def _is_running(record: SessionRecord, call: Call) -> bool:
    return isinstance(tool_call(record.public, call.turn_id, call.id), Running)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


# Over HTTP, and to the gateway


def view_of(record: SessionRecord, call: Call) -> CallView:
    """For its maker and for owners."""
    phase = call.phase
    return CallView(
        id=call.id,
        session=record.public.summary.resource,
        server=call.server,
        method=call.method,
        target=call.target,
        state=_STATES[type(phase)],
        round=call.round,
        started_at=call.started_at,
        turn_id=call.turn_id,
        ended_at=phase.at if isinstance(phase, Finished | Failed | Abandoned) else None,
        by=call.by,
        requests=requests_of(record, call),
        result=phase.result if isinstance(phase, Finished) else None,
        error=phase.error if isinstance(phase, Failed) else None,
        reason=phase.reason if isinstance(phase, Abandoned) else None,
    )


def requests_of(record: SessionRecord, call: Call) -> tuple[str, ...]:
    """The ids of its open questions."""
    return tuple(
        request.id
        for request in record.public.input_requests or ()
        if request.meta is not None and request.meta.call == call.id
    )


_STATES: dict[type, CallState] = {
    ToSend: CallState.SENDING,
    Sent: CallState.RUNNING,
    Waiting: CallState.WAITING,
    Uncertain: CallState.UNCERTAIN,
    Finished: CallState.FINISHED,
    Failed: CallState.FAILED,
    Abandoned: CallState.ABANDONED,
}
