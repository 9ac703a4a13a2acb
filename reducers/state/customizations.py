"""Transitions of a session's customizations: plugins, directories, MCP servers."""

from collections.abc import Callable
from typing import Any, TypeVar

from session_server.reducers.state.frozen_values import updated
from session_server.schemas.ahp.actions import (
    CustomizationRemoved,
    CustomizationsChanged,
    CustomizationToggled,
    CustomizationUpdated,
    McpServerStateChanged,
)
from session_server.schemas.ahp.customizations import (
    ChildCustomization,
    ContainerBase,
    Customization,
    CustomizationBase,
    Directory,
    McpServer,
    Plugin,
    UnknownCustomization,
)
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.wire import Unknown

E = TypeVar("E", bound=Customization | ChildCustomization)


def identity_of(entry: Customization | ChildCustomization) -> str | None:
    if isinstance(entry, CustomizationBase):
        return entry.id
    return entry.raw.get("id") if isinstance(entry, Unknown) else None


def customizations_changed(
    state: SessionState, action: CustomizationsChanged, at: int
) -> SessionState:
    return updated(state, customizations=action.customizations)


def customization_toggled(
    state: SessionState, action: CustomizationToggled, at: int
) -> SessionState:
    def toggled(entry: Customization) -> tuple[Customization, ...]:
        if isinstance(entry, Plugin | Directory | McpServer):
            return (updated(entry, enabled=action.enabled),)
        assert isinstance(entry, UnknownCustomization)  # the family has no other members
        return (UnknownCustomization({**entry.raw, "enabled": action.enabled}),)

    entries = _with_first(state.customizations or (), action.id, toggled)
    return updated(state, customizations=entries) if entries else state


def customization_updated(
    state: SessionState, action: CustomizationUpdated, at: int
) -> SessionState:
    changed, identity = action.customization, identity_of(action.customization)
    entries = state.customizations or ()
    if not any(identity_of(entry) == identity for entry in entries):
        return updated(state, customizations=(*entries, changed))
    return updated(state, customizations=_with_first(entries, identity, lambda _: (changed,)))


def customization_removed(
    state: SessionState, action: CustomizationRemoved, at: int
) -> SessionState:
    """Removes a top-level entry with all it holds, or else the child of that id."""
    return _with_first_anywhere(state, action.id, lambda _: ())


def mcp_server_state_changed(
    state: SessionState, action: McpServerStateChanged, at: int
) -> SessionState:
    """`channel` is replaced too: leaving it out clears it."""

    def changed(entry: E) -> tuple[E, ...]:
        if not isinstance(entry, McpServer):
            return (entry,)
        return (updated(entry, state=action.state, channel=action.channel),)

    return _with_first_anywhere(state, action.id, changed)


def _with_first(
    entries: tuple[E, ...], identity: str | None, change: Callable[[E], tuple[E, ...]]
) -> tuple[E, ...]:
    """Changes the first entry of that id: it is replaced by what `change` makes of it."""
    for index, entry in enumerate(entries):
        if identity_of(entry) == identity:
            return (*entries[:index], *change(entry), *entries[index + 1 :])
    return entries


def _with_first_anywhere(
    state: SessionState, identity: str, change: Callable[[Any], tuple[Any, ...]]
) -> SessionState:
    """Changes the first entry of that id, or else each container's first child of that id."""
    entries = state.customizations
    if entries is None:
        return state
    if any(identity_of(entry) == identity for entry in entries):
        return updated(state, customizations=_with_first(entries, identity, change))

    def with_child(entry: Customization) -> Customization:
        if not isinstance(entry, ContainerBase) or entry.children is None:
            return entry
        return updated(entry, children=_with_first(entry.children, identity, change))

    return updated(state, customizations=tuple(with_child(entry) for entry in entries))
