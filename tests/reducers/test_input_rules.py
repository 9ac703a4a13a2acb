"""Rules of questions and answers: what may be asked, answered and completed."""

from typing import Any

import msgspec
import pytest

from session_server.reducers.forms.review import reviewed
from session_server.reducers.rules.input_rules import check_withdrawal
from session_server.reducers.rules.judge import judge
from session_server.schemas.ahp.actions import InputAnswerChanged, InputCompleted, InputRequested
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    CompletionMeta,
    Draft,
    InputRequest,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    RequestMeta,
    ResponseKind,
    Reviewed,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
)
from session_server.schemas.errors import RefusalCode
from session_server.schemas.limits import (
    ID_CHARS,
    OPEN_REQUESTS_PER_SESSION,
    OPTIONS_PER_QUESTION,
    QUESTIONS_PER_REQUEST,
)
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import SessionRecord
from tests.reducers.form_actions import FORM, SHORT, asked, change, complete, verdict
from tests.sessions import AGENT, OWNER, PHONE, accepted, asked_by, asking, in_turn, refused

LONG = TextValue(value="xyz")


@pytest.mark.proves(
    "ahp.rules.answer-no-request",
    "ahp.rules.answer-no-question",
    "ahp.rules.answer-no-value",
    "ahp.rules.answer-kind",
    "ahp.rules.answer-cleared",
    "ahp.rules.draft-lenient",
)
@pytest.mark.parametrize(
    ("action", "code"),
    [
        (change(Draft(value=SHORT)), None),
        (change(Submitted(value=LONG)), None),
        (change(Skipped()), None),
        (change(None), None),
        (change(None, question_id="size"), None),
        (change(Draft(value=SHORT), request_id="s"), RefusalCode.NO_REQUEST),
        (change(None, request_id="s"), RefusalCode.NO_REQUEST),
        (change(Draft(value=SHORT), question_id="colour"), RefusalCode.NO_QUESTION),
        (change(None, question_id="colour"), RefusalCode.NO_QUESTION),
        (change(Draft()), RefusalCode.NO_VALUE),
        (change(Submitted()), RefusalCode.NO_VALUE),
        (change(Draft(value=NumberValue(value=1))), RefusalCode.WRONG_KIND),
        (change(Submitted(value=SHORT)), RefusalCode.TOO_SHORT),
    ],
)
def test_changing_an_answer(action: InputAnswerChanged, code: RefusalCode | None) -> None:
    refusal = judge(PHONE, asking(FORM), action)
    assert (refusal and refusal.code) == code
    if refusal is not None:
        assert refusal.request_id == action.request_id
        assert refusal.question_id in (action.question_id, None)


def answered(**answers: Any) -> SessionRecord:
    return asking(msgspec.structs.replace(FORM, answers=answers))


@pytest.mark.proves(
    "ahp.rules.complete-answers",
    "ahp.rules.complete-no-request",
    "ahp.rules.complete-required",
    "ahp.rules.complete-brings-all",
    "ahp.rules.complete-merges",
    "ahp.rules.complete-without-answers",
)
@pytest.mark.parametrize(
    ("record", "action", "code"),
    [
        (asking(FORM), complete(name=Submitted(value=LONG)), None),
        (answered(name=Submitted(value=LONG)), complete(), None),
        (asking(FORM), complete("decline"), None),
        (asking(FORM), complete("cancel"), None),
        (asking(), complete(), RefusalCode.NO_REQUEST),
        (asking(FORM), complete(), RefusalCode.REQUIRED),
        (answered(name=Draft(value=LONG)), complete(), RefusalCode.REQUIRED),
        (answered(name=Skipped()), complete(), RefusalCode.REQUIRED),
        (asking(FORM), complete(name=Draft(value=LONG)), RefusalCode.REQUIRED),
        (asking(FORM), complete(name=Submitted(value=SHORT)), RefusalCode.TOO_SHORT),
        (asking(FORM), complete(name=Draft(value=SHORT)), RefusalCode.TOO_SHORT),
        (asking(FORM), complete("decline", name=Submitted(value=SHORT)), RefusalCode.TOO_SHORT),
        (asking(FORM), complete("cancel", colour=Skipped()), RefusalCode.NO_QUESTION),
        # A later, better answer wins, and so does a later, worse one.
        (answered(name=Draft(value=SHORT)), complete(name=Submitted(value=LONG)), None),
        (answered(name=Submitted(value=LONG)), complete(name=Skipped()), RefusalCode.REQUIRED),
        # A draft never goes over an answer.
        (answered(name=Submitted(value=LONG)), complete(name=Draft(value=LONG)), None),
        # A request that was replaced may hold an answer that no longer fits.
        (answered(name=Submitted(value=SHORT)), complete(), RefusalCode.TOO_SHORT),
        (answered(name=Submitted(value=SHORT)), complete("decline"), None),
    ],
)
def test_completing_a_request(
    record: SessionRecord, action: InputCompleted, code: RefusalCode | None
) -> None:
    assert verdict(PHONE, record, action) == code


@pytest.mark.proves("ahp.rules.complete-lost", "design.calls.one-winner")
def test_the_second_completion_names_the_first_person() -> None:
    record = accepted(asking(FORM), OWNER, complete(name=Submitted(value=LONG)))
    for late in (complete("decline"), change(Draft(value=SHORT))):
        refusal = refused(record, PHONE, late)
        assert refusal.code is RefusalCode.ALREADY_COMPLETED
        assert refusal.message == "Too late: Ana answered “Deploy”."


@pytest.mark.proves("mcp.url.web-only")
@pytest.mark.parametrize("url", ["file:///etc/passwd", "//server/share", "--option=x", ""])
def test_a_request_to_open_anything_but_a_web_address_is_refused(url: str) -> None:
    assert asked(InputRequest(id="r", message="Log in", url=url)) is RefusalCode.BAD_FORM
    assert asked(InputRequest(id="r", message="Log in", url="https://login.example/")) is None


def flags(count: int) -> tuple[BooleanQuestion, ...]:
    return tuple(BooleanQuestion(id=str(n), message="?") for n in range(count))


def options(count: int) -> tuple[Option, ...]:
    return tuple(Option(id=str(n), label="x") for n in range(count))


@pytest.mark.proves("design.limits.questions")
@pytest.mark.parametrize(
    ("questions", "code"),
    [
        (FORM.questions, None),
        ((), None),
        (flags(QUESTIONS_PER_REQUEST), None),
        (flags(QUESTIONS_PER_REQUEST + 1), RefusalCode.LIMIT),
        (flags(1) * 2, RefusalCode.DUPLICATE),
        ((BooleanQuestion(id="x" * (ID_CHARS + 1), message="?"),), RefusalCode.LIMIT),
        ((NumberQuestion(id="n", message="?", min=2, max=1),), RefusalCode.BAD_FORM),
        (
            (SingleSelectQuestion(id="s", message="?", options=options(OPTIONS_PER_QUESTION)),),
            None,
        ),
        (
            (SingleSelectQuestion(id="s", message="?", options=options(OPTIONS_PER_QUESTION + 1)),),
            RefusalCode.LIMIT,
        ),
        (
            (MultiSelectQuestion(id="s", message="?", options=options(1) * 2),),
            RefusalCode.DUPLICATE,
        ),
        ((SingleSelectQuestion(id="s", message="?", options=()),), RefusalCode.BAD_FORM),
        (
            (SingleSelectQuestion(id="s", message="?", options=(), allow_freeform_input=True),),
            None,
        ),
    ],
)
def test_what_may_be_asked(questions: Any, code: RefusalCode | None) -> None:
    assert asked(InputRequest(id="new", questions=questions)) == code


def test_answers_that_come_with_a_question_must_fit_it() -> None:
    good = msgspec.structs.replace(FORM, answers={"name": Draft(value=SHORT)})
    bad = msgspec.structs.replace(FORM, answers={"size": Draft(value=SHORT)})
    assert asked(good) is None
    assert asked(bad) is RefusalCode.WRONG_KIND


def test_open_questions_are_bounded_and_ids_are_used_once() -> None:
    many = [asked_by(AGENT, InputRequest(id=str(n))) for n in range(OPEN_REQUESTS_PER_SESSION)]
    assert asked(InputRequest(id="new"), asking(*many[1:])) is None
    assert asked(InputRequest(id="new"), asking(*many)) is RefusalCode.LIMIT
    assert asked(InputRequest(id="0", message="again"), asking(*many)) is None
    done = accepted(asking(FORM), OWNER, complete("decline"))
    assert asked(FORM, done) is RefusalCode.DUPLICATE


def test_an_agent_cannot_replace_the_question_of_a_call() -> None:
    of_call = InputRequest(id="call:c/1/k", meta=RequestMeta(call="c"))
    for record in (asking(of_call), in_turn()):
        assert asked(InputRequest(id="call:c/1/k"), record) is RefusalCode.NOT_YOURS
    with_deadline = asked_by(AGENT, InputRequest(id="mine", meta=RequestMeta(expires_at=5)))
    assert asked(InputRequest(id="mine"), asking(with_deadline)) is None


@pytest.mark.proves("design.requests.asker")
def test_an_agent_cannot_change_what_somebody_else_asked() -> None:
    for other in (OWNER, Principal(id="a-2", role=Role.AGENT)):
        theirs = asking(asked_by(other, FORM))
        assert asked(FORM, theirs) is RefusalCode.NOT_YOURS
    assert asked(FORM, asking(FORM)) is RefusalCode.NOT_YOURS
    unknown = asking(msgspec.structs.replace(FORM, meta=RequestMeta(expires_at=5)))
    assert asked(FORM, unknown) is RefusalCode.NOT_YOURS


@pytest.mark.proves("design.requests.asker")
def test_only_the_asker_and_owners_withdraw_a_question() -> None:
    mine = asking(asked_by(AGENT, FORM))
    assert judge(AGENT, mine, complete("cancel")) is None
    assert check_withdrawal(OWNER, mine, "r") is None
    theirs = asking(asked_by(OWNER, FORM))
    assert refused(theirs, AGENT, complete("cancel")).code is RefusalCode.NOT_YOURS
    assert refused(asking(FORM), AGENT, complete("cancel")).code is RefusalCode.NOT_YOURS
    gone = check_withdrawal(AGENT, in_turn(), "r")
    assert gone.code is RefusalCode.NO_REQUEST


# What was reviewed


def accept(record: SessionRecord, seen: Reviewed | None, **answers: Answer) -> InputCompleted:
    meta = CompletionMeta(reviewed=seen)
    return msgspec.structs.replace(complete("accept", **answers), meta=meta)


@pytest.mark.proves("design.calls.review-outdated")
def test_accepting_what_was_reviewed_on_an_older_state_is_refused_with_what_changed() -> None:
    record = accepted(asking(FORM), PHONE, change(Submitted(value=TextValue(value="Oslo"))))
    (request,) = record.public.input_requests or ()
    seen = reviewed(request)
    assert judge(OWNER, record, accept(record, seen)) is None
    assert judge(OWNER, record, accept(record, None)) is None
    later = accepted(record, PHONE, change(Submitted(value=TextValue(value="Rome"))))
    refusal = refused(later, OWNER, accept(later, seen))
    assert (refusal.code, refusal.question_id) == (RefusalCode.REVIEW_CHANGED, "name")
    assert "“Name?”" in refusal.message
    sized = accepted(record, PHONE, change(Submitted(value=NumberValue(value=3)), "size"))
    assert refused(sized, OWNER, accept(sized, seen)).question_id == "size"
    own = Submitted(value=TextValue(value="Oslo"))
    assert judge(OWNER, later, accept(later, seen, name=own)) is None
    decline = msgspec.structs.replace(accept(later, seen), response=ResponseKind.DECLINE)
    assert judge(OWNER, later, decline) is None


@pytest.mark.proves("design.calls.review-outdated")
def test_accepting_a_question_that_was_reworded_after_the_review_is_refused() -> None:
    own = Submitted(value=TextValue(value="Oslo"))
    before = asking(asked_by(AGENT, FORM))
    seen = reviewed((before.public.input_requests or ())[0], {"name": own})
    reworded = msgspec.structs.replace(FORM, message="Delete")
    after = accepted(before, AGENT, InputRequested(request=reworded))
    refusal = refused(after, OWNER, accept(after, seen, name=own))
    assert (refusal.code, refusal.question_id) == (RefusalCode.REVIEW_CHANGED, None)
    zero = Reviewed(content=seen.content, revision=0)
    assert judge(OWNER, before, accept(before, zero, name=own)) is None


def test_a_refusal_names_a_few_of_many_changed_questions() -> None:
    questions = tuple(TextQuestion(id=f"q{n}", message=f"Q{n}") for n in range(7))
    record = asking(InputRequest(id="r", questions=questions))
    seen = Reviewed(content={question.id: "x" for question in questions})
    text = refused(record, OWNER, accept(record, seen)).message
    assert "“Q4” and 2 more" in text
    assert "Q5" not in text
