"""What a log means in AHP 0.9 and 1.x: the envelopes of its entries, and the states after them."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from session_server.host.channels.channel_kinds import SESSION
from session_server.reducers.ahp1.envelopes import Committed, envelopes
from session_server.reducers.ahp1.numbering import number_after
from session_server.reducers.ahp1.root import root_envelopes, root_state
from session_server.reducers.ahp1.snapshots import Variant, chat_name, chat_state, session_state
from session_server.reducers.ahp1.uris import spelled_uri
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.codec import encode
from session_server.schemas.log_entries import CLIENTS_CHANNEL, SessionOpened
from session_server.schemas.wire import Seq, Uri
from tests.ahp.ahp1_mirror import Ahp1Mirror, Envelope, envelope_of
from tests.ahp.mirror import Stretch
from tests.ahp.oracle import LogOracle, expect


class Ahp1Oracle:
    """For clients of one variant."""

    def __init__(self, log: LogOracle, variant: Variant) -> None:
        self._log = log
        self._variant = variant
        self._states: dict[Uri, Any] = {}
        self._due: dict[Uri, list[Envelope]] = {}
        self._floors: dict[Uri, Seq] = {}
        for uri, record in log.records.items():
            if uri == ROOT_CHANNEL:
                self._follow_root(record)
            elif uri != CLIENTS_CHANNEL and record is not None:
                self._follow(uri, record)

    def _follow_root(self, record: Any) -> None:
        entries = [
            Committed(seq, logged.action, logged.stamp.at, logged.stamp.by, logged.origin)  # type: ignore[arg-type]
            for seq, logged in self._log.replayed(ROOT_CHANNEL)
        ]
        self._place(ROOT_CHANNEL, ROOT_CHANNEL, root_state(record), root_envelopes(entries))

    def _follow(self, uri: Uri, record: Any) -> None:
        session = spelled_uri(record.public.summary, self._variant.spelling)
        chat = chat_name(record, self._variant)
        made = [*self._expanded(uri)]
        self._place(uri, session, session_state(record, self._variant), made)
        self._place(uri, chat, chat_state(record, self._variant), made)

    def _expanded(self, uri: Uri) -> Iterable[Any]:
        """A URI can be used again; what was told of the one before it keeps its numbers."""
        _, before = self._log.starts.get(uri, (0, None))
        for seq, logged in self._log.replayed(uri):
            action, stamp = logged.action, logged.stamp
            if isinstance(action, SessionOpened):
                before = None
            elif before is not None:
                entry = Committed(seq, action, stamp.at, stamp.by, logged.origin)  # type: ignore[arg-type]
                yield from envelopes(before, (entry,), self._variant)
            before = SESSION.reduce(before, action, stamp.at)

    def _place(self, uri: Uri, name: Uri, state: Any, made: Iterable[Any]) -> None:
        self._states[name] = msgspec.json.decode(encode(state))
        self._due[name] = [envelope_of(encode(e)) for e in made if e.channel == name]
        floor = max(self._log.start(uri), self._log.floors.get(uri, 0))
        self._floors[name] = number_after(floor) if floor else 0

    # Who must agree

    def has_all(self, mirror: Ahp1Mirror) -> bool:
        """Whether it has got all that the log holds of what it watches."""
        return all(copy.state == self._states.get(u) for u, copy in mirror.copies.items())

    def check_mirror(self, mirror: Ahp1Mirror) -> None:
        """It is where the log is, and everything it got on the way was just what was due."""
        who = f"{mirror.client_id} ({mirror.version})"
        for channel, copy in mirror.copies.items():
            expect(channel in self._states, f"{who}: watches {channel}, which is gone")
            expect(copy.state == self._states[channel], f"{who}: {channel} is not as in the log")
        self.check_past_mirror(mirror, is_over=False)

    def check_past_mirror(self, mirror: Ahp1Mirror, *, is_over: bool = True) -> None:
        """The same for one that left at some time; it may have seen a part of an entry."""
        who = f"{mirror.client_id} ({mirror.version})"
        expect(not mirror.faults, f"{who}: {mirror.faults[:3]}")
        current = {id(copy.stretch) for copy in mirror.copies.values()}
        for stretch in mirror.stretches:
            self._check_stretch(who, stretch, is_open_ended=not is_over and id(stretch) in current)

    def _check_stretch(self, who: str, stretch: Stretch, *, is_open_ended: bool) -> None:
        floor = max(self._floors.get(stretch.channel, 0), stretch.start)
        last = stretch.seqs[-1] if stretch.seqs else 0
        numbers = (envelope.server_seq for envelope in self._due.get(stretch.channel, ()))
        due = [n for n in numbers if n > floor and (is_open_ended or n <= last)]
        got = [number for number in stretch.seqs if number > floor]
        expect(got == due, f"{who}: got {got} of {stretch.channel}, and not {due}")

    def check_seen(self, seen: Mapping[Seq, Envelope]) -> None:
        """Whatever anybody ever received can be made again, just so."""
        due = {envelope.server_seq: envelope for made in self._due.values() for envelope in made}
        for number, envelope in seen.items():
            if envelope.channel in self._due and number > self._floors[envelope.channel]:
                expect(due.get(number) == envelope, f"{number} was seen as something else")
