"""A form without a terminal: what is written here, what others write, and who wins."""

import msgspec
import pytest

from session_server.cli.answer_texts import answer_text, covered_text, review_text
from session_server.cli.commands.answer import closed_text
from session_server.cli.form import drawing
from session_server.cli.form.fields import OWN, Field, Form
from session_server.reducers.forms.review import review_of
from session_server.schemas.ahp.actions import Action, InputCompleted, TitleChanged, TurnCancelled
from session_server.schemas.ahp.envelopes import ActionEnvelope, EnvelopeMeta
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    BooleanQuestion,
    BooleanValue,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
)
from session_server.schemas.principals import Author, Provenance

ANA = AnswerMeta(by=Author(id="u-ana", name="Ana"), at=1, via=Provenance.PERSON)
BEN = AnswerMeta(by=Author(id="u-ben", name="Ben"), at=2, via=Provenance.PERSON)
NAME = TextQuestion(id="name", title="Name", message="What is it called?", required=True, max=6)
CITY = SingleSelectQuestion(
    id="city",
    message="Where?",
    allow_freeform_input=True,
    options=(
        Option(id="oslo", label="Oslo"),
        Option(id="kyoto", label="Kyoto", recommended=True),
    ),
)
LIKES = MultiSelectQuestion(
    id="likes",
    message="What?",
    allow_freeform_input=True,
    options=(Option(id="food", label="Food"), Option(id="music", label="Music")),
)
MANY = SingleSelectQuestion(
    id="many",
    message="Which?",
    options=tuple(Option(id=str(n), label=f"Number {n}") for n in range(20)),
)


def draft(text: str) -> Draft:
    return Draft(value=TextValue(value=text), meta=ANA)


def asked(**answers: Answer) -> InputRequest:
    return InputRequest(id="r", questions=(NAME, CITY), answers=answers or None)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "--option=x", "http://[", "//server/share"])
def test_what_is_not_a_web_address_is_shown_and_cannot_be_opened(url: str) -> None:
    form = Form(InputRequest(id="r", message="Log in", url=url))
    assert drawing.openable_address(form.request) is None
    assert "open the address" not in "".join(text for _, text in drawing.keys(form))
    shown = "".join(text for _, text in drawing.head(form, "Log in", "live"))
    assert f"{url}  Not a web address" in shown


def test_the_host_in_bold_is_the_one_that_is_opened() -> None:
    parts = drawing.web_address("https://bank.example.evil.example/bank.example")
    assert [text for style, text in parts if style == "class:domain"] == [
        "bank.example.evil.example"
    ]


def submit(field: Field, answer: Answer) -> None:
    field.sent(answer)
    field.confirmed(answer)


def test_what_is_typed_here_is_never_overwritten() -> None:
    field = Field(NAME)
    field.write("Alps")
    field.seen(draft("Fjords"))
    assert field.text == "Alps"
    assert "Ana wrote “Fjords”" in field.theirs_text(None)
    field.use_theirs()
    assert (field.text, field.is_contested) == ("Fjords", False)
    assert field.valid_value() == TextValue(value="Fjords")


def test_a_conflict_lasts_until_a_person_chooses_or_others_enter_the_same() -> None:
    field = Field(NAME)
    field.write("Alps")
    submit(field, Draft(value=field.value()))
    field.seen(draft("Fjords"))
    with pytest.raises(ValueError, match="Choose a version before sending"):
        field.valid_value()
    assert not field.can_send
    assert field.keep_mine()
    assert field.can_send
    assert field.valid_value() == TextValue(value="Alps")
    assert not field.keep_mine()
    field.seen(draft("Lakes"))
    assert field.is_contested
    field.seen(None)
    assert field.theirs_text(None) == "this was cleared"
    field.seen(Draft(value=TextValue(value="Alps"), meta=BEN))
    assert not field.is_contested


def test_an_answer_that_is_only_emptied_is_shown_again() -> None:
    field = Field(NAME)
    field.seen(Submitted(value=TextValue(value="Fjords"), meta=ANA))
    field.write("")
    assert (field.text, field.can_send) == ("", False)
    field.left()
    assert (field.text, field.is_touched) == ("Fjords", False)


def test_a_draft_that_was_lost_is_sent_again_and_a_refused_one_shows_the_reason() -> None:
    field = Field(NAME)
    field.write("Alps")
    field.sent(field.unsent_answer())
    field.failed()
    assert field.can_send
    field.sent(field.unsent_answer())
    field.refused("Too many drafts.")
    assert (field.text, field.error, field.can_send) == ("Alps", "Too many drafts.", False)
    field.write("Alpes")
    assert (field.error, field.can_send) == ("", True)


def test_those_who_are_here_are_named_and_counted() -> None:
    form = Form(asked())
    names = ["someone", "Ana", "someone", "Ben", "Cleo", "Dan"]
    shown = "".join(text for _, text in drawing.head(form, "Trip", "live", names))
    assert "with someone (×2), Ana, Ben, Cleo, 1 more" in shown
    below = "".join(text for _, text in drawing.below(form.fields[0], None, ["Ana", "Ben"]))
    assert "Ana, Ben are answering" in below


def test_a_person_at_two_devices_sees_which_one() -> None:
    field = Field(NAME)
    field.seen(draft("Fj"))
    assert field.author_text(draft("Fj"), ANA.by) == "you (elsewhere)"
    field.write("Fjo")
    submit(field, draft("Fjo"))
    assert field.author_text(draft("Fjo"), ANA.by) == "you"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Name: an answer is required."),
        (" \t", "Name: an answer is required."),
        ("Trondheim", "Name: accepts at most 6 characters"),
    ],
)
def test_a_wrong_answer_is_explained(text: str, words: str) -> None:
    field = Field(NAME)
    field.write(text)
    with pytest.raises(ValueError, match=words):
        field.valid_value()


@pytest.mark.parametrize(
    ("text", "number"), [("3", 3), (" 3.5 ", 3.5), ("3,5", 3.5), ("-2", -2), ("", None)]
)
def test_numbers_are_read_as_people_write_them(text: str, number: float | None) -> None:
    field = Field(NumberQuestion(id="n", message="How many?"))
    field.write(text)
    value = field.value()
    assert (value.value if isinstance(value, NumberValue) else None) == number


def test_half_a_number_is_explained() -> None:
    field = Field(IntegerQuestion(id="n", title="People", message="How many?", default_value=2))
    assert field.text == "2"
    field.write("2x")
    with pytest.raises(ValueError, match="People: '2x' is not a number"):
        field.value()
    field.seen(Draft(value=NumberValue(value=3), meta=ANA))
    assert field.text == "2x"
    assert field.shown() == "2x"


def test_yes_and_no_are_chosen_like_options() -> None:
    field = Field(BooleanQuestion(id="b", message="Sure?", default_value=True))
    assert field.shown() == "Yes"
    field.move(1)
    field.choose(field.here)
    assert field.value() == BooleanValue(value=False)


def test_freeform_text_and_an_option_exclude_each_other_in_a_single_choice() -> None:
    field = Field(CITY)
    assert (field.here, field.value()) == ("kyoto", None)
    field.choose("kyoto")
    assert field.value() == SelectedValue(value="kyoto")
    field.move(1)
    assert (field.here, field.accepts_text) == (OWN, True)
    field.write("Bergen")
    assert field.value() == SelectedValue(value="", freeform_values=("Bergen",))
    assert field.shown() == "Bergen"
    field.choose("oslo")
    assert field.value() == SelectedValue(value="oslo")
    field.seen(Draft(value=SelectedValue(value="", freeform_values=("Voss",)), meta=ANA))
    assert field.theirs_text(None) == "Ana wrote “Voss”"


def test_many_choices_keep_the_order_of_the_options() -> None:
    field = Field(LIKES)
    field.choose("music")
    field.choose("food")
    field.write("Sailing")
    assert field.value() == SelectedManyValue(value=("food", "music"), freeform_values=("Sailing",))
    field.choose("music")
    field.write("")
    assert field.value() == SelectedManyValue(value=("food",))
    field.choose("food")
    assert field.value() is None


def test_blank_freeform_text_is_no_answer_where_one_is_required() -> None:
    for question in (CITY, LIKES):
        field = Field(msgspec.structs.replace(question, required=True))
        field.write("  ")
        with pytest.raises(ValueError, match="an answer is required"):
            field.valid_value()
    field.choose("food")
    assert field.valid_value() == SelectedManyValue(value=("food",), freeform_values=("  ",))


def test_nothing_is_chosen_for_anyone() -> None:
    options = (Option(id="lint", label="Lint", recommended=True), Option(id="docs", label="Docs"))
    field = Field(MultiSelectQuestion(id="checks", message="Which?", options=options))
    assert (field.here, field.chosen, field.value()) == ("lint", (), None)


def test_long_lists_can_be_searched() -> None:
    field = Field(MANY)
    assert field.is_searched
    field.find("number 1")
    assert field.rows == ("1", *(str(n) for n in range(10, 20)))
    field.find("nothing")
    assert (field.rows, field.here) == ((), None)
    field.move(1)
    field.choose(field.here)
    assert field.value() is None


def test_accepting_brings_what_was_written_here_and_nobody_elses_draft() -> None:
    form = Form(asked(city=Draft(value=SelectedValue(value="oslo"), meta=ANA)))
    form.fields[0].write("Fjords")
    assert form.answers() == {"name": Submitted(value=TextValue(value="Fjords"))}


def test_what_is_submitted_already_is_not_brought_again() -> None:
    form = Form(asked(name=Submitted(value=TextValue(value="Fjords"), meta=ANA), city=Skipped()))
    assert form.answers() is None


def over(text: str, answer: Submitted | Skipped) -> Draft:
    meta = msgspec.structs.replace(BEN, covers=answer)
    return Draft(value=TextValue(value=text), meta=meta)


@pytest.mark.proves("design.calls.review")
def test_the_review_shows_what_is_sent_and_which_drafts_are_not() -> None:
    fjords = Submitted(value=TextValue(value="Fjords"), meta=ANA)
    form = Form(asked(name=over("Bergen", fjords)))
    assert form.answers() is None
    name, city = form.review()
    assert review_text(NAME, name) == (
        "Fjords  submitted by Ana; Ben's draft “Bergen” is not included"
    )
    assert review_text(CITY, city) == "Kyoto (default)"
    form.fields[0].write("Oslo")
    form.fields[1].choose("oslo")
    name, city = form.review()
    assert review_text(NAME, name, BEN.by) == "Oslo; your draft “Bergen” is not included"
    assert review_text(CITY, city) == "Oslo"
    form.fields[0].write("much too long")
    assert review_text(NAME, form.review()[0]).startswith("Fjords")


def test_the_review_names_skips_and_missing_answers() -> None:
    (name, city) = Form(asked(city=Skipped(meta=ANA))).review()
    assert review_text(NAME, name) == "an answer is required"
    assert review_text(CITY, city) == "skipped by Ana"
    (own,) = review_of(InputRequest(id="r", questions=(CITY,)), {"city": Skipped()})
    assert review_text(CITY, own) == "skipped"
    free = TextQuestion(id="free", message="?")
    (nothing,) = review_of(InputRequest(id="r", questions=(free,)))
    assert review_text(free, nothing) == "–"


def test_a_draft_says_what_counts_below_it_and_where_it_comes_from() -> None:
    fjords = Submitted(value=TextValue(value="Fjords"), meta=ANA)
    assert "until it is submitted, “Fjords” by Ana counts" in str(
        answer_text(NAME, over("Bergen", fjords))
    )
    skipped = over("B", Skipped(meta=ANA))
    assert "the skip by you counts" in covered_text(NAME, skipped, ANA.by)
    outdated = msgspec.structs.replace(ANA, before_change=True)
    words = str(answer_text(NAME, Draft(value=TextValue(value="x"), meta=outdated)))
    assert words == "x  Ana wrote this before the question changed"
    proposed = msgspec.structs.replace(ANA, via=Provenance.PROPOSED)
    words = str(answer_text(NAME, Draft(value=TextValue(value="x"), meta=proposed)))
    assert words == "x  proposed by Ana"


def test_accepting_leads_to_the_question_that_is_not_answered() -> None:
    form = Form(asked(name=draft("Fj")))
    form.go_to(2)
    assert form.is_review
    with pytest.raises(ValueError, match="an answer is required"):
        form.answers()
    assert (form.place, form.fields[0].error) == (0, "Name: an answer is required.")
    form.fields[0].write("Trondheim")
    form.go_to(2)
    with pytest.raises(ValueError, match="at most 6"):
        form.answers()
    assert form.place == 0


def test_what_was_typed_survives_a_question_that_is_replaced() -> None:
    form = Form(asked())
    form.fields[0].write("Fjords")
    longer = msgspec.structs.replace(NAME, max=60)
    form.seen(InputRequest(id="r", questions=(CITY, longer)))
    assert form.fields[1].text == "Fjords"
    form.go_to(5)
    assert form.is_review
    form.seen(InputRequest(id="r", questions=(TextQuestion(id="city", message="Where?"),)))
    assert form.fields[0].text == ""
    assert form.unsent() == []


def test_what_did_not_count_is_not_lost() -> None:
    form = Form(asked())
    form.fields[0].write("Fjords")
    form.fields[1].choose("oslo")
    form.fields[1].is_touched = False
    assert form.unsent() == ["Name: Fjords"]


def test_endings_go_round() -> None:
    form = Form(InputRequest(id="r", message="Deploy?"))
    assert form.is_review
    seen = []
    for _ in range(4):
        seen.append(form.ending.value)
        form.turn_ending(1)
    assert seen == ["accept", "decline", "cancel", "accept"]


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (InputCompleted(request_id="r", response=ResponseKind.DECLINE), "Ana declined “Deploy?”."),
        (TurnCancelled(turn_id="t"), "Ana stopped “Deploy?”."),
        (TitleChanged(title="x"), "“Deploy?” was closed."),
    ],
)
def test_the_person_who_closed_a_question_is_named(action: Action, words: str) -> None:
    envelope = ActionEnvelope(
        channel="ahp-session:/1", action=action, server_seq=1, meta=EnvelopeMeta(at=1, by=ANA.by)
    )
    assert closed_text(InputRequest(id="r", message="Deploy?"), envelope) == words
