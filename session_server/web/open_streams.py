"""What waits over HTTP, streams and long polls, so that a server that stops can end it at once.

Without it, stopping would take as long as the server is patient with requests in progress.
"""

from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from session_server.host.errors import CloseCode
from session_server.host.waiting import Waiting
from session_server.web.streams import EventOutbox

STOPPING = "the host stops; come back to resume"


class OpenStreams:
    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._streams: set[EventOutbox] = set()
        self._is_over = False

    def opened(self, stream: EventOutbox) -> None:
        self._streams.add(stream)
        if self._is_over:
            stream.close(CloseCode.RESTARTING, STOPPING)

    def closed(self, stream: EventOutbox) -> None:
        self._streams.discard(stream)

    def end(self) -> None:
        self._is_over = True
        self._waiting.close()
        for stream in self._streams:
            stream.close(CloseCode.RESTARTING, STOPPING)


async def _streams(connection: HTTPConnection) -> OpenStreams:
    streams: OpenStreams = connection.app.state.streams
    return streams


TheStreams = Annotated[OpenStreams, Depends(_streams)]
