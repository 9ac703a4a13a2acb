"""Defects on purpose: a host that loses, reorders, delivers too early or does not sync."""

import sys
from random import Random
from typing import Any
from weakref import WeakKeyDictionary

from session_server import app, cli
from session_server.host.channels.messages import Message
from session_server.log import Batch, Durable, Log, Sync
from session_server.log.opening import open_log
from session_server.transport.outbox import FrameOutbox
from tests.host.faulty_logs import SlowLog
from tests.host.links import is_action
from tests.log.one_by_one import SettledOne

ODDS = 0.01
LATE_SECONDS = 0.05
dice = Random(3)
send = FrameOutbox.send
held_back: WeakKeyDictionary[FrameOutbox, Message] = WeakKeyDictionary()


def losing(outbox: FrameOutbox, message: Message) -> None:
    if not is_action(message.text) or dice.random() > ODDS:
        send(outbox, message)


def shuffling(outbox: FrameOutbox, message: Message) -> None:
    """Now and then a message waits for the next one, and goes after it."""
    before = held_back.pop(outbox, None)
    if before is None and dice.random() < ODDS:
        held_back[outbox] = message
        return
    send(outbox, message)
    if before is not None:
        send(outbox, before)


class TardyLog(SlowLog):
    """Writes some time after it said that it had, and just what it said, if it lives so long."""

    promised = 0

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        first = max(self.promised, self.inner.last_seq) + 1
        self.promised = first + len(batch.entries) - 1
        self._under_way.clear()
        super().append_one(batch, lambda _: None)
        durable = Durable(tuple(range(first, first + len(batch.entries))))
        self._loop.call_soon(self._settle, settled, durable)
        self._loop.call_later(LATE_SECONDS, self.release, 1)


async def open_tardy_log(store: str, **options: Any) -> Log:
    return TardyLog(await open_log(store, **options), dice, {})


async def open_unsynced_log(store: str, **_: Any) -> Log:
    return await open_log(store, sync=Sync.NORMAL)


if __name__ == "__main__":
    match sys.argv.pop(1):
        case "losing":
            FrameOutbox.send = losing  # type: ignore[method-assign]
        case "shuffling":
            FrameOutbox.send = shuffling  # type: ignore[method-assign]
        case "hasty":
            app.open_log = open_tardy_log  # type: ignore[attr-defined]
        case "unsynced":
            app.open_log = open_unsynced_log  # type: ignore[attr-defined]
        case unknown:
            sys.exit(f"unknown defect {unknown}")
    cli.main()
