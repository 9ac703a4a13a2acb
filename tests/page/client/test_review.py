"""The page's review equals the host's."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from session_server.reducers.batches import batch_of
from session_server.reducers.forms.defaults import with_valid_default
from session_server.reducers.forms.review import review_of, reviewed
from session_server.reducers.rules.input_rules import check_form
from session_server.schemas.ahp.questions import Answer, InputRequest, Question
from session_server.schemas.codec import encode
from session_server.schemas.record import SessionRecord
from tests import strategies
from tests.effort import tries
from tests.interleavings import FORM, Step, steps
from tests.page.client.node import Lines
from tests.reducers.cases import canonical
from tests.sessions import OWNER, PHONE, asking, fold, stamp


@pytest.fixture(scope="module")
def page() -> Iterator[Lines]:
    lines = Lines("review_lines.js")
    yield lines
    lines.close()


def plain(value: Any) -> str:
    """As JavaScript writes it: every number is a float."""
    return canonical(json.loads(encode(value), parse_int=float))


def shown_by(page: Lines, record: SessionRecord, story: list[Step], own: dict[str, Answer]) -> Any:
    actions = [step.action for step in story]
    (request,) = record.public.input_requests or ()
    asked = {"state": record.public, "actions": actions, "requestId": request.id, "own": own}
    reply = page.ask(encode(asked))
    assert "error" not in reply, reply["error"]
    return reply


def without_marks(item: Any) -> Any:
    """The page foresees what the host keeps, but not when and as whom."""
    draft = item.draft and msgspec.structs.replace(item.draft, meta=None)
    return msgspec.structs.replace(item, meta=None, draft=draft)


@pytest.mark.proves("design.calls.sent-is-reviewed")
@settings(max_examples=tries(in_ci=100, at_hand=40))
@given(st.lists(steps(), max_size=20), st.lists(steps(), max_size=4))
def test_review_equals_the_hosts_review(
    page: Lines, story: list[Step], brought: list[Step]
) -> None:
    own = {step.question_id: step.answer for step in brought if step.answer is not None}
    record = asking(FORM)
    for step in story:
        record = fold(record, *batch_of(record, step.action, stamp((OWNER, PHONE)[step.who])))
    (request,) = record.public.input_requests or ()
    reply = shown_by(page, record, [], own)
    assert canonical(reply["items"]) == plain(review_of(request, own))
    assert canonical(reply["reviewed"]) == plain(reviewed(request, own))
    foreseen = shown_by(page, asking(FORM), story, own)
    assert canonical(foreseen["reviewed"]) == plain(reviewed(request, own))
    items = [
        {k: v for k, v in item.items() if k != "_meta"}
        | ({"draft": {**item["draft"], "_meta": None}} if "draft" in item else {})
        for item in foreseen["items"]
    ]
    for item in items:
        item.get("draft", {}).pop("_meta", None)
    assert canonical(items) == plain([without_marks(item) for item in review_of(request, own)])


@settings(max_examples=tries(in_ci=100, at_hand=40))
@given(st.lists(strategies.shapes(Question), max_size=4))
def test_defaults_equal_the_hosts_defaults(page: Lines, questions: list[Any]) -> None:
    shown = tuple(with_valid_default(question) for question in questions)
    request = InputRequest(id="r", questions=shown)
    assume(check_form(request) is None)
    reply = shown_by(page, asking(request), [], {})
    assert canonical(reply["items"]) == plain(review_of(request))
    assert canonical(reply["reviewed"]) == plain(reviewed(request))


@pytest.mark.parametrize("name", ["__proto__", "constructor"])
def test_ids_like_proto_are_plain_keys(page: Lines, name: str) -> None:
    question = msgspec.structs.replace(FORM.questions[0], id=name)  # type: ignore[index]
    request = InputRequest(id="r", questions=(question,))
    reply = shown_by(page, asking(request), [], {})
    assert reply["reviewed"] == {"content": {name: 10}}
