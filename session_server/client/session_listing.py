"""The list of sessions, kept up to date by what the host announces, and anew after a break."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from session_server.client.errors import ClientError, CommandFailed
from session_server.client.exchange import Answer, HostMessage
from session_server.client.protocol import ClientProtocol
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import ROOT_CHANNEL, ListSessionsParams, ListSessionsResult
from session_server.schemas.ahp.frames import (
    SessionAddedParams,
    SessionRemovedParams,
    SessionSummaryChangedParams,
)
from session_server.schemas.ahp.session import SessionSummary
from session_server.schemas.codec import Decoder
from session_server.schemas.wire import Uri

_decode_listed: Decoder[ListSessionsResult] = Decoder(ListSessionsResult)
_decode_added: Decoder[SessionAddedParams] = Decoder(SessionAddedParams)
_decode_removed: Decoder[SessionRemovedParams] = Decoder(SessionRemovedParams)
_decode_changed: Decoder[SessionSummaryChangedParams] = Decoder(SessionSummaryChangedParams)


class Listing:
    """Yields all sessions each time one of them changes; who reads slowly sees the latest.

    Announcements are never replayed, so the whole list is asked for on every new connection.
    """

    def __init__(self, protocol: ClientProtocol) -> None:
        self._protocol = protocol
        self._sessions: dict[Uri, SessionSummary] | None = None
        self._is_asked = False
        self._error: ClientError | None = None
        self._wake = asyncio.Event()

    async def run(self) -> AsyncIterator[tuple[SessionSummary, ...]]:
        self._protocol.listings.add(self)
        self.look()
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._error is not None:
                    raise self._error
                if self._sessions is not None:
                    yield tuple(self._sessions.values())
        finally:
            self._protocol.listings.discard(self)

    def look(self) -> None:
        if self._protocol.error is not None:
            self._fail(self._protocol.error)
        elif not self._protocol.is_live:
            self._is_asked = False
        elif not self._is_asked:
            self._is_asked = True
            params = ListSessionsParams(channel=ROOT_CHANNEL)
            self._protocol.request(frames.ListSessions, params, self._listed)

    def announced(self, message: HostMessage) -> None:
        """What came before the list is in it already."""
        if self._sessions is not None:
            _ANNOUNCEMENTS[message.method or ""](self._sessions, bytes(message.params))
            self._wake.set()

    def _listed(self, answer: Answer) -> None:
        if isinstance(answer, CommandFailed):
            self._fail(answer)
        elif isinstance(answer, msgspec.Raw):
            items = _decode_listed(bytes(answer)).items
            self._sessions = {summary.resource: summary for summary in items}
            self._wake.set()

    def _fail(self, error: ClientError) -> None:
        self._error = error
        self._wake.set()


def _added(sessions: dict[Uri, SessionSummary], params: bytes) -> None:
    summary = _decode_added(params).summary
    sessions[summary.resource] = summary


def _removed(sessions: dict[Uri, SessionSummary], params: bytes) -> None:
    sessions.pop(_decode_removed(params).session, None)


def _changed(sessions: dict[Uri, SessionSummary], params: bytes) -> None:
    change = _decode_changed(params)
    known = sessions.get(change.session)
    if known is not None:
        fields: dict[str, Any] = {
            name: value
            for name in change.changes.__struct_fields__
            if (value := getattr(change.changes, name)) is not msgspec.UNSET
        }
        if fields.get("activity") == "":
            fields["activity"] = None
        sessions[change.session] = msgspec.structs.replace(known, **fields)


_ANNOUNCEMENTS = {
    "root/sessionAdded": _added,
    "root/sessionRemoved": _removed,
    "root/sessionSummaryChanged": _changed,
}
