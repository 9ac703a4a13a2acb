"""A host whose agent `scene` keeps every turn open, so that a test can act as the agent."""

import argparse
import asyncio

from session_server.agents.interface import TurnContext
from session_server.agents.turn_runner import installed_agents
from session_server.app import create_app
from session_server.identity.exposure import binding_of
from session_server.schemas.ahp.session import AgentInfo
from session_server.server import run
from session_server.settings import Settings


class SceneAgent:
    info = AgentInfo(
        provider="scene", display_name="Scout", description="Does what a test says.", models=()
    )
    resumes = True

    async def run(self, _: TurnContext) -> None:
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--store")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--public-url")
    chosen = parser.parse_args()
    settings = Settings(
        port=chosen.port,
        store=chosen.store,
        public_url=chosen.public_url,
        without_connection_token=chosen.public_url is not None,
    )
    binding = binding_of(settings)
    agents = {**installed_agents(), "scene": SceneAgent()}
    app = create_app(
        chosen.store, agents, demo=chosen.demo, settings=settings, access=binding.access
    )
    run(app, settings, binding)


if __name__ == "__main__":
    main()
