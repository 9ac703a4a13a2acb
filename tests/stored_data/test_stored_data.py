"""A data folder that an older version wrote is opened, shown as it was, and continued."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_server.reducers.ahp1.uris import chat_uri
from tests.host.ahp1 import Ahp1SocketClient
from tests.servers import ServerProcess, serving
from tests.stored_data.folders import (
    HERE,
    Caller,
    arguments,
    keep_epoch,
    missed,
    shown,
    unpack,
    write_config,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.parametrize(
    "name", sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))
)


def stored_with(name: str) -> dict[str, Any]:
    version = name.rpartition("-")[0]
    stored: dict[str, Any] = json.loads((HERE / f"{version}.json").read_text())
    return stored


@contextmanager
def reopened(folder: Path, stored: dict[str, Any]) -> Iterator[ServerProcess]:
    """A host on the folder, a second after the one before it stopped."""
    keep_epoch(folder)
    later = stored["at"] + 1_000 - time.time_ns() // 1_000_000
    command = (sys.executable, "-m", "tests.stored_data.serve", str(later), "serve")
    store = f"sqlite:///{folder / 'sessions.db'}"
    config = write_config(folder)
    with serving(store, *arguments(folder, config), command=command) as server:
        yield server


def test_everything_is_shown_as_it_was(name: str, tmp_path: Path) -> None:
    stored = stored_with(name)
    unpack(name, tmp_path)
    with reopened(tmp_path, stored) as server:
        assert shown(server.url) == stored["shown"]
        revoked = {"Authorization": f"Bearer {stored['revoked']}"}
        assert httpx2.get(f"{server.url}/v1/sessions", headers=revoked).status_code == 401


def test_a_client_reconnects_by_position(name: str, tmp_path: Path) -> None:
    stored = stored_with(name)
    unpack(name, tmp_path)
    token = stored["tokens"]["bo"]
    with reopened(tmp_path, stored) as server:
        assert asyncio.run(missed(server, token, stored["position"])) == stored["missed"]


def test_open_questions_and_a_parked_call_are_finished(name: str, tmp_path: Path) -> None:
    stored = stored_with(name)
    requests = stored["requests"]
    unpack(name, tmp_path)
    with reopened(tmp_path, stored) as server:
        bo = Caller(server.url, stored["tokens"]["bo"])
        url = f"sessions/trip/requests/{requests['trip']}/complete"
        trip = bo("POST", url, {"content": {"city": "oslo"}})
        # The submitted name counts, not the draft over it, and neither does the draft of a budget.
        assert trip["content"] == {
            "name": "Fjords",
            "city": "oslo",
            "people": 2,
            "refundable": True,
        }
        url = f"sessions/release/requests/{requests['release']}/complete"
        assert bo("POST", url, {"content": {"region": "eu"}})["content"]["mail"] == "a@ex.org"
        content = {"approved": False, "reason": "It is Friday."}
        url = f"sessions/deploy/requests/{requests['approval']}/complete"
        bo("POST", url, {"content": content})
        ana = Caller(server.url, stored["tokens"]["ana"])
        call = ana("GET", f"calls/{stored['call']}?wait=60")
        text = "web 1.4.2 stays where it is. It is Friday."
        assert call["result"]["content"][0]["text"] == text
        ana("GET", "sessions/trip/requests?wait=60")  # the agent resumes, and asks about the link
        wait_until(lambda: "activeTurn" not in ana("GET", "sessions/deploy"))
        before = shown(server.url)
        server.kill()
    with reopened(tmp_path, stored) as server:
        assert shown(server.url) == before


async def follow_with_a_later_version(
    server: ServerProcess, stored: dict[str, Any], version: str
) -> None:
    token, requests = stored["tokens"]["bo"], stored["requests"]
    editor = await Ahp1SocketClient.open(f"{server.ahp}?tkn={token}")
    await editor.open_with("editor", version=version)
    for summary in (await editor.call("listSessions"))["items"]:
        await editor.watch(summary["resource"])
        await editor.watch(chat_uri(summary["resource"]))
    session = "ahp-session:/trip"
    (needed,) = editor.mirrors[session]["inputNeeded"]
    assert needed["request"]["id"] == requests["trip"]
    parts = editor.mirrors[needed["chat"]]["activeTurn"]["responseParts"]
    asked = [part["request"] for part in parts if part["kind"] == "inputRequest"]
    assert [request["id"] for request in asked] == [requests["trip"]]
    city = {"state": "submitted", "value": {"kind": "selected", "value": "oslo"}}
    completed = {
        "type": "chat/inputCompleted",
        "requestId": requests["trip"],
        "response": "accept",
        "answers": {"city": city},
    }
    echo = await editor.act(completed, needed["chat"])
    assert "rejectionReason" not in echo
    # The agent resumes, and asks about the link.
    await editor.wait_for(
        lambda frame: (
            frame.get("params", {}).get("action", {}).get("type") == "session/inputNeededSet"
            and frame["params"]["channel"] == session
        )
    )
    await editor.wait_for_action("session/chatUpdated")
    assert await editor.is_up_to_date()
    await editor.close()


@pytest.mark.proves("ahp.ahp1.upgrade")
@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
def test_a_client_of_a_later_version_sees_and_continues_it(
    name: str, version: str, tmp_path: Path
) -> None:
    stored = stored_with(name)
    unpack(name, tmp_path)
    with reopened(tmp_path, stored) as server:
        asyncio.run(follow_with_a_later_version(server, stored, version))
