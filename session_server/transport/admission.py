"""How many connections may be open, and which are closed when there are too many.

A connection is in use while a request with a valid credential is being answered on it, or its
WebSocket is open: it is never closed from here. All others are unauthenticated: new ones, idle ones
and those that serve strangers. They are bounded in total and per address. At a bound the oldest
connection of the address with the most of them is closed, so that newcomers always get in.
"""

import asyncio
import logging
import sys
from ipaddress import IPv6Address, ip_address
from time import monotonic
from typing import NamedTuple

from session_server.schemas.limits import (
    DESCRIPTORS_RESERVED,
    DESCRIPTORS_WANTED,
    UNAUTHENTICATED_CONNECTIONS,
    UNAUTHENTICATED_PER_ADDRESS,
)

logger = logging.getLogger("session_server.transport")

BACKLOG = 2_048

WARNING_SECONDS = 60.0
"""What strangers do in large numbers is logged at most so often, with its number."""

TOO_MANY = (
    "too many connections without a valid credential; the oldest are closed"
    " (%d so far; last from %s)"
)
MALFORMED = "malformed or oversized HTTP requests are refused (%d so far; last from %s)"

IPV6_NETWORK_BITS = 64
"""What one subscriber is given at least; its owner can use any address in it."""


class Room(NamedTuple):
    """`backlog` are connections that may come in one turn of the loop, before any is counted."""

    connections: int
    backlog: int


def room_in(descriptors: int) -> Room:
    """What so many descriptors leave for connections, besides the host's own files and tools."""
    own = min(DESCRIPTORS_RESERVED, descriptors // 4)
    backlog = max(1, min(BACKLOG, descriptors // 4))
    return Room(max(1, descriptors - own - backlog), backlog)


if sys.platform == "win32":

    def make_room() -> Room:
        """Sockets are not counted with files there."""
        return room_in(DESCRIPTORS_WANTED)

else:
    import resource

    def make_room() -> Room:
        """Raises the limit on open files as far as the system allows and is ever needed."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return room_in(DESCRIPTORS_WANTED)
        wanted = DESCRIPTORS_WANTED
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        if soft < wanted:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                soft = wanted
            except (OSError, ValueError) as error:
                logger.warning("the limit on open files stays at %d: %s", soft, error)
        return room_in(soft)


class RateLimitedWarning:
    """`message` has places for how often it happened so far, and for the latest address."""

    def __init__(self, message: str) -> None:
        self.number = 0
        self._message = message
        self._logged_at = -WARNING_SECONDS

    def warn(self, address: str | None) -> None:
        self.number += 1
        now = monotonic()
        if now - self._logged_at >= WARNING_SECONDS:
            self._logged_at = now
            logger.warning(self._message, self.number, address or "this machine")


class Slot:
    """One connection's entry; it stays the same when HTTP becomes a WebSocket."""

    __slots__ = ("_admission", "address", "is_authenticated", "transport")

    def __init__(
        self, admission: "Admission", transport: asyncio.Transport, address: str | None
    ) -> None:
        self._admission = admission
        self.transport = transport
        self.address = address
        self.is_authenticated = False

    def authenticated(self) -> None:
        """A valid credential came with what is now being answered."""
        if not self.is_authenticated:
            self.is_authenticated = True
            self._admission.remove(self)

    def answered(self) -> None:
        """Nothing is being answered any more; what comes next proves itself anew."""
        self._admission.remove(self)
        self.is_authenticated = False
        self._admission.add(self)

    def leave(self) -> None:
        self._admission.leave(self)


class Admission:
    """`total` bounds all connections, `unauthenticated` and `per_address` those not in use."""

    def __init__(
        self,
        total: int,
        unauthenticated: int = UNAUTHENTICATED_CONNECTIONS,
        per_address: int = UNAUTHENTICATED_PER_ADDRESS,
    ) -> None:
        self.total = total
        self.unauthenticated = min(unauthenticated, max(1, total // 2))
        self.per_address = per_address
        self.malformed = RateLimitedWarning(MALFORMED)
        self._too_many = RateLimitedWarning(TOO_MANY)
        self._open: set[Slot] = set()
        self._unauthenticated: dict[str | None, dict[Slot, None]] = {}
        self._number = 0

    def enter(self, transport: asyncio.Transport, address: str | None) -> Slot:
        slot = Slot(self, transport, network_of(address))
        self._open.add(slot)
        self.add(slot)
        if slot.address is not None and len(self._unauthenticated[slot.address]) > self.per_address:
            self._close_oldest(self._unauthenticated[slot.address])
        if self._number > self.unauthenticated or len(self._open) > self.total:
            self._close_oldest(max(self._unauthenticated.values(), key=len))
        return slot

    def add(self, slot: Slot) -> None:
        if slot in self._open:
            self._unauthenticated.setdefault(slot.address, {})[slot] = None
            self._number += 1

    def remove(self, slot: Slot) -> None:
        slots = self._unauthenticated.get(slot.address)
        if slots is None or slot not in slots:
            return
        del slots[slot]
        self._number -= 1
        if not slots:
            del self._unauthenticated[slot.address]

    def leave(self, slot: Slot) -> None:
        self.remove(slot)
        self._open.discard(slot)

    def _close_oldest(self, slots: dict[Slot, None]) -> None:
        oldest = next(iter(slots))
        self.leave(oldest)
        oldest.transport.abort()
        self._too_many.warn(oldest.address)


def network_of(address: str | None) -> str | None:
    """What is counted together; `None` for this machine, whose proxy speaks for many people."""
    if address is None:
        return None
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if found.is_loopback:
        return None
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped is not None:
        return network_of(str(found.ipv4_mapped))
    return f"{IPv6Address(int(found) >> IPV6_NETWORK_BITS << IPV6_NETWORK_BITS)}/64"
