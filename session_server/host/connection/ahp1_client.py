"""A client that speaks AHP 0.9 or 1.x: its names for channels, what it watches, how it resumes."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from session_server.host.channels.ahp1_views import View
from session_server.host.channels.channel import Channel
from session_server.host.channels.messages import Outbox
from session_server.host.clients.presence import session_of
from session_server.host.connection.reconnect import Envelopes, ReplayedActions, missed
from session_server.host.connection.subscriptions import StatelessChannels, check_number
from session_server.host.host import Host
from session_server.host.lifecycle import loaded_record
from session_server.reducers.ahp1.numbering import number_after, position
from session_server.reducers.ahp1.snapshots import Variant, chat_name
from session_server.reducers.ahp1.uris import named, resolved, spelled_uri
from session_server.reducers.version_negotiation import Version
from session_server.schemas.ahp.commands import (
    ROOT_CHANNEL,
    InitializeParams,
    ReconnectSnapshot,
    Snapshot,
)
from session_server.schemas.errors import CommandError, ErrorCode
from session_server.schemas.log_entries import Spelling
from session_server.schemas.principals import Principal
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Seq, Uri

PLAIN_URIS = "vscode.ahpSessionUris"
"""With this in `_meta`, VS Code accepts `ahp-session:` URIs; else the scheme is the provider."""


def spelling_for(params: InitializeParams) -> Spelling:
    is_vscode = params.client_info is not None and params.client_info.name.startswith("vscode")
    takes_plain = (params.meta or {}).get(PLAIN_URIS) is True
    return Spelling.PROVIDER if is_vscode and not takes_plain else Spelling.PLAIN


class Target(NamedTuple):
    """What a client means by a URI: the channel's own URI, and which side of it."""

    uri: Uri
    on_chat: bool


def _name(target: Target) -> str:
    """A session and its chat count as two subscriptions."""
    return f"{target.uri} {target.on_chat}"


class Ahp1Client:
    def __init__(self, host: Host, outbox: Outbox, version: Version, spelling: Spelling) -> None:
        self.version = version
        self.spelling = spelling
        self.variant = Variant(version.has_chat_marks, spelling)
        self._host = host
        self._outbox = outbox
        self._watched: dict[Target, Channel[Any]] = {}
        self._stateless = StatelessChannels(host, outbox, self.variant)

    # Names

    def target(self, uri: Uri) -> Target:
        if uri == ROOT_CHANNEL:
            return Target(uri, on_chat=False)
        name = named(session_of(uri) or uri)
        return Target(resolved(name.session, self._exists), name.is_chat)

    def _exists(self, uri: Uri) -> bool:
        host = self._host
        return uri in host.sessions or host.lifecycle.is_opening(uri) or uri in host.unreadable

    def name(self, channel: Channel[Any], *, on_chat: bool) -> Uri:
        """Of a channel, in the spelling of this connection."""
        record = channel.overview
        if not isinstance(record, SessionRecord):
            return channel.uri
        if on_chat:
            return chat_name(record, self.variant)
        return spelled_uri(record.public.summary, self.spelling)

    # Watching

    def subscribe(self, principal: Principal, uri: Uri) -> Snapshot | None:
        """The snapshot of a channel that is watched from now on.

        None if it is watched already or has no state. Raises if there is no such channel.
        """
        if self.join(principal, uri):
            return None
        target = self.target(uri)
        channel = self._host.channel(principal, target.uri)
        if channel is None:
            if target.on_chat:
                raise CommandError(ErrorCode.NOT_FOUND, f"There is no chat {uri}.")
            raise self._host.missing(principal, target.uri)
        if self._is_watched(target):
            return None
        loaded_record(channel)
        self._watch(target, channel)
        return self.snapshot(channel, on_chat=target.on_chat)

    def join(self, principal: Principal, uri: Uri) -> bool:
        """Watches a channel without state."""
        return self._stateless.join(principal, uri, self._watched_names())

    def _is_watched(self, target: Target) -> bool:
        """A disposed session is no longer watched, even if a new one has its name."""
        channel = self._watched.get(target)
        views = None if channel is None else channel.publisher.views
        view = View(self.variant, target.on_chat)
        return views is not None and views.has(view, self._outbox)

    def _watch(self, target: Target, channel: Channel[Any]) -> None:
        check_number((*self._watched_names(), *self._stateless.uris, _name(target)))
        self._watched[target] = channel
        channel.ahp1_views().add(View(self.variant, target.on_chat), self._outbox)

    def _watched_names(self) -> list[str]:
        """Without sessions that were disposed of."""
        self._watched = {t: c for t, c in self._watched.items() if self._is_watched(t)}
        return [_name(target) for target in self._watched]

    def snapshot(self, channel: Channel[Any], *, on_chat: bool) -> Snapshot:
        view = View(self.variant, on_chat)
        return Snapshot(
            resource=self.name(channel, on_chat=on_chat),
            state=msgspec.Raw(channel.ahp1_views().shown(channel.committed, view)),
            from_seq=number_after(self._host.position),
        )

    def unsubscribe(self, uri: Uri) -> None:
        self._stateless.leave(uri)
        target = self.target(uri)
        channel = self._watched.pop(target, None)
        if channel is not None and channel.publisher.views is not None:
            channel.publisher.views.remove(View(self.variant, target.on_chat), self._outbox)

    def leave(self) -> None:
        self._stateless.leave_all()
        for target, channel in self._watched.items():
            if channel.publisher.views is not None:
                channel.publisher.views.remove(View(self.variant, target.on_chat), self._outbox)
        self._watched.clear()

    # Catching up

    def resume(
        self, principal: Principal, uris: Iterable[Uri], last_seen: Seq
    ) -> ReplayedActions | ReconnectSnapshot:
        """Watches these channels again; what was missed, or snapshots where that is not known."""
        found: dict[Uri, tuple[Target, Channel[Any]]] = {}
        missing: list[Uri] = []
        for uri in dict.fromkeys(uris):
            if self.join(principal, uri):
                continue
            target = self.target(uri)
            channel = self._host.channel(principal, target.uri)
            if channel is None:
                missing.append(uri)
            else:
                loaded_record(channel)
                self._watch(target, channel)
                found[uri] = (target, channel)
        targets = dict.fromkeys(found.values())
        return missed(
            self._host,
            position(last_seen).seq,
            self._envelopes(targets, last_seen),
            lambda: (self.snapshot(c, on_chat=t.on_chat) for t, c in targets),
            missing,
        )

    def _envelopes(
        self, targets: Iterable[tuple[Target, Channel[Any]]], last_seen: Seq
    ) -> Iterator[Envelopes | None]:
        sides: dict[Channel[Any], list[bool]] = {}
        for target, channel in targets:
            sides.setdefault(channel, []).append(target.on_chat)
        for channel, watched in sides.items():
            yield channel.ahp1_views().since(
                last_seen, self.variant, on_chat=True in watched, on_session=False in watched
            )
