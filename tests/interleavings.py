"""Several people at one form: any order of drafts, submissions, skips and clearings.

`Expected` is what should be sent, kept by a model that knows nothing of the host's reducers.
"""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from session_server.schemas.ahp.actions import InputAnswerChanged
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberValue,
    Option,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
    Value,
)

OPTIONS = (Option(id="eu", label="Europe", recommended=True), Option(id="us", label="America"))
QUESTIONS = (
    IntegerQuestion(id="percent", message="Percent", default_value=10),
    TextQuestion(id="note", message="Note"),
    BooleanQuestion(id="notify", message="Notify", default_value=True),
    SingleSelectQuestion(id="region", message="Region", options=OPTIONS),
    MultiSelectQuestion(id="also", message="Also in", options=OPTIONS),
    TextQuestion(id="name", message="Name", required=True, default_value="nightly"),
)
FORM = InputRequest(id="r", message="Deploy", questions=QUESTIONS)
DEFAULTS = {"percent": 10, "notify": True, "region": "eu", "also": ["eu"]}
"""What is sent for the questions that nobody answers."""


class Step(NamedTuple):
    """`how`: draft, submit, skip or clear. `plain` is the value as it would be sent."""

    who: int
    question_id: str
    how: str
    value: Value | None = None
    plain: Any = None

    @property
    def answer(self) -> Answer | None:
        if self.how == "draft":
            return Draft(value=self.value)
        if self.how == "submit":
            return Submitted(value=self.value)
        return Skipped() if self.how == "skip" else None

    @property
    def action(self) -> InputAnswerChanged:
        return InputAnswerChanged(
            request_id=FORM.id, question_id=self.question_id, answer=self.answer
        )


def _values(question_id: str) -> st.SearchStrategy[tuple[Value, Any]]:
    regions = st.sampled_from(("eu", "us"))
    several = st.lists(regions, unique=True)
    values: dict[str, st.SearchStrategy[tuple[Value, Any]]] = {
        "percent": st.integers(0, 99).map(lambda n: (NumberValue(value=n), n)),
        "notify": st.booleans().map(lambda yes: (BooleanValue(value=yes), yes)),
        "region": regions.map(lambda one: (SelectedValue(value=one), one)),
        "also": several.map(lambda many: (SelectedManyValue(value=tuple(many)), many)),
    }
    texts = st.sampled_from(("", "a", "Zoë", "\u202ex"))
    return values.get(question_id, texts.map(lambda text: (TextValue(value=text), text)))


@st.composite
def steps(draw: st.DrawFn) -> Step:
    question_id = draw(st.sampled_from([question.id for question in QUESTIONS]))
    value, plain = draw(_values(question_id))
    how = draw(st.sampled_from(("draft", "draft", "submit", "skip", "clear")))
    return Step(draw(st.integers(0, 1)), question_id, how, value, plain)


class Expected:
    """What is sent if the form is accepted after these steps."""

    def __init__(self) -> None:
        self._content: dict[str, Any] = dict(DEFAULTS)
        self._drafted: set[str] = set()

    def follow(self, step: Step) -> None:
        name = step.question_id
        if step.how == "draft":
            self._drafted.add(name)
        elif step.how == "clear" and name in self._drafted:
            self._drafted.discard(name)
        else:
            self._drafted.discard(name)
            self._content.pop(name, None)
            if step.how == "submit":
                self._content[name] = step.plain
            elif step.how == "clear" and name in DEFAULTS:
                self._content[name] = DEFAULTS[name]

    @property
    def content(self) -> dict[str, Any]:
        return dict(self._content)

    @property
    def is_complete(self) -> bool:
        return "name" in self._content
