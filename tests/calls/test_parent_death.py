"""Servers on stdin and stdout end with the host that started them, also when it is killed."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.mcp import zoo
from tests.servers import serving, sqlite_store

SECONDS = 60


def call(http: httpx2.Client, wait: float, **wanted: Any) -> dict[str, Any]:
    body = {"server": "zoo", **wanted}
    view: dict[str, Any] = http.post(f"/v1/sessions/k/calls?wait={wait}", json=body).json()
    return view


def ends(pid: int) -> bool:
    """Whether this process is soon gone, or dead and only not yet waited for."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if status == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_no_server_outlives_a_host_that_was_killed(era: zoo.Kind, tmp_path: Path) -> None:
    """One question is open and another call is at work when it happens."""
    config = zoo.mcp_json(tmp_path, {"zoo": zoo.stdio_entry(era, is_forked=False)})
    with serving(sqlite_store(tmp_path), "--mcp-config", str(config)) as host:
        with httpx2.Client(base_url=host.url, timeout=SECONDS) as http:
            http.post("/v1/sessions", json={"resource": "ahp-session:/k"})
            told = json.loads(zoo.text_of(call(http, SECONDS, tool="mirror")["result"]))
            call(http, 0, tool="weather")
            assert http.get(f"/v1/sessions/k/requests?wait={SECONDS}").json()["items"]
            call(http, 0, tool="count", arguments={"steps": 1000, "pause": 1})
        host.kill()
    assert ends(told["pid"])


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_not_even_a_server_that_does_not_notice_the_end_of_its_stdin(tmp_path: Path) -> None:
    """It writes down who it is and then does not listen at all."""
    file = tmp_path / "pid"
    deaf = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'w')); time.sleep(600)"
    entry = {"command": sys.executable, "args": ["-c", deaf, str(file)]}
    config = zoo.mcp_json(tmp_path, {"deaf": entry})
    with serving("memory:", "--mcp-config", str(config)) as host:
        deadline = time.monotonic() + SECONDS
        while not file.exists() or not file.read_text().endswith("\n"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        host.kill()
    assert ends(int(file.read_text()))
