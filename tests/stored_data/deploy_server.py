"""The example MCP server, with request states that never expire.

Stored data holds the state of a call that is waiting; the server that takes the call up again,
years later, must accept it.
"""

import runpy

from mcp.server import request_state

from session_server.agents.demo import PROGRAM

YEAR = 365 * 24 * 3600.0


class Unexpiring(request_state.RequestStateSecurity):
    def __init__(self, *, keys: list[str], ttl: float) -> None:
        assert ttl < YEAR
        super().__init__(keys=keys, ttl=100 * YEAR)


if __name__ == "__main__":
    request_state.RequestStateSecurity = Unexpiring  # type: ignore[misc, assignment]
    runpy.run_path(str(PROGRAM), run_name="__main__")
