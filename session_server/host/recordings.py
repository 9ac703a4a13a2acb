"""Sessions as files: a recording holds every entry of a session's log, in order, without secrets.

Lines of JSON: a header, the entries, an end. Where the log has forgotten the beginning, the first
entry opens with the record as it was then, and lists the decisions from before that the log still
has. A recording is played back into a session that does not exist yet and can then only be watched.
Exported again it is the same, byte for byte: positions are in neither. The file format and the
error code call a recording a cassette.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

from session_server.host.async_api import Completion
from session_server.host.channels.channel import Channel
from session_server.host.channels.channel_host import InDoubt, Verdict
from session_server.host.channels.channel_kinds import SESSION
from session_server.host.host import Host
from session_server.log import Batch, Durable, Entry, NewEntry, StoredSnapshot
from session_server.reducers.calls.export_redaction import redacted, redacted_record
from session_server.reducers.state.opening import is_recording
from session_server.reducers.state.record import PRIVATE_TRANSITIONS, is_decision
from session_server.reducers.state.session import TRANSITIONS
from session_server.schemas.ahp.session import ProjectInfo
from session_server.schemas.codec import Decoder, decode_logged, decode_session_record, encode
from session_server.schemas.errors import (
    CommandError,
    DecodingError,
    ErrorCode,
    SessionServerError,
    UnreadableSessionError,
    no_session,
)
from session_server.schemas.limits import CASSETTE_ENTRIES
from session_server.schemas.log_entries import Logged, SessionOpened
from session_server.schemas.principals import HOST, Stamp
from session_server.schemas.record import Call, CallStarted, SessionRecord
from session_server.schemas.wire import Count, Uri, Wire

VERSION = 1
RECORDING = "recording"
RECORDINGS = ProjectInfo(uri="session-server:recordings", display_name="Recordings")

replace = msgspec.structs.replace


class Header(Wire, frozen=True, kw_only=True, tag_field="kind", tag="cassette"):
    version: Count
    session: Uri


class Line(Logged, frozen=True, kw_only=True, tag_field="kind", tag="entry"):
    """One entry of the log, with its marks: when, by whom, how, and from which client."""


class End(Wire, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """How many entries there are; a file without it was cut off.

    `damaged`: what followed in the log could not be read.
    """

    entries: Count
    damaged: bool = False


CassetteLine: TypeAlias = Header | Line | End

decode_line: Decoder[CassetteLine] = Decoder(CassetteLine)


class CassetteError(SessionServerError):
    """This is not a recording, or not a complete one; lines that do not fit are not played."""

    code = "badCassette"


# Out


async def exported(host: Host, uri: Uri) -> Iterator[bytes]:
    """The lines of a session as its log is now."""
    if uri not in host.sessions and uri not in host.unreadable:
        raise no_session(uri)
    return _lines(uri, await _history(host, uri))


class History(NamedTuple):
    """`is_damaged`: what followed could not be read."""

    entries: Sequence[Logged]
    is_damaged: bool


async def _history(host: Host, uri: Uri) -> History:
    """Everything that the log holds of a session; of a damaged one, what can be replayed."""
    stored = await host.log.read(after=0, limit=CASSETTE_ENTRIES + 1, channels=(uri,))
    if len(stored) > CASSETTE_ENTRIES:
        reason = f"This session has more than {CASSETTE_ENTRIES} entries, too many for a recording."
        raise CommandError(ErrorCode.CONFLICT, reason)
    whole = await asyncio.to_thread(_replayed, None, stored)
    if len(whole) == len(stored) > 0:
        return History(whole, is_damaged=False)
    reached = stored[len(whole) - 1].seq if whole else 0
    for snapshot in await host.log.snapshots((uri,)):
        if snapshot.seq > reached:
            history = await asyncio.to_thread(_reopened, snapshot, stored)
            if history is not None:
                return history
    if not whole:
        raise UnreadableSessionError(uri, host.unreadable.get(uri, "its beginning is missing"))
    return History(whole, is_damaged=True)


def _replayed(record: SessionRecord | None, stored: Sequence[Entry]) -> list[Logged]:
    """The entries that follow from a record and from each other."""
    entries: list[Logged] = []
    for entry in stored:
        logged = _decoded(entry)
        if logged is None:
            break
        try:
            record = SESSION.reduce(record, logged.action, logged.stamp.at)
        except Exception:  # noqa: BLE001  # whatever it holds, it does not follow
            break
        entries.append(logged)
    return entries


def _decoded(entry: Entry) -> Logged | None:
    if not entry.is_intact:
        return None
    try:
        return decode_logged(entry.data)
    except DecodingError:
        return None


def _reopened(snapshot: StoredSnapshot, stored: Sequence[Entry]) -> History | None:
    """From the record as it was when the snapshot was taken, and with the decisions from before."""
    if not snapshot.is_intact:
        return None
    try:
        record = decode_session_record(snapshot.data)
    except DecodingError:
        return None
    before = [_decoded(entry) for entry in stored if entry.seq <= snapshot.seq]
    earlier = tuple(e for e in before if e is not None and is_decision(e.action))
    stamp = Stamp(at=record.public.summary.modified_at, by=HOST)
    opened = SessionOpened(record=record, trimmed=True, earlier=earlier)
    later = [entry for entry in stored if entry.seq > snapshot.seq]
    entries = _replayed(record, later)
    history = (Logged(action=opened, stamp=stamp), *entries)
    return History(history, is_damaged=len(entries) < len(later))


def _lines(uri: Uri, history: History) -> Iterator[bytes]:
    """A recording has no secrets any more, and a digest must not be digested again."""
    yield _written(Header(version=VERSION, session=uri))
    opening = history.entries[0].action
    assert isinstance(opening, SessionOpened)  # everything else is replayed over it
    is_plain = is_recording(opening.record)
    calls: dict[str, Call] = {}
    for logged in history.entries:
        yield _written(_line(logged, calls, is_plain=is_plain))
    yield _written(End(entries=len(history.entries), damaged=history.is_damaged))


def _written(line: CassetteLine) -> bytes:
    return encode(line) + b"\n"


def _line(logged: Logged, calls: dict[str, Call], *, is_plain: bool) -> Line:
    action = logged.action
    if isinstance(action, SessionOpened):
        calls |= action.record.private.calls
        earlier = tuple(_line(e, calls, is_plain=is_plain) for e in action.earlier)
        record = _exported_record(action.record, is_plain=is_plain)
        action = replace(action, record=record, earlier=earlier)
    elif not is_plain:
        if isinstance(action, CallStarted):
            calls[action.call.id] = action.call
        action = redacted(action, calls)  # type: ignore[arg-type]  # a session's log has no others
    return Line(action=action, stamp=logged.stamp, origin=logged.origin)


def _exported_record(record: SessionRecord, *, is_plain: bool) -> SessionRecord:
    if not is_plain:
        return redacted_record(record)
    return _marked(record, is_recording=False)


def _marked(record: SessionRecord, *, is_recording: bool) -> SessionRecord:
    """The rules look at the private mark; the public ones tell clients why nothing can be done.

    A list of sessions shows summaries alone. There recordings are a project of their own.
    """
    public = record.public
    known = {name: value for name, value in (public.meta or {}).items() if name != RECORDING}
    meta = known | ({RECORDING: True} if is_recording else {})
    project = None if public.summary.project == RECORDINGS else public.summary.project
    if is_recording and project is None:
        project = RECORDINGS
    summary = replace(public.summary, project=project)
    return replace(
        record,
        public=replace(public, summary=summary, meta=meta or None),
        private=replace(record.private, is_recording=is_recording),
    )


# In


class Playback:
    """Reads one recording line by line, and checks that each entry follows from those before."""

    def __init__(self) -> None:
        self.session: Uri | None = None
        self.is_over = False
        self._number = 0
        self._entries = 0
        self._record: SessionRecord | None = None

    def add_line(self, text: bytes) -> Logged | None:
        """The entry of a line, if it is one; raises `CassetteError` with the reason."""
        self._number += 1
        try:
            line = decode_line(text)
        except DecodingError as error:
            raise self._error(f"cannot be read: {error}") from None
        if self.is_over:
            raise self._error("comes after the end")
        if isinstance(line, Header):
            self._begin(line)
            return None
        if self.session is None:
            raise self._error("comes before the header")
        if isinstance(line, End):
            self._end(line)
            return None
        return self._entry(line)

    def _begin(self, header: Header) -> None:
        if self.session is not None:
            raise self._error("is a second header")
        if header.version != VERSION:
            reason = f"is of version {header.version}; this host reads version {VERSION}"
            raise self._error(reason)
        self.session = header.session

    def _end(self, end: End) -> None:
        if end.entries != self._entries or not self._entries:
            reason = f"says that there are {end.entries} entries, and there are {self._entries}"
            raise self._error(reason)
        self.is_over = True

    def _entry(self, line: Line) -> Logged:
        logged = Logged(action=line.action, stamp=line.stamp, origin=line.origin)
        if self._record is None:
            logged = self._opening(logged)
        elif type(line.action) not in _PLAYED:
            raise self._error("is not of a session")
        if self._entries >= CASSETTE_ENTRIES:
            raise self._error(
                f"is one too many; a recording has at most {CASSETTE_ENTRIES} entries"
            )
        try:
            self._record = SESSION.reduce(self._record, logged.action, logged.stamp.at)
        except Exception as error:
            raise self._error("does not follow from what is before it") from error
        self._entries += 1
        return logged

    def _opening(self, logged: Logged) -> Logged:
        action = logged.action
        if not isinstance(action, SessionOpened):
            raise self._error("comes before the session is opened")
        if action.record.public.summary.resource != self.session:
            raise self._error("opens another session than the header says")
        if not all(is_decision(earlier.action) for earlier in action.earlier):
            raise self._error("lists earlier entries that are not decisions")
        record = _marked(action.record, is_recording=True)
        return replace(logged, action=replace(action, record=record))

    def _error(self, reason: str) -> CassetteError:
        return CassetteError(f"Line {self._number} {reason}.")


_PLAYED = frozenset({*TRANSITIONS, *PRIVATE_TRANSITIONS})


async def replayed(host: Host, lines: AsyncIterator[bytes]) -> Uri:
    """Plays a recording in one go: all of it, or nothing."""
    playback = Playback()
    history = [logged async for text in lines if (logged := playback.add_line(text)) is not None]
    uri = _whole(playback)
    await _open(host, uri, history)
    return uri


async def played(host: Host, lines: AsyncIterator[bytes]) -> Uri:
    """Plays a recording as its lines come, for those who watch; what was played stays."""
    playback = Playback()
    channel: Channel[SessionRecord] | None = None
    with ExitStack() as stack:
        async for text in lines:
            logged = playback.add_line(text)
            if logged is None:
                continue
            if channel is None:
                assert playback.session is not None  # entries come after the header
                stack.enter_context(host.loaded.pinned(playback.session))
                channel = await _open(host, playback.session, [logged])
            else:
                await Appending(host, channel, [logged], channel.apply_missed).write()
    return _whole(playback)


def _whole(playback: Playback) -> Uri:
    if not playback.is_over or playback.session is None:
        raise CassetteError(
            "The recording was cut off: its last line is missing. Export the session again."
        )
    return playback.session


async def _open(host: Host, uri: Uri, history: Sequence[Logged]) -> Channel[SessionRecord]:
    channel = host.lifecycle.reserve(uri)

    def opened(entries: Sequence[Entry]) -> None:
        for entry in entries:
            channel.replay(entry)
        channel.measure()
        host.lifecycle.admit(channel)

    discard, doubt = (
        partial(host.lifecycle.discard, channel),
        partial(host.lifecycle.doubt, channel),
    )
    await Appending(host, channel, history, opened, discard, doubt).write()
    return channel


class Appending:
    """Makes entries durable under the stamps that they have (an `Appender`).

    What follows is done when the log has settled it, whether or not anyone still waits for `write`.
    """

    def __init__(
        self,
        host: Host,
        channel: Channel[SessionRecord],
        history: Sequence[Logged],
        stored: Callable[[Sequence[Entry]], None],
        lost: Callable[[], None] = lambda: None,
        doubted: Callable[[], None] = lambda: None,
    ) -> None:
        new = tuple(NewEntry(host.new_id(), encode(logged)) for logged in history)
        self._writer = host.writer
        self._done = Completion()
        self._batch = Batch(channel.uri, channel.last_seq, new)
        self._stored, self._lost, self._doubted = stored, lost, doubted

    async def write(self) -> None:
        self._writer.append_soon(self)
        await self._done.future

    def next_batch(self) -> Batch:
        return self._batch

    def settled(self, verdict: Verdict) -> None:
        if isinstance(verdict, Durable):
            uri = self._batch.channel
            places = zip(verdict.seqs, self._batch.entries, strict=True)
            self._stored([Entry(seq, uri, entry.id, entry.data) for seq, entry in places])
            self._done.succeed()
        elif isinstance(verdict, InDoubt):
            self._doubted()
            self._done.doubt(verdict.reason)
        else:
            self._lost()
            self._done.fail(verdict.reason)
