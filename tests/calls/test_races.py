"""Things that happen to a call at once: each of them ends in one of the ways it may."""

import asyncio
from pathlib import Path

import pytest

from session_server.host.async_api import perform
from session_server.host.timers import Clock
from session_server.schemas.ahp.actions import TurnCancelled
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.http import CallState
from session_server.schemas.principals import Provenance
from session_server.schemas.record import FailureKind
from tests.calls.running_host import BO, OWNER, SESSION, RunningHost, http, running_host, stdio
from tests.mcp import zoo
from tests.servers import sqlite_store

KEY = "a key that outlives any process of this server"


@pytest.mark.slow
async def test_a_turn_cancelled_while_its_call_is_tried_again_ends_the_call(tmp_path: Path) -> None:
    """The server comes back, but nobody wants the result any more."""
    arguments = ("--key", KEY, "--effects", str(tmp_path / "effects"))
    with zoo.http_server("modern", *arguments) as old:
        async with running_host(http(old.url)) as at:
            call_id = await at.call("deploy", service="web")
            await at.asked("Where should web go?")
            old.kill()
            await at.answer("Where should web go?", environment="staging")
            await at.until(lambda _: any("is tried again" in note for note in at.notes()) or None)
            turn = at.record.public.active_turn
            await perform(at.host, OWNER, SESSION, TurnCancelled(turn_id=turn.id))
            assert (await at.result(call_id)).state is CallState.ABANDONED
            await at.settled()
            with zoo.http_server("modern", *arguments, port=old.port):
                assert await at.text(await at.call("echo", text="x")) == "x"
    assert zoo.effects(tmp_path / "effects", "deploy") == []


@pytest.mark.slow
async def test_a_call_to_a_server_that_is_no_longer_configured_fails_with_a_reason(
    tmp_path: Path,
) -> None:
    store = sqlite_store(tmp_path)
    async with running_host(stdio("modern", "--key", KEY), store) as at:
        call_id = await at.call("weather")
        await at.asked("Which city?")
    async with running_host({"other": stdio("modern", disabled=True)}, store) as at:
        await at.answer("Which city?", city="Oslo")
        assert await at.error(call_id) == ("There is no MCP server 'zoo'. Configured are: other")
        assert at.listed() == {"zoo": "stopped"}


class MinuteLater(Clock):
    def now(self) -> int:
        return super().now() + 60_000


@pytest.mark.slow
async def test_a_deadline_that_passed_while_the_host_was_away_is_a_timeout(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    async with running_host(stdio("modern", "--key", KEY, answerWithin=60), store) as at:
        call_id = await at.call("survey")
        await at.asked("Which city?")
    async with running_host(stdio("modern", "--key", KEY), store, clock=MinuteLater()) as at:
        assert await at.text(call_id) == "cancel"
        (outcome,) = at.record.private.outcomes
        assert outcome.via is Provenance.TIMEOUT


@pytest.mark.slow
async def test_a_deadline_of_one_question_while_the_other_is_answered_sends_one_leg(
    tmp_path: Path,
) -> None:
    """Answered in the last moment or too late: either way the round is sent once."""
    effects = tmp_path / "effects"

    async def raced(at: RunningHost, number: int) -> None:
        call_id = await at.call("survey", key=str(number))

        def is_its(record: object) -> object:
            requests = at.record.public.input_requests or ()
            return next((r for r in requests if r.meta and r.meta.call == call_id), None)

        request = await at.until(is_its)
        await asyncio.sleep(0.3 - number * 0.002)  # about when its time is up
        late = await asyncio.gather(
            at.complete(request, ResponseKind.DECLINE, None, BO),  # type: ignore[arg-type]
            return_exceptions=True,
        )
        assert await at.text(call_id) == ("cancel" if late[0] is not None else "decline")

    config = stdio("modern", "--effects", str(effects), answerWithin=0.3)
    async with running_host(config) as at:
        await at.calls.servers["zoo"].main.ready()
        await asyncio.gather(*(raced(at, number) for number in range(20)))
    assert len(zoo.effects(effects, "survey")) == 20


@pytest.mark.slow
async def test_a_call_in_doubt_is_not_run_again_when_no_decision_comes_in_time(
    tmp_path: Path,
) -> None:
    store, effects = sqlite_store(tmp_path), tmp_path / "effects"
    config = stdio("legacy", "--effects", str(effects), answerWithin=2)
    async with running_host(config, store) as at:
        call_id = await at.call("weather")
        await at.asked("Which city?")
    async with running_host(config, store) as at:
        view = await at.result(call_id)
        assert view.error.kind is FailureKind.NOT_REPEATED
        assert at.record.private.outcomes[-1].via is Provenance.TIMEOUT
    assert zoo.effects(effects, "weather") == []
