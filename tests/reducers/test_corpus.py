"""Every case of the corpus holds, and the corpus leaves no action, state or transition out."""

import itertools
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from session_server.reducers.state.session import TRANSITIONS, reduce_root, reduce_session
from session_server.schemas.ahp.actions import RootAction, SessionAction
from session_server.schemas.ahp.questions import Answer, Value
from session_server.schemas.ahp.session import ACTIVITY_BITS, Status
from session_server.schemas.ahp.tool_calls import ToolCall
from session_server.schemas.codec import (
    decode_action,
    decode_root_state,
    decode_session_state,
    encode,
)
from tests.reducers.cases import LoadedCase, all_cases, assigned, canonical, loaded, plain
from tests.schemas.decoding import tags

PROVEN = {
    "lifecycle": ["ahp.reduce.lifecycle"],
    "nulls": ["ahp.frames.null-is-absent"],
    "turns": ["ahp.reduce.truncated"],
    "turn_ends": [
        "ahp.reduce.turn-ends",
        "ahp.reduce.turn-end-tools",
        "ahp.reduce.turn-end-requests",
    ],
    "tool_calls": ["ahp.reduce.tool-calls"],
    "input_requests": [
        "ahp.reduce.request-upserted",
        "ahp.reduce.request-answers",
        "ahp.reduce.answer-set",
        "ahp.reduce.answer-cleared",
        "ahp.reduce.request-completed",
    ],
    "pending_messages": ["ahp.reduce.pending-messages"],
    "customizations": [],
    "properties": [],
    "root": ["ahp.reduce.root"],
    "status": [
        "ahp.status.input-needed-request",
        "ahp.status.input-needed-tool",
        "ahp.status.in-progress",
        "ahp.status.error",
        "ahp.status.idle",
        "ahp.status.marks-kept",
        "ahp.status.unread-turn",
        "ahp.status.unread-request",
    ],
}
TOUCHING = {
    "session/turnStarted",
    "session/turnComplete",
    "session/turnCancelled",
    "session/error",
    "session/truncated",
    "session/inputRequested",
    "session/inputAnswerChanged",
    "session/inputCompleted",
    "session/titleChanged",
    "session/modelChanged",
    "session/agentChanged",
    "session/configChanged",
}
"""The actions that count as a modification of the session; all others leave `modifiedAt`."""

CASES = all_cases()
SINGLE = [case for case in CASES if len(case.case.do) == 1]
"""Only in these is it plain, without running anything, which action brought the change."""

FLAGS = (0, Status.IS_READ, Status.IS_ARCHIVED, Status.IS_READ | Status.IS_ARCHIVED)
ACTIVITIES = (Status.IDLE, Status.ERROR, Status.IN_PROGRESS, Status.INPUT_NEEDED)


def decoded(case: LoadedCase) -> Any:
    decode: Any = decode_session_state if case.case.reducer == "session" else decode_root_state
    return decode(encode(case.start))


def folded(case: LoadedCase, state: Any) -> Any:
    for raw in case.case.do:
        action: Any = decode_action(encode(raw))
        if case.case.reducer == "session":
            state = reduce_session(state, action, case.case.at)
        else:
            state = reduce_root(state, action)
    return state


def params() -> Iterator[Any]:
    for case in CASES:
        yield pytest.param(case, id=str(case), marks=pytest.mark.proves(*PROVEN[case.topic]))


@pytest.mark.proves("design.reduce.no-op", "design.reduce.unmutated")
@pytest.mark.parametrize("case", list(params()))
def test_case(case: LoadedCase) -> None:
    state = decoded(case)
    before = encode(state)
    assert plain(state) == canonical(case.start), "the state itself does not survive decoding"

    after = folded(case, state)

    assert plain(after) == canonical(case.expected)
    assert (after is state) is not case.is_change
    assert encode(state) == before, "the reducer changed its input"


# What the corpus must hold


def test_names_tell_cases_apart() -> None:
    names = [str(case) for case in CASES]
    assert len(names) == len(set(names))


def test_actions_are_as_the_host_sends_them() -> None:
    """So that JavaScript needs no decoder; the nulls that ours takes have a file of their own."""
    for case in CASES:
        if case.topic != "nulls":
            for raw in case.case.do:
                assert plain(decode_action(encode(raw))) == canonical(raw), str(case)


def test_a_change_is_one() -> None:
    idle = [str(c) for c in CASES if c.is_change and canonical(c.start) == canonical(c.expected)]
    assert idle == []


def test_every_action_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(get_args(SessionAction))
    assert len(tags(SessionAction)) == 41
    assert len(tags(RootAction)) == 4


def test_every_action_changes_something_in_one_case_and_nothing_in_another() -> None:
    """There is no exception: even a start of a turn may repeat what holds already."""
    actions = tags(SessionAction) | tags(RootAction)
    for is_change in (True, False):
        met = {case.case.do[0]["type"] for case in SINGLE if case.is_change is is_change}
        assert actions - met == set()


def test_every_status_is_reached_with_every_mark() -> None:
    reached = {case.expected["summary"]["status"] for case in CASES if case.topic != "root"}
    assert {int(activity | flag) for activity in ACTIVITIES for flag in FLAGS} - reached == set()


def test_every_change_of_activity_is_covered() -> None:
    """All but one: a session cannot fail while it is idle, since only turns fail."""
    covered = set()
    for case in SINGLE:
        if case.topic != "root":
            before, after = (
                s["summary"]["status"] & ACTIVITY_BITS for s in (case.start, case.expected)
            )
            covered.add((before, after))
    changes = {(before, after) for before, after in covered if before != after}
    every = {(int(a), int(b)) for a, b in itertools.permutations(ACTIVITIES, 2)}
    assert changes == every - {(int(Status.IDLE), int(Status.ERROR))}


def test_input_is_needed_for_each_of_its_three_reasons() -> None:
    reasons = {
        case.case.do[0]["type"]
        for case in SINGLE
        if case.case.gives.get("summary.status", 0) & ACTIVITY_BITS == Status.INPUT_NEEDED
        and case.start["summary"]["status"] & ACTIVITY_BITS != Status.INPUT_NEEDED
    }
    assert reasons == {
        "session/inputRequested",
        "session/toolCallReady",
        "session/toolCallComplete",
    }


def call_states(case: LoadedCase) -> Iterator[str]:
    for part in case.start.get("activeTurn", {}).get("responseParts", ()):
        call = part.get("toolCall", {})
        if call.get("toolCallId") == case.case.do[0]["toolCallId"]:
            yield call["status"]


def test_every_tool_call_action_meets_every_state_of_a_call() -> None:
    kinds = {tag for tag in tags(SessionAction) if tag.startswith("session/toolCall")}
    met = {
        (case.case.do[0]["type"], state)
        for case in SINGLE
        if case.case.do[0]["type"] in kinds
        for state in call_states(case)
    }
    wanted = itertools.product(kinds - {"session/toolCallStart"}, tags(ToolCall))
    assert set(wanted) - met == set()


def test_every_unfinished_call_meets_every_end_of_a_turn() -> None:
    ends = ("session/turnComplete", "session/turnCancelled", "session/error")
    met = {
        (case.case.do[0]["type"], part["toolCall"]["status"])
        for case in SINGLE
        if case.is_change
        for part in case.start.get("activeTurn", {}).get("responseParts", ())
        if part["kind"] == "toolCall"
    }
    assert set(itertools.product(ends, tags(ToolCall))) - met == set()


def test_every_kind_of_answer_is_given() -> None:
    answers = [
        case.case.do[0]["answer"]
        for case in SINGLE
        if case.case.do[0]["type"] == "session/inputAnswerChanged" and case.case.do[0].get("answer")
    ]
    given = {(answer["state"], answer.get("value", {}).get("kind")) for answer in answers}
    valued = tags(Answer) - {"skipped"}
    assert given == {*itertools.product(valued, tags(Value)), ("skipped", None)}


def test_the_time_is_touched_by_these_actions_alone() -> None:
    touching: set[str] = set()
    leaving: set[str] = set()
    for case in SINGLE:
        if case.is_change and case.topic != "root":
            times = [state["summary"]["modifiedAt"] for state in (case.start, case.expected)]
            if times[0] != case.case.at:
                (leaving if times[0] == times[1] else touching).add(case.case.do[0]["type"])
    assert touching == TOUCHING
    assert leaving == tags(SessionAction) - TOUCHING


# The loader

BASE = {"summary": {"status": 1}, "turns": [{"id": "a"}]}


def corpus_file(**case: Any) -> bytes:
    whole = {"name": "x", "reducer": "root", "on": "b", "do": [{}], "gives": {}, **case}
    return encode({"about": "x", "bases": {"b": BASE}, "cases": [whole]})


def test_a_sound_file_loads() -> None:
    (case,) = loaded("x", corpus_file(**{"with": {"summary.status": 8}, "gives": {"turns.1": {}}}))
    assert case.start == {"summary": {"status": 8}, "turns": [{"id": "a"}]}
    assert case.expected == {"summary": {"status": 8}, "turns": [{"id": "a"}, {}]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("turn", None),
        ("turns.0", None),
        ("turns.2", {}),
        ("turns.2.id", "c"),
        ("summary.flags.read", 1),
    ],
)
def test_a_path_that_leads_nowhere_does_not_load(path: str, value: Any) -> None:
    with pytest.raises((KeyError, IndexError, ValueError)):
        loaded("x", corpus_file(gives={path: value}))


def test_assigning_copies() -> None:
    value: list[int] = []
    result = assigned(BASE, {"turns.0.parts": value, "turns.0.parts.0": 1})
    assert result["turns"] == [{"id": "a", "parts": [1]}]
    assert value == []
    assert BASE["turns"] == [{"id": "a"}]
