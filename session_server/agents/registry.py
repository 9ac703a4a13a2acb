"""Which agents there are: the built-in ones and those that installed packages bring."""

from collections.abc import Mapping
from importlib.metadata import entry_points

from session_server.agents.demo import DemoAgent, PeopleAgent
from session_server.agents.interface import Agent

ENTRY_POINTS = "session_server.agents"
"""A package that names a class of its own in this group brings an agent."""


def installed_agents() -> dict[str, Agent]:
    """By provider. A package can replace a built-in agent by using its name."""
    built_in: tuple[Agent, ...] = (DemoAgent(), PeopleAgent())
    agents: Mapping[str, Agent] = {agent.info.provider: agent for agent in built_in}
    found = {}
    for point in entry_points(group=ENTRY_POINTS):
        agent: Agent = point.load()()
        found[agent.info.provider] = agent
    return {**agents, **found}
