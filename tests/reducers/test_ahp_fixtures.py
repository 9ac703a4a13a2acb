"""The protocol's own reducer cases, where a copy of them lies beside this repository."""

import json
from pathlib import Path
from typing import Any

import pytest

from session_server.reducers.state.session import reduce_root, reduce_session
from session_server.schemas.codec import (
    decode_action,
    decode_root_state,
    decode_session_state,
    encode,
)
from tests.reducers.cases import canonical

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "ahp" / "fixtures"
FIXTURES = sorted(FOLDER.glob("*.json"))
CLOCK = 9999


def without_nulls(value: Any) -> Any:
    """In these files `null` means absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def outcome(fixture: dict[str, Any]) -> Any:
    actions: list[Any] = [decode_action(json.dumps(action)) for action in fixture["actions"]]
    initial = json.dumps(fixture["initial"])
    if fixture["reducer"] == "root":
        root = decode_root_state(initial)
        for action in actions:
            root = reduce_root(root, action)
        return root
    session = decode_session_state(initial)
    for action in actions:
        session = reduce_session(session, action, CLOCK)
    return session


@pytest.mark.proves("ahp.reduce.fixtures")
@pytest.mark.skipif(not FIXTURES, reason=f"no copy of AHP's fixtures in {FOLDER}")
def test_every_published_case_gives_the_published_state(subtests: pytest.Subtests) -> None:
    for path in FIXTURES:
        with subtests.test(path.stem):
            fixture = json.loads(path.read_text())
            state = json.loads(encode(outcome(fixture)))
            assert canonical(without_nulls(state)) == canonical(without_nulls(fixture["expected"]))
