"""Questions and answers as text: what is asked, what is allowed, and who answered what."""

from rich.text import Text

from session_server.cli.commands.sessions import clock
from session_server.reducers.forms.answer_checks import label
from session_server.reducers.forms.formats import FORMATS
from session_server.reducers.forms.review import decided
from session_server.reducers.texts import name_of, value_text
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
    """The MCP server and tool that ask; empty for the agent itself."""
    meta = request.meta
    named = () if meta is None else (meta.server, meta.tool)
    return " · ".join(name for name in named if name)


def author_text(by: Author | None, me: Author | None = None) -> str:
    return "you" if by is not None and by == me else name_of(by)


def time_text(meta: AnswerMeta | None) -> str:
    return "" if meta is None or meta.at is None else f" {clock(meta.at)}"


def answer_text(question: Question, answer: Answer | None) -> Text:
    """Empty, being written, submitted or skipped, and by whom."""
    if answer is None:
        return Text("–", style="dim")
    meta = answer.meta or AnswerMeta()
    who = name_of(meta.by)
    how = " (a policy)" if meta.via is Provenance.POLICY else ""
    at = time_text(meta)
    if isinstance(answer, Skipped):
        return Text(f"skipped by {who}{how}{at}", style="dim")
    value = "" if answer.value is None else value_text(question, answer.value)
    if isinstance(answer, Draft):
        text = f"  {draft_text(answer, f'{who}{how}')}{covered_text(question, answer)}"
        return Text.assemble((value, "italic"), (text, "yellow"))
    return Text.assemble((value, "bold"), (f"  submitted by {who}{how}{at}", "green"))


def draft_text(draft: Draft, who: str) -> str:
    """The author and time of a draft; who is typing right now comes from presence."""
    meta = draft.meta or AnswerMeta()
    if meta.before_change:
        return f"{who} wrote this before the question changed"
    if meta.via is Provenance.PROPOSED:
        return f"proposed by {who}"
    return f"draft by {who}{time_text(meta)}"


def covered_text(question: Question, draft: Draft, me: Author | None = None) -> str:
    """Which answer counts as long as this draft is not submitted."""
    covered = decided(draft)
    if covered is None:
        return ""
    who = author_text(None if covered.meta is None else covered.meta.by, me)
    if isinstance(covered, Skipped) or covered.value is None:
        return f"; until it is submitted, the skip by {who} counts"
    value = value_text(question, covered.value)
    return f"; until it is submitted, “{value}” by {who} counts"


def review_text(question: Question, item: ReviewItem, me: Author | None = None) -> str:
    """What is sent for one question, whose it is, and which draft is not included."""
    text = "" if item.value is None else value_text(question, item.value)
    who = None if item.meta is None else author_text(item.meta.by, me)
    match item.source:
        case Source.DEFAULT:
            text = f"{text} (default)"
        case Source.SKIPPED:
            text = "skipped" if who is None else f"skipped by {who}"
        case Source.UNANSWERED:
            text = "an answer is required" if question.required else "–"
        case _:
            text = text if who is None else f"{text}  submitted by {who}"
    if item.draft is None or item.draft.value is None:
        return text
    by = author_text(None if item.draft.meta is None else item.draft.meta.by, me)
    whose = "your" if by == "you" else f"{by}'s"
    return f"{text}; {whose} draft “{value_text(question, item.draft.value)}” is not included"


def needs(question: Question) -> str:
    """What a valid answer is, as text."""
    text = ["required" if question.required else "optional"]
    if isinstance(question, TextQuestion) and question.format in FORMATS:
        text.append(FORMATS[question.format][1])
    text += _bounds(question)
    if getattr(question, "allow_freeform_input", False):
        text.append("or something else")
    return ", ".join(text)


_UNITS: dict[type, str] = {TextQuestion: " characters", MultiSelectQuestion: " choices"}


def _bounds(question: Question) -> list[str]:
    if isinstance(question, BooleanQuestion | SingleSelectQuestion):
        return []
    low, high = question.min, question.max
    unit = _UNITS.get(type(question), "")
    text = ["a whole number"] if isinstance(question, IntegerQuestion) else []
    text += ["a number"] if isinstance(question, NumberQuestion) else []
    if low is not None and high is not None:
        text.append(f"{low}–{high}{unit}")
    elif low is not None:
        text.append(f"at least {low}{unit}")
    elif high is not None:
        text.append(f"at most {high}{unit}")
    return text


def question_line(question: Question) -> str:
    name = label(question)
    return f"{name} *" if question.required else name
