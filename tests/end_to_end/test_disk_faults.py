"""A running server whose disk fills up, fails or is damaged: it says so, and goes on if it can."""

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_server.log.opening import open_log
from session_server.schemas.ahp.actions import TitleChanged
from tests.ahp.actions import title_changed
from tests.ahp.client import SocketClient
from tests.ahp.oracle import LogOracle
from tests.cli.shells import Shell
from tests.effort import PATIENCE
from tests.gateway.requests_2026 import call
from tests.servers import ServerProcess, serving, sqlite_store
from tests.small_disk import fill, small_disk
from tests.waiting import until

SESSION = "ahp-session:/disk"
DISK_BYTES = 4 * 2**20
ATTEMPTS = 5_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, DISK_BYTES) as place:
        yield place


class Pair:
    """Someone who writes, and someone who watches what of it counts."""

    def __init__(self, writer: SocketClient, watcher: SocketClient) -> None:
        self.writer = writer
        self.watcher = watcher
        self.accepted: list[str] = []
        self.refused: list[str] = []

    @classmethod
    async def on(cls, server: ServerProcess) -> "Pair":
        writer, watcher = [await SocketClient.open(server.ahp) for _ in range(2)]
        await writer.initialize("writer")
        await writer.call("createSession", SESSION, provider="people")
        await writer.call("subscribe", SESSION)
        await watcher.initialize("watcher", SESSION)
        return cls(writer, watcher)

    async def write(self) -> str | None:
        """The reason why not, if it was refused."""
        number = len(self.accepted) + len(self.refused)
        title = f"{number} {'x' * 450}"
        seq = self.writer.dispatch(title_changed(title), SESSION)
        origin = {"clientId": "writer", "clientSeq": seq}
        frame = await self.writer.until(lambda f: f.get("params", {}).get("origin") == origin)
        reason: str | None = frame["params"].get("rejectionReason")
        (self.accepted if reason is None else self.refused).append(title)
        return reason

    async def write_until_refused(self) -> str:
        for _ in range(ATTEMPTS):
            reason = await self.write()
            if reason is not None:
                return reason
        raise AssertionError("the disk never filled up")

    async def check(self) -> None:
        """The watcher has seen what was accepted, and a newcomer is shown the last of it."""
        await self.watcher.call("ping")
        titles = [
            frame["params"]["action"]["title"]
            for frame in self.watcher.received
            if frame.get("params", {}).get("action", {}).get("type") == "session/titleChanged"
        ]
        assert titles == self.accepted
        assert await self.shown() == self.accepted[-1]

    async def shown(self) -> str:
        """The title that who subscribes anew is shown."""
        await self.watcher.call("unsubscribe", SESSION)
        snapshot = (await self.watcher.call("subscribe", SESSION))["snapshot"]
        title: str = snapshot["state"]["summary"]["title"]
        return title

    async def check_log(self, store: str) -> None:
        log = await open_log(store)
        oracle = await LogOracle.of(log)
        await log.close()
        stored = [
            logged.action.title
            for logged in oracle.logged.values()
            if isinstance(logged.action, TitleChanged)
        ]
        assert stored == self.accepted[-len(stored) :]
        assert len(stored) > len(self.accepted) // 2

    async def close(self) -> None:
        await self.writer.close()
        await self.watcher.close()


async def test_a_full_disk_is_reported_to_the_sender_until_there_is_space(
    disk: Path, record_property: Any
) -> None:
    store = sqlite_store(disk)
    with serving(store) as server:
        pair = await Pair.on(server)
        for turn in range(3):
            assert await pair.write() is None
            filler = fill(disk)
            reason = await pair.write_until_refused()
            assert reason.startswith("This could not be saved: There is no space left")
            await pair.check()
            late = await SocketClient.open(server.ahp)
            assert "protocolVersion" in await late.initialize(f"late{turn}", SESSION)
            error = await pair.writer.call("createSession", "ahp-session:/no", provider="people")
            assert "no space left" in error["message"]
            status, text = await ready(server)
            assert (status, text.startswith("read-only: There is no space left")) == (503, True)
            filler.unlink()
            assert await pair.write() is None
            assert await ready(server) == (200, "ready")
            await late.close()
            await pair.check()
        record_property("accepted", len(pair.accepted))
        record_property("refused", len(pair.refused))
        await pair.close()
        server.kill()
        output = "".join(server.output)
        assert "Traceback" not in output
        assert "the host is read-only: There is no space left" in output
    await pair.check_log(store)
    with serving(store) as server:
        again = await SocketClient.open(server.ahp)
        missed = {"lastSeenServerSeq": 0, "subscriptions": [SESSION]}
        assert "type" in await again.call("reconnect", clientId="late2", **missed)
        await again.close()


async def ready(server: ServerProcess) -> tuple[int, str]:
    async with httpx2.AsyncClient() as http:
        answer = await http.get(f"{server.url}/readyz", timeout=PATIENCE)
    return answer.status_code, answer.text


async def is_ready(server: ServerProcess) -> bool:
    return await ready(server) == (200, "ready")


async def metric(server: ServerProcess, name: str) -> float:
    async with httpx2.AsyncClient() as http:
        lines = (await http.get(f"{server.url}/metrics", timeout=PATIENCE)).text.splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[-1])


def limit_files(server: ServerProcess, size: int | None) -> None:
    """SQLite takes files that must not grow for a failing disk."""
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    soft = hard if size is None else size
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.proves("design.append.in-doubt")
async def test_a_disk_that_fails_for_long_makes_the_host_read_only_until_it_is_back(
    tmp_path: Path,
) -> None:
    store = sqlite_store(tmp_path)
    with serving(store, "--store-seconds", "0.3") as server:
        pair = await Pair.on(server)
        other = "ahp-session:/other"
        assert await pair.writer.call("createSession", other, provider="people") is None
        assert await pair.write() is None
        limit_files(server, 4096)
        assert "not known yet whether this was saved" in (await pair.write() or "")
        in_doubt = pair.refused.pop()
        reason = "disk I/O error (SQLITE_IOERR"
        for _ in range(20):
            assert reason in (await pair.write() or "")
        error = await pair.writer.call("createSession", "ahp-session:/no", provider="people")
        assert reason in error["message"]
        async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE) as http:
            answer = await http.post("/v1/sessions/other/requests", json={"message": "Go?"})
            assert (answer.status_code, answer.json()["code"]) == (503, "notSaved")
            assert reason in answer.json()["detail"]
            assert (await http.get("/v1/sessions/other")).status_code == 200
        status, text = await ready(server)
        assert (status, text.startswith("read-only: ")) == (503, True)
        assert await metric(server, "session_server_read_only") == 1
        for session in ("other", "not-made-yet"):
            answer = await asyncio.to_thread(
                call,
                f"{server.url}/mcp",
                "ask_questions",
                {"questions": [{"question": "How many?", "kind": "integer"}]},
                headers={"Session-Server-Session": session},
            )
            assert reason in answer["error"]["message"], answer
        shell = Shell(server.url)
        asked = await asyncio.to_thread(shell, "ask", "Go?", "--session", "other")
        assert (asked.code == 0, reason in asked.err) == (False, True)
        checked = await asyncio.to_thread(shell, "doctor")
        assert "answers and is not ready: read-only: " in checked.out
        unknown = 'session_server_store_failures_total{because="unknown"}'
        assert await metric(server, unknown) >= 1

        newcomer = await SocketClient.open(server.ahp)
        welcome = await newcomer.initialize("newcomer", SESSION)
        assert welcome["snapshots"][0]["state"]["summary"]["title"] == pair.accepted[-1]
        back = await SocketClient.open(server.ahp)
        known = {"lastSeenServerSeq": welcome["serverSeq"], "subscriptions": [SESSION]}
        answer = await back.call("reconnect", clientId="watcher", **known)
        assert answer["type"] == "replay"
        await newcomer.close()
        await back.close()

        limit_files(server, None)
        await until(lambda: is_ready(server))
        if await pair.shown() == in_doubt:
            pair.accepted.append(in_doubt)
        assert await pair.write() is None
        await pair.check()
        assert await metric(server, "session_server_read_only") == 0
        await pair.close()
        assert server.stop() == 0
        output = "".join(server.output)
        assert "Traceback" not in output
        assert "the log cannot be written, the host is read-only: " in output
        assert "the log can be written again" in output
    await pair.check_log(store)
    with serving(store) as server:
        again = await SocketClient.open(server.ahp)
        answer = await again.call("reconnect", clientId="newcomer", **known)
        assert answer["type"] in ("replay", "snapshot")
        await again.close()


async def test_a_file_that_is_damaged_under_a_server_is_named_when_it_starts_again(
    tmp_path: Path,
) -> None:
    store, path = sqlite_store(tmp_path), tmp_path / "sessions.db"
    with serving(store) as server:
        pair = await Pair.on(server)
        for _ in range(100):
            assert await pair.write() is None
        await pair.close()
        server.stop()
    with serving(store) as server:
        writer = await SocketClient.open(server.ahp)
        await writer.initialize("writer", SESSION)
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(size // 2)
            file.write(b"\xff" * (size // 4))
        pair = Pair(writer, writer)
        for _ in range(20):
            await pair.write()  # accepted or refused, but answered
        assert await writer.call("ping") is None
        await writer.close()
        server.kill()
    with pytest.raises(RuntimeError, match="damaged") as refused:
        ServerProcess(store)
    assert "Traceback" not in str(refused.value)
