"""One question as it is being answered here, beside what everybody else sees and writes.

Nothing of this touches a terminal or a socket. A remote draft replaces what is here only as long as
nobody has typed here since; otherwise both are kept, and a person chooses.
"""

from session_server.cli.answers import author_words
from session_server.cli.written import check_given, plain_of
from session_server.client import Plain
from session_server.client.values import answer_of, value_of
from session_server.reducers.answers import label
from session_server.reducers.words import value_words
from session_server.schemas.principals import Author
from session_server.schemas.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextValue,
    Value,
)

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
