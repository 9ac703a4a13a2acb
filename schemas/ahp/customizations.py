"""What extends an agent: plugins, directories, their children, and MCP servers."""

from enum import StrEnum
from typing import ClassVar, TypeAlias

import msgspec

from session_server.schemas.wire import (
    ErrorInfo,
    Extra,
    Icon,
    TextRange,
    Unknown,
    Uri,
    Variant,
    Wire,
)


class ProtectedResource(Wire, frozen=True, kw_only=True, rename=None):
    """RFC 9728 metadata; its field names are the RFC's."""

    resource: str
    resource_name: str | None = None
    authorization_servers: tuple[str, ...] | None = None
    jwks_uri: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    bearer_methods_supported: tuple[str, ...] | None = None
    resource_signing_alg_values_supported: tuple[str, ...] | None = None
    resource_encryption_alg_values_supported: tuple[str, ...] | None = None
    resource_encryption_enc_values_supported: tuple[str, ...] | None = None
    resource_documentation: str | None = None
    resource_policy_uri: str | None = None
    resource_tos_uri: str | None = None
    required: bool | None = None


class LoadBase(Wire, frozen=True, kw_only=True, tag_field="kind"):
    """How far a container has been loaded."""


class Loading(LoadBase, frozen=True, kw_only=True, tag="loading"):
    pass


class Loaded(LoadBase, frozen=True, kw_only=True, tag="loaded"):
    pass


class Degraded(LoadBase, frozen=True, kw_only=True, tag="degraded"):
    message: str


class LoadFailed(LoadBase, frozen=True, kw_only=True, tag="error"):
    message: str


LoadState: TypeAlias = Loading | Loaded | Degraded | LoadFailed


class AuthRequiredReason(StrEnum):
    REQUIRED = "required"
    EXPIRED = "expired"
    INSUFFICIENT_SCOPE = "insufficientScope"


class McpStateBase(Wire, frozen=True, kw_only=True, tag_field="kind"):
    """The state of an MCP server."""


class McpStarting(McpStateBase, frozen=True, kw_only=True, tag="starting"):
    pass


class McpReady(McpStateBase, frozen=True, kw_only=True, tag="ready"):
    pass


class McpAuthRequired(McpStateBase, frozen=True, kw_only=True, tag="authRequired"):
    reason: AuthRequiredReason
    resource: ProtectedResource
    required_scopes: tuple[str, ...] | None = None
    description: str | None = None


class McpFailed(McpStateBase, frozen=True, kw_only=True, tag="error"):
    error: ErrorInfo


class McpStopped(McpStateBase, frozen=True, kw_only=True, tag="stopped"):
    pass


McpServerState: TypeAlias = McpStarting | McpReady | McpAuthRequired | McpFailed | McpStopped


class ListChanged(Wire, frozen=True, kw_only=True):
    list_changed: bool | None = None


class McpUiCapabilities(Wire, frozen=True, kw_only=True):
    server_tools: ListChanged | None = None
    server_resources: ListChanged | None = None
    logging: Extra | None = None
    sampling: Extra | None = None


class McpApps(Wire, frozen=True, kw_only=True):
    capabilities: McpUiCapabilities


class Customization(Variant):
    """A top-level entry: a plugin, a directory or an MCP server."""

    __slots__ = ()
    discriminator: ClassVar[str] = "type"


class ChildEntry(Variant):
    """An entry inside a plugin or a directory, of any version."""

    __slots__ = ()
    discriminator: ClassVar[str] = "type"


class ChildCustomization(ChildEntry):
    """An entry inside a plugin or a directory."""

    __slots__ = ()


class CustomizationBase(Wire, frozen=True, kw_only=True, tag_field="type"):
    id: str
    uri: Uri
    name: str
    icons: tuple[Icon, ...] | None = None
    range: TextRange | None = None


class ContainerBase(CustomizationBase, frozen=True, kw_only=True):
    enabled: bool
    client_id: str | None = None
    load: LoadState | None = None
    children: tuple[ChildCustomization, ...] | None = None


class Plugin(ContainerBase, Customization, frozen=True, kw_only=True, tag="plugin"):
    pass


class Directory(ContainerBase, Customization, frozen=True, kw_only=True, tag="directory"):
    contents: str
    writable: bool


class McpServer(
    CustomizationBase,
    Customization,
    ChildCustomization,
    frozen=True,
    kw_only=True,
    tag="mcpServer",
):
    enabled: bool
    state: McpServerState
    channel: Uri | None = None
    mcp_app: McpApps | None = None


class UnknownCustomization(Unknown, Customization):
    __slots__ = ()


class AgentEntry(CustomizationBase, ChildCustomization, frozen=True, kw_only=True, tag="agent"):
    description: str | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class SkillEntry(CustomizationBase, ChildCustomization, frozen=True, kw_only=True, tag="skill"):
    description: str | None = None
    disable_model_invocation: bool | None = None


class PromptEntry(CustomizationBase, ChildCustomization, frozen=True, kw_only=True, tag="prompt"):
    description: str | None = None


class RuleEntry(CustomizationBase, ChildCustomization, frozen=True, kw_only=True, tag="rule"):
    description: str | None = None
    always_apply: bool | None = None
    globs: tuple[str, ...] | None = None


class HookEntry(CustomizationBase, ChildCustomization, frozen=True, kw_only=True, tag="hook"):
    pass


class UnknownChildCustomization(Unknown, ChildCustomization):
    __slots__ = ()


class ClientPlugin(ContainerBase, frozen=True, kw_only=True, tag="plugin"):
    """A plugin that a client contributes; its nonce lets the host see that it changed."""

    nonce: str | None = None
