"""Questions and answers in words: what is asked, what is allowed, and what was said by whom."""

from rich.text import Text

from session_server.cli.states import clock
from session_server.reducers.answers import label
from session_server.reducers.formats import FORMATS
from session_server.reducers.words import name_of, value_words
from session_server.schemas.principals import Author, Provenance
from session_server.schemas.questions import (
    Answer,
    AnswerMeta,
    BooleanQuestion,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    Question,
    SingleSelectQuestion,
    Skipped,
    TextQuestion,
)


def heading(request: InputRequest) -> str:
    return request.message or "A question"


def asker(request: InputRequest) -> str:
    """Which server and tool it is for; empty if nobody else asks than the agent."""
    meta = request.meta
    named = () if meta is None else (meta.server, meta.tool)
    return " · ".join(name for name in named if name)


def author_words(by: Author | None, me: Author | None = None) -> str:
    return "you" if by is not None and by == me else name_of(by)


def answer_text(question: Question, answer: Answer | None, me: Author | None = None) -> Text:
    """Empty, being written, submitted or skipped, and by whom."""
    if answer is None:
        return Text("–", style="dim")
    meta = answer.meta or AnswerMeta()
    who = author_words(meta.by, me)
    how = " (a policy)" if meta.via is Provenance.POLICY else ""
    at = "" if meta.at is None else f" {clock(meta.at)}"
    if isinstance(answer, Skipped):
        return Text(f"skipped by {who}{how}{at}", style="dim")
    said = "" if answer.value is None else value_words(question, answer.value)
    if isinstance(answer, Draft):
        writes = "are" if who == "you" else "is"
        return Text.assemble((said, "italic"), (f"  {who}{how} {writes} writing", "yellow"))
    return Text.assemble((said, "bold"), (f"  submitted by {who}{how}{at}", "green"))


def needs(question: Question) -> str:
    """What an answer has to be, in words."""
    words = [*_bounds(question)]
    if isinstance(question, TextQuestion) and question.format in FORMATS:
        words.insert(0, FORMATS[question.format][1])
    if getattr(question, "allow_freeform_input", False):
        words.append("or something else")
    words.insert(0, "required" if question.required else "optional")
    return ", ".join(words)


_UNITS: dict[type, str] = {TextQuestion: " characters", MultiSelectQuestion: " choices"}


def _bounds(question: Question) -> list[str]:
    if isinstance(question, BooleanQuestion | SingleSelectQuestion):
        return []
    low, high = question.min, question.max
    unit = _UNITS.get(type(question), "")
    words = ["a whole number"] if isinstance(question, IntegerQuestion) else []
    words += ["a number"] if isinstance(question, NumberQuestion) else []
    if low is not None and high is not None:
        words.append(f"{low}–{high}{unit}")
    elif low is not None:
        words.append(f"at least {low}{unit}")
    elif high is not None:
        words.append(f"at most {high}{unit}")
    return words


def question_line(question: Question) -> str:
    name = label(question)
    return f"{name} *" if question.required else name
