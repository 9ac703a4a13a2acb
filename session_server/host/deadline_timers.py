"""Deadlines of requests and calls: one timer per session, for the earliest of them.

A deadline counts by the wall clock, whether its timer or a late answer comes first: the channel
calls `on_overdue` before it judges anything after `due_at`.
"""

from functools import partial
from math import inf
from typing import Any

from session_server.host.channels.changes import PlannedChange
from session_server.host.channels.channel import Channel
from session_server.host.host import Host
from session_server.host.timers import Timer
from session_server.reducers.calls.client_answers import client_expired
from session_server.reducers.deadlines import expired
from session_server.reducers.effects import ExpireCall, ExpireRequest, expiries
from session_server.schemas.principals import Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Millis, Uri

RETRY_MS = 1_000
"""After an expiry could not be written."""

Expiry = ExpireRequest | ExpireCall


class Deadlines:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._timers: dict[Uri, Timer] = {}
        host.on_disposed.append(self._stop_timer)
        host.on_overdue.append(self._expire_due)

    def schedule(self, channel: Channel[SessionRecord], effect: Expiry) -> None:
        if effect.at < channel.due_at:
            channel.due_at = effect.at
            self._set_timer(channel, effect.at)

    def _set_timer(self, channel: Channel[SessionRecord], when: Millis) -> None:
        self._stop_timer(channel.uri)
        expire_due = partial(self._expire_due, channel)
        self._timers[channel.uri] = self._host.timers.at(when, expire_due)

    def _stop_timer(self, uri: Uri) -> None:
        timer = self._timers.pop(uri, None)
        if timer is not None:
            timer.cancel()

    def _expire_due(self, channel: Channel[SessionRecord]) -> None:
        """Expires what is due now, and sets the timer for the next deadline in the record."""
        self._stop_timer(channel.uri)
        channel.due_at = inf
        now = self._host.now()
        for effect in () if channel.head is None else tuple(expiries(channel.head)):
            if effect.at > now:
                self.schedule(channel, effect)
            else:
                self._expire(channel, effect)

    def _expire(self, channel: Channel[SessionRecord], effect: Expiry) -> None:
        def retry(_: str) -> None:
            """Until the expiry is written, `due_at` keeps later changes from overtaking it."""
            if not channel.is_closed:
                channel.due_at = min(channel.due_at, effect.at)
                self._set_timer(channel, self._host.now() + RETRY_MS)

        def plan(record: SessionRecord, stamp: Stamp) -> Any:
            if isinstance(effect, ExpireCall):
                return client_expired(record, effect.call_id, stamp)
            return expired(record, effect.request_id, stamp.at)

        channel.submit(PlannedChange(plan, failed=retry, is_exempt=True))
