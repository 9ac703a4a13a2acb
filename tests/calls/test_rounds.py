"""Calls against real servers: every round is asked in the session and answered there."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.connections.transports import TIMEOUT
from session_server.schemas.ahp.customizations import McpStarting
from session_server.schemas.ahp.questions import ResponseKind, Submitted
from session_server.schemas.ahp.tool_calls import Completed, Running, TextContent, ToolCall
from session_server.schemas.http import CallState
from session_server.schemas.principals import Provenance
from session_server.schemas.record import Sent, SessionRecord
from session_server.schemas.record import Waiting as CallWaiting
from tests.calls.running_host import BO, OWNER, http, running_host, stdio, value_of
from tests.mcp import zoo

pytestmark = pytest.mark.slow

Way = Callable[..., contextlib.AbstractContextManager[ServerConfig]]


@contextlib.contextmanager
def over_stdio(kind: zoo.Kind, *arguments: str, **more: Any) -> Iterator[ServerConfig]:
    yield stdio(kind, *arguments, **more)


@contextlib.contextmanager
def over_http(kind: zoo.Kind, *arguments: str, **more: Any) -> Iterator[ServerConfig]:
    with zoo.http_server(kind, *arguments) as server:
        yield http(server.url, **more)


@pytest.mark.proves("mcp.servers.modern", "mcp.servers.legacy")
@pytest.mark.parametrize("way", [over_stdio, over_http])
@pytest.mark.parametrize("kind", ["modern", "typescript", "legacy"])
async def test_people_answer_and_the_call_is_finished(
    kind: zoo.Kind, way: Way, tmp_path: Path
) -> None:
    file = tmp_path / "effects"
    with way(kind, "--effects", str(file)) as config:
        async with running_host(config) as at:
            call_id = await at.call("deploy", service="web")
            (request,) = await at.asked("Where should web go?")
            assert (request.meta.server, request.meta.tool) == ("zoo", "deploy")
            assert (request.meta.call, request.meta.round) == (call_id, 1)
            await at.answer("Where should web go?", by=BO, environment="production")
            await at.answer("Really?", sure=True)
            assert await at.text(call_id) == "web is in production"
            shown = at.tool_call(call_id)
            assert isinstance(shown, Completed)
            assert shown.success
            assert shown.content == (TextContent(text="web is in production"),)
            assert at.listed() == {"zoo": "ready"}
            await at.until(lambda record: record.public.active_turn is None or None)
    assert len(zoo.effects(file, "deploy")) == 1


# Servers that are kept for all that follows; each test has a host of its own.


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zoo") / "effects"


@pytest.fixture(scope="module")
def modern(effects: Path) -> Iterator[ServerConfig]:
    with over_http("modern", "--effects", str(effects)) as config:
        yield config


@pytest.fixture(scope="module")
def legacy(effects: Path) -> Iterator[ServerConfig]:
    with over_http("legacy", "--effects", str(effects)) as config:
        yield config


def changed(config: ServerConfig, **fields: Any) -> ServerConfig:
    return http(str(config.url), **fields)


async def test_a_call_shows_the_title_of_its_tool_also_when_its_server_is_just_starting(
    modern: ServerConfig,
) -> None:
    async with running_host(modern) as at:
        assert isinstance(at.calls.servers["zoo"].main.state, McpStarting)
        call_id = await at.call("echo", text="x")
        shown = at.tool_call(call_id)
        assert (shown.tool_name, shown.display_name) == ("echo", "Say it back")


async def test_a_server_that_takes_long_to_start_does_not_keep_a_call_from_being_made() -> None:
    silent = ServerConfig(command="sleep", args=("60",))
    async with running_host(silent) as at:
        call_id = await at.call("echo", text="x")
        assert (await at.calls.result(OWNER, call_id)).state is CallState.SENDING
        shown = at.tool_call(call_id)
        assert shown.display_name == "echo"
        await at.calls.abandon(OWNER, call_id)


@pytest.mark.parametrize(("era", "tool"), [("modern", "survey"), ("legacy", "weather")])
@pytest.mark.parametrize("how", [ResponseKind.DECLINE, ResponseKind.CANCEL])
async def test_declined_and_cancelled_reach_the_server_as_such(
    era: str, tool: str, how: ResponseKind, request: pytest.FixtureRequest
) -> None:
    async with running_host(request.getfixturevalue(era)) as at:
        call_id = await at.call(tool)
        await at.refuse("Which city?", how)
        assert (await at.text(call_id)).startswith(how.value)


async def test_every_kind_of_question_arrives_as_its_own(modern: ServerConfig) -> None:
    async with running_host(modern) as at:
        call_id = await at.call("every_kind")
        await at.answer("One of each", email="a@example.com", whole=4, many=["1", "3"], titled="x")
        assert await at.text(call_id) == (
            '{"email": "a@example.com", "flag": true, "many": ["1", "3"], "number": 0.5, '
            '"plain": "a", "text": "hello", "titled": "x", "whole": 4}'
        )


@pytest.mark.proves("mcp.legacy.url")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_url_is_consented_to_in_both_eras(era: str, request: pytest.FixtureRequest) -> None:
    async with running_host(request.getfixturevalue(era)) as at:
        call_id = await at.call("visit")
        (asked,) = await at.asked("Sign in, please.")
        assert asked.url == "https://example.com/in?a=b"
        await at.answer("Sign in, please.")
        assert (await at.text(call_id)).startswith("accept")
        told = "zoo reports that what you were asked to open is done."
        assert (told in at.notes()) == (era == "legacy")


@pytest.mark.proves("mcp.legacy.url")
async def test_a_2025_era_server_that_wants_a_visit_first_is_called_again(tmp_path: Path) -> None:
    with over_http("legacy", "--effects", str(tmp_path / "effects")) as config:
        async with running_host(config) as at:
            call_id = await at.call("gated")
            (asked,) = await at.asked("Sign in first.")
            assert asked.url == "https://example.com/first"
            await at.answer("Sign in first.")
            assert await at.text(call_id) == "past the gate"
    assert len(zoo.effects(tmp_path / "effects", "gated")) == 1


@pytest.mark.proves("mcp.legacy.timeout")
async def test_people_may_take_their_time_while_a_2025_era_call_is_held(
    legacy: ServerConfig,
) -> None:
    assert TIMEOUT.read is None
    async with running_host(legacy) as at:
        call_id = await at.call("weather")
        await at.asked("Which city?")
        phase = at.record.private.calls[call_id].phase
        assert isinstance(phase, CallWaiting)
        assert phase.held
        link = await at.calls.servers["zoo"].main.ready()
        assert link.client.read_timeout_seconds is None
        await at.answer("Which city?", city="Oslo")
        assert await at.text(call_id) == "Sunny in Oslo"


async def test_two_questions_at_once_of_a_2025_era_server_are_asked_in_turn(
    legacy: ServerConfig,
) -> None:
    async with running_host(legacy) as at:
        call_id = await at.call("both")
        await at.asked("")
        first = (at.record.public.input_requests or ())[0].message or ""
        for reason in (first, "Which city?" if first == "Where to?" else "Where to?"):
            values = {"city": "Oslo"} if reason == "Which city?" else {"environment": "staging"}
            await at.answer(reason, **values)
        assert await at.text(call_id) == "Oslo staging"


@pytest.mark.proves("mcp.legacy.one-at-a-time")
async def test_calls_to_a_2025_era_server_wait_for_a_connection_of_their_own(
    legacy: ServerConfig,
) -> None:
    async with running_host(changed(legacy, connections=2)) as at:
        ids = [await at.call("weather", key=str(n)) for n in range(3)]

        def two_are_asked(record: SessionRecord) -> bool | None:
            return len(record.public.input_requests or ()) == 2 or None

        await at.until(two_are_asked)
        calls = at.record.private.calls.values()
        waiting = [call for call in calls if not isinstance(call.phase, CallWaiting)]
        assert len(waiting) == 1
        assert not isinstance(waiting[0].phase, Sent)
        cities = {}
        for city in ("Oslo", "Bergen", "Tromsø"):
            (asked, *_) = await at.until(lambda r: r.public.input_requests)
            assert asked.meta.call is not None
            cities[asked.meta.call] = city
            (question,) = asked.questions or ()
            answers: Any = {"city": Submitted(value=value_of(question, city))}
            await at.complete(asked, ResponseKind.ACCEPT, answers)
        for call_id in ids:
            assert await at.text(call_id) == f"Sunny in {cities[call_id]}"


async def test_the_limit_of_rounds_is_a_setting(modern: ServerConfig) -> None:
    async with running_host(changed(modern, maxRounds=2)) as at:
        call_id = await at.call("ladder", rounds=3)
        await at.answer("Step 1", text="a")
        await at.answer("Step 2", text="b")
        assert "more than 2 times" in await at.error(call_id)


@pytest.mark.proves("mcp.servers.tasks")
@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("task", "io.modelcontextprotocol/tasks"),
        ("sample", "sampling/createMessage"),
        ("folders", "roots/list"),
        ("nested", "inner"),
        ("missing", "Unknown tool"),
    ],
)
async def test_calls_that_cannot_be_completed_fail_with_a_reason(
    modern: ServerConfig, tool: str, reason: str
) -> None:
    async with running_host(modern) as at:
        view = await at.result(await at.call(tool))
        said = view.error.message if view.error is not None else zoo.text_of(view.result or {})
        assert reason in said, said


@pytest.mark.proves("mcp.servers.declared")
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("roots", [None, [{"uri": "file:///work"}]])
async def test_a_connection_declares_what_can_be_answered_and_no_more(
    era: str, roots: list[Any] | None, request: pytest.FixtureRequest
) -> None:
    async with running_host(changed(request.getfixturevalue(era), roots=roots)) as at:
        told = json.loads(await at.text(await at.call("mirror")))
        declared = {name for name, value in told["capabilities"].items() if value is not None}
        assert declared == {"elicitation"} | ({"roots"} if roots else set())


async def test_roots_are_answered_from_the_settings(modern: ServerConfig) -> None:
    async with running_host(changed(modern, roots=[{"uri": "file:///work"}])) as at:
        assert await at.text(await at.call("folders")) == "file:///work"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_progress_of_the_server_is_seen(era: str, request: pytest.FixtureRequest) -> None:
    async with running_host(request.getfixturevalue(era)) as at:
        call_id = await at.call("count", steps=3, pause=0.4)

        def content(record: SessionRecord) -> str | None:
            shown: ToolCall | None = at.tool_call(call_id)
            pieces = shown.content if isinstance(shown, Running) else None
            return pieces[0].text if pieces and isinstance(pieces[0], TextContent) else None

        assert await at.until(content) == "1 of 3: step 1"
        await at.until(lambda record: content(record) not in (None, "1 of 3: step 1") or None)
        assert await at.text(call_id) == "counted to 3"


async def test_a_deadline_of_the_settings_cancels_and_says_that_it_was_one(
    modern: ServerConfig,
) -> None:
    async with running_host(changed(modern, answerWithin=0.2)) as at:
        call_id = await at.call("survey")
        assert await at.text(call_id) == "cancel"
        (outcome,) = at.record.private.outcomes
        assert outcome.via is Provenance.TIMEOUT
        assert any("timed out" in note for note in at.notes())
