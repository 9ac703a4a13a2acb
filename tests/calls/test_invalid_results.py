"""Answers that no SDK would give: each ends the call with a reason, and nothing else."""

import asyncio
import json
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from session_server.mcp_client.config import ServerConfig
from session_server.schemas.limits import JSON_DEPTH
from session_server.schemas.record import FailureKind
from tests.calls.running_host import RunningHost, running_host

ODD = Path(__file__).parent.parent / "mcp" / "servers" / "odd.py"
CONFIG = ServerConfig(command=sys.executable, args=(str(ODD),))

FAILURES = {
    "incapable": (FailureKind.UPSTREAM, "does not offer: sampling, roots"),
    "refusing": (FailureKind.UPSTREAM, "Not like this (-32602)"),
    "strange": (FailureKind.INVALID_RESULT, "unknown resultType 'hologram'"),
    "deep": (FailureKind.INVALID_RESULT, f"nested deeper than {JSON_DEPTH} levels"),
    "empty": (FailureKind.INVALID_RESULT, "neither requests nor state"),
    "listed": (FailureKind.INVALID_RESULT, "not MCP"),
}


@pytest.mark.proves("mcp.servers.missing-capability")
async def test_invalid_results_fail_their_own_call_with_a_reason() -> None:
    async def failed(at: RunningHost, tool: str) -> None:
        view = await at.result(await at.call(tool))
        assert view.error is not None, tool
        kind, reason = FAILURES[tool]
        assert view.error.kind is kind, view.error
        assert reason in view.error.message, view.error

    async with running_host(CONFIG) as at:
        await asyncio.gather(*(failed(at, tool) for tool in FAILURES))
        assert at.listed() == {"zoo": "ready"}
        view = await at.result(await at.call("refusing", key="again"))
        assert view.error.data == {
            "code": -32602,
            "message": "Not like this",
            "data": {"reason": "mood"},
        }


@pytest.mark.slow
async def test_a_server_that_never_lists_its_tools_does_not_keep_calls_waiting() -> None:
    listless = ServerConfig(command=sys.executable, args=(str(ODD), "--listless"), start_timeout=1)
    async with running_host(listless) as at:
        reason = await at.error(await at.call("untyped"))
        assert reason == "zoo cannot be used: it did not answer within 1 seconds"


async def test_the_id_of_a_call_stands_in_a_path_as_it_is() -> None:
    async with running_host(CONFIG) as at:
        call_id = await at.call("untyped")
        assert quote(call_id, safe="") == call_id
        await at.result(call_id)


@pytest.mark.slow
@pytest.mark.proves("mcp.retry.new-id")
async def test_each_leg_has_an_id_of_its_own() -> None:
    async with running_host(CONFIG) as at:
        ids = json.loads(await at.text(await at.call("ids")))
        assert len(ids) == len(set(ids)) == 3


@pytest.mark.slow
async def test_a_server_that_ends_in_a_call_is_asked_about_and_fails_in_the_end() -> None:
    """Each time it is run again it ends again, until it was tried often enough."""
    async with running_host(CONFIG) as at:
        call_id = await at.call("die")
        for _ in range(3):
            await at.answer("It may already have run. Run it again?")
        assert "interrupted 4 times" in await at.error(call_id)
