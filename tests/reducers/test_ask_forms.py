"""Questions as an agent writes them, and what it gets back."""

import msgspec
import pytest

from session_server.reducers.forms.ask_forms import (
    UnaskableError,
    ask_result,
    asked_request,
    same_ask,
)
from session_server.reducers.rules.input_rules import check_form
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp.actions import InputCompleted
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    OnExpiry,
    Option,
    Question,
    QuestionMeta,
    RequestMeta,
    ResponseKind,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
)
from session_server.schemas.limits import UNCOLLECTED_LIFETIME_MS
from session_server.schemas.mcp import AskedOption, AskedQuestion, AskOutcome, AskQuestions
from session_server.schemas.principals import Author, Provenance
from session_server.schemas.record import Outcome, OutcomeCollected
from tests.sessions import OWNER, accepted, asking


def asked(**question: object) -> AskQuestions:
    return AskQuestions(questions=(msgspec.convert(question, AskedQuestion),))


def shown(**question: object) -> Question:
    """The question that people see."""
    request = asked_request(asked(**question), "r", 0)
    assert check_form(request) is None
    (only,) = request.questions or ()
    return only


def test_each_kind_keeps_its_bounds_and_default() -> None:
    text = shown(
        question="T",
        id="t",
        title="Title",
        min=1,
        max=2.0,
        default="x",
        format="email",
        pattern="^x",
    )
    assert text == TextQuestion(
        id="t",
        message="T",
        title="Title",
        required=True,
        min=1,
        max=2,
        default_value="x",
        format="email",
        meta=QuestionMeta(pattern="^x"),
    )
    assert shown(question="B", kind="boolean", default=True, required=False) == BooleanQuestion(
        id="q1", message="B", required=False, default_value=True
    )
    assert shown(question="N", kind="number", min=0.5, max=2, default=1) == NumberQuestion(
        id="q1", message="N", required=True, min=0.5, max=2, default_value=1
    )
    assert shown(question="I", kind="integer", min=1, default=3) == IntegerQuestion(
        id="q1", message="I", required=True, min=1, default_value=3
    )


def test_options_make_a_choice_and_a_default_is_recommended() -> None:
    given = {"label": "Red", "id": "r", "description": "as a rose", "recommended": True}
    assert shown(question="C", options=["Blue", given], default="Blue") == SingleSelectQuestion(
        id="q1",
        message="C",
        required=True,
        options=(
            Option(id="Blue", label="Blue", recommended=True),
            Option(id="r", label="Red", description="as a rose", recommended=True),
        ),
    )


def test_several_may_be_picked_and_freeform_text_allowed() -> None:
    many = shown(question="M", kind="multi-select", options=["a"], allowFreeform=True, min=1, max=2)
    assert many == MultiSelectQuestion(
        id="q1",
        message="M",
        required=True,
        options=(Option(id="a", label="a"),),
        allow_freeform_input=True,
        min=1,
        max=2,
    )


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({"kind": "text", "options": ["a"]}, "has no options"),
        ({"kind": "boolean", "default": "yes"}, "of another kind"),
        ({"kind": "integer", "default": True}, "of another kind"),
        ({"options": ["a"], "default": "b"}, "none of the options"),
        ({"min": -1}, "whole numbers"),
        ({"max": 1.5}, "whole numbers"),
    ],
)
def test_an_invalid_question_is_explained(question: dict[str, object], reason: str) -> None:
    with pytest.raises(UnaskableError, match=reason):
        asked_request(asked(question="Q", **question), "r", 0)


def test_a_deadline_is_a_time_and_cancels_unless_it_says_otherwise() -> None:
    questions = (AskedQuestion(question="Q", options=("a", AskedOption(label="b"))),)
    plain = AskQuestions(questions=questions, message="About", deadline_seconds=1.5)
    request = asked_request(plain, "r", 1000)
    assert (request.id, request.message) == ("r", "About")
    assert request.meta == RequestMeta(expires_at=2500, on_expiry=OnExpiry.CANCEL)
    other = msgspec.structs.replace(plain, on_deadline=OnExpiry.DEFAULTS)
    assert asked_request(other, "r", 0).meta == RequestMeta(
        expires_at=1500, on_expiry=OnExpiry.DEFAULTS
    )
    with pytest.raises(UnaskableError, match="needs `deadlineSeconds`"):
        asked_request(msgspec.structs.replace(other, deadline_seconds=None), "r", 0)


ENDINGS = [
    (ResponseKind.ACCEPT, Provenance.PERSON, AskOutcome.ACCEPTED),
    (ResponseKind.ACCEPT, Provenance.DEFAULT, AskOutcome.ACCEPTED),
    (ResponseKind.DECLINE, Provenance.PERSON, AskOutcome.DECLINED),
    (ResponseKind.CANCEL, Provenance.PERSON, AskOutcome.CANCELLED),
    (ResponseKind.CANCEL, Provenance.TIMEOUT, AskOutcome.TIMED_OUT),
    (ResponseKind.CANCEL, Provenance.WITHDRAWN, AskOutcome.WITHDRAWN),
    (ResponseKind.CANCEL, Provenance.ABANDONED, AskOutcome.ABANDONED),
]


@pytest.mark.parametrize(("response", "via", "expected"), ENDINGS)
def test_every_ending_has_its_own_outcome(
    response: ResponseKind, via: Provenance, expected: AskOutcome
) -> None:
    request = InputRequest(id="r", questions=(TextQuestion(id="t", message="T"),))
    outcome = Outcome(request=request, response=response, via=via, at=0)
    result = ask_result(outcome, "s:/1")
    assert (result.outcome, result.via, result.answers, result.by) == (expected, via, {}, None)


def test_answers_come_back_by_question_and_skipped_ones_by_name() -> None:
    questions = (TextQuestion(id="t", message="T"), TextQuestion(id="u", message="U"))
    answers: dict[str, Answer] = {"t": Submitted(value=TextValue(value="x")), "u": Skipped()}
    outcome = Outcome(
        request=InputRequest(id="r", questions=questions),
        response=ResponseKind.ACCEPT,
        via=Provenance.PERSON,
        at=0,
        answers=answers,
        by=Author(id="ada", name="Ada"),
    )
    result = ask_result(outcome, "s:/1")
    assert (result.answers, result.skipped, result.by) == ({"t": "x"}, ("u",), "Ada")
    assert (result.session, result.request_id) == ("s:/1", "r")


def test_the_same_questions_are_asked_once_until_their_outcome_was_fetched() -> None:
    open_now = asking(InputRequest(id="ask-1-a", message="Deploy"))
    assert same_ask(open_now, "ask-1-", 100) == "ask-1-a"
    assert same_ask(open_now, "ask-2-", 100) is None
    assert same_ask(open_now, "ask-1-", 100, {"ask-1-a"}) is None
    completed = InputCompleted(request_id="ask-1-a", response=ResponseKind.DECLINE)
    ended = accepted(open_now, OWNER, completed, 100)
    assert same_ask(ended, "ask-1-", 100 + UNCOLLECTED_LIFETIME_MS - 1) == "ask-1-a"
    assert same_ask(ended, "ask-1-", 100 + UNCOLLECTED_LIFETIME_MS) is None
    collected = OutcomeCollected(request_id="ask-1-a")
    fetched = reduce_record(ended, collected, 200)
    assert same_ask(fetched, "ask-1-", 200) is None
    assert reduce_record(fetched, collected, 200) is fetched
    unknown = OutcomeCollected(request_id="nobody")
    assert reduce_record(fetched, unknown, 200) is fetched
