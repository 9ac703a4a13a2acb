"""Tools, the six states of a tool call, and what a call brings back."""

from enum import StrEnum
from typing import ClassVar, TypeAlias

import msgspec

from session_server.schemas.ahp.turn_messages import Message
from session_server.schemas.wire import ContentRef, Count, Extra, Text, Unknown, Uri, Variant, Wire


class ToolAnnotations(Wire, frozen=True, kw_only=True):
    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolDefinition(Wire, frozen=True, kw_only=True):
    name: str
    title: str | None = None
    description: str | None = None
    input_schema: Extra | None = None
    output_schema: Extra | None = None
    annotations: ToolAnnotations | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class ConfirmationReason(StrEnum):
    NOT_NEEDED = "not-needed"
    USER_ACTION = "user-action"
    SETTING = "setting"


class CancellationReason(StrEnum):
    DENIED = "denied"
    SKIPPED = "skipped"
    RESULT_DENIED = "result-denied"


class ConfirmationOptionKind(StrEnum):
    APPROVE = "approve"
    DENY = "deny"


class ConfirmationOption(Wire, frozen=True, kw_only=True):
    id: str
    label: str
    kind: ConfirmationOptionKind
    group: Count | None = None


class ClientContributor(Wire, frozen=True, kw_only=True, tag_field="kind", tag="client"):
    client_id: str


class McpContributor(Wire, frozen=True, kw_only=True, tag_field="kind", tag="mcp"):
    customization_id: str


Contributor: TypeAlias = ClientContributor | McpContributor


class FileVersion(Wire, frozen=True, kw_only=True):
    uri: Uri
    content: ContentRef | str


class FileDiff(Wire, frozen=True, kw_only=True):
    added: Count | None = None
    removed: Count | None = None


class FileEdit(Wire, frozen=True, kw_only=True):
    before: FileVersion | None = None
    after: FileVersion | None = None
    diff: FileDiff | None = None


class FileEdits(Wire, frozen=True, kw_only=True):
    items: tuple[FileEdit, ...]


class ToolContent(Variant):
    """One piece of what a tool brought back."""

    __slots__ = ()
    discriminator: ClassVar[str] = "type"


class TextContent(Wire, ToolContent, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class EmbeddedResourceContent(
    Wire, ToolContent, frozen=True, kw_only=True, tag_field="type", tag="embeddedResource"
):
    data: str
    content_type: str


class ResourceContent(
    ContentRef, ToolContent, frozen=True, kw_only=True, tag_field="type", tag="resource"
):
    pass


class FileEditContent(
    FileEdit, ToolContent, frozen=True, kw_only=True, tag_field="type", tag="fileEdit"
):
    pass


class TerminalContent(
    Wire, ToolContent, frozen=True, kw_only=True, tag_field="type", tag="terminal"
):
    """`is_pty` and `result`, how the command ended, are of versions after 0.3.0."""

    resource: Uri
    title: str
    is_pty: bool | None = None
    result: Extra | None = None


class SubagentContent(
    Wire, ToolContent, frozen=True, kw_only=True, tag_field="type", tag="subagent"
):
    resource: Uri
    title: str
    agent_name: str | None = None
    description: str | None = None


class UnknownContent(Unknown, ToolContent):
    __slots__ = ()


class ToolError(Wire, frozen=True, kw_only=True):
    message: str
    code: str | None = None


class ToolResult(Wire, frozen=True, kw_only=True):
    success: bool
    past_tense_message: Text
    content: tuple[ToolContent, ...] | None = None
    structured_content: Extra | None = None
    error: ToolError | None = None


class ToolCallBase(Wire, frozen=True, kw_only=True, tag_field="status"):
    tool_call_id: str
    tool_name: str
    display_name: str
    contributor: Contributor | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class Streaming(ToolCallBase, frozen=True, kw_only=True, tag="streaming"):
    partial_input: str | None = None
    invocation_message: Text | None = None


class PendingConfirmation(ToolCallBase, frozen=True, kw_only=True, tag="pending-confirmation"):
    invocation_message: Text
    tool_input: str | None = None
    confirmation_title: Text | None = None
    edits: FileEdits | None = None
    editable: bool | None = None
    options: tuple[ConfirmationOption, ...] | None = None


class Running(ToolCallBase, frozen=True, kw_only=True, tag="running"):
    invocation_message: Text
    tool_input: str | None = None
    confirmed: ConfirmationReason
    selected_option: ConfirmationOption | None = None
    content: tuple[ToolContent, ...] | None = None


class ResultBase(ToolCallBase, frozen=True, kw_only=True):
    """A call that has run, with its result."""

    invocation_message: Text
    tool_input: str | None = None
    confirmed: ConfirmationReason
    selected_option: ConfirmationOption | None = None
    success: bool
    past_tense_message: Text
    content: tuple[ToolContent, ...] | None = None
    structured_content: Extra | None = None
    error: ToolError | None = None


class PendingResultConfirmation(
    ResultBase, frozen=True, kw_only=True, tag="pending-result-confirmation"
):
    """It has run, but the result may not be used yet."""


class Completed(ResultBase, frozen=True, kw_only=True, tag="completed"):
    pass


class Cancelled(ToolCallBase, frozen=True, kw_only=True, tag="cancelled"):
    invocation_message: Text
    tool_input: str | None = None
    reason: CancellationReason
    reason_message: Text | None = None
    user_suggestion: Message | None = None
    selected_option: ConfirmationOption | None = None


ToolCall: TypeAlias = (
    Streaming | PendingConfirmation | Running | PendingResultConfirmation | Completed | Cancelled
)
