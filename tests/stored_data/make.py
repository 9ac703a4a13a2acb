"""Writes a data folder as the version at hand writes it: `python -m tests.stored_data.make NAME`.

Makes `NAME-killed.tar.xz`, of a host that was killed (with a write-ahead log),
`NAME-stopped.tar.xz`, of the same host after a clean stop, and `NAME.json`, what clients of both
must be shown. A folder is made once, when a release changes what is stored; the others stay.
"""

import asyncio
import json
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.servers import ServerProcess, serving
from tests.stored_data.folders import (
    HERE,
    OWNER_TOKEN,
    PHONE,
    WATCHED,
    Caller,
    arguments,
    dialled,
    missed,
    shown,
    write_config,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "enum": ["eu", "us"]},
        "copies": {"type": "integer", "minimum": 1, "default": 3},
        "zones": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["region"],
}


def waited(caller: Caller, session: str) -> str:
    """The id of the open request, as a path has it, once there is one."""
    request: str = caller("GET", f"sessions/{session}/requests?wait=60")["items"][0]["id"]
    return request.replace("/", "%2F")


def text(state: str, value: str) -> dict[str, Any]:
    return {"state": state, "value": {"kind": "text", "value": value}}


async def told(server: ServerProcess, stored: dict[str, Any]) -> None:
    """Everything that the folder is to hold."""
    owner = Caller(server.url, OWNER_TOKEN)
    people = {
        name: owner("POST", "tokens", {"name": name.title(), "id": f"u-{name}", "role": role})
        for name, role in (("ana", "owner"), ("bo", "answerer"), ("cy", "answerer"))
    }
    agent = owner("POST", "tokens", {"name": "CI", "id": "ci", "role": "agent"})
    lost = owner("POST", "tokens", {"name": "Lost", "role": "observer"})
    owner("DELETE", f"tokens/{lost['issued']['id']}")
    stored["tokens"] = {name: given["token"] for name, given in people.items()}
    stored["revoked"] = lost["token"]
    ana, bo, cy = (Caller(server.url, given["token"]) for given in people.values())
    ci = Caller(server.url, agent["token"])

    owner(
        "POST", "sessions", {"resource": "ahp-session:/trip", "provider": "demo", "title": "Trip"}
    )
    ana("POST", "sessions/trip/turns", {"text": "Plan a trip, with a link"})
    trip = waited(ana, "trip")
    answers = f"sessions/trip/requests/{trip}/answers"
    ana("PUT", f"{answers}/name", text("submitted", "Fjords"))
    bo("PUT", f"{answers}/name", text("draft", "Fjords and mou"))
    cy("PUT", f"{answers}/budget", {"state": "draft", "value": {"kind": "number", "value": 12.5}})
    bo("PUT", f"{answers}/interests", {"state": "skipped"})

    owner("POST", "sessions", {"resource": "ahp-session:/release", "title": "Release 1.4"})
    asked = {"message": "Where to?", "requestedSchema": SCHEMA, "lease": 86_400}
    release = ci("POST", "sessions/release/requests", asked)["id"]
    ana("PUT", f"sessions/release/requests/{release}/answers/mail", text("draft", "ana@ex"))
    look = ci("POST", "sessions/release/requests", {"url": "https://example.org/map"})["id"]
    done = ci("POST", "sessions/release/requests", {"message": "Tag it?", "questions": []})["id"]
    bo("POST", f"sessions/release/requests/{done}/complete", {"response": "decline"})
    stored["requests"] = {"trip": trip, "release": release, "look": look, "done": done}
    owner("POST", "sessions/release/shares", {"role": "answerer", "expiresIn": 30 * 86_400})

    owner("POST", "sessions", {"resource": "ahp-session:/gone", "title": "Disposed"})
    owner("POST", "sessions/gone/shares", {"role": "observer"})
    owner("DELETE", "sessions/gone")

    owner("POST", "sessions", {"resource": "ahp-session:/deploy", "title": "Deploy"})
    deploy = {"service": "web", "version": "1.4.2", "token": "a-private-argument"}
    wanted = {"server": "ops", "tool": "deploy", "arguments": deploy}
    stored["call"] = ana("POST", "sessions/deploy/calls", wanted)["id"]
    plan = waited(ana, "deploy")
    chosen = {"content": {"environment": "production", "percent": 25}}
    bo("POST", f"sessions/deploy/requests/{plan}/complete", chosen)
    stored["requests"]["approval"] = waited(ana, "deploy")

    phone = await dialled(server, stored["tokens"]["bo"])
    welcome = await phone.initialize(PHONE, *WATCHED)
    await phone.close()
    stored["position"] = welcome["serverSeq"]
    cy("PUT", f"{answers}/budget", {"state": "draft", "value": {"kind": "number", "value": 125}})
    ana("PUT", f"sessions/release/requests/{release}/answers/mail", text("submitted", "a@ex.org"))
    stored["missed"] = await missed(server, stored["tokens"]["bo"], stored["position"])
    stored["shown"] = shown(server.url)


def pack(folder: Path, name: str) -> None:
    with tarfile.open(HERE / f"{name}.tar.xz", "w:xz") as archive:
        for file in sorted(folder.iterdir()):
            member = tarfile.TarInfo(file.name)
            member.size, member.mode = file.stat().st_size, 0o600
            with file.open("rb") as content:
                archive.addfile(member, content)


def main(name: str) -> None:
    stored: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "data"
        folder.mkdir()
        config = write_config(Path(made))
        store = f"sqlite:///{folder / 'sessions.db'}"
        with serving(store, *arguments(folder, config)) as server:
            asyncio.run(told(server, stored))
            stored["at"] = time.time_ns() // 1_000_000
            server.kill()
        pack(folder, f"{name}-killed")
        with serving(store, *arguments(folder, config)) as server:
            assert shown(server.url) == stored["shown"]
            server.stop()
        pack(folder, f"{name}-stopped")
    lines = (f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in stored.items())
    (HERE / f"{name}.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main(sys.argv[1])
