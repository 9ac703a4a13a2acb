"""Everyone who watches the list of sessions: what is announced about one reaches all of them.

Announcements are never replayed. Clients of AHP 0.9 and 1.x get them in their own version.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from session_server.host.channels.channel import Channel
from session_server.host.channels.messages import Message, Outbox
from session_server.reducers.ahp1.envelopes import summary_changes
from session_server.reducers.ahp1.snapshots import Variant, session_summary
from session_server.reducers.ahp1.uris import spelled_uri
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp1 import methods
from session_server.schemas.ahp1.state import SessionSummary
from session_server.schemas.principals import Principal
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri

Announcement: TypeAlias = frames.SessionAdded | frames.SessionRemoved | frames.SessionSummaryChanged


class ListWatchers:
    """Subscribers of the root channel, and guests.

    A guest's principal is limited to some sessions, and its list has only these. The root
    channel's state and actions are about the whole host, so a guest gets announcements alone.
    """

    def __init__(self, root: Channel[Any]) -> None:
        self._root = root
        self._guests: dict[Uri, dict[Outbox, Variant | None]] = {}
        self._announced: dict[Uri, dict[Variant, SessionSummary]] = {}
        """The summary that was last announced of each session, by variant of AHP 0.9 and 1.x."""

    def join(self, guest: Principal, outbox: Outbox, variant: Variant | None = None) -> None:
        for uri in guest.sessions or ():
            self._guests.setdefault(uri, {})[outbox] = variant

    def leave(self, guest: Principal, outbox: Outbox) -> None:
        for uri in guest.sessions or ():
            guests = self._guests.get(uri, {})
            guests.pop(outbox, None)
            if not guests:
                self._guests.pop(uri, None)

    def announce(
        self,
        news: Announcement,
        about: Channel[SessionRecord],
        also: Mapping[Outbox, Variant | None] | None = None,
    ) -> None:
        watchers: dict[Outbox, Variant | None] = dict.fromkeys(self._root.publisher.subscribers)
        if self._root.publisher.views is not None:
            watchers |= self._root.publisher.views.watchers
        watchers |= {**self._guests.get(about.uri, {}), **(also or {})}
        messages: dict[Variant | None, Message | None] = {None: Message.of(news)}
        for outbox, variant in watchers.items():
            if variant is not None and variant not in messages:
                later = self._in_later_version(news, about.uri, about.overview, variant)
                messages[variant] = None if later is None else Message.of(later)
            message = messages[variant]
            if message is not None:
                outbox.send(message)

    def _in_later_version(
        self, news: Announcement, uri: Uri, record: SessionRecord | None, variant: Variant
    ) -> Any:
        """The same announcement, or `None` if nothing changes in that version."""
        if isinstance(news, frames.SessionRemoved):
            self._announced.get(uri, {}).pop(variant, None)
            name = uri if record is None else spelled_uri(record.public.summary, variant.spelling)
            removed = frames.SessionRemovedParams(channel=ROOT_CHANNEL, session=name)
            return frames.SessionRemoved(params=removed)
        if record is None:
            return None
        new = session_summary(record, variant)
        announced = self._announced.setdefault(uri, {})
        old, announced[variant] = announced.get(variant), new
        if isinstance(news, frames.SessionAdded):
            added = methods.SessionAddedParams(channel=ROOT_CHANNEL, summary=new)
            return methods.SessionAdded(params=added)
        changes = _everything(new) if old is None else summary_changes(old, new)
        if changes is None:
            return None
        changed = methods.SessionSummaryChangedParams(
            channel=ROOT_CHANNEL, session=new.resource, changes=changes
        )
        return methods.SessionSummaryChanged(params=changed)

    def disposed(self, uri: Uri) -> None:
        self._announced.pop(uri, None)


def _everything(summary: SessionSummary) -> methods.SummaryChanges:
    """All fields, if no earlier announcement is known."""
    fields = {name: getattr(summary, name) for name in methods.SummaryChanges.__struct_fields__}
    return methods.SummaryChanges(**{n: value for n, value in fields.items() if value is not None})
