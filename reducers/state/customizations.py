"""Transitions of a session's customizations: plugins, directories, MCP servers."""

from collections.abc import Callable
from typing import TypeVar

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
    def toggled(entry: Customization) -> Customization:
        if isinstance(entry, Plugin | Directory | McpServer):
            return updated(entry, enabled=action.enabled)
        assert isinstance(entry, UnknownCustomization)  # the family has no other members
        return UnknownCustomization({**entry.raw, "enabled": action.enabled})

    return _with_entry(state, action.id, toggled)


def customization_updated(
    state: SessionState, action: CustomizationUpdated, at: int
) -> SessionState:
    changed, identity = action.customization, identity_of(action.customization)
    entries = state.customizations or ()
    if not any(identity_of(entry) == identity for entry in entries):
        return updated(state, customizations=(*entries, changed))
    return _with_entry(state, identity, lambda _: changed)


def customization_removed(
    state: SessionState, action: CustomizationRemoved, at: int
) -> SessionState:
    """Removes a top-level entry with all it holds, or else the child of that id."""
    entries = state.customizations or ()
    kept = _without_first(entries, action.id)
    if len(kept) < len(entries):
        return updated(state, customizations=kept)
    return _with_children(state, lambda children: _without_first(children, action.id))


def mcp_server_state_changed(
    state: SessionState, action: McpServerStateChanged, at: int
) -> SessionState:
    """`channel` is replaced too: leaving it out clears it.

    Of children that share an id, each container's first is meant.
    """

    def changed(entry: McpServer) -> McpServer:
        return updated(entry, state=action.state, channel=action.channel)

    if any(identity_of(entry) == action.id for entry in state.customizations or ()):
        return _with_entry(
            state, action.id, lambda e: changed(e) if isinstance(e, McpServer) else e
        )

    def with_state(children: tuple[ChildCustomization, ...]) -> tuple[ChildCustomization, ...]:
        for index, child in enumerate(children):
            if identity_of(child) == action.id:
                if not isinstance(child, McpServer):
                    break
                return (*children[:index], changed(child), *children[index + 1 :])
        return children

    return _with_children(state, with_state)


def _without_first(entries: tuple[E, ...], identity: str) -> tuple[E, ...]:
    for index, entry in enumerate(entries):
        if identity_of(entry) == identity:
            return (*entries[:index], *entries[index + 1 :])
    return entries


def _with_entry(
    state: SessionState, identity: str | None, change: Callable[[Customization], Customization]
) -> SessionState:
    """Changes the first entry of that id."""
    entries = list(state.customizations or ())
    for index, entry in enumerate(entries):
        if identity_of(entry) == identity:
            entries[index] = change(entry)
            return updated(state, customizations=tuple(entries))
    return state


def _with_children(
    state: SessionState,
    change: Callable[[tuple[ChildCustomization, ...]], tuple[ChildCustomization, ...]],
) -> SessionState:
    if state.customizations is None:
        return state

    def changed(entry: Customization) -> Customization:
        if not isinstance(entry, ContainerBase) or entry.children is None:
            return entry
        return updated(entry, children=change(entry.children))

    return updated(state, customizations=tuple(changed(entry) for entry in state.customizations))
