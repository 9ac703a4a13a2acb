"""What `doctor` finds out about the MCP servers of a host: each is started or reached once."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

from session_server.cli.commands.doctor import Check, ok, problem, warning
from session_server.mcp_client.config import QUIET, ServerConfig, load_servers
from session_server.mcp_client.connections.connection import Link, callbacks_for_one_request
from session_server.mcp_client.failures import unreachable_error
from session_server.schemas.errors import ConfigError


def mcp_checks(file: Path) -> Iterator[Check]:
    try:
        servers, warnings = load_servers(file)
    except ConfigError as error:
        yield problem("mcp", str(error), "`serve` does not start with it.")
        return
    problems = {config.problem for config in servers.values() if config.problem is not None}
    for text in warnings:
        if not any(problem in text for problem in problems):
            yield warning("mcp", text)
    yield from asyncio.run(_tried(list(servers.values())))


async def _tried(servers: list[ServerConfig]) -> list[Check]:
    for name, level in QUIET.items():
        logging.getLogger(name).setLevel(level)
    return list(await asyncio.gather(*map(_check, servers)))


async def _check(config: ServerConfig) -> Check:
    name = f"mcp {config.name}"
    if config.disabled:
        return ok(name, "It is disabled.")
    if config.problem is not None:
        return problem(name, f"It cannot be used: {config.problem}.")
    link = Link(config, callbacks_for_one_request(config))
    try:
        async with asyncio.timeout(config.start_timeout), link.opened(config.protocol):
            count = len(await link.tools())
            tools = "1 tool" if count == 1 else f"{count} tools"
            revision = link.client.protocol_version
    except Exception as error:  # noqa: BLE001 - whatever it answered, it cannot be used
        failure = unreachable_error(error, config, link.latest_response)
        lines = link.output.lines
        advice = f"It wrote: {lines[-1]}" if lines else ""
        return problem(name, f"It cannot be used: {failure}.", advice)
    return ok(name, f"It answers: revision {revision}, {tools}.")
