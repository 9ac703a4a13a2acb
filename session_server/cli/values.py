"""What people type, as values: numbers, yes or no, lists, durations."""

import math
import re
from collections.abc import Callable
from typing import Any

import typer

from session_server.client import InvalidAnswer, Plain
from session_server.client.answer_values import value_of
from session_server.reducers.forms.answer_checks import label
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    MultiSelectQuestion,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    TextQuestion,
    TextValue,
)

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")

EXAMPLE = "90s, 10m, 1h30m or 2d"


def seconds(text: str) -> float:
    """Raises `ValueError` for anything else."""
    written = text.strip().lower()
    if _PLAIN.fullmatch(written):
        return float(written)
    parts = _PART.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise ValueError(f"{text!r} is not a valid duration. Use {EXAMPLE}.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def duration(given: Any) -> float:
    """For options."""
    if isinstance(given, int | float):
        return float(given)
    try:
        return seconds(str(given))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def lasting(at_most: float) -> Callable[[Any], float]:
    """For options with a lifetime: more than 0, and bounded."""

    def checked(given: Any) -> float:
        length = duration(given)
        if not 0 < length <= at_most:
            message = f"{given!r} is too short or too long: at most {at_most / 86_400:g} days."
            raise typer.BadParameter(message)
        return length

    return checked


def time_option(help_text: str, at_most: float | None = None) -> Any:
    """An option that takes a duration."""
    parser = duration if at_most is None else lasting(at_most)
    return typer.Option(help=help_text, parser=parser, metavar="TIME")


TRUTHS = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d+,\d{3}", re.ASCII)


def number(text: str) -> int | float:
    """With a point or a comma; raises `ValueError` with a message for anything else."""
    written = text.strip()
    if not _NUMBER.fullmatch(written):
        raise ValueError(f"{text!r} is not a number.")
    if _THOUSANDS.fullmatch(written):
        raise ValueError(f"{text!r} can be read in two ways; write it without a comma.")
    read = float(written.replace(",", "."))
    if not _WHOLE.fullmatch(written):
        if not math.isfinite(read):
            raise ValueError(f"{text!r} is too large.")
        return read
    if abs(read) >= 2**63:
        raise ValueError(f"{text!r} is too large: a whole number has at most 64 bits.")
    return int(written)


def whole_number(text: str) -> int:
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a whole number.")
    return int(number(text))


def truth(text: str) -> bool:
    known = TRUTHS.get(text.strip().lower())
    if known is None:
        raise ValueError(f"{text!r} is neither yes nor no.")
    return known


def plain_of(question: Question, text: str) -> Plain | None:
    """The text as a value of the question's kind; an empty text is `None`, except for text."""
    match question:
        case TextQuestion():
            return text
        case _ if not text:
            return None
        case MultiSelectQuestion():
            return [part.strip() for part in text.split(",")]
        case SingleSelectQuestion():
            return text
        case _:
            try:
                return truth(text) if isinstance(question, BooleanQuestion) else number(text)
            except ValueError as error:
                raise InvalidAnswer(f"{label(question)}: {error}", question.id) from None


def check_plain(question: Question, plain: Plain | None) -> None:
    """Raises `InvalidAnswer` for blanks where an answer is required."""
    if question.required and plain is not None and is_blank(question, plain):
        raise InvalidAnswer(f"{label(question)}: an answer is required.", question.id)


def is_blank(question: Question, plain: Plain) -> bool:
    """Whether all that was written is blanks."""
    match value_of(question, plain):
        case TextValue(value=text):
            return not text.strip()
        case SelectedValue(value=chosen, freeform_values=own):
            return not "".join((chosen, *(own or ()))).strip()
        case SelectedManyValue(value=chosen, freeform_values=own):
            return not chosen and not "".join(own or ()).strip()
        case _:
            return False
