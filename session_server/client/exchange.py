"""Frames of one connection: commands and their answers, and what is still to be written."""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import msgspec

from session_server.client.errors import ClientError
from session_server.client.mirror import Pending
from session_server.schemas import frames
from session_server.schemas.codec import encode
from session_server.schemas.commands import ROOT_CHANNEL, Params
from session_server.schemas.frames import JSONRPC
from session_server.schemas.presence import PresenceUpdateParams
from session_server.schemas.wire import Uri

Answer: TypeAlias = msgspec.Raw | ClientError
Answered: TypeAlias = Callable[[Answer], None]


class Outgoing(NamedTuple):
    frame: bytes
    pending: Pending | None = None


def _nothing() -> None:
    pass


class Exchange:
    def __init__(self) -> None:
        self.on_output: Callable[[], None] = _nothing
        self._out: deque[Outgoing] = deque()
        self._asked: dict[int, Answered] = {}
        self._request_id = 0

    def ask(self, frame: Any, params: Any, answered: Answered) -> None:
        """`frame` is the class of the command."""
        self._request_id += 1
        self._asked[self._request_id] = answered
        self._put(Outgoing(encode(frame(jsonrpc=JSONRPC, id=self._request_id, params=params))))

    def send(self, pending: Pending) -> None:
        """For the first time or once more: its frame stays the same."""
        pending.is_repeated |= pending.is_sent
        self._put(Outgoing(pending.frame, pending))

    def introduce(self, name: str) -> None:
        """What we want to be called; the host puts it beside what comes after it."""
        self.report(PresenceUpdateParams(channel=ROOT_CHANNEL, name=name))

    def report(self, params: PresenceUpdateParams) -> None:
        self._put(Outgoing(encode(frames.PresenceUpdate(jsonrpc=JSONRPC, params=params))))

    def unsubscribe(self, channel: Uri) -> None:
        params = Params(channel=channel)
        self._put(Outgoing(encode(frames.Unsubscribe(jsonrpc=JSONRPC, params=params))))

    def answer(self, request_id: object, answer: Answer) -> None:
        answered = self._asked.pop(request_id, None) if isinstance(request_id, int) else None
        if answered is not None:
            answered(answer)

    def take(self) -> list[bytes]:
        """Everything that is to be written now; only what was taken can have arrived."""
        taken = tuple(self._out)
        self._out.clear()
        for outgoing in taken:
            if outgoing.pending is not None:
                outgoing.pending.is_sent = True
        return [outgoing.frame for outgoing in taken]

    def end(self, error: ClientError) -> None:
        """The connection is over: no answer will come. Ids start again on the next one."""
        self._out.clear()
        self._request_id = 0
        asked, self._asked = self._asked, {}
        for answered in asked.values():
            answered(error)

    def _put(self, outgoing: Outgoing) -> None:
        self._out.append(outgoing)
        self.on_output()
