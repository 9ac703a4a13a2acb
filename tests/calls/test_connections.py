"""2025-era servers on stdin and stdout: one process, and every question with the call that asks."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from session_server.mcp_client.config import LEGACY, ServerConfig
from session_server.mcp_client.connections import pool, shared_connections
from session_server.mcp_client.connections.pool import Pools
from session_server.mcp_client.connections.shared_connections import Signal, ToolHabits
from session_server.mcp_client.notifications import Notifications
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.errors import UnreachableError
from session_server.schemas.limits import UNATTRIBUTED_QUESTION_SECONDS
from session_server.schemas.record import SessionRecord
from tests.calls.running_host import OWNER, RunningHost, running_host, stdio
from tests.mcp import zoo
from tests.waiting import until

pytestmark = pytest.mark.slow


def stubborn() -> ServerConfig:
    file = zoo.HERE / "servers" / "stubborn.py"
    return ServerConfig(command=sys.executable, args=(str(file),))


async def pid_of(at: RunningHost, tool: str = "mirror") -> int:
    text = await at.text(await at.call(tool))
    return int(json.loads(text)["pid"]) if tool == "mirror" else int(text)


async def one_question(at: RunningHost) -> InputRequest:
    def look(record: SessionRecord) -> InputRequest | None:
        requests = record.public.input_requests or ()
        return requests[0] if requests else None

    return await at.until(look)


def call_of(request: InputRequest) -> str | None:
    """The call that asks it."""
    return request.meta.call


async def until_unattributed(at: RunningHost, count: int = 1) -> None:
    """So many questions have come of which it is not known whose they are."""
    (shared,) = at.calls.servers["zoo"].pools.own.links
    await until(lambda: shared._unattributed == count)


@pytest.mark.proves("mcp.servers.one-process")
async def test_parallel_calls_share_one_process_and_get_their_own_answers(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    async with running_host(stdio("legacy", "--effects", str(effects))) as at:
        asking = [await at.call("weather", key=str(n)) for n in range(6)]
        counting = [await at.call("count", key=str(n), steps=3) for n in range(6)]
        for number in range(6):
            request = await one_question(at)
            asker = call_of(request)
            assert asker in asking
            await at.answer("Which city?", city=f"city of {asker}")
            assert await at.text(str(asker)) == f"Sunny in city of {asker}", number
        for call_id in counting:
            assert await at.text(call_id) == "counted to 3"
    rows = [*zoo.effects(effects, "weather"), *zoo.effects(effects, "count")]
    assert len(rows) == 12
    assert len({row["pid"] for row in rows}) == 1


async def test_a_call_that_waits_for_people_holds_up_only_calls_that_may_ask_too() -> None:
    async with running_host(stdio("legacy")) as at:
        await at.text(await at.call("count", steps=1))  # seen not to ask
        first = await at.call("weather", key="first")
        await at.asked("Which city?")
        second = await at.call("weather", key="second")
        assert await at.text(await at.call("echo", text="hello")) == "hello"
        assert await at.text(await at.call("count", steps=2)) == "counted to 2"
        request = await one_question(at)
        assert call_of(request) == first
        await at.answer("Which city?", city="Oslo")
        assert await at.text(first) == "Sunny in Oslo"
        await at.answer("Which city?", city="Rome")
        assert await at.text(second) == "Sunny in Rome"


async def test_a_second_process_is_started_only_when_people_keep_the_first_waiting() -> None:
    async with running_host(stdio("legacy", connections=2)) as at:
        calls = [await at.call("count", key=str(n), steps=3, pause=0.01) for n in range(8)]
        for call_id in calls:
            await at.text(call_id)
        own = at.calls.servers["zoo"].pools.own
        assert len(own.links) == 1
        first = await at.call("weather", key="first")
        await at.asked("Which city?")
        second = await at.call("weather", key="second")
        await at.until(lambda record: len(record.public.input_requests or ()) == 2 or None)
        assert len(own.links) == 2
        for request in at.record.public.input_requests or ():
            assert call_of(request) in (first, second)


async def test_a_question_waits_until_it_is_clear_which_call_asks(tmp_path: Path) -> None:
    file = tmp_path / "go"
    async with running_host(stdio("legacy")) as at:
        await at.text(await at.call("maybe", ask=False))
        await at.text(await at.call("until", path=str(tmp_path)))
        running = await at.call("until", path=str(file))
        asking = await at.call("maybe", ask=True)
        await until_unattributed(at)
        assert not at.record.public.input_requests
        file.touch()
        assert await at.text(running) == "it is there"
        request = await one_question(at)
        assert call_of(request) == asking
        await at.answer("Which city?", city="Oslo")
        assert await at.text(asking) == "asked about Oslo"


async def test_a_question_that_cannot_be_attributed_is_not_asked_and_next_time_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert UNATTRIBUTED_QUESTION_SECONDS == shared_connections.UNATTRIBUTED_QUESTION_SECONDS
    monkeypatch.setattr(shared_connections, "UNATTRIBUTED_QUESTION_SECONDS", 1)
    async with running_host(stdio("legacy")) as at:
        await at.text(await at.call("maybe", ask=False))
        both = [await at.call("maybe", key=str(n), ask=True) for n in range(2)]
        request = await one_question(at)  # when the other has ended, this one is clear
        (failed,) = {*both} - {call_of(request)}
        view = await at.result(failed)
        assert view.result["isError"] is True
        assert "Several calls are running in this process" in zoo.text_of(view.result)
        await at.answer("Which city?", city="Oslo")
        assert await at.text(str(call_of(request))) == "asked about Oslo"
        both = [await at.call("maybe", key=f"again {n}", ask=True) for n in range(2)]
        for city in ("Oslo", "Rome"):
            await at.answer("Which city?", city=city)
        assert {await at.text(call_id) for call_id in both} == {
            "asked about Oslo",
            "asked about Rome",
        }


@pytest.mark.parametrize(
    ("config", "tool", "pid", "is_kept"),
    [
        pytest.param(stdio("legacy"), "weather", "mirror", True, id="answers what was cancelled"),
        pytest.param(stubborn(), "ask", "pid", False, id="goes on with it"),
    ],
)
async def test_a_call_that_was_given_up_leaves_no_question_to_the_next(
    config: ServerConfig, tool: str, pid: str, is_kept: bool
) -> None:
    """A process that goes on is replaced, or what it still asks would be taken for the next's."""
    async with running_host(config) as at:
        before = await pid_of(at, pid)
        call_id = await at.call(tool, key="given up")
        await at.asked("Which city?")
        await at.calls.abandon(OWNER, call_id)
        again = await at.call(tool, key="again")
        request = await one_question(at)
        assert call_of(request) == again
        await at.answer("Which city?", city="Oslo")
        assert await at.text(again) == "Sunny in Oslo"
        assert (await pid_of(at, pid) == before) is is_kept


async def test_a_question_of_an_abandoned_call_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_connections, "UNATTRIBUTED_QUESTION_SECONDS", 1)
    folder = tmp_path / "nag"
    folder.mkdir()
    async with running_host(stubborn()) as at:
        call_id = await at.call("nag", folder=str(folder))
        (shared,) = at.calls.servers["zoo"].pools.own.links
        await until(lambda: "call-1" in shared.link.unanswered)
        await at.calls.abandon(OWNER, call_id)
        (folder / "now").touch()
        await until(lambda: shared.has_asked and not shared._unattributed)
        assert await pid_of(at, "pid") > 0
        assert not at.record.private.outcomes
        assert not at.record.public.input_requests


def test_a_tool_of_which_nothing_is_known_may_ask() -> None:
    habits = ToolHabits()
    assert habits.may_ask("deploy", None)
    habits.ended_without_asking("deploy")
    assert not habits.may_ask("deploy", None)
    habits.asked("deploy")
    habits.ended_without_asking("deploy")
    assert habits.may_ask("deploy", None)


async def test_the_least_used_set_of_capabilities_makes_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If all are in use, the next one has to wait."""

    class Nobody:
        async def ask(self, question: Any) -> Any:
            raise AssertionError(question)

        async def visited(self, elicitation_id: str) -> None:
            raise AssertionError(elicitation_id)

    config = msgspec.structs.replace(stdio("legacy"), protocol=LEGACY)
    monkeypatch.setattr(pool, "CAPABILITY_SETS", 1)
    notifications = Notifications(asyncio.create_task)
    pools = Pools(config, Signal(), asyncio.create_task, notifications)

    async def lend(capabilities: dict[str, Any]) -> Any:
        chosen = await pools.of(capabilities, "ana")
        return chosen.lend(Nobody(), "echo", None, ToolHabits(), "ana")

    async with await lend({}) as (first, _):
        with pytest.raises(UnreachableError, match="1 different sets"):
            await lend({"roots": {}})
    async with await lend({"roots": {}}) as (second, _):
        assert not first.is_usable
        assert second.is_usable
    await lend({})
    assert not second.is_usable
    await pools.close()
