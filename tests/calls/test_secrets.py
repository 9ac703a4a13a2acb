"""Secrets of a call are looked for wherever anything leaves the host."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_server.reducers.ahp1.uris import chat_uri
from tests.ahp.client import ROOT, SocketClient
from tests.mcp import zoo
from tests.servers import serving

SESSION = "ahp-session:/canary"
CHANNELS = [ROOT, SESSION, chat_uri(SESSION)]
HEADER = "canary-of-the-header-4711"
ARGUMENT = "canary-of-the-argument-4712"
ENVIRONMENT = "canary-of-the-environment-4713"
SECONDS = 60


class Leaks:
    """Everything that was sent, by where."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def add(self, where: str, what: str) -> None:
        self.seen[where] = self.seen.get(where, "") + what

    def holding(self, secret: str) -> list[str]:
        return [where for where, what in self.seen.items() if secret in what]


async def answered(http: httpx2.AsyncClient, leaks: Leaks, reason: str, **content: Any) -> None:
    url = "/v1/sessions/canary/requests"
    listed = await http.get(f"{url}?wait={SECONDS}")
    leaks.add("open requests", listed.text)
    (request,) = [r for r in listed.json()["items"] if reason in r["request"]["message"]]
    rid = request["id"].replace("/", "%2F")
    leaks.add("one request", (await http.get(f"{url}/{rid}")).text)
    done = await http.post(f"{url}/{rid}/complete", json={"content": content})
    leaks.add("completion", done.text)


async def lived(url: str, ahp: str, leaks: Leaks) -> None:
    watcher = await SocketClient.open(ahp)
    later = {version: await SocketClient.open(ahp) for version in ("0.9.0", "1.0.0")}
    async with httpx2.AsyncClient(base_url=url, timeout=SECONDS) as http:
        await http.post("/v1/sessions", json={"resource": SESSION})
        await watcher.initialize("canary", ROOT, SESSION)
        for version, client in later.items():
            shake = {"protocolVersions": [version], "clientId": version}
            await client.call("initialize", **shake, initialSubscriptions=CHANNELS)
        for server in ("web", "pipe"):
            wanted = {"server": server, "tool": "vault", "arguments": {"secret": ARGUMENT}}
            made = await http.post("/v1/sessions/canary/calls", json=wanted)
            leaks.add("call", made.text)
            await answered(http, leaks, "Open the vault?", sure=True)
            call_id = made.json()["id"]
            ended = await http.get(f"/v1/calls/{call_id}?wait={SECONDS}")
            assert zoo.text_of(ended.json()["result"]) == "opened: True"
            leaks.add("result", ended.text)
        shown = {"server": "web", "tool": "fail", "arguments": {"words": ARGUMENT}}
        made = await http.post(f"/v1/sessions/canary/calls?wait={SECONDS}", json=shown)
        assert made.json()["result"]["isError"]
        for path in (
            "/v1/sessions",
            "/v1/sessions/canary",
            "/v1/sessions/canary/requests?state=ended",
            "/v1/sessions/canary/export",
            "/metrics",
            "/openapi.json",
        ):
            leaks.add(path, (await http.get(path)).text)
        listed = (await http.get("/v1/sessions/canary/calls")).json()["items"]
        leaks.add("list of calls", json.dumps([c for c in listed if c["target"] == "vault"]))
        leaks.add("snapshot", json.dumps(await watcher.call("subscribe", SESSION)))
        for version, client in later.items():
            await client.call("listSessions")
            for channel in CHANNELS:
                await client.call("unsubscribe", channel)
                await client.call("subscribe", channel)
            again = await SocketClient.open(ahp)
            known = {"clientId": version, "lastSeenServerSeq": first_seen(client)}
            replay = await again.call("reconnect", **known, subscriptions=CHANNELS)
            assert replay["type"] == "replay"
            leaks.add(f"AHP {version}", json.dumps([*client.received, replay]))
            assert "Open the vault?" in leaks.seen[f"AHP {version}"]
            await again.close()
            await client.close()
    leaks.add("envelopes", json.dumps(watcher.received))
    await watcher.close()


def first_seen(client: SocketClient) -> int:
    """The position at which it came."""
    number: int = client.received[0]["result"]["serverSeq"]
    return number


def states_in(store: Path) -> set[str]:
    """The servers' states, as the log alone may hold them."""
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
        rows = [json.loads(data) for (data,) in database.execute("SELECT data FROM entries")]
    database.close()
    actions = [row["action"] for row in rows]
    return {a["requestState"] for a in actions if a["type"] == "private/callInputRequired"}


@pytest.mark.slow
@pytest.mark.proves("design.calls.secret-protocols", "ahp.ahp1.private")
def test_no_secret_of_a_call_ever_leaves_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaks, store = Leaks(), tmp_path / "sessions.db"
    monkeypatch.setenv("CANARY_TOKEN", HEADER)
    private = {"privateArguments": {"vault": ["secret"], "fail": ["words"]}}
    with zoo.http_server("modern") as server:
        servers: dict[str, dict[str, Any]] = {
            "web": {
                "url": server.url,
                "headers": {"Authorization": "Bearer ${CANARY_TOKEN}"},
                **private,
            },
            "pipe": zoo.stdio_entry("modern", env={"CANARY": ENVIRONMENT}, **private),
        }
        config = zoo.mcp_json(tmp_path, servers)
        arguments = ("--mcp-config", str(config), "--log-level", "debug")
        with serving(f"sqlite:///{store}", *arguments) as host:
            asyncio.run(lived(host.url, host.ahp, leaks))
            host.stop()
            leaks.add("log", "".join(host.output))
    states = states_in(store)
    assert len(states) == 2
    assert ARGUMENT.encode() in store.read_bytes() + (tmp_path / "sessions.db").read_bytes()
    for secret in (HEADER, ARGUMENT, ENVIRONMENT, *states):
        assert leaks.holding(secret) == [], secret
    assert len(leaks.seen) >= 12
    assert all(leaks.seen.values())
