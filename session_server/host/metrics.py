"""What has happened since the start, as plain numbers that cost next to nothing to keep.

Exporters read them; nothing here knows how. Open things are not counted: they are looked at where
they are.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from session_server.schemas.errors import RefusalCode
from session_server.schemas.principals import Provenance
from session_server.schemas.record import Outcome, SessionRecord
from session_server.schemas.wire import Millis, Uri

if TYPE_CHECKING:
    from session_server.host.channels.changes import Change
    from session_server.host.channels.channel import Channel

APPEND_BOUNDS = (0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5)
HUMAN_BOUNDS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0)

ANSWERED = (Provenance.PERSON, Provenance.POLICY)


class Histogram:
    """`counts[i]` is how often a value was at most `bounds[i]`; the last one counts the rest."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times


class Counts:
    def __init__(self) -> None:
        self.entries = 0
        self.deliveries = 0
        self.replays = 0
        self.snapshots = 0
        self.loads = 0
        self.evictions = 0
        self.refusals: Counter[RefusalCode] = Counter()
        self.closes: Counter[int] = Counter()
        self.store_failures: Counter[str] = Counter()
        self.outcomes: Counter[Provenance] = Counter()
        self.append_seconds = Histogram(APPEND_BOUNDS)
        self.first_draft_seconds = Histogram(HUMAN_BOUNDS)
        self.answer_seconds = Histogram(HUMAN_BOUNDS)


class QuestionTimes:
    """How long people take, of questions that were asked since the start."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._asked: dict[tuple[Uri, str], Millis] = {}
        self._untouched: dict[tuple[Uri, str], Millis] = {}

    def committed(self, channel: "Channel[SessionRecord]", change: "Change") -> None:
        before, after = change.before, change.after
        if after.private.is_recording:
            return
        if before.public.input_requests is not after.public.input_requests:
            self._changed(channel.uri, before, after)
        for request_id in after.private.begun:
            asked = self._untouched.pop((channel.uri, request_id), None)
            if asked is not None:
                now = after.public.summary.modified_at
                self._counts.first_draft_seconds.observe((now - asked) / 1000)
        if before.private.outcomes is not after.private.outcomes:
            for outcome in new_outcomes(before, after):
                self._ended(channel.uri, outcome)

    def _changed(self, uri: Uri, before: SessionRecord, after: SessionRecord) -> None:
        known = {request.id for request in before.public.input_requests or ()}
        for request in after.public.input_requests or ():
            if request.id not in known:
                now = after.public.summary.modified_at
                self._asked[uri, request.id] = self._untouched[uri, request.id] = now

    def _ended(self, uri: Uri, outcome: Outcome) -> None:
        self._counts.outcomes[outcome.via] += 1
        self._untouched.pop((uri, outcome.request.id), None)
        asked = self._asked.pop((uri, outcome.request.id), None)
        if asked is not None and outcome.via in ANSWERED:
            self._counts.answer_seconds.observe((outcome.at - asked) / 1000)

    def disposed(self, uri: Uri) -> None:
        for times in (self._asked, self._untouched):
            for key in [key for key in times if key[0] == uri]:
                del times[key]


def new_outcomes(before: SessionRecord, after: SessionRecord) -> Iterable[Outcome]:
    """They come at the end; the oldest may go at the same time."""
    last = before.private.outcomes[-1] if before.private.outcomes else None
    for outcome in reversed(after.private.outcomes):
        if outcome is last:
            return
        yield outcome
