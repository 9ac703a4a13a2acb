"""That a process survives a kill says nothing of the disk. The kernel's own observer does."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.ahp.actions import title_changed
from tests.ahp.client import SocketClient
from tests.end_to_end import strace
from tests.servers import SERVE, ServerProcess, sqlite_store

SESSION = "ahp-session:/traced"
BURSTS = 20
UNSYNCED = (sys.executable, "-m", "tests.end_to_end.defective_server", "unsynced", "serve")

needs_strace = pytest.mark.skipif(strace.why_not() is not None, reason=str(strace.why_not()))


async def traced_work(folder: Path, command: Sequence[str]) -> tuple[list[strace.Call], list[str]]:
    """Bursts of actions, each with a text of its own; and what the kernel saw of them."""
    trace, dice = folder / "trace", Random(5)
    server = ServerProcess(sqlite_store(folder), command=(*strace.tracing(trace), *command))
    tokens: list[str] = []
    try:
        writer, watcher = [await SocketClient.open(server.ahp) for _ in range(2)]
        await writer.initialize("writer")
        assert await writer.call("createSession", SESSION, provider="people") is None
        await writer.call("subscribe", SESSION)
        await watcher.initialize("watcher", SESSION)
        for _ in range(BURSTS):
            for _ in range(dice.randrange(1, 6)):
                tokens.append(f"token-{dice.getrandbits(64):016x}")
                writer.dispatch(title_changed(tokens[-1]), SESSION)
            for client in (writer, watcher):
                await client.until(lambda f: is_titled(f, tokens[-1]))
        await writer.close()
        await watcher.close()
    finally:
        server.kill()
    return strace.read(trace), tokens


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[strace.Call], list[str]]:
    return asyncio.run(traced_work(tmp_path_factory.mktemp("synced"), SERVE))


def is_titled(frame: dict[str, Any], title: str) -> bool:
    return bool(frame.get("params", {}).get("action", {}).get("title") == title)


@pytest.mark.proves("design.deliver.after-append")
@needs_strace
def test_a_batch_is_synced_before_the_first_of_it_is_sent(
    synced: tuple[list[strace.Call], list[str]], record_property: Any
) -> None:
    calls, tokens = synced
    for token in tokens:
        strace.check_synced(calls, token)
    record_property("actions", len(tokens))
    record_property("syncs", sum(map(strace.is_wal_sync, calls)))


@pytest.mark.proves("design.speed.joined")
@needs_strace
def test_what_became_durable_together_leaves_in_one_write_per_connection(
    synced: tuple[list[strace.Call], list[str]],
) -> None:
    calls, tokens = synced
    commits: dict[int, list[str]] = {}
    for token in tokens:
        commits.setdefault(strace.commit_of(calls, token), []).append(token)
    together = [batch for batch in commits.values() if len(batch) > 1]
    assert together
    for batch in together:
        sends = [c for c in calls if strace.is_send(c) and any(t in c.text for t in batch)]
        assert len(sends) == 2
        assert all(token in send.text for send in sends for token in batch)


@needs_strace
async def test_the_trace_check_notices_a_log_that_does_not_sync(tmp_path: Path) -> None:
    calls, tokens = await traced_work(tmp_path, UNSYNCED)
    for token in tokens:
        with pytest.raises(AssertionError, match=token):
            strace.check_synced(calls, token)


def test_the_trace_check_notices_a_delivery_during_the_sync() -> None:
    wal, client = "7</x/sessions.db-wal>", "9<TCP:[127.0.0.1:1->127.0.0.1:2]>"
    trace = [
        strace.Call(0, 0, f'pwrite64({wal}, "…token…", 4096, 32) = 4096'),
        strace.Call(1, 3, f"fdatasync({wal}) = 0"),
        strace.Call(2, 2, f'write({client}, "…token…", 60) = 60'),
    ]
    with pytest.raises(AssertionError, match="too early"):
        strace.check_synced(trace, "token")
    strace.check_synced([*trace[:2], trace[2]._replace(start=4, end=4)], "token")
