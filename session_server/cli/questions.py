r"""Questions in one line, for `ask --question`.

    ID[?][:KIND[MIN..MAX]]:PROMPT[=REST]

Required unless `?` follows the id. KIND is `text` if it is left out. REST is the options of a
`select` or `multi`, or the default of any other kind:

    name:What should we call it?
    env:select:Which environment?=staging|prod*
    region:select:Where?=eu=Europe|us=United States|...
    checks:multi[1..3]:Which checks?=lint*|tests*|docs
    replicas:integer[1..20]:How many?=3
    note?:text[..200]:Anything else?
    sure:yes-no:Are you sure?=no

An option is an id, or `id=Label`; `*` after it recommends it; `...` at the end allows something
else. A backslash takes the meaning from the sign after it.
"""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

from session_server.cli.failures import UsageError
from session_server.cli.values import number, truth, whole_number
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    Option,
    Question,
    SingleSelectQuestion,
    TextQuestion,
)

FREEFORM = ("...", "…")
_KIND = re.compile(r"([a-z][a-z-]*)(?:\[(.*)\])?", re.DOTALL)
_BOUNDS = re.compile(r"\s*(-?[\d.]*?)\s*\.\.\s*(-?[\d.]*)\s*")
_HELP = "The syntax is ID:KIND:PROMPT=REST; `session-server ask --help` shows examples."


class Line(NamedTuple):
    """The parts of a one-line question; `rest` is still escaped."""

    id: str
    required: bool
    kind: str
    bounds: dict[str, Any]
    prompt: str
    rest: str | None


def parsed_questions(lines: Iterable[str]) -> tuple[Question, ...]:
    questions = tuple(parsed_question(line, number) for number, line in enumerate(lines, 1))
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise UsageError(f"Two questions are called {question.id!r}.", _HELP)
        seen.add(question.id)
    return questions


def parsed_question(text: str, number: int = 1) -> Question:
    line = _parts(text, number)
    build = KINDS.get(line.kind)
    if build is None:
        close = get_close_matches(line.kind, KINDS, n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        known = ", ".join(KINDS)
        raise UsageError(
            f"{text!r}: {line.kind!r} is not a kind of question.", f"{hint}Use one of: {known}."
        )
    if not line.prompt.strip():
        raise UsageError(f"{text!r}: the question has no text.", _HELP)
    fields = {"id": line.id, "message": line.prompt, "required": line.required or None}
    try:
        return build(line, fields)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}", _HELP) from None


def _parts(text: str, number: int) -> Line:
    head, *more = _split(text, ":", 2)
    if not more:
        prompt, rest = _prompt(text)
        _check_no_options(text, rest)
        return Line(f"q{number}", True, "text", {}, prompt, rest)
    name, required = _name(head, text)
    found = _KIND.fullmatch(more[0].strip()) if len(more) == 2 else None
    if found is None:
        prompt, rest = _prompt(":".join(more))
        _check_no_options(text, rest)
        return Line(name, required, "text", {}, prompt, rest)
    prompt, rest = _prompt(more[1])
    kind = _ALIASES.get(found[1], found[1])
    return Line(name, required, kind, _bounds(kind, found[2], text), prompt, rest)


def _check_no_options(text: str, rest: str | None) -> None:
    """Without a kind, `env=staging|prod` would be asked as free text with an odd default."""
    if rest is not None and len(_split(rest, "|")) > 1:
        advice = (
            "To offer a choice, write ID:select:PROMPT=OPTION|OPTION, as in"
            " 'env:select:Which environment?=staging|prod'."
            " For free text with this default, write ID:text:PROMPT=DEFAULT."
        )
        raise UsageError(f"{text!r} lists options but does not name its kind.", advice)


def _name(head: str, text: str) -> tuple[str, bool]:
    name = head.strip()
    required = not name.endswith("?")
    name = _plain(name.removesuffix("?")).strip()
    if not name or any(sign.isspace() for sign in name):
        message = f"{text!r}: {name!r} cannot be a question's id."
        raise UsageError(message, f"Ids have no spaces; \\: is a colon in a question. {_HELP}")
    return name, required


def _prompt(text: str) -> tuple[str, str | None]:
    prompt, *rest = _split(text, "=", 1)
    return _plain(prompt).strip(), rest[0] if rest else None


def _bounds(kind: str, text: str | None, line: str) -> dict[str, Any]:
    if text is None:
        return {}
    found = _BOUNDS.fullmatch(text)
    if found is None or kind not in _BOUNDED:
        message = f"{line!r}: [{text}] is not understood after {kind}."
        raise UsageError(message, f"Bounds are [MIN..MAX], for {', '.join(_BOUNDED)}.")
    read: Callable[[str], Any] = number if kind == "number" else whole_number
    pairs = zip(("min", "max"), found.groups(), strict=True)
    try:
        return {name: read(written) for name, written in pairs if written}
    except ValueError as error:
        raise UsageError(f"{line!r}: {error}", _HELP) from None


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


# Kinds


def _valued(
    kind: Callable[..., Question], read: Callable[[str], Any], **fixed: str
) -> Callable[[Line, dict[str, Any]], Question]:
    """A question whose REST is its default."""

    def build(line: Line, fields: dict[str, Any]) -> Question:
        default = None if line.rest is None else read(line.rest)
        return kind(**fields, **line.bounds, **fixed, default_value=default)

    return build


def _select(line: Line, fields: dict[str, Any]) -> Question:
    options, freeform = _options(line)
    if sum(bool(option.recommended) for option in options) > 1:
        message = f"{line.id!r}: a select recommends one option at most."
        raise UsageError(message, "Use `multi` where several can be chosen.")
    return SingleSelectQuestion(**fields, options=options, allow_freeform_input=freeform or None)


def _multi(line: Line, fields: dict[str, Any]) -> Question:
    options, freeform = _options(line)
    return MultiSelectQuestion(
        **fields, **line.bounds, options=options, allow_freeform_input=freeform or None
    )


KINDS: dict[str, Callable[[Line, dict[str, Any]], Question]] = {
    "text": _valued(TextQuestion, _plain),
    "email": _valued(TextQuestion, _plain, format="email"),
    "uri": _valued(TextQuestion, _plain, format="uri"),
    "date": _valued(TextQuestion, _plain, format="date"),
    "date-time": _valued(TextQuestion, _plain, format="date-time"),
    "number": _valued(NumberQuestion, number),
    "integer": _valued(IntegerQuestion, whole_number),
    "yes-no": _valued(BooleanQuestion, truth),
    "select": _select,
    "multi": _multi,
}
_ALIASES = {
    "bool": "yes-no",
    "boolean": "yes-no",
    "choice": "select",
    "datetime": "date-time",
    "int": "integer",
    "multi-select": "multi",
    "single-select": "select",
    "string": "text",
    "url": "uri",
}
"""Names from other tools and from AHP."""

_BOUNDED = ("text", "number", "integer", "multi")


# Small pieces


def _options(line: Line) -> tuple[tuple[Option, ...], bool]:
    written = _split(line.rest or "", "|")
    freeform = written[-1].strip() in FREEFORM
    options = tuple(_option(part) for part in (written[:-1] if freeform else written) if part)
    if not options and not freeform:
        message = f"{line.id!r}: there are no options to choose from."
        raise UsageError(message, "Options follow the question: PROMPT=staging|prod*")
    return options, freeform


def _option(text: str) -> Option:
    stripped = text.strip()
    recommended = stripped.endswith("*") and not stripped.endswith("\\*")
    name, *label = _split(stripped.removesuffix("*") if recommended else stripped, "=", 1)
    option_id = _plain(name).strip()
    message = _plain(label[0]).strip() if label else option_id
    return Option(id=option_id, label=message, recommended=recommended or None)


def _split(text: str, sign: str, times: int = -1) -> list[str]:
    """Splits at signs that are not escaped; the pieces stay escaped."""
    pieces: list[str] = []
    piece, escaped = "", False
    for character in text:
        if character == sign and not escaped and len(pieces) != times:
            pieces.append(piece)
            piece = ""
            continue
        piece += character
        escaped = character == "\\" and not escaped
    return [*pieces, piece]
