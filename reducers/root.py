"""The reducer of the root channel."""

from ..schemas.actions import (
    RootAction,
    RootActiveSessionsChanged,
    RootAgentsChanged,
    RootConfigChanged,
    RootTerminalsChanged,
)
from ..schemas.root import RootState
from .properties import new_values
from .updates import updated


def reduce_root(state: RootState, action: RootAction) -> RootState:
    """The state after the action; the same object if it changes nothing."""
    match action:
        case RootAgentsChanged():
            return updated(state, agents=action.agents)
        case RootActiveSessionsChanged():
            return updated(state, active_sessions=action.active_sessions)
        case RootTerminalsChanged():
            return updated(state, terminals=action.terminals)
        case RootConfigChanged() if state.config is not None:
            values = new_values(state.config.values, action.config, replace=bool(action.replace))
            return updated(state, config=updated(state.config, values=values))
        case _:
            return state
