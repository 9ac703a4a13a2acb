"""Transitions of what a session is and has: title, model, marks, configuration, tools, client."""

from typing import Any

from session_server.reducers.state.frozen_values import updated
from session_server.reducers.state.status import marked, touched
from session_server.schemas.ahp.actions import (
    ActiveClientChanged,
    ActiveClientToolsChanged,
    ActivityChanged,
    AgentChanged,
    ChangesetsChanged,
    ConfigChanged,
    CreationFailed,
    IsArchivedChanged,
    IsReadChanged,
    MetaChanged,
    ModelChanged,
    Ready,
    ServerToolsChanged,
    TitleChanged,
)
from session_server.schemas.ahp.session import Lifecycle, SessionState, Status


def ready(state: SessionState, action: Ready, at: int) -> SessionState:
    return updated(state, lifecycle=Lifecycle.READY)


def creation_failed(state: SessionState, action: CreationFailed, at: int) -> SessionState:
    return updated(state, lifecycle=Lifecycle.CREATION_FAILED, creation_error=action.error)


def title_changed(state: SessionState, action: TitleChanged, at: int) -> SessionState:
    return touched(_with_summary(state, title=action.title), at)


def model_changed(state: SessionState, action: ModelChanged, at: int) -> SessionState:
    return touched(_with_summary(state, model=action.model), at)


def agent_changed(state: SessionState, action: AgentChanged, at: int) -> SessionState:
    return touched(_with_summary(state, agent=action.agent), at)


def is_read_changed(state: SessionState, action: IsReadChanged, at: int) -> SessionState:
    return marked(state, Status.IS_READ, on=action.is_read)


def is_archived_changed(state: SessionState, action: IsArchivedChanged, at: int) -> SessionState:
    return marked(state, Status.IS_ARCHIVED, on=action.is_archived)


def activity_changed(state: SessionState, action: ActivityChanged, at: int) -> SessionState:
    return _with_summary(state, activity=action.activity)


def config_changed(state: SessionState, action: ConfigChanged, at: int) -> SessionState:
    if state.config is None:
        return state
    values = new_values(state.config.values, action.config, replace=bool(action.replace))
    return touched(updated(state, config=updated(state.config, values=values)), at)


def meta_changed(state: SessionState, action: MetaChanged, at: int) -> SessionState:
    return updated(state, meta=action.meta)


def changesets_changed(state: SessionState, action: ChangesetsChanged, at: int) -> SessionState:
    return updated(state, changesets=action.changesets)


def server_tools_changed(state: SessionState, action: ServerToolsChanged, at: int) -> SessionState:
    return updated(state, server_tools=action.tools)


def active_client_changed(
    state: SessionState, action: ActiveClientChanged, at: int
) -> SessionState:
    return updated(state, active_client=action.active_client)


def active_client_tools_changed(
    state: SessionState, action: ActiveClientToolsChanged, at: int
) -> SessionState:
    if state.active_client is None:
        return state
    return updated(state, active_client=updated(state.active_client, tools=action.tools))


def new_values(old: dict[str, Any], changes: dict[str, Any], *, replace: bool) -> dict[str, Any]:
    """Configuration values after a change: merged, or replaced as a whole."""
    return dict(changes) if replace else {**old, **changes}


def _with_summary(state: SessionState, **changes: Any) -> SessionState:
    return updated(state, summary=updated(state.summary, **changes))
