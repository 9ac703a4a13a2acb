"""The page's reducers equal the host's."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from session_server.reducers.state.session import reduce_root, reduce_session
from session_server.schemas.ahp.actions import (
    McpServerStateChanged,
    ResponsePartAdded,
    SessionAction,
    ToolCallContentChanged,
    ToolCallReady,
    ToolCallStart,
)
from session_server.schemas.ahp.customizations import McpReady, McpStopped
from session_server.schemas.ahp.tool_calls import ConfirmationReason, TextContent
from session_server.schemas.ahp.turns import MarkdownPart, ReasoningPart
from session_server.schemas.codec import decode_action, decode_session_state, encode
from tests import strategies
from tests.page.client.node import Lines, run
from tests.page.client.random_actions import Steps, walk
from tests.reducers.cases import all_cases, canonical

WALKS = 12
LENGTH = 30
EXAMPLES = 60
OFTEN = 10
"""How often each action must have changed something, or the walks prove too little."""


@pytest.mark.proves("design.layers.corpus")
def test_corpus_in_node() -> None:
    ran, faults = json.loads(run("tests/page/client/corpus_main.js"))
    assert faults == []
    assert ran == len([case for case in all_cases() if case.topic != "nulls"])


@pytest.fixture(scope="module")
def page() -> Iterator[Lines]:
    lines = Lines("reduce_lines.js")
    yield lines
    lines.close()


def plain(state: Any) -> str:
    """As JavaScript writes it: every number is a float, and zero has no sign."""
    return canonical(json.loads(encode(state), parse_int=float, parse_float=unsigned_zero))


def unsigned_zero(text: str) -> float:
    return float(text) + 0.0


def states(reducer: str, state: Any, steps: Steps) -> list[Any]:
    """The first state, and the one after each step."""
    passed = [state]
    for action, at in steps:
        is_root = reducer == "root"
        state = reduce_root(state, action) if is_root else reduce_session(state, action, at)
        passed.append(state)
    return passed


def agreed(page: Lines, reducer: str, state: Any, steps: Steps) -> list[bool]:
    """Whether each step left all as it was; fails if the page ends elsewhere or disagrees on that.

    Where only the spelling of a number changes, the page sees no change.
    """
    reply = page.ask(encode({"reducer": reducer, "state": state, "actions": steps}))
    assert "error" not in reply, reply["error"]
    passed = states(reducer, state, steps)
    assert canonical(reply["state"]) == plain(passed[-1])
    for same, (before, after) in zip(reply["same"], pairwise(passed), strict=True):
        assert same is (before is after) or (same and plain(before) == plain(after))
    return list(reply["same"])


thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def one_of_each(union: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(strategies.shapes(action) for action in get_args(union)))


def test_random_session_actions_give_the_same_states(page: Lines) -> None:
    changes: Counter[type] = Counter()

    @thorough
    @given(strategies.session_states, one_of_each(SessionAction), st.integers())
    def agree(state: Any, pool: tuple[Any, ...], seed: int) -> None:
        chance = Random(seed)
        for start in [state, decode_session_state(json.dumps(SESSION))] * WALKS:
            steps = walk(start, (*pool, *FAMILIAR), LENGTH, chance)
            same = agreed(page, "session", start, steps)
            changes.update(
                type(action) for (action, _), idle in zip(steps, same, strict=True) if not idle
            )

    agree()
    assert {a.__name__: changes[a] for a in get_args(SessionAction) if changes[a] < OFTEN} == {}


def test_random_root_actions_give_the_same_states(page: Lines) -> None:
    @thorough
    @given(strategies.root_states, st.lists(strategies.root_actions, max_size=LENGTH))
    def agree(state: Any, actions: list[Any]) -> None:
        agreed(page, "root", state, [(action, 0) for action in actions])

    agree()


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString", "hasOwnProperty"])
def test_ids_like_proto_are_plain_keys(page: Lines, name: str) -> None:
    state = decode_session_state(json.dumps(SESSION))
    draft = {"state": "draft", "value": {"kind": "text", "value": "x"}}
    change = {"type": "session/inputAnswerChanged", "requestId": "r", "questionId": name}
    sent: list[dict[str, Any]] = [
        change,
        {**change, "answer": draft},
        {**change, "questionId": "q", "answer": draft},
        change,
        {"type": "session/configChanged", "config": {name: {name: 1}}},
    ]
    agreed(page, "session", state, [(decode_action(json.dumps(action)), 7) for action in sent])


CALL: dict[str, Any] = {"turn_id": "a", "tool_call_id": "c"}
FAMILIAR = (
    ResponsePartAdded(turn_id="a", part=MarkdownPart(id="m", content="# A")),
    ResponsePartAdded(turn_id="a", part=ReasoningPart(id="r", content="Hm")),
    ToolCallStart(**CALL, tool_name="hose", display_name="Hose"),
    ToolCallReady(**CALL, invocation_message="Opening", confirmed=ConfirmationReason.SETTING),
    ToolCallContentChanged(**CALL, content=(TextContent(text="Drip"),)),
    McpServerStateChanged(id="well", state=McpReady()),
    McpServerStateChanged(id="well", state=McpStopped()),
)
"""What hypothesis would draw too rarely."""

SESSION = {
    "summary": {
        "resource": "ahp-session:/plot",
        "provider": "demo",
        "title": "Beds",
        "status": 24,
        "createdAt": 1,
        "modifiedAt": 1,
    },
    "lifecycle": "ready",
    "turns": [],
    "inputRequests": [{"id": "r"}],
    "queuedMessages": [
        {"id": "leeks", "message": {"text": "Leeks", "origin": {"kind": "user"}}},
        {"id": "kale", "message": {"text": "Kale", "origin": {"kind": "user"}}},
    ],
    "config": {"schema": {"type": "object", "properties": {}}, "values": {}},
    "customizations": [
        {
            "type": "mcpServer",
            "id": "well",
            "uri": "mcp:well",
            "name": "Well",
            "enabled": True,
            "state": {"kind": "starting"},
        }
    ],
}
