"""What a call says of itself."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given

from session_server.schemas.http import CallState, CallView
from session_server.schemas.mcp import CallMethod
from session_server.schemas.record import Call, EndPhase, OpenPhase, Phase
from tests.strategies import shapes


def call(method: CallMethod = "tools/call", **params: Any) -> dict[str, Any]:
    return {
        "id": "k",
        "server": "s",
        "method": method,
        "params": params,
        "turn_id": "t",
        "started_at": 1,
    }


@pytest.mark.parametrize(
    ("method", "params", "target"),
    [
        ("tools/call", {"name": "hose", "arguments": {}}, "hose"),
        ("prompts/get", {"name": "weekly"}, "weekly"),
        ("resources/read", {"uri": "plot:/plan"}, "plot:/plan"),
        ("resources/read", {"uri": "x:/a?token=s3cret#frag"}, "x:/a"),
        ("tools/call", {}, "tools/call"),
        ("tools/call", {"name": ""}, "tools/call"),
    ],
)
def test_a_call_is_named_after_what_it_asks_for(
    method: CallMethod, params: dict[str, Any], target: str
) -> None:
    assert Call(**call(method, **params)).target == target


def test_rounds_count_from_the_last_start() -> None:
    assert Call(**call(), round=5, run_start=3).rounds_of_run == 2


@given(phase=shapes(Phase))
def test_a_call_is_open_until_it_ends(phase: Phase) -> None:
    assert Call(**call(), phase=phase).is_open is isinstance(phase, get_args(OpenPhase))


def test_every_phase_is_either_open_or_an_end() -> None:
    assert set(get_args(Phase)) == {*get_args(OpenPhase), *get_args(EndPhase)}


def test_a_call_as_its_maker_sees_it_is_open_until_it_has_an_end() -> None:
    view = CallView(
        id="k",
        session="ahp-session:/1",
        server="s",
        method="tools/call",
        target="hose",
        state=CallState.RUNNING,
        round=0,
        started_at=1,
        turn_id="t",
    )
    assert view.is_open
    assert not msgspec.structs.replace(view, ended_at=2, state=CallState.FINISHED).is_open
