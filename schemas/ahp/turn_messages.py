"""Messages of people, agents and the host that start or steer a turn."""

from typing import ClassVar

import msgspec

from session_server.schemas.wire import (
    Count,
    Extra,
    TextRange,
    TextSelection,
    Unknown,
    Uri,
    Variant,
    Wire,
)

USER = "user"
SYSTEM_NOTIFICATION = "systemNotification"


HOST_TURN_PREFIX = "host:"
"""Ids of turns that the host opens to show calls and questions in; others may not use one."""


class MessageOrigin(Wire, frozen=True, kw_only=True):
    """`kind` is open: `user`, `agent`, `tool`, `systemNotification`, and what comes later."""

    kind: str


class Attachment(Variant):
    __slots__ = ()
    discriminator: ClassVar[str] = "type"


class AttachmentBase(Wire, frozen=True, kw_only=True, tag_field="type"):
    label: str
    range: TextRange | None = None
    display_kind: str | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class SimpleAttachment(AttachmentBase, Attachment, frozen=True, kw_only=True, tag="simple"):
    model_representation: str | None = None


class EmbeddedResourceAttachment(
    AttachmentBase, Attachment, frozen=True, kw_only=True, tag="embeddedResource"
):
    data: str
    content_type: str
    selection: TextSelection | None = None


class ResourceAttachment(AttachmentBase, Attachment, frozen=True, kw_only=True, tag="resource"):
    uri: Uri
    size_hint: Count | None = None
    content_type: str | None = None
    selection: TextSelection | None = None


class UnknownAttachment(Unknown, Attachment):
    __slots__ = ()


class Message(Wire, frozen=True, kw_only=True):
    text: str
    origin: MessageOrigin
    attachments: tuple[Attachment, ...] | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class PendingMessage(Wire, frozen=True, kw_only=True):
    id: str
    message: Message
