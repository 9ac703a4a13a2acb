"""Transitions of a session's customizations: plugins, directories, MCP servers."""

from collections.abc import Callable

from ..schemas.actions import (
    CustomizationRemoved,
    CustomizationsChanged,
    CustomizationToggled,
    CustomizationUpdated,
    McpServerStateChanged,
)
from ..schemas.customizations import (
    ChildCustomization,
    ContainerBase,
    Customization,
    CustomizationBase,
    Directory,
    McpServer,
    Plugin,
    UnknownCustomization,
)
from ..schemas.session import SessionState
from ..schemas.variants import Unknown
from .updates import updated


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
    kept = tuple(entry for entry in entries if identity_of(entry) != action.id)
    if len(kept) < len(entries):
        return updated(state, customizations=kept)

    def without(children: tuple[ChildCustomization, ...]) -> tuple[ChildCustomization, ...]:
        return tuple(child for child in children if identity_of(child) != action.id)

    return _with_children(state, without)


def mcp_server_state_changed(
    state: SessionState, action: McpServerStateChanged, at: int
) -> SessionState:
    """`channel` is replaced too: leaving it out clears it."""

    def changed(entry: McpServer) -> McpServer:
        return updated(entry, state=action.state, channel=action.channel)

    if any(isinstance(e, McpServer) and e.id == action.id for e in state.customizations or ()):
        return _with_entry(
            state, action.id, lambda e: changed(e) if isinstance(e, McpServer) else e
        )

    def with_state(children: tuple[ChildCustomization, ...]) -> tuple[ChildCustomization, ...]:
        return tuple(
            changed(child) if isinstance(child, McpServer) and child.id == action.id else child
            for child in children
        )

    return _with_children(state, with_state)


def _with_entry(
    state: SessionState, identity: str | None, change: Callable[[Customization], Customization]
) -> SessionState:
    if state.customizations is None:
        return state
    entries = tuple(
        change(entry) if identity_of(entry) == identity else entry for entry in state.customizations
    )
    return updated(state, customizations=entries)


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
