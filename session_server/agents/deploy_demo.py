"""A call to look at: the example server's deploy tool, blocked on its first questions."""

import sys
from pathlib import Path

from session_server.calls.service import Calls
from session_server.host.acting import NotSavedError, RefusedError, Settling
from session_server.host.errors import CommandError
from session_server.host.host import Host
from session_server.mcp_client.config import ServerConfig
from session_server.reducers.rules.turn_rules import PASSIVE_PROVIDER
from session_server.schemas.ahp.commands import CreateSessionParams
from session_server.schemas.principals import Principal, Role

DEPLOY_SESSION = "ahp-session:/deploy"
DEPLOY_SERVER = "ops"
PROGRAM = Path(__file__).with_name("deploy_server.py")
"""Run by its path, as any server is: it knows nothing of what it is shipped in."""

KEY = "only for the demo: sealed with what everybody knows"
ARGUMENTS = {"service": "web", "version": "1.4.2", "token": "not-a-real-token"}


def demo_servers() -> dict[str, ServerConfig]:
    config = ServerConfig(
        command=sys.executable,
        args=("-P", str(PROGRAM)),
        env={"DEPLOY_SERVER_KEY": KEY},
        private_arguments=("token",),
    )
    return {DEPLOY_SERVER: config}


async def open_deploy(host: Host, calls: Calls) -> None:
    """A session with the call in it; a new call if the one before has ended."""
    owner = Principal(id="local", role=Role.OWNER)
    params = {"name": "deploy", "arguments": ARGUMENTS}
    key = f"demo-{host.now()}"
    try:
        if DEPLOY_SESSION not in host.sessions:
            await _open_session(host, owner)
        elif not _rests(host):
            return
        await calls.start(owner, DEPLOY_SESSION, DEPLOY_SERVER, "tools/call", params, key=key)
    except (CommandError, NotSavedError, RefusedError):
        return  # somebody has that session for something else


def _rests(host: Host) -> bool:
    record = host.record(DEPLOY_SESSION)
    return record is not None and not any(call.is_open for call in record.private.calls.values())


async def _open_session(host: Host, owner: Principal) -> None:
    made = Settling()
    host.create_session(
        owner,
        CreateSessionParams(channel=DEPLOY_SESSION, provider=PASSIVE_PROVIDER),
        title="A deployment",
        done=made.succeed,
        failed=made.fail,
    )
    await made.future
