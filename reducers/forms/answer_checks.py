"""Whether an answer fits its question.

A draft has to be of the question's kind and of bounded size, no more: people are still typing. A
submitted answer is checked in full.
"""

from session_server.reducers.forms.formats import FORMATS, matches
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    Draft,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    TextQuestion,
    TextValue,
    Value,
)
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.limits import ANSWER_CHARS, FREEFORM_VALUES, OPTIONS_PER_QUESTION

FLOAT_MAX = 1.7976931348623157e308


def label(question: Question) -> str:
    return question.title or question.message or question.id


def check_answer(question: Question, answer: Answer) -> Refusal | None:
    """Why this answer cannot be stored for this question, if so."""
    if isinstance(answer, Skipped):
        return _check_size(question, answer)
    value = answer.value
    if value is None:
        return _refusal(question, RefusalCode.NO_VALUE, "an answer needs a value")
    refusal = _check_kind(question, value)
    if type(value) is not TextValue or len(value.value) > ANSWER_CHARS:
        refusal = refusal or _check_size(question, answer)
    if refusal is not None or isinstance(answer, Draft):
        return refusal
    return check_value(question, value)


def check_value(question: Question, value: Value) -> Refusal | None:
    """Why this value is not a valid answer to this question, or `None`."""
    match question, value:
        case TextQuestion(), TextValue():
            return _check_text(question, value.value)
        case NumberQuestion() | IntegerQuestion(), NumberValue():
            return _check_number(question, value.value)
        case BooleanQuestion(), BooleanValue():
            return None
        case SingleSelectQuestion(), SelectedValue():
            return _check_selected(question, value)
        case MultiSelectQuestion(), SelectedManyValue():
            return _check_selected_many(question, value)
        case _:
            return _check_kind(question, value)


# A draft is checked with every key that is pressed, so the pairs are looked up, not matched.
_KINDS: dict[type, tuple[type, str]] = {
    TextQuestion: (TextValue, "the answer must be text"),
    NumberQuestion: (NumberValue, "the answer must be a number"),
    IntegerQuestion: (NumberValue, "the answer must be a number"),
    BooleanQuestion: (BooleanValue, "the answer must be yes or no"),
    SingleSelectQuestion: (SelectedValue, "the answer must be one of the options"),
    MultiSelectQuestion: (SelectedManyValue, "the answer must be a list of options"),
}


def _check_kind(question: Question, value: Value) -> Refusal | None:
    fitting, message = _KINDS[type(question)]
    if type(value) is not fitting:
        return _refusal(question, RefusalCode.WRONG_KIND, message)
    return None


def _check_size(question: Question, answer: Answer) -> Refusal | None:
    texts, own = _texts(answer)
    if len(texts) > OPTIONS_PER_QUESTION or len(own) > FREEFORM_VALUES:
        message = f"at most {OPTIONS_PER_QUESTION} options and {FREEFORM_VALUES} own values"
        return _refusal(question, RefusalCode.LIMIT, message)
    if sum(map(len, texts)) + sum(map(len, own)) > ANSWER_CHARS:
        message = f"an answer may have at most {ANSWER_CHARS} characters"
        return _refusal(question, RefusalCode.LIMIT, message)
    return None


def _texts(answer: Answer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The chosen options and the freeform text."""
    if isinstance(answer, Skipped):
        return (), answer.freeform_values or ()
    match answer.value:
        case TextValue(value=text):
            return (text,), ()
        case SelectedValue(value=chosen, freeform_values=own):
            return (chosen,), own or ()
        case SelectedManyValue(value=many, freeform_values=own):
            return many, own or ()
        case _:
            return (), ()


def _check_text(question: TextQuestion, text: str) -> Refusal | None:
    size = len(text)
    if question.min is not None and size < question.min:
        message = f"needs at least {question.min} characters, this has {size}"
        return _refusal(question, RefusalCode.TOO_SHORT, message)
    if question.max is not None and size > question.max:
        message = f"accepts at most {question.max} characters, this answer has {size}"
        return _refusal(question, RefusalCode.TOO_LONG, message)
    if question.format in FORMATS:
        fits, wanted = FORMATS[question.format]
        if not fits(text):
            return _refusal(question, RefusalCode.BAD_FORMAT, f"must be {wanted}")
    pattern = question.meta.pattern if question.meta is not None else None
    if pattern is not None and not matches(pattern, text):
        return _refusal(question, RefusalCode.BAD_PATTERN, f"must match the pattern “{pattern}”")
    return None


def _check_number(question: NumberQuestion | IntegerQuestion, number: float) -> Refusal | None:
    if not -FLOAT_MAX <= number <= FLOAT_MAX:
        return _refusal(question, RefusalCode.WRONG_KIND, "must be a finite number")
    is_whole = isinstance(question, IntegerQuestion) or isinstance(number, int)
    if is_whole and not -(2**63) <= number < 2**63:
        return _refusal(question, RefusalCode.TOO_LARGE, "must fit into 64 bits")
    if isinstance(question, IntegerQuestion) and number != int(number):
        return _refusal(question, RefusalCode.NOT_AN_INTEGER, "must be a whole number")
    if question.min is not None and number < question.min:
        return _refusal(question, RefusalCode.TOO_SMALL, f"must be at least {question.min}")
    if question.max is not None and number > question.max:
        return _refusal(question, RefusalCode.TOO_LARGE, f"must be at most {question.max}")
    return None


def _check_selected(question: SingleSelectQuestion, value: SelectedValue) -> Refusal | None:
    """With freeform, `value` may be an option, other text, or empty with freeform values."""
    if value.freeform_values and not question.allow_freeform_input:
        return _refusal(question, RefusalCode.NO_FREEFORM, "accepts only the listed options")
    if any(option.id == value.value for option in question.options):
        return None
    if question.allow_freeform_input and (value.value or value.freeform_values):
        return None
    return _refusal(question, RefusalCode.NOT_AN_OPTION, f"has no option {value.value!r}")


def _check_selected_many(question: MultiSelectQuestion, value: SelectedManyValue) -> Refusal | None:
    own = value.freeform_values or ()
    if own and not question.allow_freeform_input:
        return _refusal(question, RefusalCode.NO_FREEFORM, "accepts only the listed options")
    if len(set(value.value)) < len(value.value):
        return _refusal(question, RefusalCode.DUPLICATE, "names an option twice")
    known = {option.id for option in question.options}
    strange = next((chosen for chosen in value.value if chosen not in known), None)
    if strange is not None:
        return _refusal(question, RefusalCode.NOT_AN_OPTION, f"has no option {strange!r}")
    count = len(value.value) + len(own)
    if question.min is not None and count < question.min:
        message = f"needs at least {question.min} choices, this has {count}"
        return _refusal(question, RefusalCode.TOO_FEW, message)
    if question.max is not None and count > question.max:
        message = f"accepts at most {question.max} choices, this answer has {count}"
        return _refusal(question, RefusalCode.TOO_MANY, message)
    return None


def _refusal(question: Question, code: RefusalCode, message: str) -> Refusal:
    return Refusal(code=code, message=f"{label(question)}: {message}.", question_id=question.id)
