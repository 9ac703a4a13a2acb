"""A 2025-era server that ends while it waits for people: what they wrote is not lost with it."""

import json
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from session_server.host.async_api import perform
from session_server.mcp_client.config import ServerConfig
from session_server.schemas.ahp.actions import InputAnswerChanged
from session_server.schemas.ahp.questions import (
    Answer,
    Draft,
    InputRequest,
    SelectedValue,
    Submitted,
    TextValue,
)
from tests.calls.running_host import BO, OWNER, SESSION, RunningHost, http, running_host, stdio
from tests.mcp import zoo
from tests.servers import sqlite_store

SUBMITTED = Submitted(value=TextValue(value="it was time"))
DRAFT = Draft(value=TextValue(value="it is ti"))


async def write(
    at: RunningHost, request: InputRequest, answer: Answer, question: str = "reason"
) -> None:
    action = InputAnswerChanged(request_id=request.id, question_id=question, answer=answer)
    await perform(at.host, BO, SESSION, action)


async def cut_off(config: ServerConfig, cut: Callable[[int], None], answer: Answer) -> None:
    """The connection is cut in the second question, of which something is answered already."""
    async with running_host(config) as at:
        pid = json.loads(await at.text(await at.call("mirror")))["pid"]
        call_id = await at.call("deploy", service="web")
        await at.answer("Where should web go?", environment="production")
        (request,) = await at.asked("Really?")
        await write(at, request, answer)
        cut(pid)
        await at.answer("It may already have run. Run it again?", by=OWNER)
        (again,) = await at.asked("Really?")
        assert again.id != request.id
        kept = again.answers["reason"]
        assert type(kept) is type(answer)
        assert getattr(kept, "value", None) == getattr(answer, "value", None)
        assert kept.meta.by == BO.author
        await at.answer("Really?", sure=True)
        assert await at.text(call_id) == "web is in production"
        asked = [outcome.request.message for outcome in at.record.private.outcomes]
        assert asked.count("Where should web go?") == 1


@pytest.mark.slow
async def test_a_question_lost_with_its_process_is_asked_again_with_its_draft(
    tmp_path: Path,
) -> None:
    effects = tmp_path / "effects"
    config = stdio("legacy", "--effects", str(effects))
    await cut_off(config, lambda pid: os.kill(pid, signal.SIGKILL), DRAFT)
    assert len(zoo.effects(effects, "deploy")) == 1


@pytest.mark.slow
async def test_a_question_lost_with_its_http_server_is_asked_again_with_its_submitted_answer(
    tmp_path: Path,
) -> None:
    arguments = ("--effects", str(tmp_path / "effects"))
    with zoo.http_server("legacy", *arguments) as lost, ExitStack() as stack:

        def cut(_: int) -> None:
            lost.kill()
            stack.enter_context(zoo.http_server("legacy", *arguments, port=lost.port))

        await cut_off(http(lost.url), cut, SUBMITTED)
    assert len(zoo.effects(tmp_path / "effects", "deploy")) == 1


@pytest.mark.slow
async def test_what_was_written_is_found_again_in_whatever_order_a_server_asks(
    tmp_path: Path,
) -> None:
    store, effects = sqlite_store(tmp_path), tmp_path / "effects"
    draft = Draft(value=SelectedValue(value="staging"))
    with zoo.http_server("legacy", "--effects", str(effects)) as server:
        async with running_host(http(server.url), store) as at:
            call_id = await at.call("unordered")
            await at.answer("Which city?", city="Oslo")
            (request,) = await at.asked("Where to?")
            await write(at, request, draft, "environment")
        async with running_host(http(server.url), store) as at:
            await at.answer("It may already have run. Run it again?", by=OWNER)
            (request,) = await at.asked("Where to?")
            assert request.meta.round == 3
            kept = (request.answers or {})["environment"]
            assert isinstance(kept, Draft)
            assert kept.value == draft.value
            await at.answer("Where to?", environment="staging")
            assert await at.text(call_id) == "Oslo staging"
    assert len(zoo.effects(effects, "unordered")) == 1
