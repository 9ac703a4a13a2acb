"""How far a log had come, kept outside of it.

A database that was restored from a copy of its files looks as if nothing was lost: any mark inside
it is in the copy too. So each host keeps in its data folder how far it has seen its log, and one
that ends before that has lost entries.
"""

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from session_server.log.protocol import Epoch
from session_server.schemas.wire import Seq

logger = logging.getLogger("session_server.log")

WRITE_SECONDS = 1.0
"""A killed process may have seen this much more than it says. Too low a seq does no harm."""

LOST = "the log ends at %d, and had come to %d: it was restored, and begins a new epoch"


class LogPosition(NamedTuple):
    epoch: Epoch
    last_seq: Seq

    def has_lost(self, seen: "LogPosition | None") -> bool:
        """Whether this is a log that lacks something of what was seen of it."""
        if seen is None:
            return False
        is_lost = (self.epoch.first, self.last_seq) < (seen.epoch.first, seen.last_seq)
        if is_lost:
            logger.warning(LOST, self.last_seq, seen.last_seq)
        return is_lost


class Witness:
    """A file for each store that was ever used with this folder."""

    def __init__(self, folder: Path, store: str) -> None:
        name = hashlib.sha256(store.encode()).hexdigest()[:16]
        self._path = folder / f"log-{name}.seen"
        self._written: LogPosition | None = None
        self._task: asyncio.Task[None] | None = None

    def seen(self) -> LogPosition | None:
        """`None` if nothing, or nothing legible."""
        with suppress(OSError, ValueError):
            seq, text = self._path.read_text().split()
            epoch = Epoch.read(text)
            return None if epoch is None else LogPosition(epoch, int(seq))
        return None

    def write(self, position: LogPosition) -> None:
        """Replaced as a whole, so that a killed process leaves no half of it."""
        if position == self._written:
            return
        new = self._path.with_suffix(".new")
        try:
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(f"{position.last_seq} {position.epoch}\n")
            os.replace(new, self._path)  # noqa: PTH105  # Path.replace is the same
        except OSError as error:
            logger.warning("how far the log has come cannot be kept: %s", error)
        else:
            self._written = position

    def watch(self, position: Callable[[], LogPosition]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch(position))

    async def _watch(self, position: Callable[[], LogPosition]) -> None:
        while True:
            self.write(position())
            await asyncio.sleep(WRITE_SECONDS)

    def end(self, position: LogPosition) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self.write(position)
