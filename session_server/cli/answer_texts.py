"""Questions and answers in words: what is asked, what is allowed, and what was said by whom."""

from rich.text import Text

from session_server.cli.sessions import clock
from session_server.reducers.forms.answer_checks import label
from session_server.reducers.forms.formats import FORMATS
from session_server.reducers.forms.review import decided
from session_server.reducers.texts import name_of, value_words
from session_server.schemas.ahp.questions import (
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
    Source,
    TextQuestion,
)
from session_server.schemas.http import ReviewItem
from session_server.schemas.principals import Author, Provenance


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
        words = f"  {draft_words(answer, f'{who}{how}')}{covered_words(question, answer, me)}"
        return Text.assemble((said, "italic"), (words, "yellow"))
    return Text.assemble((said, "bold"), (f"  submitted by {who}{how}{at}", "green"))


def draft_words(draft: Draft, who: str) -> str:
    """Whose draft it is and from when. Who is writing just now is known from presence alone."""
    meta = draft.meta or AnswerMeta()
    if meta.before_change:
        return f"{who} wrote this before the question changed"
    if meta.via is Provenance.PROPOSED:
        return f"proposed by {who}"
    at = "" if meta.at is None else f" {clock(meta.at)}"
    return f"draft by {who}{at}"


def covered_words(question: Question, draft: Draft, me: Author | None = None) -> str:
    """Which answer counts as long as this draft is not submitted."""
    covered = decided(draft)
    if covered is None:
        return ""
    who = author_words(None if covered.meta is None else covered.meta.by, me)
    if isinstance(covered, Skipped) or covered.value is None:
        return f"; until it is submitted, the skip by {who} counts"
    said = value_words(question, covered.value)
    return f"; until it is submitted, “{said}” by {who} counts"


def review_words(question: Question, item: ReviewItem, me: Author | None = None) -> str:
    """What is sent for one question, whose it is, and which draft is not included."""
    words = "" if item.value is None else value_words(question, item.value)
    who = None if item.meta is None else author_words(item.meta.by, me)
    match item.source:
        case Source.DEFAULT:
            words = f"{words} (default)"
        case Source.SKIPPED:
            words = "skipped" if who is None else f"skipped by {who}"
        case Source.UNANSWERED:
            words = "an answer is required" if question.required else "–"
        case _:
            words = words if who is None else f"{words}  submitted by {who}"
    if item.draft is None or item.draft.value is None:
        return words
    by = author_words(None if item.draft.meta is None else item.draft.meta.by, me)
    whose = "your" if by == "you" else f"{by}'s"
    return f"{words}; {whose} draft “{value_words(question, item.draft.value)}” is not included"


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
