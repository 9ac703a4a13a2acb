"""A request as it is being answered here: its fields, where one is in it, and how it is to end."""

import contextlib

from session_server.cli.fields import Field
from session_server.reducers.answers import label
from session_server.reducers.review import decided, review_of
from session_server.schemas.http import ReviewItem
from session_server.schemas.questions import (
    Answer,
    InputRequest,
    ResponseKind,
    Submitted,
)

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
