"""Turns: a message, the parts of the response to it, and how it ended."""

from enum import StrEnum
from typing import ClassVar

import msgspec

from session_server.schemas.ahp.tool_calls import ToolCall
from session_server.schemas.ahp.turn_messages import Message
from session_server.schemas.wire import (
    ContentRef,
    Count,
    ErrorInfo,
    Extra,
    Text,
    Unknown,
    Variant,
    Wire,
)


class UsageInfo(Wire, frozen=True, kw_only=True):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    model: str | None = None
    cache_read_tokens: Count | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class ChatPart(Variant):
    """One piece of what a chat shows after a message. Versions after 0.3.0 have some more."""

    __slots__ = ()
    discriminator: ClassVar[str] = "kind"


class ResponsePart(ChatPart):
    """One piece of an agent's response."""

    __slots__ = ()


class PartBase(Wire, frozen=True, kw_only=True, tag_field="kind"):
    """Fixes the tag's name for all parts."""


class MarkdownPart(PartBase, ResponsePart, frozen=True, kw_only=True, tag="markdown"):
    id: str
    content: str


class ReasoningPart(PartBase, ResponsePart, frozen=True, kw_only=True, tag="reasoning"):
    id: str
    content: str


class ContentRefPart(
    ContentRef, ResponsePart, frozen=True, kw_only=True, tag_field="kind", tag="contentRef"
):
    pass


class ToolCallPart(PartBase, ResponsePart, frozen=True, kw_only=True, tag="toolCall"):
    tool_call: ToolCall


class SystemNotificationPart(
    PartBase, ResponsePart, frozen=True, kw_only=True, tag="systemNotification"
):
    content: Text


class UnknownPart(Unknown, ResponsePart):
    __slots__ = ()


class TurnState(StrEnum):
    COMPLETE = "complete"
    CANCELLED = "cancelled"
    ERROR = "error"


class ActiveTurn(Wire, frozen=True, kw_only=True):
    id: str
    message: Message
    response_parts: tuple[ResponsePart, ...]
    usage: UsageInfo | None = None


class Turn(Wire, frozen=True, kw_only=True):
    id: str
    message: Message
    response_parts: tuple[ResponsePart, ...]
    state: TurnState
    usage: UsageInfo | None = None
    error: ErrorInfo | None = None
