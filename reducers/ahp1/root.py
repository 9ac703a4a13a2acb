"""The root channel as AHP 0.9 and 1.x show it: its state, its envelopes, the agents.

Customizations are here too: agents have some, and so have sessions.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from session_server.reducers.ahp1.numbering import number
from session_server.reducers.rules.turn_rules import PASSIVE_PROVIDER
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp.customizations import (
    ChildCustomization,
    ChildEntry,
    Customization,
    Directory,
    McpServer,
    Plugin,
    UnknownChildCustomization,
)
from session_server.schemas.ahp.envelopes import ActionOrigin, EnvelopeMeta
from session_server.schemas.ahp.session import AgentInfo, ModelInfo, RootState
from session_server.schemas.ahp1 import actions as sent
from session_server.schemas.ahp1 import state as shown
from session_server.schemas.ahp1.methods import Envelope
from session_server.schemas.principals import Author
from session_server.schemas.wire import Millis, Seq, reshaped

DEFAULT_MODEL = "default"
"""The model of an agent that names none; clients need one to start a turn with."""


# State


def root_state(state: RootState) -> shown.RootState:
    """Terminals are not among what this host offers."""
    return shown.RootState(
        agents=shown_agents(state.agents),
        active_sessions=state.active_sessions,
        config=state.config,
    )


def shown_agents(agents: tuple[AgentInfo, ...]) -> tuple[shown.RootAgent, ...]:
    return tuple(_agent(agent) for agent in agents)


def _agent(agent: AgentInfo) -> shown.RootAgent:
    models = agent.models
    if not models and agent.provider != PASSIVE_PROVIDER:
        models = (ModelInfo(id=DEFAULT_MODEL, provider=agent.provider, name="Default"),)
    customizations = shown_entries(agent.customizations)
    return reshaped(shown.RootAgent, agent, models=models, customizations=customizations)


# Envelopes


class RootCommitted(NamedTuple):
    """An entry of the root channel's log."""

    seq: Seq
    action: ahp.RootAction
    at: Millis
    by: Author | None = None
    origin: ActionOrigin | None = None


def root_envelopes(entries: Sequence[RootCommitted]) -> Iterator[Envelope]:
    """The envelopes of entries of the root channel; they are the same for every variant."""
    for entry in entries:
        action = root_action(entry.action)
        if action is not None:
            yield Envelope(
                channel=ROOT_CHANNEL,
                action=action,
                server_seq=number(entry.seq, 0),
                origin=entry.origin,
                meta=EnvelopeMeta(at=entry.at, by=entry.by),
            )


def root_action(action: ahp.RootAction) -> sent.RootAction | None:
    """An action of the root channel, if these versions know it."""
    match action:
        case ahp.RootAgentsChanged():
            return sent.AgentsChanged(agents=shown_agents(action.agents))
        case ahp.RootTerminalsChanged():
            return None
        case _:
            return action


# Customizations


def enablement(*, enabled: bool) -> tuple[shown.Enablement, ...]:
    return (shown.Enablement(kind="session", enabled=enabled),)


def shown_entries(
    entries: tuple[Customization, ...] | None,
) -> tuple[shown.Entry, ...] | None:
    """Kinds that 0.3.0 does not know are left out."""
    if entries is None:
        return None
    made = (_entry(entry) for entry in entries)
    return tuple(entry for entry in made if entry is not None)


def _entry(entry: Customization) -> shown.Entry | None:
    match entry:
        case Plugin():
            switch, children = enablement(enabled=entry.enabled), _children(entry.children)
            return reshaped(shown.PluginEntry, entry, children=children, enablement=switch)
        case Directory():
            return reshaped(shown.DirectoryEntry, entry, children=_children(entry.children))
        case McpServer():
            return _server(entry)
        case _:
            return None


def _server(server: McpServer) -> shown.McpServerEntry:
    return reshaped(shown.McpServerEntry, server, enablement=enablement(enabled=server.enabled))


def _children(
    children: tuple[ChildCustomization, ...] | None,
) -> tuple[ChildEntry, ...] | None:
    if children is None:
        return None
    return tuple(
        _server(child) if isinstance(child, McpServer) else child
        for child in children
        if not isinstance(child, UnknownChildCustomization)
    )
