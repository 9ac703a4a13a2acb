"""The log over PostgreSQL, as the event loop sees it.

One connection writes and another reads; where other nodes write too, a third listens.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

import psycopg
from psycopg.types.numeric import Int8BinaryDumper

from session_server.log.postgres.address import Address, address_of
from session_server.log.postgres.diagnostics import check_server
from session_server.log.postgres.epochs import identity_of, position_of
from session_server.log.postgres.faults import opening_error
from session_server.log.postgres.link import Link
from session_server.log.postgres.queries import Queries
from session_server.log.postgres.schema import Connection, in_schema, migrate, one
from session_server.log.postgres.worker import Listener, Worker
from session_server.log.progress import Progress, follow, refuse_closed
from session_server.log.protocol import (
    CLOSED,
    AppendResult,
    Batch,
    Durable,
    Entry,
    Epoch,
    FailedError,
    InUseError,
    OnAppended,
    OpenError,
    RefusedBecause,
    StoredSnapshot,
    Sync,
)
from session_server.log.shared_loss_detection import LogPosition, Witness
from session_server.schemas.wire import Millis, Seq, Uri

P = ParamSpec("P")
T = TypeVar("T")

CLAIMED_SECONDS = 5.0
CLAIM_PAUSE = 0.1
"""A host that was killed leaves its connections for a moment: its claim is waited for."""

PLANNING = """
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off
"""
"""Plans are kept from when tables were small; always by index, they stay good as these grow."""

END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = %s AND usename = current_user AND pid <> pg_backend_pid()
"""
REPLACE = """
    DELETE FROM {s}.writers
    WHERE token = %s OR %s OR since < now() - interval '1 day' AND NOT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE application_name = 'session-server ' || split_part(token, '-', 1) || ' writer'
    )
"""
"""Also ends connections of processes that were killed."""

CLAIMANT = """
    SELECT coalesce(host(client_addr), 'a local socket'), application_name
    FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND (classid::bigint << 32 | objid::bigint) = %s
        AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class PostgresLog:
    """With `is_exclusive` no other process has the log open at the same time."""

    def __init__(
        self, address: Address, sync: Sync, *, is_exclusive: bool, witness: Witness | None
    ) -> None:
        self._address = address
        self._sync = sync
        self._is_exclusive = is_exclusive
        self._witness = witness
        self._name = secrets.token_hex(4)
        self._position: LogPosition | None = None
        self._identity = ""
        self._listener: Listener | None = None
        self._is_closed = False
        self.is_first = self.is_joined = True
        self._loop = asyncio.get_running_loop()
        self._queries = Queries(address.schema, "" if is_exclusive else address.schema)
        self._write_link = Link(address, f"session-server {self._name} writer", self._prepare)
        self._read_link = Link(address, f"session-server {self._name} reader", self._check_same)

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        sync: Sync = Sync.FULL,
        is_exclusive: bool = True,
        witness: Witness | None = None,
    ) -> "PostgresLog":
        """Raises an `OpenError` with the reason."""
        log = cls(address_of(url), sync, is_exclusive=is_exclusive, witness=witness)
        try:
            await log._begin()
        except FailedError as error:
            raise OpenError(error.reason) from error
        except (psycopg.Error, OSError) as error:
            raise opening_error(log._address.shown, error) from error
        return log

    async def _begin(self) -> None:
        await self._write_link.open()
        assert self._position is not None
        self.progress = Progress(self._position.last_seq)
        self._writer = Worker(self._write_link, self._queries.append)
        try:
            await self._read_link.open()
        except BaseException:
            self._writer.stop()
            await self._writer.stopped()
            raise
        self._reader = Worker(self._read_link, self._queries.append, is_repeatable=True)
        if not self._is_exclusive:
            link = Link(self._address, f"session-server {self._name} listener", self._check_same)
            self._listener = Listener(link, self._address.schema, self.progress)
        if self._witness is not None:
            self._witness.watch(lambda: LogPosition(self.epoch, self.last_seq))

    async def _prepare(self, connection: Connection) -> None:
        """Makes a new connection the one that writes, and every earlier one of this log not.

        Whatever an earlier one has under way is committed before this is through, or never: so what
        `find` does not find then is not stored.
        """
        schema, shown = self._address.schema, self._address.shown
        # By their size, numbers would be of three types, and each mix a statement to prepare.
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        await connection.execute(PLANNING)
        await self._set_sync(connection)
        if self._position is None:
            await check_server(connection, shown)
            await migrate(connection, schema, shown)
        else:
            await connection.execute(
                END_OTHERS, (connection.info.parameter_status("application_name"),)
            )
        if self._is_exclusive:
            await self._claim(connection)
        else:
            await self._join(connection)
        identity = await identity_of(connection)
        token = f"{self._name}-{secrets.token_hex(8)}"
        known = self._position and LogPosition(self._position.epoch, self.progress.last_seq)
        async with connection.transaction():
            await connection.execute(in_schema("SELECT FROM {s}.counter FOR UPDATE", schema))
            replaced = (self._queries.token, self._is_exclusive)
            await connection.execute(in_schema(REPLACE, schema), replaced)
            insert = in_schema("INSERT INTO {s}.writers (token) VALUES (%s)", schema)
            await connection.execute(insert, (token,))
            seen = self._witness.seen() if self._witness and known is None else None
            position = await position_of(connection, schema, identity, known, seen)
        if self._position is not None:
            self.progress.reach(position.last_seq)
        self._position = position
        self._queries.token = token
        if identity != self._identity:
            self._identity = identity
            self._read_link.expire()
            if self._listener is not None:
                self._listener.link.expire()

    async def _check_same(self, connection: Connection) -> None:
        """What is read comes from the server that is written to, after a failover too."""
        if await identity_of(connection) != self._identity:
            self._writer.ask(self._queries.last_seq, lambda _: None)  # it may not have noticed yet
            text = "PostgreSQL's servers are changing roles: reading waits for writing."
            raise FailedError(RefusedBecause.BROKEN, text)

    async def _set_sync(self, connection: Connection) -> None:
        """With full sync a commit waits for the disk, and for synchronous standbys if any."""
        if self._sync is Sync.NORMAL:
            await connection.execute("SET synchronous_commit = local")
        elif await one(connection, "SHOW synchronous_commit") not in ("on", "remote_apply"):
            await connection.execute("SET synchronous_commit = on")

    async def _claim(self, connection: Connection) -> None:
        key = claim_key(self._address.schema)
        until = self._loop.time() + CLAIMED_SECONDS
        while not await one(connection, "SELECT pg_try_advisory_lock(%s)", (key,)):
            if self._loop.time() > until:
                row = await (await connection.execute(CLAIMANT, (key,))).fetchone()
                who = "another process" if row is None else f"{row[1]} from {row[0]}"
                text = f"{self._address.shown} is in use by {who}"
                raise InUseError(f"{text}; only one can have it open.", None)
            await asyncio.sleep(CLAIM_PAUSE)

    async def _join(self, connection: Connection) -> None:
        """Those that share a log hold its claim together, and each knows whether it is the first.

        Without a share in the claim, the log is read-only for this process.
        """
        key = claim_key(self._address.schema)
        is_first = await one(connection, "SELECT pg_try_advisory_lock(%s)", (key,))
        self.is_joined = await one(connection, "SELECT pg_try_advisory_lock_shared(%s)", (key,))
        if is_first:
            await connection.execute("SELECT pg_advisory_unlock(%s)", (key,))
        if self._position is None:
            self.is_first = bool(is_first)

    @property
    def epoch(self) -> Epoch:
        assert self._position is not None
        return self._position.epoch

    @property
    def last_seq(self) -> Seq:
        return self.progress.last_seq

    @property
    def commits(self) -> int:
        """How many transactions there were; with the number of batches, how many share one."""
        return self._writer.groups

    def append(self, batches: Sequence[Batch], settled: OnAppended) -> None:
        if self._is_closed:
            refuse_closed(self._loop, batches, settled)
            return
        for batch in batches:
            self._writer.ask(batch, partial(self._settled, batch, settled))

    def _settled(self, batch: Batch, settled: OnAppended, outcome: AppendResult) -> None:
        if isinstance(outcome, Durable) and outcome.seqs:
            self.progress.reach(outcome.seqs[-1])
        settled([(batch, outcome)])

    async def read(
        self, *, after: Seq, limit: int, channels: Collection[Uri] | None = None
    ) -> Sequence[Entry]:
        entries = await self._ask(self._reader, self._queries.read, after, limit, channels)
        if entries:  # another node's may be read before its notification is here
            self.progress.reach(entries[-1].seq)
        return entries

    async def refresh(self) -> None:
        self.progress.reach(await self._ask(self._reader, self._queries.last_seq))

    def broadcast(self, message: str) -> None:
        """On the connection that reads, so that no append waits for it."""
        if not self._is_closed:
            self._reader.ask(lambda c: self._queries.notify(c, message), lambda _: None)

    def listen(self, heard: Callable[[str], None]) -> None:
        assert self._listener is not None
        self._listener.heard = heard

    async def read_uncovered(self, *, after: Seq, limit: int) -> Sequence[Entry]:
        return await self._ask(self._reader, self._queries.read_uncovered, after, limit)

    async def find(self, ids: Collection[str]) -> dict[str, Seq]:
        """Asks the connection that writes: it is the only one that can settle doubts."""
        return await self._ask(self._writer, self._find, ids)

    async def _find(self, connection: Connection, ids: Collection[str]) -> dict[str, Seq]:
        found = await self._queries.find(connection, ids)
        self._writer.settle_doubts(ids)
        self.progress.reach(max(found.values(), default=0))
        return found

    def follow(self, after: Seq) -> AsyncIterator[Sequence[Entry]]:
        return follow(self, self.progress, after)

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        await self._ask(self._writer, self._queries.save_snapshot, snapshot)

    async def snapshots(self, channels: Collection[Uri] | None = None) -> Sequence[StoredSnapshot]:
        return await self._ask(self._reader, self._queries.snapshots, channels)

    async def outlines(self) -> Sequence[StoredSnapshot]:
        return await self._ask(self._reader, self._queries.outlines)

    async def trim(self, channel: Uri, up_to: Seq, now: Millis = 0) -> None:
        """In pieces, so that a long history holds no append up."""
        while await self._ask(self._writer, self._queries.trim, channel, up_to, now):
            pass

    async def floors(self) -> dict[Uri, Seq]:
        return await self._ask(self._reader, self._queries.floors)

    async def drop(self, channel: Uri) -> Seq:
        return await self._ask(self._writer, self._queries.drop, channel)

    async def lasting(self) -> dict[Seq, Millis]:
        return await self._ask(self._reader, self._queries.lasting)

    async def adopt(self, entries: Sequence[tuple[Entry, Millis]]) -> None:
        await self._ask(self._writer, self._queries.adopt, entries)

    async def adopt_floors(self, floors: dict[Uri, Seq]) -> None:
        await self._ask(self._writer, self._queries.adopt_floors, floors)

    async def forget_epoch(self) -> None:
        await self._ask(self._writer, self._queries.forget_epoch)

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.progress.end()
            self._writer.stop()
            self._reader.stop()
            if self._witness is not None:
                self._witness.end(LogPosition(self.epoch, self.last_seq))
        # Together: where the server does not answer, each takes its time to give up.
        ends = [self._writer.stopped(), self._reader.stopped()]
        if self._listener is not None:
            ends.append(self._listener.stop())
        await asyncio.gather(*ends)

    async def _ask(
        self,
        worker: Worker,
        question: Callable[Concatenate[Connection, P], Awaitable[T]],
        *about: P.args,
        **options: P.kwargs,
    ) -> T:
        if self._is_closed:
            raise FailedError(*CLOSED)
        return await worker.answer(lambda connection: question(connection, *about, **options))


def claim_key(schema: str) -> int:
    """The advisory lock that is the schema's; positive, so that it can be looked up."""
    digest = hashlib.sha256(f"session-server {schema}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1
