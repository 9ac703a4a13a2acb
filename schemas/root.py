"""The state of `ahp-root://`: agents, sessions in number, terminals, configuration."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from .config import ConfigSchema, RootConfigState
from .customizations import Customization, ProtectedResource
from .wire import Count, Extra, Uri, Wire


class PolicyState(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"
    UNCONFIGURED = "unconfigured"


class ModelInfo(Wire, frozen=True, kw_only=True):
    id: str
    provider: str
    name: str
    max_context_window: Count | None = None
    supports_vision: bool | None = None
    policy_state: PolicyState | None = None
    config_schema: ConfigSchema | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class AgentInfo(Wire, frozen=True, kw_only=True):
    provider: str
    display_name: str
    description: str
    models: tuple[ModelInfo, ...]
    protected_resources: tuple[ProtectedResource, ...] | None = None
    customizations: tuple[Customization, ...] | None = None


class TerminalClientClaim(Wire, frozen=True, kw_only=True, tag_field="kind", tag="client"):
    client_id: str


class TerminalSessionClaim(Wire, frozen=True, kw_only=True, tag_field="kind", tag="session"):
    session: Uri
    turn_id: str | None = None
    tool_call_id: str | None = None


TerminalClaim: TypeAlias = TerminalClientClaim | TerminalSessionClaim


class TerminalInfo(Wire, frozen=True, kw_only=True):
    resource: Uri
    title: str
    claim: TerminalClaim
    exit_code: int | None = None


class RootState(Wire, frozen=True, kw_only=True):
    agents: tuple[AgentInfo, ...]
    active_sessions: Count | None = None
    terminals: tuple[TerminalInfo, ...] | None = None
    config: RootConfigState | None = None
