"""The drafts of a field: the cases that the page's JavaScript runs too."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from session_server.cli.form.draft_state import (
    TABLE,
    DraftEvent,
    DraftState,
    EventType,
    Row,
    row_for,
    transition,
)
from session_server.client.echoes import bare
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    Draft,
    Skipped,
    Submitted,
    TextValue,
)

CORPUS = Path(__file__).parents[1] / "corpus" / "draft_field.json"
KINDS: dict[str, type[Draft] | type[Submitted]] = {"draft": Draft, "submitted": Submitted}
HOSTS = (EventType.RECEIVED, EventType.CONFIRMED)


class Step(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    do: str
    then: str
    is_typing: bool = False
    is_last: bool = True


class Gives(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    shown: str | None
    base: str | None
    at_host: str | None
    is_own: bool


class Case(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: str
    steps: list[Step]
    gives: Gives
    at_host: str | None = None


CASES = msgspec.convert(json.loads(CORPUS.read_text()), list[Case])


def answer_of(text: str | None) -> Answer | None:
    """`draft a`, `submitted a`, `skipped` or nothing."""
    if not text:
        return None
    state, _, value = text.partition(" ")
    return Skipped() if state == "skipped" else KINDS[state](value=TextValue(value=value))


def hosts_answer(text: str | None) -> Answer | None:
    """As the host has it, with a mark of its own."""
    answer = answer_of(text)
    meta: Any = AnswerMeta(at=1)
    return None if answer is None else msgspec.structs.replace(answer, meta=meta)


def event_of(step: Step) -> DraftEvent:
    kind, _, text = step.do.partition(" ")
    event = EventType(kind)
    answer = hosts_answer(text) if event in HOSTS else answer_of(text)
    return DraftEvent(event, answer, step.is_last, step.is_typing)


def start(case: Case) -> DraftState:
    at_host = hosts_answer(case.at_host)
    return DraftState(shown=bare(at_host), base=bare(at_host), at_host=at_host)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    state = start(case)
    for step in case.steps:
        state = transition(state, event_of(step))
        assert state.phase == step.then, step.do
    gives = case.gives
    assert (state.shown, state.base) == (answer_of(gives.shown), answer_of(gives.base))
    assert (state.at_host, state.is_own) == (hosts_answer(gives.at_host), gives.is_own)


def test_the_cases_use_every_row_of_the_table() -> None:
    used: list[Row | None] = []
    for case in CASES:
        state = start(case)
        for step in case.steps:
            used.append(row_for(state, event_of(step)))
            state = transition(state, event_of(step))
    assert [row for row in TABLE if not any(row is each for each in used)] == []
