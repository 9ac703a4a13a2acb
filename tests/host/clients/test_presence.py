"""Who is there, and the active client that goes away."""

from typing import Any

import pytest

from session_server.host.channels.messages import Message, Outbox
from session_server.host.clients.active_clients import GRACE_SECONDS
from session_server.schemas.limits import EDITING_SECONDS, ID_CHARS, PRESENCE_BYTES_PER_SECOND
from session_server.schemas.principals import Principal, Role
from tests.ahp.actions import active_client_changed, title_changed, turn_started
from tests.host.harness import (
    AGENT,
    BO,
    SESSION,
    Client,
    back_as,
    hosting,
    joined,
    record_of,
    with_session,
)
from tests.host.manual_clock import ManualClock

ROOM = "ahp-presence:/1"
CROWD = 100
"""So many that everybody's news for everybody take a noticeable part of a second."""


async def told(client: Client, wanted: Any) -> list[dict[str, Any]]:
    frame = await client.wait_for(
        lambda f: f.get("method") == "presence/changed" and wanted(f["params"]["present"])
    )
    present: list[dict[str, Any]] = frame["params"]["present"]
    return present


@pytest.mark.proves(
    "design.wire.presence", "design.wire.presence-name", "design.wire.presence-not-logged"
)
async def test_people_see_each_other_come_type_and_go() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        bo = await joined(host, BO, "phone")
        assert await ana.call("subscribe", ROOM) == {}
        assert await bo.call("subscribe", ROOM) == {}
        await told(ana, lambda present: len(present) == 2)
        logged = host.log.last_seq
        place = {"requestId": "r", "questionId": "q"}
        bo.notify("presence/update", ROOM, editing=place, name="Mallory")
        present = await told(ana, lambda present: any("editing" in p for p in present))
        editor = next(p for p in present if "editing" in p)
        assert editor["by"] == {"id": "bo", "name": "Bo"}
        ana.received.clear()
        bo.connection.closed()
        assert len(await told(ana, lambda present: len(present) == 1)) == 1
        assert host.log.last_seq == logged
        assert "editing" not in str(host.record(SESSION))


@pytest.mark.proves("design.wire.writing-expires")
async def test_somebody_who_does_not_say_so_again_is_no_longer_shown_as_writing() -> None:
    clock = ManualClock()
    async with hosting(clock=clock) as host:
        ana, bo = await with_session(host), await joined(host, BO, "phone")
        await ana.call("subscribe", ROOM)
        await bo.call("subscribe", ROOM)
        place = {"requestId": "r", "questionId": "q"}
        bo.notify("presence/update", ROOM, editing=place)
        await clock.advance(EDITING_SECONDS - 1)
        bo.notify("presence/update", ROOM, editing=place, idle=True)
        await clock.advance(EDITING_SECONDS - 1)
        assert any("editing" in p for p in await told(ana, lambda present: len(present) == 2))
        await clock.advance(2)
        await told(ana, lambda present: any("idle" in p and "editing" not in p for p in present))
        bo.notify("presence/update", ROOM, editing=place)
        bo.connection.closed()
        await clock.advance(1)
        await told(ana, lambda present: len(present) == 1)
        assert host.presence._expiries == {}


async def test_a_chosen_name_is_attached_to_later_actions_and_roles_are_shown() -> None:
    async with hosting() as host:
        await with_session(host)
        nameless = await joined(host, Principal(id="local", role=Role.OWNER), "tab", SESSION)
        await nameless.call("subscribe", ROOM)
        nameless.notify("presence/update", ROOM, name="Ana")
        (present,) = await told(nameless, lambda present: present[0]["by"].get("name") == "Ana")
        assert present["role"] == "owner"
        nameless.notify("presence/update", ROOM, name="Anna")
        await nameless.act(title_changed("Mine"))
        titled = await nameless.wait_for_action("session/titleChanged")
        assert titled["_meta"]["by"] == {"id": "local", "name": "Anna"}


async def test_presence_is_for_those_who_may_see_the_session() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        assert (await ana.call("subscribe", "ahp-presence:/none"))["code"] == -32001
        ana.notify("presence/update", ROOM, idle=True)
        ana.notify("unsubscribe", ROOM)
        assert await ana.call("ping") is None


@pytest.mark.proves("ahp.clients.released", "ahp.clients.tools-fail")
async def test_an_active_client_that_stays_away_loses_its_role_and_its_tool_calls() -> None:
    clock = ManualClock()
    async with hosting(clock=clock) as host:
        ana = await with_session(host, "demo")
        await ana.act(active_client_changed("laptop", {"name": "open"}))
        agent = await joined(host, AGENT, "agent", SESSION)
        await ana.act(turn_started())
        on_call = {"turnId": "t", "toolCallId": "c"}
        await agent.act(
            {
                "type": "session/toolCallStart",
                **on_call,
                "toolName": "open",
                "displayName": "Open",
                "contributor": {"kind": "client", "clientId": "laptop"},
            }
        )
        ready = {"type": "session/toolCallReady", **on_call, "invocationMessage": "Opening"}
        await agent.act({**ready, "confirmed": "not-needed"})
        ana.connection.closed()
        await clock.advance(GRACE_SECONDS - 1)
        assert record_of(host).public.active_client is not None
        await clock.advance(1)
        done = await agent.wait_for_action("session/toolCallComplete")
        assert done["action"]["result"]["success"] is False
        await agent.wait_for_action("session/activeClientChanged")
        assert record_of(host).public.active_client is None


@pytest.mark.proves("ahp.clients.released")
async def test_an_active_client_that_comes_back_in_time_keeps_its_role() -> None:
    clock = ManualClock()
    async with hosting(clock=clock) as host:
        ana = await with_session(host)
        await ana.act(active_client_changed("laptop"))
        ana.connection.closed()
        _, answer = await back_as(host, "laptop", host.position, SESSION, ROOM)
        assert answer["missing"] == []
        await clock.advance(2 * GRACE_SECONDS)
        assert record_of(host).public.active_client is not None


async def test_an_editing_place_that_is_too_long_is_not_relayed() -> None:
    async with hosting() as host:
        ana, bo = await with_session(host), await joined(host, BO, "phone")
        await ana.call("subscribe", ROOM)
        await bo.call("subscribe", ROOM)
        for name in ("requestId", "questionId"):
            place = {"requestId": "r", "questionId": "q", name: "x" * (ID_CHARS + 1)}
            bo.notify("presence/update", ROOM, editing=place)
            assert host.presence._rooms[ROOM][bo].editing is None
        bo.notify(
            "presence/update", ROOM, editing={"requestId": "x" * ID_CHARS, "questionId": "last"}
        )
        await told(ana, lambda present: any("editing" in p for p in present))
        longest = max(len(str(frame)) for frame in ana.received)
        assert longest < 4 * ID_CHARS
        assert bo.closed is None


async def test_presence_notifications_slow_down_with_many_watchers() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        await ana.call("subscribe", ROOM)
        await told(ana, lambda present: len(present) == 1)
        assert host.presence._pauses == {}
        for number in range(CROWD):
            name = f"{number}-".ljust(ID_CHARS, "x")
            host.presence.join(ROOM, Principal(id="c", role=Role.OBSERVER, client_id=name), Mute())
        await told(ana, lambda present: len(present) == CROWD + 1)
        assert host.presence._pauses[ROOM] >= CROWD**2 * ID_CHARS / PRESENCE_BYTES_PER_SECOND
        for crowd in tuple(host.presence._rooms[ROOM]):
            host.presence.leave(ROOM, crowd)
        assert host.presence._pauses == {}


class Mute(Outbox):
    closed_with: int | None = None

    def send(self, message: Message) -> None:
        pass

    def close(self, code: int, reason: str) -> None:
        pass


async def test_an_action_on_the_presence_channel_is_one_on_its_session() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        ana.dispatch(title_changed("Oslo"), ROOM)
        await ana.wait_for_title("Oslo")
        (renamed,) = ana.envelopes()
        assert renamed["channel"] == SESSION
