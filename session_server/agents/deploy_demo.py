"""A call to look at: the example server's deploy tool, blocked on its first questions.

The server is a project of its own under `examples/`; where that is not there, neither is the demo.
"""

import sys
from pathlib import Path

from session_server.calls.calls import Calls
from session_server.calls.config import ServerConfig
from session_server.host.errors import CommandError
from session_server.host.host import Host
from session_server.host.performing import Settling
from session_server.reducers.turn_rules import PASSIVE_PROVIDER
from session_server.schemas.commands import CreateSessionParams
from session_server.schemas.principals import Principal, Role

DEPLOY_SESSION = "ahp-session:/deploy"
DEPLOY_SERVER = "deploy"
PROGRAM = Path(__file__).parents[2] / "examples" / "deploy_server" / "deploy_server.py"
KEY = "only for the demo: sealed with what everybody knows"
ARGUMENTS = {"service": "web", "version": "1.4.2", "token": "not-a-real-token"}


def demo_servers() -> dict[str, ServerConfig]:
    if not PROGRAM.is_file():
        return {}
    config = ServerConfig(
        command=sys.executable,
        args=(str(PROGRAM),),
        env={"DEPLOY_SERVER_KEY": KEY},
        private_arguments=("token",),
    )
    return {DEPLOY_SERVER: config}


async def open_deploy(host: Host, calls: Calls) -> None:
    """A session with the call in it; nothing if it is there already."""
    if DEPLOY_SESSION in host.sessions or DEPLOY_SERVER not in calls.servers.names:
        return
    owner = Principal(id="local", role=Role.OWNER)
    made = Settling()
    try:
        host.create_session(
            owner,
            CreateSessionParams(channel=DEPLOY_SESSION, provider=PASSIVE_PROVIDER),
            title="A deployment",
            done=made.succeed,
            failed=made.fail,
        )
    except CommandError:
        return  # somebody was faster
    await made.future
    params = {"name": "deploy", "arguments": ARGUMENTS}
    await calls.start(owner, DEPLOY_SESSION, DEPLOY_SERVER, "tools/call", params)
