"""Who has the log open: one process for itself, or nodes that share it.

A process that is there has a subscription, and answers a request on it; a claim in the stream
names the process that has the log for itself.
"""

import asyncio
import os
import secrets
import socket
from contextlib import suppress

from session_server.log.nats.messages import Claim, body_of
from session_server.log.nats.servers import (
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    LostError,
    Publication,
    WrongLastError,
)
from session_server.log.nats.stream_config import Address
from session_server.log.nats.tail import EXPECTED, ROLLUP, Tail
from session_server.log.protocol import InUseError

CLAIMED_SECONDS = 5.0
CLAIM_SUBJECT = "session-server-claim"
NODE_SUBJECT = "session-server-node"


class Membership:
    """This process, as other processes that open the same log see it."""

    def __init__(self, address: Address, tail: Tail) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._address = address
        self._tail = tail
        self._servers = tail.servers

    @property
    def has_claim(self) -> bool:
        return self._tail.index.claim[1] == self.name

    async def claim(self) -> None:
        """Replaces the claim of a process that is gone; raises `InUseError` if it is not."""
        await self._servers.subscribe(f"{CLAIM_SUBJECT}.{self.name}", self._servers.confirm)
        while not self.has_claim:
            claimed_at, name = self._tail.index.claim
            if name and await self._is_there(name):
                text = f"{self._address.shown} is in use by {name.rpartition('-')[0]}"
                raise InUseError(f"{text}; only one can have it open.", None)
            headers = {EXPECTED: str(claimed_at), **ROLLUP}
            subject = self._tail.subjects.claims
            try:
                await self._tail.publish([Publication(subject, body_of(Claim(self.name)), headers)])
            except WrongLastError:
                await self._tail.barrier()

    async def join(self) -> tuple[bool, bool]:
        """Whether no other node runs, and whether none has the log for itself."""
        name = self._tail.index.claim[1]
        is_joined = not name or not await self._is_there(name)
        subject = f"{NODE_SUBJECT}.{self._address.stream}"
        (answer,) = await self._servers.ask([Publication(subject, b"")])
        await self._servers.subscribe(subject, self._servers.confirm)
        return (answer.headers or {}).get("Status") == "503", is_joined

    async def _is_there(self, name: str) -> bool:
        """The connection of a killed process stays for a moment; that of a paused one stays."""
        loop = asyncio.get_running_loop()
        until = loop.time() + CLAIMED_SECONDS
        question = Publication(f"{CLAIM_SUBJECT}.{name}", b"")
        while loop.time() < until:
            with suppress(LostError):
                (answer,) = await self._servers.ask([question], seconds=PATIENCE_SECONDS)
                if (answer.headers or {}).get("Status") == "503":
                    return False
            await asyncio.sleep(PAUSE_SECONDS)
        return True
