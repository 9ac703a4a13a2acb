"""A connection that reconnects when it is lost.

It belongs to one task, which asks for it before each piece of work. A server that restarts is
waited for; one that stays away costs an attempt now and then, and all else fails at once.
"""

import asyncio
import logging
import select
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import TypeAlias

import psycopg
from psycopg.conninfo import make_conninfo

from session_server.backoff import Backoff
from session_server.log.postgres.address import Address
from session_server.log.postgres.faults import described, failure
from session_server.log.postgres.schema import Connection
from session_server.log.protocol import FailedError, LogError

logger = logging.getLogger("session_server.log")

PATIENCE_SECONDS = 3.0
"""How long an operation waits for a reconnect."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0

Prepare: TypeAlias = Callable[[Connection], Awaitable[None]]

SESSION = """
    SET default_transaction_isolation = 'read committed';
    SET client_min_messages = 'warning';
    SET statement_timeout = 0;
    SET lock_timeout = 0;
    SET idle_session_timeout = 0;
    SET tcp_keepalives_idle = 10;
    SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3;
    SET jit = off
"""
"""What a role or a database may have set otherwise. The server notices clients that are gone."""


class Link:
    """`prepare` makes a new connection ready for its work; if it fails, there is none."""

    def __init__(self, address: Address, name: str, prepare: Prepare) -> None:
        self._address = address
        self._name = name
        self._prepare = prepare
        self._connection: Connection | None = None
        self._failure: FailedError | None = None
        self._lost_at = 0.0
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._next_attempt = 0.0
        self._is_expired = False

    @property
    def has_alternatives(self) -> bool:
        """Whether the URL names several servers, of which another may take writes."""
        return "," in self._address.parameters.get("host", "")

    async def open(self) -> None:
        """The first connection; raises the error if it fails."""
        self._connection = await self._connected()

    async def connection(self) -> Connection:
        """Raises a `FailedError` when there is none, and will not be in a moment."""
        while self._connection is None or self._is_expired or _is_stale(self._connection):
            self._is_expired = False
            if self._connection is not None:
                await self.lose(psycopg.OperationalError("the connection was closed"))
            now = monotonic()
            wait = self._next_attempt - now
            if wait > 0:
                if self._failure is not None and now + wait > self._lost_at + PATIENCE_SECONDS:
                    raise self._failure
                await asyncio.sleep(wait)
            await self._attempt()
        return self._connection

    async def _attempt(self) -> None:
        try:
            self._connection = await self._connected()
        except (psycopg.Error, OSError, LogError) as error:
            if self._failure is None:
                self._lost_at = monotonic()
            self._failure = failure(error)
            self._next_attempt = monotonic() + self._backoff.pause()
            return
        if self._failure is not None:
            logger.info("the %s is connected to PostgreSQL again", self._name)
        self._failure = None
        self._backoff.reset()

    async def _connected(self) -> Connection:
        parameters = self._address.parameters | {"application_name": self._name}
        connection = await psycopg.AsyncConnection.connect(
            make_conninfo("", **parameters), autocommit=True
        )
        try:
            await connection.execute(SESSION)
            await self._prepare(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    def expire(self) -> None:
        """A new connection is made before the next piece of work."""
        self._is_expired = True

    async def lose(self, error: Exception) -> None:
        """The connection is of no use any more."""
        if self._failure is None:
            self._failure = failure(error)
            self._lost_at = monotonic()
            self._next_attempt = 0.0
            logger.info("the %s lost PostgreSQL: %s", self._name, described(error))
        await self.close()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error, OSError):
                await connection.close()


def _is_stale(connection: Connection) -> bool:
    """Without a request, any data of the server means that it closes the connection."""
    if connection.closed:
        return True
    readable, _, _ = select.select([connection.fileno()], [], [], 0)
    return bool(readable)
