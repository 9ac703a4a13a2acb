"""The root channel as AHP 0.9 and 1.x show it: its state, its envelopes, the agents."""

from collections.abc import Iterator, Sequence

from session_server.reducers.ahp1.envelopes import Committed
from session_server.reducers.ahp1.numbering import number
from session_server.reducers.ahp1.snapshots import shown_entries
from session_server.reducers.rules.turn_rules import PASSIVE_PROVIDER
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp.envelopes import EnvelopeMeta
from session_server.schemas.ahp.session import AgentInfo, ModelInfo, RootState
from session_server.schemas.ahp1 import actions as sent
from session_server.schemas.ahp1 import state as shown
from session_server.schemas.ahp1.methods import Envelope
from session_server.schemas.wire import reshaped

DEFAULT_MODEL = "default"
"""The model of an agent that names none; clients need one to start a turn with."""


def root_state(state: RootState) -> shown.RootState:
    """Terminals are not among what this host offers."""
    return reshaped(shown.RootState, state, agents=_shown_agents(state.agents))


def _shown_agents(agents: tuple[AgentInfo, ...]) -> tuple[shown.RootAgent, ...]:
    return tuple(_agent(agent) for agent in agents)


def _agent(agent: AgentInfo) -> shown.RootAgent:
    models = agent.models
    if not models and agent.provider != PASSIVE_PROVIDER:
        models = (ModelInfo(id=DEFAULT_MODEL, provider=agent.provider, name="Default"),)
    customizations = shown_entries(agent.customizations)
    return reshaped(shown.RootAgent, agent, models=models, customizations=customizations)


def root_envelopes(entries: Sequence[Committed]) -> Iterator[Envelope]:
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


def root_action(action: object) -> sent.RootAction | None:
    """An action of the root channel, if these versions know it."""
    match action:
        case ahp.RootAgentsChanged():
            return sent.AgentsChanged(agents=_shown_agents(action.agents))
        case ahp.RootActiveSessionsChanged() | ahp.RootConfigChanged():
            return action
        case _:
            return None
