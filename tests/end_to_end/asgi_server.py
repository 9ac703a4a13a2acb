"""The application as another server would run it; or as ours does, with pings in a hurry."""

import argparse

import uvicorn

from session_server.app import create_app
from session_server.schemas.limits import ACTIONS_PER_SECOND
from session_server.server import GRACE_SECONDS, Server
from session_server.settings import Settings
from session_server.transport.websocket_protocol import SinkProtocol

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--store")
    parser.add_argument("--pings-every", type=float, default=20.0)
    parser.add_argument("--actions-per-second", type=int, default=ACTIONS_PER_SECOND)
    parser.add_argument("--ours", action="store_true")
    chosen = parser.parse_args()
    Server(
        uvicorn.Config(
            create_app(
                chosen.store, settings=Settings(actions_per_second=chosen.actions_per_second)
            ),
            port=chosen.port,
            ws=SinkProtocol if chosen.ours else "websockets-sansio",
            ws_ping_interval=chosen.pings_every,
            ws_ping_timeout=chosen.pings_every,
            log_level="warning",
            lifespan="on",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    ).run()
