"""Unpacking stored data, starting a host on it, and reading what the host shows."""

import json
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import httpx2
from websockets.asyncio.client import connect

from tests.ahp.client import ROOT, SocketClient
from tests.servers import ServerProcess

HERE = Path(__file__).parent
OWNER_TOKEN = "Qk7v-owner-of-the-stored-data-3Xz9"
PHONE = "bo-phone"
WATCHED = (ROOT, "ahp-session:/trip", "ahp-session:/release")


def write_config(folder: Path) -> Path:
    """An mcp.json with the server that the stored call waits for."""
    server = {
        "command": sys.executable,
        "args": ["-m", "tests.stored_data.deploy_server"],
        "cwd": str(HERE.parent.parent),
        "env": {"DEPLOY_SERVER_KEY": "the stored request state was sealed with this key"},
        "privateArguments": ["token"],
    }
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"ops": server}}))
    return config


def arguments(folder: Path, config: Path) -> tuple[str, ...]:
    token = ("--connection-token", OWNER_TOKEN)
    return ("--data-dir", str(folder), "--mcp-config", str(config), *token)


def unpack(name: str, folder: Path) -> None:
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    keep_epoch(folder)


def keep_epoch(folder: Path) -> None:
    """Makes a copy pass for a folder that was moved here.

    The file next to the database names its inode, the boot of the machine and when it was written.
    A database to which these do not fit is a copy, with an epoch of its own.
    """
    claim = folder / "sessions.db-claim"
    seq, _, epoch, _, _, pid = claim.read_text().split()
    inode = (folder / "sessions.db").stat().st_ino
    claim.write_text(f"{seq} {time.time_ns():020d} {epoch} {inode} synced {pid}\n")


class Caller:
    """One person or program at the HTTP API."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url}/v1"
        self._headers = {"Authorization": f"Bearer {token}"}

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        url = f"{self._url}/{path}"
        answer = httpx2.request(method, url, json=body, headers=self._headers, timeout=60)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


def shown(url: str) -> dict[str, Any]:
    """All that an owner can read, apart from the state of MCP servers, which is of now."""
    owner = Caller(url, OWNER_TOKEN)
    sessions = owner("GET", "sessions")
    names = [item["resource"].removeprefix("ahp-session:/") for item in sessions["items"]]
    per_session = ("", "/requests?state=open", "/requests?state=ended", "/calls", "/shares")
    paths = [f"sessions/{name}{path}" for name in sorted(names) for path in per_session]
    read = {path: owner("GET", path) for path in ("tokens", *paths)}
    for name in names:
        read[f"sessions/{name}"].pop("customizations", None)
    return {"sessions": sessions} | read


async def dialled(server: ServerProcess, token: str) -> SocketClient:
    headers = {"Authorization": f"Bearer {token}"}
    return SocketClient(await connect(server.ahp, compression=None, additional_headers=headers))


async def missed(server: ServerProcess, token: str, position: int) -> Any:
    """What the phone is sent when it comes back to this position."""
    phone = await dialled(server, token)
    answer = await phone.call(
        "reconnect", clientId=PHONE, lastSeenServerSeq=position, subscriptions=WATCHED
    )
    await phone.close()
    return answer
