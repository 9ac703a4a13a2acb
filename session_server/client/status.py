"""How a client stands with its host, in the words that people are shown."""

from enum import StrEnum
from typing import NamedTuple


class Phase(StrEnum):
    CONNECTING = "connecting"
    """There was no connection yet."""
    LIVE = "live"
    """Connected, and everything we did is confirmed."""
    SYNCING = "syncing"
    """Connected; some of what we did is not confirmed yet."""
    OFFLINE = "offline"
    """The connection broke; it is being made again."""
    CLOSED = "closed"
    """Over: left, or given up."""


class Status(NamedTuple):
    """`waiting` is how many of our own actions the host has not confirmed."""

    phase: Phase
    waiting: int = 0

    @property
    def is_connected(self) -> bool:
        return self.phase in (Phase.LIVE, Phase.SYNCING)

    def __str__(self) -> str:
        match self.phase:
            case Phase.SYNCING:
                return f"syncing {self.waiting}"
            case Phase.OFFLINE if self.waiting:
                return f"offline, {self.waiting} waiting"
            case phase:
                return phase.value
