"""An MCP server whose one tool asks before it acts: two rounds, the second depending on the first.

Run it on stdin and stdout. Nothing is really deployed.
"""

import asyncio
import os
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.request_state import RequestStateSecurity
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

DAY = 24 * 3600.0
STEPS = ("building", "testing", "rolling out", "watching")


class Plan(BaseModel):
    environment: Literal["staging", "production"] = Field(
        title="Environment", description="Where should it go?"
    )
    percent: int = Field(
        default=10, ge=1, le=100, title="Percent", description="How much traffic at first?"
    )
    notify: bool = Field(default=True, title="Notify", description="Tell the team when it is out?")


class Approval(BaseModel):
    approved: bool = Field(title="Approved", description="May it go to production?")
    reason: str = Field(
        default="", max_length=200, title="Reason", description="For the change log, if you like."
    )


def security() -> RequestStateSecurity:
    key = os.environ.get("DEPLOY_SERVER_KEY")
    if key is None:
        return RequestStateSecurity.ephemeral(ttl=DAY)
    return RequestStateSecurity(keys=[key], ttl=DAY)


server = MCPServer("deploy-server", version="0.1.0", request_state_security=security())


def plan(service: str, version: str) -> Elicit[Plan]:
    return Elicit(f"Deploying {service} {version}", Plan)


def approval(
    service: str, version: str, planned: Annotated[Plan, Resolve(plan)]
) -> Elicit[Approval] | Approval:
    """Staging needs no approval."""
    if planned.environment == "staging":
        return Approval(approved=True)
    text = f"{service} {version} for {planned.percent} % of production's traffic. Go?"
    return Elicit(text, Approval)


@server.tool(title="Deploy", annotations=ToolAnnotations(destructive_hint=True))
async def deploy(
    service: str,
    version: str,
    ctx: Context[Any, Any],
    planned: Annotated[Plan, Resolve(plan)],
    approved: Annotated[Approval, Resolve(approval)],
    token: str = "",
) -> str:
    """Deploy a version of a service, with the leave of the people who have to live with it."""
    where = f"{planned.environment} ({planned.percent} %)"
    if not approved.approved:
        return f"{service} {version} stays where it is. {approved.reason}".rstrip()
    if token:
        await ctx.report_progress(0, len(STEPS), "signed in")
    for number, step in enumerate(STEPS, start=1):
        await ctx.report_progress(number, len(STEPS), step)
        await asyncio.sleep(0.5)
    notified = "; the team is notified" if planned.notify else ""
    return f"{service} {version} is out in {where}{notified}."


def main() -> None:
    server.run("stdio")


if __name__ == "__main__":
    main()
