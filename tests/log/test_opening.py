"""The URL chooses the log, and a wrong one is answered with advice."""

import sys
from pathlib import Path

import pytest

from session_server.log import Sync
from session_server.log.memory import MemoryLog
from session_server.log.opening import open_log
from session_server.log.protocol import BackendMissingError, NotWritableError, OpenError, UrlError
from session_server.log.sqlite import SqliteLog
from tests.log.logs import everything, stored


@pytest.mark.proves("design.log.url")
@pytest.mark.parametrize("url", ["memory:", "memory://", "MEMORY:"])
async def test_memory_is_kept_nowhere(url: str) -> None:
    log = await open_log(url)
    assert isinstance(log, MemoryLog)
    await log.close()


@pytest.mark.proves("design.log.url")
async def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = await open_log("sqlite:///a%20log.db", sync=Sync.NORMAL)
    assert isinstance(log, SqliteLog)
    await stored(log, "a", 0, b"x")
    await log.close()
    log = await open_log(f"sqlite:///{tmp_path}/a%20log.db")
    assert [e.data for e in await everything(log)] == [b"x"]
    await log.close()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "available: memory:"),
        ("data.db", "available: memory:"),
        ("mysql://host/log", "available: memory:, sqlite:///relative/path"),
        ("memory:///x", "memory: takes none"),
        ("sqlite:", "names no file"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:////", "names no file"),
        ("sqlite://host/log.db", "names no file"),
        ("sqlite:///log.db?mode=ro", "takes none"),
        ("nats://", "names no NATS server"),
        ("nats://host?replicas=many", "not a valid NATS URL"),
        ("nats://host?replicas=7", "1 to 5 copies"),
        ("nats://host?stream=a.b", "not a valid stream name"),
        ("nats://host?strem=a", "'strem' is not an option"),
        ("nats://host?creds=/nowhere", "does not exist: /nowhere"),
    ],
)
async def test_a_wrong_url_is_explained(url: str, reason: str) -> None:
    with pytest.raises(UrlError) as failure:
        await open_log(url)
    assert reason in failure.value.reason
    assert failure.value.code == "url"
    assert not failure.value.can_retry


@pytest.mark.proves("design.log.missing-driver")
@pytest.mark.parametrize(
    ("url", "extra"), [("nats://localhost", "nats"), ("postgresql://localhost/d", "postgres")]
)
async def test_a_missing_driver_names_the_extra(
    url: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"session_server.log.{extra}", None)
    with pytest.raises(BackendMissingError, match=rf"session-server\[{extra}\]"):
        await open_log(url)


async def test_a_python_without_sqlite_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "session_server.log.sqlite", None)
    with pytest.raises(BackendMissingError, match="cannot keep a log in SQLite"):
        await open_log("sqlite:///log.db")


async def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(NotWritableError, match=r"no folder .*missing: make it first"):
        await open_log(f"sqlite:///{tmp_path}/missing/log.db")


async def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(OpenError, match="Is a directory"):
        await open_log(f"sqlite:///{tmp_path}")
