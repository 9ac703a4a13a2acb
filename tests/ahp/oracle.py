"""The oracle: what a log is replayed into, and whether every mirror and the host agree with it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from session_server.host.channels.channel_kinds import CLIENTS, ROOT, SESSION, Kind
from session_server.log import Entry, Log, StoredSnapshot
from session_server.reducers.state.host_channels import PRIVATE_ACTIONS
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.session import RootState
from session_server.schemas.codec import (
    decode_known_clients,
    decode_logged,
    decode_root_state,
    decode_session_record,
)
from session_server.schemas.log_entries import CLIENTS_CHANNEL, Logged, SessionOpened
from session_server.schemas.wire import Seq, Uri
from tests.ahp.mirror import Mirror, State, Stretch

KINDS: dict[Uri, Kind[Any]] = {ROOT_CHANNEL: ROOT, CLIENTS_CHANNEL: CLIENTS}
DECODERS: dict[Uri, Any] = {ROOT_CHANNEL: decode_root_state, CLIENTS_CHANNEL: decode_known_clients}


class Diverged(AssertionError):  # noqa: N818 - it is named after what happened
    """Somebody holds something else than the others, or got what they must not get."""


def expect(holds: bool, reason: str) -> None:
    if not holds:
        raise Diverged(reason)


class LogOracle:
    """A log's entries, replayed. Where some were trimmed, a stored snapshot is the beginning."""

    def __init__(
        self,
        entries: Iterable[Entry],
        snapshots: Iterable[StoredSnapshot] = (),
        floors: Mapping[Uri, Seq] | None = None,
    ) -> None:
        self.entries = {entry.seq: entry for entry in entries}
        self.logged = {seq: decode_logged(entry.data) for seq, entry in self.entries.items()}
        self.floors = floors or {}
        self.public: dict[Uri, list[Seq]] = {}
        self._seqs: dict[Uri, list[Seq]] = {}
        self._past: dict[tuple[Uri, Seq], State] = {}
        self.openings: dict[Uri, Seq] = {}
        self.records: dict[Uri, Any] = {}
        self.starts: dict[Uri, tuple[Seq, Any]] = {}
        for stored in snapshots:
            decode = DECODERS.get(stored.channel, decode_session_record)
            self.records[stored.channel] = decode(stored.data)
            self.starts[stored.channel] = (stored.seq, self.records[stored.channel])
        for seq, logged in sorted(self.logged.items(), key=lambda item: item[0]):
            channel = self.entries[seq].channel
            self._place(channel, seq, logged)
            if seq > self.start(channel):
                self._apply(channel, logged)

    @classmethod
    async def of(cls, log: Log) -> "LogOracle":
        return cls(await entries_of(log), await log.snapshots(), await log.floors())

    def _place(self, channel: Uri, seq: Seq, logged: Logged) -> None:
        self._seqs.setdefault(channel, []).append(seq)
        if type(logged.action) not in PRIVATE_ACTIONS:
            self.public.setdefault(channel, []).append(seq)
        if isinstance(logged.action, SessionOpened):
            self.openings[channel] = seq

    def _apply(self, channel: Uri, logged: Logged) -> None:
        kind = KINDS.get(channel, SESSION)
        known = self.records.get(channel, kind.empty)
        if isinstance(logged.action, SessionOpened):
            known = None  # a URI can be used again
        self.records[channel] = kind.reduce(known, logged.action, logged.stamp.at)

    def start(self, channel: Uri) -> Seq:
        """The entries after this one are replayed."""
        return self.starts.get(channel, (0, None))[0]

    def replayed(self, channel: Uri) -> Iterator[tuple[Seq, Logged]]:
        for seq in self._seqs.get(channel, ()):
            if seq > self.start(channel):
                yield seq, self.logged[seq]

    def state(self, channel: Uri) -> State:
        return public_part(self.records[channel])

    def past_state(self, channel: Uri, seq: Seq) -> State:
        """The state right after this entry; only where nothing was trimmed."""
        known = self._past.get((channel, seq))
        if known is None:
            kind = KINDS.get(channel, SESSION)
            record = kind.empty
            for at in self._seqs[channel]:
                if at <= seq:
                    logged = self.logged[at]
                    record = kind.reduce(record, logged.action, logged.stamp.at)
            known = self._past[channel, seq] = public_part(record)
        return known

    # Who must agree

    def has_all(self, mirror: Mirror) -> bool:
        """Whether it has got all that the log holds of what it watches."""
        return all(copy.position >= self.public[u][-1] for u, copy in mirror.copies.items())

    def check_mirror(self, mirror: Mirror) -> None:
        """It is where the log is, and everything it got on the way was just what was due."""
        who = mirror.client_id
        expect(not mirror.faults, f"{who}: {mirror.faults[:3]}")
        for uri, copy in mirror.copies.items():
            expect(uri in self.records, f"{who}: watches {uri}, which is gone")
            expect(copy.state == self.state(uri), f"{who}: {uri} is something else than in the log")
        open_ended = {id(copy.stretch) for copy in mirror.copies.values()}
        for stretch in mirror.stretches:
            self._check_stretch(who, stretch, is_open_ended=id(stretch) in open_ended)

    def check_past_mirror(self, mirror: Mirror) -> None:
        """The same for one that left at some time: it is where the log was when it did."""
        who = mirror.client_id
        expect(not mirror.faults, f"{who}: {mirror.faults[:3]}")
        for uri, copy in mirror.copies.items():
            was = self.past_state(uri, copy.position)
            expect(copy.state == was, f"{who}: {uri} is something else than it was in the log")
        for stretch in mirror.stretches:
            self._check_stretch(who, stretch, is_open_ended=False)

    def _check_stretch(self, who: str, stretch: Stretch, *, is_open_ended: bool) -> None:
        floor = self.floors.get(stretch.channel, 0)
        last = stretch.seqs[-1] if stretch.seqs else 0
        # Some of what stands before the floor is kept for longer, and is not all there was.
        due = [
            seq
            for seq in self.public.get(stretch.channel, ())
            if seq > max(stretch.start, floor) and (is_open_ended or seq <= last)
        ]
        got = [seq for seq in stretch.seqs if seq > floor]
        if got != due:
            missing, more = sorted({*due} - {*got}), sorted({*got} - {*due})
            reason = f"missing {missing[:5]}, not due {more[:5]}, or in another order"
            raise Diverged(f"{who}: {len(got)} of {len(due)} of {stretch.channel}: {reason}")

    def check_seen(self, seen: Mapping[Seq, ActionEnvelope]) -> None:
        """Whatever anybody ever received is in the log, just so."""
        for seq, envelope in seen.items():
            if seq <= self.floors.get(envelope.channel, 0):
                continue
            expect(seq in self.entries, f"{seq} was seen and is not in the log")
            channel, logged = self.entries[seq].channel, self.logged[seq]
            expect(is_same(envelope, channel, logged), f"{seq} was seen as something else")


def public_part(record: Any) -> State:
    state: State = record if isinstance(record, RootState) else record.public
    return state


def is_same(envelope: ActionEnvelope, channel: Uri, logged: Logged) -> bool:
    meta = envelope.meta
    return (
        (envelope.channel, envelope.action, envelope.origin)
        == (channel, logged.action, logged.origin)
        and meta is not None
        and (meta.at, meta.by) == (logged.stamp.at, logged.stamp.by)
    )


async def entries_of(log: Log) -> list[Entry]:
    """Everything that a log holds, in order."""
    found: list[Entry] = []
    while more := await log.read(after=found[-1].seq if found else 0, limit=1_000):
        found += more
    return found
