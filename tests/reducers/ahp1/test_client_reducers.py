"""The reducers that clients of AHP 0.9 and 1.x run: our own cases, and the published ones."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from session_server.reducers.ahp1.client_chat_reducer import REDUCERS, reduce_client_chat
from session_server.reducers.ahp1.client_session_reducer import (
    ROOT_REDUCERS,
    SESSION_REDUCERS,
    reduce_client_root,
    reduce_client_session,
)
from tests.reducers.cases import LoadedCase, all_cases, canonical

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "ahp1" / "fixtures"
FIXTURES = sorted([*FOLDER.glob("reducers/*.json"), *FOLDER.glob("extra/*.json")])
REDUCE = {"chat": reduce_client_chat, "session": reduce_client_session, "root": reduce_client_root}
CASES = all_cases("client_reducers")
COPIED = {"chat/changesetsChanged", "chat/canvasesChanged", "chat/movableChanged"}
COPIED |= {"session/changesetsChanged", "session/mcpServerStartRequested"}
"""Made by a function that has a case under another name."""


def folded(reducer: str, state: Any, actions: Any) -> Any:
    for action in actions:
        state = REDUCE[reducer](state, action)
    return state


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: LoadedCase) -> None:
    start = copy.deepcopy(case.start)
    after = folded(case.case.reducer, start, case.case.do)
    assert canonical(after) == canonical(case.expected)
    assert start == case.start, "the reducer changed its input"
    assert (after is start) is not case.is_change


def test_every_action_has_a_case_that_it_changes() -> None:
    changing = {action["type"] for case in CASES if case.is_change for action in case.case.do}
    assert {*REDUCERS, *SESSION_REDUCERS, *ROOT_REDUCERS} - changing == COPIED


@pytest.mark.proves("ahp.ahp1.fixtures")
@pytest.mark.skipif(not FIXTURES, reason=f"no copy of AHP's fixtures in {FOLDER}")
def test_every_published_case_gives_the_published_state(subtests: pytest.Subtests) -> None:
    for path in FIXTURES:
        with subtests.test(path.stem):
            fixture = json.loads(path.read_text())
            after = folded(fixture["reducer"], fixture["initial"], fixture["actions"])
            assert canonical(after) == canonical(fixture["expected"])
