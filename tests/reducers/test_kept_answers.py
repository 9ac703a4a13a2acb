"""Answers kept under drafts, and when the request is asked again."""

from typing import Any

import msgspec
import pytest

from session_server.schemas.ahp.actions import InputRequested
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    BooleanQuestion,
    Draft,
    InputRequest,
    RequestMeta,
    Skipped,
    Submitted,
    TextValue,
)
from session_server.schemas.errors import RefusalCode
from session_server.schemas.principals import Principal, Provenance
from session_server.schemas.record import SessionRecord
from tests.reducers.form_actions import FORGED, FORM, OSLO, answer, complete
from tests.sessions import AGENT, OWNER, PHONE, accepted, asked_by, asking, in_turn, refused

MINE = asked_by(AGENT, FORM)
BERGEN = TextValue(value="Bergen")


def answers_in(record: SessionRecord) -> dict[str, Answer]:
    (request,) = record.public.input_requests or ()
    return request.answers or {}


def by_person(answer: Answer, principal: Principal, **marks: Any) -> Answer:
    meta = AnswerMeta(by=principal.author, at=100, via=Provenance.PERSON, **marks)
    return msgspec.structs.replace(answer, meta=meta)


@pytest.mark.proves("design.requests.answers-reopened")
@pytest.mark.parametrize(
    "changed",
    [
        msgspec.structs.replace(FORM, message="Delete everything"),
        msgspec.structs.replace(FORM, url="https://example.com/other"),
        msgspec.structs.replace(FORM, questions=(FORM.questions or ())[:1]),
        msgspec.structs.replace(FORM, message="Other", answers={}),
    ],
)
def test_a_submitted_answer_becomes_a_draft_when_the_question_changes(
    changed: InputRequest,
) -> None:
    before = answer(asking(MINE), PHONE, Submitted(value=OSLO))
    after = accepted(before, AGENT, InputRequested(request=changed))
    assert answers_in(after) == {"name": by_person(Draft(value=OSLO), PHONE, before_change=True)}
    (request,) = after.public.input_requests or ()
    assert request.meta == RequestMeta(by=AGENT.author, revision=1)
    assert refused(after, OWNER, complete()).code is RefusalCode.REQUIRED
    again = accepted(after, AGENT, InputRequested(request=MINE))
    assert (again.public.input_requests or ())[0].meta == RequestMeta(by=AGENT.author, revision=2)
    typed = answer(after, PHONE, Draft(value=BERGEN))
    assert answers_in(typed) == {"name": by_person(Draft(value=BERGEN), PHONE)}


@pytest.mark.proves("design.requests.answers-kept")
def test_asking_the_same_again_changes_no_answer() -> None:
    before = answer(asking(MINE), PHONE, Submitted(value=OSLO))
    later = msgspec.structs.replace(FORM, meta=RequestMeta(expires_at=500))
    forged = msgspec.structs.replace(FORM, answers={"name": Submitted(value=BERGEN)})
    for request in (FORM, later, forged):
        after = accepted(before, AGENT, InputRequested(request=request))
        assert answers_in(after) == answers_in(before)


def test_answers_of_another_kind_and_skips_do_not_outlive_the_question() -> None:
    other = InputRequest(id="r", questions=(BooleanQuestion(id="name", message="?"),))
    for given in (Submitted(value=OSLO), Skipped()):
        before = answer(asking(MINE), PHONE, given)
        after = accepted(before, AGENT, InputRequested(request=other))
        assert (after.public.input_requests or ())[0].answers == {}


def test_a_draft_over_an_answer_keeps_it_when_the_question_changes() -> None:
    before = answer(answer(asking(MINE), PHONE, Submitted(value=OSLO)), OWNER, Draft(value=BERGEN))
    other = msgspec.structs.replace(FORM, message="Other")
    after = accepted(before, AGENT, InputRequested(request=other))
    covered = by_person(Draft(value=OSLO), PHONE, before_change=True)
    draft_over = by_person(Draft(value=BERGEN), OWNER, before_change=True, covers=covered)
    assert answers_in(after) == {"name": draft_over}
    assert answers_in(answer(after, OWNER, None)) == {"name": covered}
    refused_now = refused(after, OWNER, complete())
    assert refused_now.code is RefusalCode.REQUIRED


@pytest.mark.proves("design.requests.proposals")
def test_what_an_asker_fills_in_is_a_proposal_and_never_an_answer() -> None:
    filled = {"name": Submitted(value=OSLO, meta=FORGED), "size": Skipped()}
    request = msgspec.structs.replace(FORM, answers=filled)
    asked = accepted(in_turn(), AGENT, InputRequested(request=request))
    meta = AnswerMeta(by=AGENT.author, at=100, via=Provenance.PROPOSED)
    assert answers_in(asked) == {"name": Draft(value=OSLO, meta=meta)}
    assert refused(asked, OWNER, complete()).code is RefusalCode.REQUIRED
    again = msgspec.structs.replace(FORM, answers={"name": Draft(value=BERGEN)})
    proposed = accepted(asked, AGENT, InputRequested(request=again))
    assert answers_in(proposed) == {"name": Draft(value=BERGEN, meta=meta)}
    assert answers_in(accepted(asked, AGENT, InputRequested(request=FORM))) == answers_in(asked)


# Drafts over answers


@pytest.mark.proves("design.calls.draft-covers")
@pytest.mark.parametrize("given", [Submitted(value=OSLO), Skipped()])
def test_a_draft_keeps_the_answer_that_it_covers_until_it_is_submitted(given: Answer) -> None:
    record = answer(asking(FORM), PHONE, given)
    for text in ("B", "Be", "Ber"):
        record = answer(record, OWNER, Draft(value=TextValue(value=text)))
    covering = by_person(Draft(value=TextValue(value="Ber")), OWNER, covers=by_person(given, PHONE))
    assert answers_in(record) == {"name": covering}
    assert answers_in(answer(record, OWNER, None)) == {"name": by_person(given, PHONE)}
    submitted = answer(record, OWNER, Submitted(value=BERGEN))
    assert answers_in(submitted) == {"name": by_person(Submitted(value=BERGEN), OWNER)}
    skipped = answer(record, OWNER, Skipped())
    assert answers_in(skipped) == {"name": by_person(Skipped(), OWNER)}


def test_clearing_an_answer_removes_it_and_clearing_a_draft_over_nothing_too() -> None:
    submitted = answer(asking(FORM), PHONE, Submitted(value=OSLO))
    drafted = answer(asking(FORM), PHONE, Draft(value=OSLO))
    bare = asking(msgspec.structs.replace(FORM, answers={"name": Draft(value=OSLO)}))
    for record in (submitted, drafted, bare, asking(FORM)):
        assert answers_in(answer(record, OWNER, None)) == {}


@pytest.mark.proves("design.calls.draft-covers")
def test_a_covered_answer_is_what_the_completion_records() -> None:
    record = answer(asking(FORM), PHONE, Submitted(value=OSLO))
    record = answer(record, OWNER, Draft(value=BERGEN))
    after = accepted(record, OWNER, complete())
    (outcome,) = after.private.outcomes
    assert outcome.answers == {"name": by_person(Submitted(value=OSLO), PHONE)}
