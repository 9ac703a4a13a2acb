"""A damaged store and its backup, as an operator meets them: real servers, real commands."""

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from session_server.cli.failures import ExitCode
from session_server.schemas.log_entries import TOKENS_CHANNEL
from tests.cli.shells import PROGRAM, Shell, environment
from tests.log.logs import damage_entry
from tests.servers import ServerProcess, serving, sqlite_store

pytestmark = pytest.mark.slow

BOUND = 60
NOBODY = "http://127.0.0.1:9"


def damage_last(path: Path, uri: str) -> None:
    """The last entry of a channel."""
    query = "SELECT max(seq) FROM entries JOIN channels ON number = channel WHERE uri = ?"
    with closing(sqlite3.connect(path)) as connection:
        (seq,) = connection.execute(query, (uri,)).fetchone()
    damage_entry(path, seq)


def named(server: ServerProcess, *names: str) -> None:
    for name in names:
        wanted = {"resource": f"ahp-session:/{name}", "title": name.title()}
        httpx2.post(f"{server.url}/v1/sessions", json=wanted).raise_for_status()


@pytest.mark.proves("design.log.quarantine")
def test_a_damaged_session_is_found_exported_and_removed(tmp_path: Path) -> None:
    path, store = tmp_path / "sessions.db", sqlite_store(tmp_path)
    here = {"SESSION_SERVER_DATA_DIR": str(tmp_path)}
    with serving(store) as server:
        named(server, "whole", "hurt")
        server.stop()
    damage_last(path, "ahp-session:/hurt")
    found = [c for c in Shell(NOBODY)("doctor", "--json", **here).json if c["name"] == "data"]
    assert [check["finding"] for check in found] == ["problem"]
    assert found[0]["message"].startswith("ahp-session:/hurt is damaged: its entry")
    with serving(store) as server:
        server.wait_for("session ahp-session:/hurt is damaged and is not served: its entry")
        shell = Shell(server.url)
        listed = shell("sessions", "--json")
        assert [item["resource"] for item in listed.json] == ["ahp-session:/whole"]
        assert "hurt is damaged" in listed.err
        answer = httpx2.get(f"{server.url}/v1/sessions/hurt")
        assert (answer.status_code, answer.json()["code"]) == (500, "sessionUnreadable")
        metrics = httpx2.get(f"{server.url}/metrics").text
        assert "session_server_unreadable_sessions 1.0" in metrics
        checks = {c["name"]: c for c in shell("doctor", "--json", **here).json}
        assert checks["session"]["finding"] == checks["data"]["finding"] == "problem"
        assert "session-server export hurt" in checks["session"]["advice"]
        file = tmp_path / "hurt.jsonl"
        exported = shell("export", "hurt", "-o", str(file))
        assert (exported.code, "damaged" in exported.err) == (ExitCode.OK, True)
        assert shell("dispose", "hurt", "--yes").code == ExitCode.OK
        assert shell("replay", str(file)).code == ExitCode.OK
        assert "Traceback" not in "".join(server.output)
        server.stop()
    with serving(store) as server:
        assert len(Shell(server.url)("sessions", "--json").json) == 2


@pytest.mark.proves("design.log.quarantine")
def test_a_host_with_damaged_tokens_says_what_to_do(tmp_path: Path) -> None:
    path, store = tmp_path / "sessions.db", sqlite_store(tmp_path)
    data = ("--data-dir", str(tmp_path))
    with serving(store, *data) as server:
        shell = Shell(server.url)
        assert shell("token", "create", "Cy").code == ExitCode.OK
        server.stop()
    damage_last(path, TOKENS_CHANNEL)
    done = subprocess.run(
        [*PROGRAM, "serve", "--port", "0", *data],
        capture_output=True, text=True, timeout=BOUND, env=environment(None), check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "The list of issued tokens is damaged: its entry" in done.stderr
    assert "doctor --remove session-server:tokens" in done.stderr
    assert "Traceback" not in done.stderr
    none = Shell(None)
    assert none("doctor", *data, "--remove", "whole").code == ExitCode.USAGE
    assert none("doctor", *data, "--remove", TOKENS_CHANNEL).code == ExitCode.OK
    with serving(store, *data) as server:
        assert httpx2.get(f"{server.url}/v1/tokens").json()["items"] == []
        busy = none("doctor", *data, "--remove", TOKENS_CHANNEL)
        assert (busy.code, "Stop the host first" in busy.err) == (ExitCode.FAILED, True)


@pytest.mark.proves("design.log.backup")
def test_a_backup_of_a_running_host_can_be_started_with(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy.db"
    data.mkdir()
    with serving(sqlite_store(data), "--data-dir", str(data)) as server:
        named(server, "before")
        shell = Shell(server.url)
        link = shell("share", "before", "--role", "observer", "--name", "Bo").out.strip()
        link = link.removeprefix(server.url)
        made = shell("backup", str(copy), "--data-dir", str(data), "--json")
        assert (made.code, made.json["damaged"]) == (ExitCode.OK, {})
        assert made.json["entries"] > 0
        again = shell("backup", str(copy), "--data-dir", str(data))
        assert (again.code, "exists already" in again.err) == (ExitCode.FAILED, True)
        named(server, "after")
        server.stop()
    # As docs/operations.md says: all files of the database away, the copy in their place.
    for file in data.glob("sessions.db*"):
        file.unlink()
    copy.rename(data / "sessions.db")
    with serving(sqlite_store(data), "--data-dir", str(data)) as server:
        listed = Shell(server.url)("sessions", "--json").json
        assert [item["resource"] for item in listed] == ["ahp-session:/before"]
        assert (
            Shell(server.url + link)("sessions", "--json").json[0]["resource"]
            == "ahp-session:/before"
        )


def test_only_a_store_in_a_file_can_be_copied(tmp_path: Path) -> None:
    done = Shell(None)("backup", str(tmp_path / "copy.db"), "--store", "memory:")
    assert (done.code, "memory:" in done.err) == (ExitCode.FAILED, True)
    missing = Shell(None)("backup", str(tmp_path / "copy.db"), "--data-dir", str(tmp_path))
    assert (missing.code, "There is no database" in missing.err) == (ExitCode.FAILED, True)
    assert not list(tmp_path.iterdir())
