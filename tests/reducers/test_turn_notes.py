"""What a turn says of a question that was closed: in the words of people, for people."""

from typing import Any

import pytest

from session_server.reducers.texts import abandoned_note, ending, name_of, outcome_note
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    BooleanQuestion,
    BooleanValue,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberValue,
    Option,
    Question,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
    Value,
)
from session_server.schemas.principals import HOST, Author, Provenance
from session_server.schemas.record import Outcome

ANA, BO = Author(id="u-ana", name="Ana"), Author(id="u-bo", name="Bo")
REGIONS = (Option(id="eu-1", label="Europe"), Option(id="us-1", label="America"))
NAME = TextQuestion(id="name", message="Name?")
SURE = BooleanQuestion(id="sure", message="Sure?")
REGION = SingleSelectQuestion(
    id="region", message="Region?", options=REGIONS, allow_freeform_input=True
)
TAGS = MultiSelectQuestion(id="tags", message="Tags?", options=REGIONS, allow_freeform_input=True)


def note(*questions: Question, **fields: Any) -> str:
    request = InputRequest(id="r", message="Deploy", questions=questions)
    whole: dict[str, Any] = {
        "response": ResponseKind.ACCEPT,
        "via": Provenance.PERSON,
        "by": ANA,
        "at": 1,
        **fields,
    }
    return outcome_note(Outcome(request=request, **whole))


def given(value: Value, by: Author = ANA, via: Provenance = Provenance.PERSON) -> Answer:
    return Submitted(value=value, meta=AnswerMeta(by=by, at=1, via=via))


@pytest.mark.parametrize(
    ("question", "value", "text"),
    [
        (SURE, BooleanValue(value=True), "Sure?: Yes"),
        (SURE, BooleanValue(value=False), "Sure?: No"),
        (REGION, SelectedValue(value="eu-1"), "Region?: Europe"),
        (REGION, SelectedValue(value="the moon"), "Region?: the moon"),
        (REGION, SelectedValue(value="", freeform_values=("near me",)), "Region?: near me"),
        (
            TAGS,
            SelectedManyValue(value=("us-1", "eu-1"), freeform_values=("Asia",)),
            "Tags?: America, Europe, Asia",
        ),
        (NAME, SelectedValue(value="of another kind"), "Name?: of another kind"),
        (IntegerQuestion(id="size", message="Size?"), NumberValue(value=3.0), "Size?: 3"),
        (NAME, TextValue(value="two\n lines"), "Name?: two lines"),
    ],
)
def test_values_are_shown_as_people_chose_them(question: Question, value: Value, text: str) -> None:
    said = note(question, answers={question.id: given(value)})
    assert said == f"Ana answered “Deploy”. {text}"


@pytest.mark.parametrize(
    ("author", "name"),
    [
        (None, "someone"),
        (ANA, "Ana"),
        (Author(id="u-bo"), "u-bo"),
        (Author(id="local"), "someone"),
        (Author(id="local", name="Cy"), "Cy"),
        (Author(id="owner"), "the owner"),
        (Author(id="share:3f9"), "a guest"),
        (Author(id="agent:demo"), "demo"),
        (HOST, "the host"),
    ],
)
def test_ids_of_the_hosts_own_are_not_names(author: Author | None, name: str) -> None:
    assert name_of(author) == name


def test_only_our_own_texts_are_capitalised() -> None:
    assert note(by=None) == "Someone answered “Deploy”."
    assert note(by=Author(id="local")) == "Someone answered “Deploy”."
    assert note(by=Author(id="bo")) == "bo answered “Deploy”."
    assert note(by=Author(id="local", name="ana")) == "ana answered “Deploy”."
    assert note(by=Author(id="ci"), via=Provenance.POLICY) == "ci (a policy) answered “Deploy”."


def test_answers_of_others_and_of_policies_carry_their_names() -> None:
    answers = {
        "name": given(TextValue(value="Oslo"), by=BO),
        "region": given(SelectedValue(value="eu-1"), by=Author(id="ci"), via=Provenance.POLICY),
        "sure": given(BooleanValue(value=True), by=Author(id="local")),
        "tags": Skipped(meta=AnswerMeta(by=BO, at=1, via=Provenance.PERSON)),
    }
    assert note(NAME, REGION, SURE, TAGS, answers=answers) == (
        "Ana answered “Deploy”. Name?: Oslo (Bo); Region?: Europe (ci, a policy);"
        " Sure?: Yes (someone); Tags?: skipped (Bo)"
    )


def test_the_reason_given_for_skipping_is_shown() -> None:
    skipped = Skipped(freeform_values=("ask me", "tomorrow"))
    assert note(NAME, answers={"name": skipped}) == (
        "Ana answered “Deploy”. Name?: skipped, saying “ask me, tomorrow”"
    )


@pytest.mark.proves("design.provenance.default")
def test_defaults_are_marked_as_such() -> None:
    size = IntegerQuestion(id="size", message="Size?", default_value=3)
    region = SingleSelectQuestion(
        id="region",
        message="Region?",
        options=(Option(id="eu-1", label="Europe", recommended=True),),
    )
    assert note(NAME, size, region, answers={"name": given(TextValue(value="Oslo"))}) == (
        "Ana answered “Deploy”. Name?: Oslo; Size?: 3 (default); Region?: Europe (default)"
    )
    by_time = given(NumberValue(value=3), by=HOST, via=Provenance.DEFAULT)
    assert note(NAME, size, by=HOST, via=Provenance.DEFAULT, answers={"size": by_time}) == (
        "“Deploy” got its defaults: nobody answered in time. Size?: 3 (default)"
    )


def test_defaults_that_were_not_sent_are_left_out() -> None:
    required = TextQuestion(id="n", message="N?", required=True, default_value="x")
    empty = TextQuestion(id="n", message="N?", default_value="")
    for question in (required, empty):
        assert note(question) == "Ana answered “Deploy”."
    size = IntegerQuestion(id="size", message="Size?", default_value=3)
    assert note(size, response=ResponseKind.DECLINE) == "Ana declined “Deploy”."


def test_taking_back_and_abandoning_say_by_whom_unless_it_was_the_host() -> None:
    def ended(via: Provenance, by: Author | None) -> str:
        request = InputRequest(id="r", message="Deploy")
        return ending(Outcome(request=request, response=ResponseKind.CANCEL, via=via, at=1, by=by))

    assert ended(Provenance.WITHDRAWN, Author(id="agent:ci")) == "“Deploy” was withdrawn by ci."
    assert ended(Provenance.WITHDRAWN, HOST) == "“Deploy” was withdrawn."
    assert ended(Provenance.TIMEOUT, HOST) == "“Deploy” timed out."
    assert ended(Provenance.ABANDONED, None) == "“Deploy” was abandoned."
    request = InputRequest(id="r", message="Deploy")
    assert abandoned_note((), (request,), HOST) == (
        "Abandoned as the turn was ended: the question “Deploy”."
    )
