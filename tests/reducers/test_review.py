"""What would be sent now: the same in the review, the rules, the outcome and the content."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_server.reducers.forms.ask_forms import ask_result
from session_server.reducers.forms.review import (
    changed_since,
    decided,
    effective_answers,
    plain_content,
    review_of,
    reviewed,
)
from session_server.reducers.rules.judge import judge
from session_server.schemas.ahp.actions import InputCompleted
from session_server.schemas.ahp.questions import (
    AnswerMeta,
    CompletionMeta,
    Draft,
    InputRequest,
    IntegerQuestion,
    NumberValue,
    ResponseKind,
    Reviewed,
    Skipped,
    Source,
    Submitted,
    TextQuestion,
    TextValue,
)
from session_server.schemas.errors import RefusalCode
from session_server.schemas.http import ReviewItem
from session_server.schemas.record import SessionRecord
from tests.effort import tries
from tests.interleavings import FORM, Expected, Step, steps
from tests.sessions import OWNER, PHONE, SESSION, accepted, asking

ANA = AnswerMeta(by=OWNER.author, at=1)
BEN = AnswerMeta(by=PHONE.author, at=2)
TEN = NumberValue(value=10)
PERCENT = IntegerQuestion(id="q", message="Percent", default_value=10)


def form(*answers: Draft | Submitted | Skipped) -> InputRequest:
    given_answers = {"q": answers[0]} if answers else None
    return InputRequest(id="r", questions=(PERCENT,), answers=given_answers)


def number(value: int) -> NumberValue:
    return NumberValue(value=value)


@pytest.mark.proves("design.calls.draft-covers", "design.calls.review")
def test_the_review_says_where_each_value_comes_from_and_which_drafts_are_left_out() -> None:
    answer = Submitted(value=number(25), meta=ANA)
    over = msgspec.structs.replace(BEN, covers=answer)
    draft = Draft(value=number(26), meta=BEN)
    expected = [
        (form(), ReviewItem(question_id="q", source=Source.DEFAULT, value=TEN)),
        (form(draft), ReviewItem(question_id="q", source=Source.DEFAULT, value=TEN, draft=draft)),
        (
            form(answer),
            ReviewItem(question_id="q", source=Source.SUBMITTED, value=number(25), meta=ANA),
        ),
        (
            form(Draft(value=number(26), meta=over)),
            ReviewItem(
                question_id="q",
                source=Source.SUBMITTED,
                value=number(25),
                meta=ANA,
                draft=draft,
            ),
        ),
        (
            form(Draft(value=number(25), meta=over)),
            ReviewItem(question_id="q", source=Source.SUBMITTED, value=number(25), meta=ANA),
        ),
        (form(Skipped(meta=ANA)), ReviewItem(question_id="q", source=Source.SKIPPED, meta=ANA)),
    ]
    for request, item in expected:
        assert review_of(request) == (item,)
    bare = InputRequest(id="r", questions=(TextQuestion(id="q", message="?"),))
    assert review_of(bare) == (ReviewItem(question_id="q", source=Source.UNANSWERED),)
    assert review_of(InputRequest(id="r", url="https://example.com")) == ()


def test_what_the_completion_brings_goes_over_what_is_there() -> None:
    request = form(Submitted(value=number(25), meta=ANA))
    own = Submitted(value=number(30))
    assert effective_answers(request, {"q": own, "gone": own}) == {"q": own}
    assert effective_answers(request, {"q": Draft(value=number(3))}) == {
        "q": Submitted(value=number(25), meta=ANA)
    }
    forged = Draft(value=number(3), meta=AnswerMeta(covers=own))
    assert effective_answers(form(), {"q": forged}) == {}
    (item,) = review_of(request, {"q": own})
    assert (item.source, item.value) == (Source.SUBMITTED, number(30))
    assert decided(Draft(value=TEN)) is None
    outdated = AnswerMeta(covers=Draft(value=number(7)))
    assert decided(Draft(value=TEN, meta=outdated)) is None


def test_numbers_are_compared_as_every_client_knows_them() -> None:
    large = 2**53 + 1
    request = form(Submitted(value=number(large)))
    assert changed_since(Reviewed(content={"q": 2**53}), request, None) == ()
    assert changed_since(Reviewed(content={"q": float(large)}), request, None) == ()
    assert changed_since(Reviewed(content={"q": "9"}), request, None) == (PERCENT,)
    assert changed_since(Reviewed(content={}), request, None) == (PERCENT,)


def accepting(seen: Reviewed) -> InputCompleted:
    meta = CompletionMeta(reviewed=seen)
    return InputCompleted(request_id=FORM.id, response=ResponseKind.ACCEPT, meta=meta)


def played(story: list[Step]) -> list[SessionRecord]:
    """The records that the steps lead through."""
    record = asking(FORM)
    passed = [record]
    for step in story:
        record = accepted(record, (OWNER, PHONE)[step.who], step.action)
        passed.append(record)
    return passed


@pytest.mark.proves("design.calls.sent-is-reviewed")
@settings(max_examples=tries(in_ci=150, at_hand=50))
@given(st.lists(steps(), max_size=25), st.data())
def test_what_is_sent_is_what_the_last_review_shows(story: list[Step], data: st.DataObject) -> None:
    passed, expected = played(story), Expected()
    for step in story:
        expected.follow(step)
    (request,) = passed[-1].public.input_requests or ()
    seen = reviewed(request)
    assert seen.content == expected.content
    assert seen.content == plain_content(request.questions or (), request.answers or {})
    shown = {item.question_id: item for item in review_of(request)}
    assert {name for name, item in shown.items() if item.value is not None} == set(seen.content)
    (then,) = data.draw(st.sampled_from(passed)).public.input_requests or ()
    refusal = judge(OWNER, passed[-1], accepting(reviewed(then)))
    if reviewed(then).content != seen.content:
        assert refusal.code is RefusalCode.REVIEW_CHANGED
    elif expected.is_complete:
        assert refusal is None
    if expected.is_complete:
        after = accepted(passed[-1], OWNER, accepting(seen))
        (outcome,) = after.private.outcomes
        assert ask_result(outcome, SESSION).answers == expected.content


def test_a_text_of_no_characters_is_an_answer() -> None:
    question = TextQuestion(id="q", message="?", default_value="x")
    request = InputRequest(
        id="r", questions=(question,), answers={"q": Submitted(value=TextValue(value=""))}
    )
    assert reviewed(request).content == {"q": ""}
