"""A request while it is answered in a terminal: its fields, the position in it, and its ending."""

import contextlib

from session_server.cli.answer_texts import author_words
from session_server.cli.values import check_given, plain_of
from session_server.client import Plain
from session_server.client.answer_values import answer_of, value_of
from session_server.reducers.forms.answer_checks import label
from session_server.reducers.forms.review import decided, review_of
from session_server.reducers.texts import value_words
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
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
OWN = "\0own words"
"""The row under the options in which something else can be written."""

SEARCHED_FROM = 12


class Field:
    def __init__(self, question: Question) -> None:
        self.question = question
        self.text = ""
        self.chosen: tuple[str, ...] = ()
        self.row = 0
        self.search = ""
        self.error = ""
        self.shared: Answer | None = None
        self.theirs: Answer | None = None
        self.is_touched = False
        self.is_foreign = False
        self._sent: Value | None = None
        self._propose()

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
        """The ids of the options that are shown, and maybe the row for own words."""
        wanted = self.search.casefold()
        shown = tuple(o.id for o in self.options if wanted in o.label.casefold())
        takes_own = bool(getattr(self.question, "allow_freeform_input", False))
        return (*shown, OWN) if takes_own else shown

    @property
    def here(self) -> str | None:
        rows = self.rows
        return rows[min(self.row, len(rows) - 1)] if rows else None

    @property
    def takes_text(self) -> bool:
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
        """In a list of many it is put in or taken out; elsewhere it is the one."""
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

    def find(self, words: str) -> None:
        self.search = words
        self.row = 0

    def _touch(self) -> None:
        self.is_touched = True
        self.error = ""

    # The answer

    def value(self) -> Value | None:
        """Raises `ValueError`, in words, where the text cannot be what it should be."""
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
        if self.theirs is not None:
            raise ValueError("Choose a version before sending: ^T use theirs, ^K keep yours.")
        plain = self._plain()
        if plain is None:
            if self.question.required:
                raise ValueError(f"{label(self.question)}: an answer is required.")
            return None
        check_given(self.question, plain)
        submitted = answer_of(self.question, plain)
        assert isinstance(submitted, Submitted)
        return submitted.value

    def sent(self, value: Value | None) -> None:
        """It was shared, so its echo is no news."""
        self._sent = value
        self.theirs = None
        self.is_foreign = False

    def submitted(self, value: Value | None) -> None:
        """It was given as the answer; whatever comes after is a change of mind."""
        self.sent(value)
        self.is_touched = False

    # What others do

    def seen(self, answer: Answer | None) -> bool:
        """What the session shows now; whether that changed what is here."""
        self.shared = answer
        value = None if answer is None or isinstance(answer, Skipped) else answer.value
        if value == self._sent:
            self.theirs = None  # ours is what the host has now
            return False
        if self.is_touched and self._differs_from(value):
            self.theirs = answer
            return False
        self._take(value)
        self.is_foreign = answer is not None
        return True

    def keep_mine(self) -> bool:
        """Stays with what is here, which may be shared again; whether there was a conflict."""
        if self.theirs is None:
            return False
        self.theirs = None
        return True

    def take_theirs(self) -> bool:
        if self.theirs is None:
            return False
        value = None if isinstance(self.theirs, Skipped) else self.theirs.value
        self._take(value)
        return True

    def _differs_from(self, value: Value | None) -> bool:
        try:
            return self.value() != value
        except ValueError:
            return True

    def _take(self, value: Value | None) -> None:
        self._sent, self.theirs, self.error, self.is_touched = value, None, "", False
        self.text, self.chosen = "", ()
        match value:
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
        """What the question suggests stands here, unsent, until somebody says otherwise."""
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

    # In words

    def words(self) -> str:
        try:
            value = self.value()
        except ValueError:
            return self.text
        return "" if value is None else value_words(self.question, value)

    def author_words(self, answer: Answer, me: Author | None) -> str:
        """The same person may be at two devices."""
        who = author_words(None if answer.meta is None else answer.meta.by, me)
        is_elsewhere = self.is_foreign or answer is self.theirs
        return "you (elsewhere)" if who == "you" and is_elsewhere else who

    def theirs_words(self, me: Author | None) -> str:
        answer = self.theirs
        if answer is None:
            return ""
        who = self.author_words(answer, me)
        if isinstance(answer, Skipped) or answer.value is None:
            return f"{who} skipped this"
        return f"{who} wrote “{value_words(self.question, answer.value)}”"


ENDINGS = (ResponseKind.ACCEPT, ResponseKind.DECLINE, ResponseKind.CANCEL)


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
        self.ending = ENDINGS[(ENDINGS.index(self.ending) + steps) % len(ENDINGS)]

    def seen(self, request: InputRequest) -> None:
        """The request as the session shows it now; its questions may have been replaced."""
        if request.questions != self.request.questions:
            known = {field.question.id: field for field in self.fields}
            self.fields = [Field(question) for question in request.questions or ()]
            for field in self.fields:
                old = known.get(field.question.id)
                if old is not None and type(old.question) is type(field.question):
                    field.text, field.chosen, field.is_touched = (
                        old.text,
                        old.chosen,
                        old.is_touched,
                    )
            self.go(0)
        self.request = request
        for field in self.fields:
            answer = (request.answers or {}).get(field.question.id)
            if answer != field.shared:
                field.seen(answer)

    def answers(self) -> dict[str, Answer] | None:
        """What accepting brings: what was written here and is not submitted yet.

        A draft of somebody else's is theirs to finish. Raises `ValueError`, and goes there.
        """
        answers: dict[str, Answer] = {}
        for place, field in enumerate(self.fields):
            if not field.is_touched:
                if decided(field.shared) is None:
                    self._check_untouched(place, field)
                continue
            try:
                value = field.valid_value()
            except ValueError as error:
                field.error = str(error)
                self.place = place
                raise
            if value is not None:
                answers[field.question.id] = Submitted(value=value)
        return answers or None

    def own_answers(self) -> dict[str, Answer]:
        """What accepting would bring, as far as it is valid; nothing is reported at the fields."""
        own: dict[str, Answer] = {}
        for field in self.fields:
            with contextlib.suppress(ValueError):
                value = field.valid_value() if field.is_touched else None
                if value is not None:
                    own[field.question.id] = Submitted(value=value)
        return own

    def review(self) -> tuple[ReviewItem, ...]:
        """What accepting would send now, one item for each field."""
        return review_of(self.request, self.own_answers())

    def _check_untouched(self, place: int, field: Field) -> None:
        if field.question.required:
            self.place = place
            words = f"{label(field.question)}: an answer is required."
            field.error = words
            raise ValueError(words)

    def unsent(self) -> list[str]:
        """What was written here and did not count, so that it is not lost."""
        return [
            f"{label(field.question)}: {field.words()}"
            for field in self.fields
            if field.is_touched and field.words()
        ]
