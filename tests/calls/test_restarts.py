"""Calls that outlast things: expired state, servers that end, hosts that start again, callers."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from session_server.agents.interface import CallFailedError, TurnContext
from session_server.host.async_api import perform
from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.connections.pool import BorrowedLink
from session_server.schemas.ahp.actions import (
    CustomizationToggled,
    InputAnswerChanged,
    InputCompleted,
    TurnCancelled,
    TurnStarted,
)
from session_server.schemas.ahp.questions import Draft, ResponseKind, Submitted, TextValue
from session_server.schemas.ahp.session import AgentInfo
from session_server.schemas.ahp.tool_calls import Cancelled, Running
from session_server.schemas.ahp.turns import MarkdownPart
from session_server.schemas.errors import RefusedError, UnknownCallError
from session_server.schemas.http import CallState
from session_server.schemas.principals import Provenance
from tests.calls.running_host import (
    AGENT,
    BO,
    OWNER,
    SESSION,
    RunningHost,
    http,
    listed,
    running_host,
    stdio,
)
from tests.mcp import zoo
from tests.servers import sqlite_store
from tests.sessions import user_message

KEY = "a key that outlives any process of this server"


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    return tmp_path / "effects"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return sqlite_store(tmp_path)


async def pid_of(at: RunningHost) -> int:
    """The process of the server, by its own account."""
    told = json.loads(await at.text(await at.call("mirror", key=str(time.time_ns()))))
    return int(told["pid"])


def asked_messages(at: RunningHost) -> list[str | None]:
    return [outcome.request.message for outcome in at.record.private.outcomes]


# Expired state


@pytest.mark.slow
async def test_an_answer_after_the_first_rounds_expiry_finishes_without_a_second_question(
    effects: Path,
) -> None:
    config = stdio("modern", "--ttl", "1", "--effects", str(effects))
    async with running_host(config) as at:
        call_id = await at.call("weather")
        await at.asked("Which city?")
        await asyncio.sleep(1.2)  # that the state expires is what this is about
        await at.answer("Which city?", city="Oslo")
        assert await at.text(call_id) == "Sunny in Oslo"
        assert asked_messages(at) == ["Which city?"]
        assert any("starts over; answers are kept" in note for note in at.notes())
        assert any("1 earlier answer was" in note for note in at.notes())
    assert len(zoo.effects(effects, "weather")) == 1


@pytest.mark.slow
async def test_an_expired_state_is_recognized_although_its_connection_fails(
    effects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = stdio("modern", "--ttl", "1", "--effects", str(effects))
    async with running_host(config) as at:
        server = at.calls.servers["zoo"]
        lend = server.lend

        @contextlib.asynccontextmanager
        async def ending_badly(*call: Any, **more: Any) -> AsyncGenerator[BorrowedLink]:
            async with lend(*call, **more) as line:
                yield line
            raise OSError("it cannot be closed")

        call_id = await at.call("weather")
        await at.asked("Which city?")
        await asyncio.sleep(1.2)  # that the state expires is what this is about
        monkeypatch.setattr(server, "lend", ending_badly)
        await at.answer("Which city?", city="Oslo")
        assert await at.text(call_id) == "Sunny in Oslo"
        assert asked_messages(at) == ["Which city?"]


@pytest.mark.slow
async def test_an_answer_after_the_expiry_of_a_dependent_round_asks_nothing_twice(
    effects: Path,
) -> None:
    config = stdio("modern", "--ttl", "1", "--effects", str(effects))
    async with running_host(config) as at:
        call_id = await at.call("deploy", service="web")
        await at.answer("Where should web go?", environment="production")
        await at.asked("Really?")
        await asyncio.sleep(1.2)  # that the state expires is what this is about
        await at.answer("Really?", by=BO, sure=True)
        await at.answer("Start it over?")
        assert await at.text(call_id) == "web is in production"
        messages = asked_messages(at)
        assert len(set(messages)) == len(messages) == 3
    assert len(zoo.effects(effects, "deploy")) == 1


@pytest.mark.slow
async def test_a_server_upgraded_between_rounds_keeps_the_answers_it_has(effects: Path) -> None:
    """The new one does not know the old one's state and asks for one thing more."""
    upgraded = ("--extra-key", "--effects", str(effects))
    with zoo.http_server("modern") as old:
        async with running_host(http(old.url)) as at:
            call_id = await at.call("pair")
            await at.asked("Your name?", "Your age?")
            old.kill()
            with zoo.http_server("modern", *upgraded, port=old.port):
                await at.answer("Your name?", name="Cy")
                await at.answer("Your age?", age=7)
                await at.answer("Anything else?", extra="tea")
                assert await at.text(call_id) == "Cy is 7, tea"
            assert asked_messages(at) == ["Your name?", "Your age?", "Anything else?"]
    assert len(zoo.effects(effects, "pair")) == 1


# The host starts again


@pytest.mark.slow
@pytest.mark.proves("design.calls.any-process", "design.session.call-finished")
async def test_a_parked_call_is_finished_by_another_process_with_the_log(
    store: str, effects: Path
) -> None:
    config = stdio("modern", "--key", KEY, "--effects", str(effects))
    async with running_host(config, store) as at:
        call_id = await at.call("deploy", service="web")
        (request,) = await at.asked("Where should web go?")
        await at.answer("Where should web go?", environment="production")
        (request,) = await at.asked("Really?")
        draft = Draft(value=TextValue(value="it is ti"))
        action = InputAnswerChanged(request_id=request.id, question_id="reason", answer=draft)
        await perform(at.host, BO, SESSION, action)
    async with running_host(config, store) as at:
        (request,) = await at.asked("Really?")
        assert request.answers["reason"].meta.by == BO.author
        await at.answer("Really?", sure=True)
        assert await at.text(call_id) == "web is in production"
    assert len(zoo.effects(effects, "deploy")) == 1


@pytest.mark.slow
@pytest.mark.proves("mcp.legacy.restart")
async def test_a_held_call_that_a_restart_cut_off_is_asked_about_and_keeps_what_was_written(
    store: str, effects: Path
) -> None:
    config = stdio("legacy", "--effects", str(effects))
    async with running_host(config, store) as at:
        call_id = await at.call("weather")
        (request,) = await at.asked("Which city?")
        draft = Draft(value=TextValue(value="Osl"))
        action = InputAnswerChanged(request_id=request.id, question_id="city", answer=draft)
        await perform(at.host, BO, SESSION, action)
    async with running_host(config, store) as at:
        await at.asked("It may already have run. Run it again?")
        assert (await at.calls.result(OWNER, call_id)).state is CallState.UNCERTAIN
        assert [o.via for o in at.record.private.outcomes] == [Provenance.WITHDRAWN]
        await at.answer("It may already have run.")
        (request,) = await at.asked("Which city?")
        draft = request.answers["city"]
        assert isinstance(draft, Draft)
        assert draft.value == TextValue(value="Osl")
        await at.answer("Which city?", city="Oslo")
        assert await at.text(call_id) == "Sunny in Oslo"
    assert [row["action"] for row in zoo.effects(effects, "weather")] == ["accept"]


# Servers that end


@pytest.mark.slow
async def test_a_server_that_crashes_is_started_again_and_the_session_sees_it(
    effects: Path,
) -> None:
    async with running_host(stdio("modern", "--key", KEY, "--effects", str(effects))) as at:
        call_id = await at.call("deploy", service="web")
        await at.asked("Where should web go?")
        crashed = await pid_of(at)
        os.kill(crashed, signal.SIGKILL)
        await at.until(lambda record: listed(record)["zoo"] == "error" or None)
        await at.until(lambda record: listed(record)["zoo"] == "ready" or None)
        assert await pid_of(at) != crashed
        await at.answer("Where should web go?", environment="staging")
        assert await at.text(call_id) == "web is in staging"
    assert len(zoo.effects(effects, "deploy")) == 1


@pytest.mark.slow
@pytest.mark.proves("mcp.servers.stdio-kept")
async def test_a_stdio_server_stays_up_between_the_rounds(effects: Path) -> None:
    """Its state is sealed with a key of the process: another one would refuse it."""
    async with running_host(stdio("modern", "--effects", str(effects))) as at:
        call_id = await at.call("deploy", service="web")
        await at.asked("Where should web go?")
        process = await pid_of(at)
        await at.answer("Where should web go?", environment="staging")
        assert await at.text(call_id) == "web is in staging"
        assert await pid_of(at) == process
        assert not any("starts over" in note for note in at.notes())
    (row,) = zoo.effects(effects, "deploy")
    assert row["pid"] == process


def _is_running(at: RunningHost, call_id: str) -> bool | None:
    shown = at.tool_call(call_id)
    return (isinstance(shown, Running) and shown.content is not None) or None


# Callers


@pytest.fixture(scope="module")
def modern() -> Iterator[ServerConfig]:
    with zoo.http_server("modern") as server:
        yield http(server.url)


@pytest.mark.slow
async def test_a_result_is_kept_for_a_caller_that_went_away(modern: ServerConfig) -> None:
    async with running_host(modern) as at:
        call_id = await at.call("weather")
        await at.answer("Which city?", city="Oslo")
        await at.until(lambda r: not r.private.calls[call_id].is_open or None)
        assert await at.call("weather") == call_id
        assert await at.text(call_id) == "Sunny in Oslo"
        assert await at.text(call_id) == "Sunny in Oslo"
        anew = await at.call("weather")
        assert anew != call_id
        assert await at.call("weather") == anew
        assert await at.call("weather", by=AGENT) != anew
        assert await at.call("weather", key="another") != anew


async def test_an_owner_who_only_looks_does_not_take_the_result_from_its_caller(
    modern: ServerConfig,
) -> None:
    async with running_host(modern) as at:
        call_id = await at.call("echo", by=AGENT, text="x")
        await at.result(call_id, by=OWNER)
        assert await at.call("echo", by=AGENT, text="x") == call_id
        with pytest.raises(RefusedError):
            await at.calls.result(BO, call_id)
        with pytest.raises(RefusedError):
            await at.call("echo", by=BO, text="x")
        with pytest.raises(UnknownCallError):
            await at.calls.result(OWNER, "call-nowhere")


async def test_cancelling_the_turn_abandons_the_call_and_notifies_the_server(
    modern: ServerConfig,
) -> None:
    async with running_host(modern) as at:
        call_id = await at.call("count", steps=100, pause=1)
        await at.until(lambda _: _is_running(at, call_id))
        turn = at.record.public.active_turn
        await perform(at.host, OWNER, SESSION, TurnCancelled(turn_id=turn.id))
        assert (await at.result(call_id)).state is CallState.ABANDONED
        assert isinstance(at.tool_call(call_id), Cancelled)
        await at.settled()


class Caller:
    """An agent that calls a tool in its turn."""

    info = AgentInfo(provider="caller", display_name="Caller", description="Calls.", models=())
    resumes = True

    async def run(self, turn: TurnContext) -> None:
        result = await turn.call_tool("zoo", "weather", key="city")
        await turn.say(zoo.text_of(result), key="said")
        try:
            await turn.call("zoo", "tools/call", {"name": "task"}, key="task")
        except CallFailedError as error:
            await turn.say(str(error), key="failed")


@pytest.mark.slow
async def test_an_agents_call_joins_its_turn_and_survives_a_restart(
    store: str, effects: Path
) -> None:
    config = stdio("modern", "--key", KEY, "--effects", str(effects))
    async with running_host(config, store, {"caller": Caller()}) as at:
        await at.new_session("caller", f"{SESSION}/caller")
        action = TurnStarted(turn_id="t1", message=user_message())
        await perform(at.host, OWNER, f"{SESSION}/caller", action)
        await at.waiting.until(f"{SESSION}/caller", lambda record: record.public.input_requests, 15)
    async with running_host(config, store, {"caller": Caller()}) as at:
        uri = f"{SESSION}/caller"
        record = at.host.record(uri)
        (call,) = record.private.calls.values()
        assert call.turn_id == "t1"
        (request,) = record.public.input_requests or ()
        answers: Any = {"city": Submitted(value=TextValue(value="Oslo"))}
        done = InputCompleted(request_id=request.id, response=ResponseKind.ACCEPT, answers=answers)
        await perform(at.host, BO, uri, done)
        turns = await at.waiting.until(uri, lambda record: record.public.turns or None, 15)
        assert turns is not None
        said = [part.content for part in turns[0].response_parts if isinstance(part, MarkdownPart)]
        assert said[0] == "Sunny in Oslo"
        assert "io.modelcontextprotocol/tasks" in said[1]
    assert len(zoo.effects(effects, "weather")) == 1


async def test_a_server_that_is_switched_off_in_a_session_is_not_called_there(
    modern: ServerConfig,
) -> None:
    async with running_host(modern) as at:
        assert await at.text(await at.call("echo", text="x")) == "x"
        toggle = CustomizationToggled(id="mcp:zoo", enabled=False)
        await perform(at.host, OWNER, SESSION, toggle)
        with pytest.raises(RefusedError, match="switched off"):
            await at.call("echo", text="y")
