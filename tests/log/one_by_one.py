"""Batches that are appended one by one, each with a listener of its own."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from session_server.log import AppendResult, Batch, Log
from session_server.log.memory import MemoryLog
from session_server.log.protocol import OnAppended

SettledOne: TypeAlias = Callable[[AppendResult], None]


def append_one(log: Log, batch: Batch, settled: SettledOne) -> None:
    log.append((batch,), lambda results: settled(results[0][1]))


class OneByOne:
    """For logs that decide over each batch by itself."""

    def append(self, batches: Sequence[Batch], settled: OnAppended) -> None:
        for batch in batches:
            self.append_one(batch, partial(_report, settled, batch))

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        raise NotImplementedError


def _report(settled: OnAppended, batch: Batch, outcome: AppendResult) -> None:
    settled([(batch, outcome)])


class OneByOneLog(OneByOne, MemoryLog):
    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        MemoryLog.append(self, (batch,), lambda results: settled(results[0][1]))
