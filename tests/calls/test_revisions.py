"""Servers that speak both revisions: each tool is called in the one in which it can ask."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from session_server.mcp_client.config import LEGACY, MODERN, ServerConfig
from session_server.mcp_client.revisions import Revisions
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.limits import REMEMBERED_TOOLS
from tests.calls.running_host import OWNER, RunningHost, http, running_host, stdio
from tests.mcp import zoo

AGAIN = "Run it again from the start, over MCP"
SERVERS = ["dual-stdio", "fastmcp-http"]
"""Each over one transport; other tests have the other one."""


class Dual:
    def __init__(self, config: ServerConfig, effects: Path) -> None:
        self.config = config
        self._effects = effects

    def count(self, tool: str) -> int:
        return len(zoo.effects(self._effects, tool))


@pytest.fixture
def dual(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Dual]:
    kind, way = request.param.split("-")
    effects = tmp_path / "effects"
    with ExitStack() as stack:
        if way == "stdio":
            config = stdio(kind, "--effects", str(effects), name="zoo")
        else:
            web = stack.enter_context(zoo.http_server(kind, "--effects", str(effects)))
            config = http(web.url, name="zoo")
        yield Dual(config, effects)


every_server = pytest.mark.parametrize("dual", SERVERS, indirect=True)
one_server = pytest.mark.parametrize("dual", ["dual-http"], indirect=True)


async def answered(at: RunningHost, tool: str) -> str:
    """The result of a tool that asks one question."""
    call_id = await at.call(tool)
    await at.answer("Which city?", city="Oslo")
    return await at.text(call_id)


@pytest.mark.slow
@pytest.mark.proves("mcp.servers.revision")
@every_server
async def test_a_tool_that_asks_on_the_connection_runs_again_only_if_people_say_so(
    dual: Dual,
) -> None:
    async with running_host(dual.config) as at:
        call_id = await at.call("book")
        await at.asked(AGAIN)
        assert (dual.count("begun"), dual.count("booked")) == (1, 0)
        await at.answer(AGAIN, by=OWNER)
        await at.answer("Which city?", city="Oslo")
        assert await at.text(call_id) == "booked Oslo"
        assert (dual.count("begun"), dual.count("booked")) == (2, 1)


@pytest.mark.slow
@one_server
async def test_a_tool_that_is_not_to_run_again_does_not(dual: Dual) -> None:
    async with running_host(dual.config) as at:
        call_id = await at.call("book")
        (request,) = await at.asked(AGAIN)
        await at.complete(request, ResponseKind.DECLINE, None)
        assert "not run again" in await at.error(call_id)
    assert dual.count("begun") == 1


@pytest.mark.slow
@every_server
async def test_a_harmless_tool_runs_again_by_itself(dual: Dual) -> None:
    async with running_host(dual.config) as at:
        assert await answered(at, "look") == "looked at Oslo"
        assert any("runs again over MCP 2025-11-25" in note for note in at.notes())


@pytest.mark.slow
@every_server
async def test_what_a_tool_needs_is_seen_once_and_outlives_the_host(
    dual: Dual, tmp_path: Path
) -> None:
    """After the first such tool its neighbours are called in that revision from the start."""
    file = tmp_path / "data" / "revisions.json"
    async with running_host(dual.config, revisions=Revisions(file)) as at:
        assert await answered(at, "look") == "looked at Oslo"
        assert await answered(at, "book") == "booked Oslo"
    assert (dual.count("begun"), dual.count("booked")) == (1, 1)
    async with running_host(dual.config, revisions=Revisions(file)) as at:
        assert await answered(at, "cancel") == "cancelled Oslo"
    assert (dual.count("cancelling"), dual.count("cancelled")) == (1, 1)


@pytest.mark.slow
@every_server
async def test_a_tool_that_asks_by_its_result_keeps_its_own_revision(dual: Dual) -> None:
    async with running_host(dual.config) as at:
        assert await answered(at, "pick") == "picked Oslo"
        assert await answered(at, "look") == "looked at Oslo"
        assert await answered(at, "pick") == "picked Oslo"
    assert dual.count("picked") == 2


@pytest.mark.slow
@pytest.mark.parametrize("dual", ["fastmcp-stdio"], indirect=True)
async def test_a_tool_that_has_only_asked_runs_again_by_itself(dual: Dual) -> None:
    """FastMCP reports that it returned its questions, so it did nothing else."""
    async with running_host(dual.config) as at:
        assert await answered(at, "look") == "looked at Oslo"
        assert await answered(at, "pick") == "picked Oslo"
    assert dual.count("picked") == 1


@pytest.mark.slow
@one_server
async def test_a_tool_that_may_have_done_more_than_ask_is_asked_about(dual: Dual) -> None:
    """The SDK does not report what was wrong with a result that it could not send."""
    async with running_host(dual.config) as at:
        assert await answered(at, "look") == "looked at Oslo"
        call_id = await at.call("pick")
        await at.answer(AGAIN, by=OWNER)
        await at.answer("Which city?", city="Oslo")
        assert await at.text(call_id) == "picked Oslo"


@pytest.mark.slow
@one_server
async def test_a_chosen_revision_is_spoken_and_failures_are_passed_on(dual: Dual) -> None:
    async with running_host(replace(dual.config, protocol=LEGACY)) as at:
        assert await answered(at, "book") == "booked Oslo"
        assert "invalid result" in await at.error(await at.call("pick"))
    async with running_host(replace(dual.config, protocol=MODERN)) as at:
        assert await answered(at, "pick") == "picked Oslo"
        assert "no back-channel" in await at.error(await at.call("book"))


@pytest.mark.slow
async def test_a_server_of_one_revision_is_not_asked_for_the_other(tmp_path: Path) -> None:
    """Nobody is asked to run again what cannot go better."""
    effects = tmp_path / "effects"
    config = stdio("dual", "--only-2026", "--effects", str(effects), name="zoo")
    async with running_host(config) as at:
        assert "no back-channel" in await at.error(await at.call("book"))
    assert len(zoo.effects(effects, "begun")) == 1
    async with running_host(stdio("dual", "--only-2026", protocol=LEGACY)) as at:
        error = await at.error(await at.call("book"))
        assert "it does not speak revision 2025-11-25; set its `protocol`" in error
    async with running_host(stdio("legacy", protocol=MODERN)) as at:
        error = await at.error(await at.call("echo", text="hello"))
        assert "it does not speak revision 2026-07-28; set its `protocol`" in error


@pytest.mark.slow
async def test_a_remembered_server_starts_in_one_process_only(tmp_path: Path) -> None:
    """On stdin and stdout a second revision is a second process, with a state of its own."""
    known = Revisions(tmp_path / "revisions.json")
    config = stdio("dual", name="zoo")
    known.learn(config, "book", LEGACY)
    async with running_host(config, revisions=Revisions(tmp_path / "revisions.json")) as at:
        first = await at.text(await at.call("whereabouts"))
        assert await answered(at, "book") == "booked Oslo"
        assert await at.text(await at.call("whereabouts")) == first


def test_another_server_of_the_same_name_is_not_taken_for_the_first(tmp_path: Path) -> None:
    known = Revisions(tmp_path / "revisions.json")
    one, other = ServerConfig(name="a", command="one"), ServerConfig(name="a", command="other")
    known.learn(one, "book", LEGACY)
    known.learn(one, "pick", MODERN)
    for revisions in (known, Revisions(tmp_path / "revisions.json")):
        assert revisions.of_tool(one, "book") == revisions.of_tool(one, "unknown") == LEGACY
        assert revisions.of_tool(one, "pick") == MODERN
        assert revisions.of_tool(other, "book") is None


def test_only_so_many_tools_are_remembered_and_a_broken_file_none(tmp_path: Path) -> None:
    file = tmp_path / "revisions.json"
    config = ServerConfig(name="a", command="one")
    known = Revisions()
    known.learn(config, "first", MODERN)
    for number in range(REMEMBERED_TOOLS):
        known.learn(config, f"t{number}", MODERN)
    assert known.of_tool(config, "first") is None
    assert known.of_tool(config, "t0") == MODERN
    file.write_text('{"a": {"of": ')
    assert Revisions(file).of_tool(config, "t0") is None
