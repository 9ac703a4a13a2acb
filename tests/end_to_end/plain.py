"""The application under a WebSocket implementation that is not ours, as another server would."""

import argparse

import uvicorn

from session_server.app import create_app
from session_server.server import Server

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--store")
    chosen = parser.parse_args()
    Server(
        uvicorn.Config(
            create_app(chosen.store),
            port=chosen.port,
            ws="websockets-sansio",
            log_level="warning",
            lifespan="on",
        )
    ).run()
