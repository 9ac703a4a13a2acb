"""Announcing changes of summaries to everyone who watches the list of sessions."""

from typing import Any

import msgspec

from session_server.host.host import Host
from session_server.host.timers import Handle
from session_server.reducers.state.status import listed
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp.frames import (
    SessionSummaryChanged,
    SessionSummaryChangedParams,
    SummaryChanges,
)
from session_server.schemas.ahp.session import SessionSummary, SummaryMeta
from session_server.schemas.wire import Uri

QUIET_SECONDS = 1.0
"""Changes of `modifiedAt` alone are sent at most this often per session."""


def changes_between(before: SessionSummary, after: SessionSummary) -> SummaryChanges:
    changed: dict[str, Any] = {}
    for name in SummaryChanges.__struct_fields__:
        new = getattr(after, name)
        if new is not None and getattr(before, name) != new:
            changed[name] = new
    if before.activity is not None and after.activity is None:
        changed["activity"] = ""
    if before.meta is not None and after.meta is None:
        changed["meta"] = SummaryMeta()
    return SummaryChanges(**changed)


class SummaryAnnouncements:
    """The summary that was last sent of each session."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._announced: dict[Uri, SessionSummary] = {}
        self.due: dict[Uri, Handle] = {}
        """Timers of sessions whose summary, as it is then, will be sent soon."""

    def changed(self, before: SessionSummary, after: SessionSummary) -> None:
        uri = after.resource
        announced = self._announced.setdefault(uri, before)
        quiet = msgspec.structs.replace(announced, modified_at=after.modified_at) == after
        if not quiet:
            self._announce(uri, after)
        elif uri not in self.due:
            later = self._host.clock.call_later(QUIET_SECONDS, self._announce_latest, uri)
            self.due[uri] = later

    def _announce_latest(self, uri: Uri) -> None:
        self.due.pop(uri, None)
        channel = self._host.sessions.get(uri)
        record = None if channel is None else channel.overview
        if record is not None:
            self._announce(uri, listed(record.public))

    def _announce(self, uri: Uri, summary: SessionSummary) -> None:
        timer = self.due.pop(uri, None)
        if timer is not None:
            timer.cancel()
        changes = changes_between(self._announced[uri], summary)
        self._announced[uri] = summary
        params = SessionSummaryChangedParams(channel=ROOT_CHANNEL, session=uri, changes=changes)
        channel = self._host.sessions.get(uri)
        if channel is not None:
            self._host.list_watchers.announce(SessionSummaryChanged(params=params), channel)

    def forget(self, uri: Uri) -> None:
        self._announced.pop(uri, None)
        timer = self.due.pop(uri, None)
        if timer is not None:
            timer.cancel()
