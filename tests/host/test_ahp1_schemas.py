"""Every frame that clients of AHP 0.9 and 1.0 are sent is valid by the schemas of the protocol."""

import asyncio
import json
from random import Random
from typing import Any

import jsonschema
import pytest

from session_server.host.channels.messages import Message
from session_server.host.host import Host
from session_server.log import Log
from session_server.log.memory import MemoryLog
from session_server.schemas.principals import Principal
from tests.ahp.ahp1_mirror import VARIANTS, Ahp1Mirror
from tests.ahp.ahp1_schemas import check_frame, with_schemas
from tests.ahp.mirror import Mirror
from tests.effort import tries
from tests.host.links import Link
from tests.host.random_schedules import Schedule

SCHEDULES = tries(in_ci=40, at_hand=6)
TELLING = {"type", "kind", "state", "lifecycle", "response", "confirmed", "reason", "method"}
"""Fields whose value decides about the others."""


def shape(value: Any, name: str = "") -> Any:
    """What is the same for frames that differ in texts and numbers alone."""
    if isinstance(value, dict):
        return tuple((key, shape(value[key], key)) for key in sorted(value))
    if isinstance(value, list):
        return frozenset(shape(item) for item in value)
    return value if name in TELLING else type(value).__name__


class RecordingLink(Link):
    """`frames`: one of each shape that any client was sent, with what it had asked, by version."""

    frames: dict[Any, tuple[dict[str, Any], dict[Any, str], str]] = {}  # noqa: RUF012 - shared
    number = 0

    def __init__(self, host: Host, principal: Principal, mirror: Mirror, dice: Random) -> None:
        self._asked: dict[Any, str] = {}
        super().__init__(host, principal, mirror, dice)

    def say(self, frame: Any) -> None:
        if "id" in frame:
            self._asked[frame["id"]] = frame["method"]
        super().say(frame)

    def send(self, message: Message) -> None:
        super().send(message)
        if isinstance(self.mirror, Ahp1Mirror):
            type(self).number += 1
            frame, version = json.loads(message.text), self.mirror.version
            key = (version, self._asked.get(frame.get("id")), shape(frame))
            self.frames.setdefault(key, (frame, self._asked, version))


def run_schedule(seed: int) -> None:
    async def run() -> None:
        log = MemoryLog()

        async def opened() -> Log:
            return log

        versions = ["0.3.0", *VARIANTS, *VARIANTS]
        await Schedule(seed, opened, make_link=RecordingLink, versions=versions).run()

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.proves("ahp.ahp1.schema")
@with_schemas
def test_every_frame_of_any_schedule_is_valid(
    record_property: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordingLink, "frames", {})
    monkeypatch.setattr(RecordingLink, "number", 0)
    for seed in range(SCHEDULES):
        run_schedule(seed)
    for frame, asked, version in RecordingLink.frames.values():
        try:
            check_frame(frame, asked, version)
        except (AssertionError, jsonschema.ValidationError) as error:
            error.add_note(f"{version}: {json.dumps(frame)}")
            raise
    record_property("frames", RecordingLink.number)
    record_property("shapes", len(RecordingLink.frames))
    methods = {asked.get(f.get("id")) for f, asked, _ in RecordingLink.frames.values()}
    assert {"initialize", "reconnect", "subscribe", "listSessions", "fetchTurns"} <= methods


@with_schemas
@pytest.mark.parametrize(
    ("frame", "version"),
    [
        ({"id": 1, "result": {"items": [{}]}}, "1.0.0"),
        ({"id": 1, "result": {"items": [], "nextCursor": None}}, "1.0.0"),
        ({"id": 2, "result": {}}, "1.0.0"),
        ({"method": "action", "params": {"channel": "x:/", "action": {}, "serverSeq": 1}}, "1.0.0"),
        (
            {
                "method": "action",
                "params": {
                    "channel": "x:/",
                    "action": {"type": "chat/isReadChanged", "isRead": True},
                    "serverSeq": 1,
                },
            },
            "0.9.0",
        ),
    ],
)
def test_the_check_notices_a_frame_that_is_not_valid(frame: dict[str, Any], version: str) -> None:
    asked = {1: "listSessions", 2: "ping"}
    with pytest.raises((AssertionError, jsonschema.ValidationError)):
        check_frame({"jsonrpc": "2.0", **frame}, asked, version)
