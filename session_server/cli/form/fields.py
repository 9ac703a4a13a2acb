"""A request while it is answered in a terminal: its fields, the position in it, and its ending."""

import contextlib

from session_server.cli.answer_texts import author_text
from session_server.cli.form.draft_state import (
    DraftEvent,
    DraftState,
    EventType,
    Phase,
    content_of,
    transition,
)
from session_server.cli.values import check_plain, plain_of
from session_server.client import Plain
from session_server.client.answer_values import answer_of, value_of
from session_server.reducers.forms.answer_checks import label
from session_server.reducers.forms.review import decided, review_of
from session_server.reducers.texts import value_text
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    Question,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextValue,
    Value,
)
from session_server.schemas.http import ReviewItem
from session_server.schemas.principals import Author

YES, NO = "true", "false"
OWN = "\0own text"
"""The row under the options for any other text."""

SEARCHED_FROM = 12


class Field:
    def __init__(self, question: Question) -> None:
        self.question = question
        self.text = ""
        self.chosen: tuple[str, ...] = ()
        self.row = 0
        self.search = ""
        self.error = ""
        self.draft = DraftState()
        self.is_touched = False
        """Something was written here that is not submitted yet."""
        self._in_flight = 0
        self._propose()

    @property
    def shared(self) -> Answer | None:
        """What the session has, or is about to have from here."""
        is_sending = self.draft.phase is Phase.SENDING
        return self.draft.shown if is_sending else self.draft.at_host

    @property
    def is_contested(self) -> bool:
        return self.draft.phase is Phase.CONTESTED

    @property
    def is_foreign(self) -> bool:
        """What is shown was written elsewhere."""
        return not self.draft.is_own and self.draft.at_host is not None

    def continue_from(self, old: "Field") -> None:
        """The question was replaced: what was written for the old one stays."""
        self.text, self.chosen = old.text, old.chosen
        if old.is_touched:
            self._touch()

    # What there is to choose

    @property
    def is_choice(self) -> bool:
        kinds = BooleanQuestion | SingleSelectQuestion | MultiSelectQuestion
        return isinstance(self.question, kinds)

    @property
    def is_many(self) -> bool:
        return isinstance(self.question, MultiSelectQuestion)

    @property
    def options(self) -> tuple[Option, ...]:
        if isinstance(self.question, BooleanQuestion):
            return (Option(id=YES, label="Yes"), Option(id=NO, label="No"))
        options: tuple[Option, ...] = getattr(self.question, "options", ())
        return options

    @property
    def rows(self) -> tuple[str, ...]:
        """The ids of the options that are shown, and maybe the row for other text."""
        wanted = self.search.casefold()
        shown = tuple(o.id for o in self.options if wanted in o.label.casefold())
        takes_own = bool(getattr(self.question, "allow_freeform_input", False))
        return (*shown, OWN) if takes_own else shown

    @property
    def here(self) -> str | None:
        rows = self.rows
        return rows[min(self.row, len(rows) - 1)] if rows else None

    @property
    def accepts_text(self) -> bool:
        """Whether letters are written into the text field now."""
        return not self.is_choice or self.here == OWN

    @property
    def is_searched(self) -> bool:
        return len(self.options) > SEARCHED_FROM

    # Doing something

    def move(self, steps: int) -> None:
        rows = len(self.rows)
        if rows:
            self.row = (min(self.row, rows - 1) + steps) % rows

    def choose(self, option: str | None) -> None:
        """Toggles the option where several can be chosen; elsewhere selects it."""
        if option is None or option == OWN:
            return
        if not self.is_many:
            self.chosen = (option,)
            self.text = "" if self.is_choice else self.text
        elif option in self.chosen:
            self.chosen = tuple(c for c in self.chosen if c != option)
        else:
            picked = {*self.chosen, option}
            self.chosen = tuple(o.id for o in self.options if o.id in picked)
        self._touch()

    def write(self, text: str) -> None:
        if text == self.text:
            return
        self.text = text
        if self.is_choice and not self.is_many and text:
            self.chosen = ()
        self._touch()

    def find(self, text: str) -> None:
        self.search = text
        self.row = 0

    def _touch(self) -> None:
        self.is_touched = True
        self.error = ""
        self._apply(EventType.EDITED, self._written)

    @property
    def _written(self) -> Draft | None:
        """What is written here as a draft; text that cannot be read as a value stays text."""
        try:
            value = self.value()
        except ValueError:
            value = TextValue(value=self.text)
        return None if value is None else Draft(value=value)

    def _apply(self, event: EventType, answer: Answer | None = None) -> None:
        details = DraftEvent(event, answer, self._in_flight == 0, self.is_touched)
        self.draft = transition(self.draft, details)

    # The answer

    def value(self) -> Value | None:
        """Raises `ValueError` with a message if the text is not valid."""
        plain = self._plain()
        return None if plain is None else value_of(self.question, plain)

    def _plain(self) -> Plain | None:
        match self.question:
            case BooleanQuestion():
                return self.chosen[0] == YES if self.chosen else None
            case MultiSelectQuestion():
                return (*self.chosen, *([self.text] if self.text else ())) or None
            case SingleSelectQuestion() if self.chosen:
                return self.chosen[0]
            case NumberQuestion() | IntegerQuestion() if not self.text.strip():
                return None
            case _:
                return plain_of(self.question, self.text) if self.text else None

    def valid_value(self) -> Value | None:
        """The value as an answer; raises `ValueError` with what is wrong with it."""
        if self.is_contested:
            raise ValueError("Choose a version before sending: ^T use theirs, ^K keep yours.")
        plain = self._plain()
        if plain is None:
            if self.question.required:
                raise ValueError(f"{label(self.question)}: an answer is required.")
            return None
        check_plain(self.question, plain)
        submitted = answer_of(self.question, plain)
        assert isinstance(submitted, Submitted)
        return submitted.value

    def own_value(self) -> Value | None:
        """What was written here and is not submitted yet; raises `ValueError` as `valid_value`.

        A draft of another person is theirs to finish.
        """
        if self.is_touched:
            return self.valid_value()
        if self.question.required and decided(self.shared) is None:
            raise ValueError(f"{label(self.question)}: an answer is required.")
        return None

    # Sending

    def unsent_answer(self) -> Answer | None:
        """What is to be sent; raises `ValueError` where the text cannot be read as a value yet."""
        self.value()
        return self.draft.shown

    @property
    def can_send(self) -> bool:
        """Not over a newer answer, unless a person chooses so, and not what was only emptied."""
        return self.draft.phase in (Phase.UNSENT, Phase.SENDING)

    def sent(self, answer: Answer | None) -> None:
        if answer is not None and not isinstance(answer, Draft):
            self._apply(EventType.DECIDED, answer)
        self._in_flight += 1
        self._apply(EventType.SENT)

    def confirmed(self, answer: Answer | None) -> None:
        """The host has what was sent."""
        self._in_flight -= 1
        self._follow(EventType.CONFIRMED, answer)

    def refused(self, reason: str) -> None:
        self._in_flight -= 1
        self._apply(EventType.REFUSED)
        self.error = reason

    def failed(self) -> None:
        """It was not delivered, and may be sent again."""
        self._in_flight -= 1
        self._apply(EventType.FAILED)

    # What others do

    def seen(self, answer: Answer | None) -> None:
        """Applies what the host has now."""
        self._follow(EventType.RECEIVED, answer)

    def keep_mine(self) -> bool:
        """Stays with what is here, which may be sent again; whether there was a conflict."""
        was_contested = self.is_contested
        self._apply(EventType.KEPT_MINE)
        return was_contested

    def use_theirs(self) -> None:
        """Makes their version of a conflict ours, to be submitted with the rest."""
        if self.is_contested:
            self._apply(EventType.USED_THEIRS)
            self._fill()
            self.is_touched = True

    def left(self) -> None:
        """An answer that was only emptied still counts, so it is shown again."""
        self._follow(EventType.LEFT)

    def _follow(self, event: EventType, answer: Answer | None = None) -> None:
        before = content_of(self.draft.shown)
        self._apply(event, answer)
        if content_of(self.draft.shown) != before:
            self._fill()
            self.is_touched = False

    def _fill(self) -> None:
        """Puts into the field what the draft shows."""
        self.error, self.text, self.chosen = "", "", ()
        match content_of(self.draft.shown):
            case TextValue(value=text):
                self.text = text
            case NumberValue(value=number):
                self.text = f"{number}"
            case BooleanValue(value=truth):
                self.chosen = (YES if truth else NO,)
            case SelectedValue(value=chosen, freeform_values=own):
                known = any(option.id == chosen for option in self.options)
                self.chosen = (chosen,) if known else ()
                self.text = "" if known else ", ".join(own or (chosen,))
            case SelectedManyValue(value=many, freeform_values=own):
                self.chosen, self.text = many, ", ".join(own or ())
            case None:
                pass
        self._go_to_chosen()

    def _propose(self) -> None:
        """Shows the question's default, unsent, until there is an answer."""
        default = getattr(self.question, "default_value", None)
        if isinstance(default, bool):
            self.chosen = (YES if default else NO,)
        elif default is not None:
            self.text = str(default)
        self._go_to_chosen()

    def _go_to_chosen(self) -> None:
        rows = self.rows
        recommended = [option.id for option in self.options if option.recommended]
        for row in (*self.chosen, *((OWN,) if self.text else ()), *recommended):
            if row in rows:
                self.row = rows.index(row)
                return

    # As text

    def shown(self) -> str:
        try:
            value = self.value()
        except ValueError:
            return self.text
        return "" if value is None else value_text(self.question, value)

    def author_text(self, answer: Answer, me: Author | None) -> str:
        """The author; "you (elsewhere)" for an answer from another device of the same person."""
        who = author_text(None if answer.meta is None else answer.meta.by, me)
        is_elsewhere = self.is_foreign or self.is_contested
        return "you (elsewhere)" if who == "you" and is_elsewhere else who

    def theirs_text(self, me: Author | None) -> str:
        """The other version of a conflict."""
        answer = self.draft.at_host
        if answer is None:
            return "this was cleared"
        who = self.author_text(answer, me)
        if isinstance(answer, Skipped) or answer.value is None:
            return f"{who} skipped this"
        return f"{who} wrote “{value_text(self.question, answer.value)}”"


class Form:
    """`place` is the number of a field, or, after the last, the review."""

    def __init__(self, request: InputRequest) -> None:
        self.request = request
        self.fields = [Field(question) for question in request.questions or ()]
        self.place = 0
        self.ending = ResponseKind.ACCEPT
        self.error = ""
        self.seen(request)

    @property
    def field(self) -> Field | None:
        return self.fields[self.place] if self.place < len(self.fields) else None

    @property
    def is_review(self) -> bool:
        return self.field is None

    @property
    def is_short(self) -> bool:
        """One question needs no strip and no review."""
        return len(self.fields) == 1

    def go(self, steps: int) -> None:
        self.place = max(0, min(self.place + steps, len(self.fields)))

    def go_to(self, place: int) -> None:
        self.place = max(0, min(place, len(self.fields)))

    def turn_ending(self, steps: int) -> None:
        endings = tuple(ResponseKind)
        self.ending = endings[(endings.index(self.ending) + steps) % len(endings)]

    def seen(self, request: InputRequest, confirmed: InputRequest | None = None) -> None:
        """The request as it is shown, and as the host has it; its questions may be new."""
        if request.questions != self.request.questions:
            known = {field.question.id: field for field in self.fields}
            self.fields = [Field(question) for question in request.questions or ()]
            for field in self.fields:
                old = known.get(field.question.id)
                if old is not None and type(old.question) is type(field.question):
                    field.continue_from(old)
            self.go(0)
        self.request = request
        answers = (confirmed or request).answers or {}
        for field in self.fields:
            answer = answers.get(field.question.id)
            if answer != field.draft.at_host:
                field.seen(answer)

    def answers(self) -> dict[str, Answer] | None:
        """What accepting brings. Raises `ValueError`, and goes there."""
        answers: dict[str, Answer] = {}
        for place, field in enumerate(self.fields):
            try:
                value = field.own_value()
            except ValueError as error:
                field.error = str(error)
                self.place = place
                raise
            if value is not None:
                answers[field.question.id] = Submitted(value=value)
        return answers or None

    def review(self) -> tuple[ReviewItem, ...]:
        """What accepting would send now, one item for each field."""
        own: dict[str, Answer] = {}
        for field in self.fields:
            with contextlib.suppress(ValueError):  # reported when it is accepted or left
                value = field.own_value()
                if value is not None:
                    own[field.question.id] = Submitted(value=value)
        return review_of(self.request, own)

    def unsent(self) -> list[str]:
        """What was written here and did not count, so that it is not lost."""
        return [
            f"{label(field.question)}: {field.shown()}"
            for field in self.fields
            if field.is_touched and field.shown()
        ]
