"""Where servers stand, as the sessions that list them are told."""

import asyncio

import msgspec

from session_server.host.persistence.log_writer import FIRST_PAUSE
from session_server.mcp_client.server_states import ServerStates
from session_server.schemas.ahp.customizations import McpReady, McpServer, McpStarting
from tests.host.harness import SESSION, hosting, with_agent
from tests.host.persistence.test_failed_writes import SOON, FullForLog


async def test_an_outdated_state_is_not_written_when_the_log_accepts_it_late() -> None:
    async with hosting(log := FullForLog()) as host:
        _, agent = await with_agent(host)
        states = ServerStates(host)
        entry = msgspec.to_builtins(states.customization("zoo"))
        await agent.act({"type": "session/customizationsChanged", "customizations": [entry]})
        log.text = b'"starting"'
        states.changed("zoo", McpStarting())
        async with asyncio.timeout(SOON):
            await log.refused.wait()
        states.changed("zoo", McpReady())
        await asyncio.sleep(FIRST_PAUSE * 2)  # by then it was tried again
        record = host.record(SESSION)
        assert record.public.customizations is not None
        (listed,) = record.public.customizations
        assert isinstance(listed, McpServer)
        assert listed.state == McpReady()
