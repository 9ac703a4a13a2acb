"""A form as lines for prompt_toolkit: (style, text) pairs, nothing else."""

import time
from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit

from session_server.cli.answer_texts import (
    asker,
    covered_text,
    draft_text,
    heading,
    needs,
    review_text,
    time_text,
)
from session_server.cli.commands.sessions import asker_gone
from session_server.cli.form.fields import OWN, Field, Form
from session_server.reducers.forms.answer_checks import label
from session_server.reducers.forms.formats import is_web_address
from session_server.reducers.texts import value_text
from session_server.schemas.ahp.questions import (
    Answer,
    Draft,
    InputRequest,
    OnExpiry,
    ResponseKind,
    Skipped,
    Source,
)
from session_server.schemas.principals import Author

Fragments = list[tuple[str, str]]
NAMES_SHOWN = 4
CURSOR = ("[SetCursorPosition]", "")

STYLES = {
    "title": "bold",
    "dim": "ansibrightblack",
    "here": "reverse",
    "good": "ansigreen",
    "busy": "ansiyellow",
    "bad": "ansired bold",
    "domain": "bold underline",
}
ENDINGS = {
    ResponseKind.ACCEPT: ("Accept", "a"),
    ResponseKind.DECLINE: ("Decline", "d"),
    ResponseKind.CANCEL: ("Cancel", "c"),
}


def head(form: Form, title: str, connection: str, others: Sequence[str] = ()) -> Fragments:
    request = form.request
    lines: Fragments = [("class:title", heading(request))]
    if title != heading(request):
        lines.append(("class:dim", f"  {title}"))
    who = asker(request)
    if who:
        lines.append(("class:dim", f" · {who}"))
    if others:
        lines.append(("class:dim", f" · with {listed(others)}"))
    if connection != "live":
        lines.append(("class:busy", f" · {connection}"))
    lines += _deadline(form)
    gone = asker_gone(request)
    if gone is not None:
        lines += [("", "\n"), ("class:busy", gone)]
    if request.url is not None:
        lines += [("", "\n"), *web_address(request.url)]
        if openable_address(request) is None:
            lines.append(("class:bad", "  Not a web address; it cannot be opened from here."))
    return lines


def listed(names: Sequence[str]) -> str:
    """Some of them by name, the rest as a number."""
    counted = Counter(names)
    shown = [name if n == 1 else f"{name} (×{n})" for name, n in counted.most_common(NAMES_SHOWN)]
    rest = len(counted) - len(shown)
    return ", ".join([*shown, f"{rest} more"] if rest else shown)


def openable_address(request: InputRequest) -> str | None:
    """What `o` opens. A browser command could read any other text as a file or an option."""
    return request.url if request.url is not None and is_web_address(request.url) else None


def web_address(url: str) -> Fragments:
    """All of it, with the host that it leads to in bold."""
    if not is_web_address(url):
        return [("", url)]
    netloc = urlsplit(url).netloc
    user, at, domain = netloc.rpartition("@")
    start = url.index(netloc) + len(user + at)
    end = start + len(domain)
    return [("", url[:start]), ("class:domain", url[start:end]), ("", url[end:])]


def _deadline(form: Form) -> Fragments:
    meta = form.request.meta
    if meta is None or meta.expires_at is None or meta.on_expiry is OnExpiry.WAIT:
        return []
    left = max(0, round(meta.expires_at / 1000 - time.time()))
    what = "the defaults" if meta.on_expiry is OnExpiry.DEFAULTS else "cancelled"
    return [("class:busy", f" · {left // 60}:{left % 60:02} left, then {what}")]


def strip(form: Form) -> Fragments:
    """One mark per question and its state."""
    if form.is_short or not form.fields:
        return []
    lines: Fragments = []
    for place, field in enumerate(form.fields):
        is_here = place == form.place
        name = label(field.question)
        style = "class:here" if is_here else _mark_style(field)
        lines += [(style, f" {_mark(field)} {name} "), ("", " ")]
    lines.append(("class:here" if form.is_review else "", " Review "))
    return lines


def _mark(field: Field) -> str:
    if field.error:
        return "✗"
    match field.shared:
        case None:
            return "◐" if field.is_touched else "○"
        case Draft():
            return "◐"
        case Skipped():
            return "–"
        case _:
            return "●"


def _mark_style(field: Field) -> str:
    return {"✗": "class:bad", "◐": "class:busy", "●": "class:good"}.get(_mark(field), "")


def question(field: Field) -> Fragments:
    asked = field.question
    name = label(asked)
    lines: Fragments = [("class:title", name), ("class:dim", f"  {needs(asked)}")]
    if asked.message != name:
        lines.insert(0, ("", f"{asked.message}\n"))
    if field.is_searched:
        text = field.search or "type to search"
        lines.append(("class:dim", f"\n  ⌕ {text}"))
    return lines


def options(field: Field) -> Fragments:
    lines: Fragments = []
    labels = {option.id: option for option in field.options}
    for number, row in enumerate(field.rows, 1):
        is_here = row == field.here
        digit = f"{number}." if number < 10 else "  "
        if is_here:
            lines.append(CURSOR)
        style = "class:here" if is_here else ""
        if row == OWN:
            lines.append((style, f" {digit} {_box(field, OWN)} Something else"))
        else:
            option = labels[row]
            lines.append((style, f" {digit} {_box(field, row)} {option.label}"))
            if option.recommended:
                lines.append(("class:good", "  recommended"))
            if option.description:
                lines.append(("class:dim", f"  {option.description}"))
        lines.append(("", "\n"))
    if not field.rows:
        lines.append(("class:dim", "  no option matches\n"))
    return lines[:-1]


def _box(field: Field, row: str) -> str:
    is_chosen = bool(field.text) if row == OWN else row in field.chosen
    if field.is_many:
        return "[x]" if is_chosen else "[ ]"
    return "(•)" if is_chosen else "( )"


def below(field: Field, me: Author | None, writers: Sequence[str] = ()) -> Fragments:
    """What others do, and what is wrong."""
    lines: Fragments = []
    if field.is_contested:
        choice = "  ^T use theirs · ^K keep yours\n"
        lines += [("class:busy", f"  Conflict: {field.theirs_text(me)}."), ("class:dim", choice)]
    elif field.shared is not None:
        lines += [*shared_text(field, field.shared, me), ("", "\n")]
    if writers:
        verb = "is" if len(writers) == 1 else "are"
        lines += [("class:busy", f"  {listed(writers)} {verb} answering"), ("", "\n")]
    if field.error:
        lines.append(("class:bad", f"  {field.error}\n"))
    return lines[:-1] if lines and lines[-1][1] == "\n" else lines


def shared_text(field: Field, answer: Answer, me: Author | None) -> Fragments:
    who = field.author_text(answer, me)
    at = time_text(answer.meta)
    if isinstance(answer, Skipped):
        return [("class:dim", f"  skipped by {who}{at}")]
    value = "" if answer.value is None else value_text(field.question, answer.value)
    if not isinstance(answer, Draft):
        return [("class:good", f"  submitted by {who}{at}: {value}")]
    below = covered_text(field.question, answer, me)
    if not field.is_foreign:
        return [("class:dim", f"  draft, shared as you type{below}")]
    return [("class:busy", f"  {draft_text(answer, who)}: {value}{below}")]


def review(form: Form, me: Author | None) -> Fragments:
    lines: Fragments = []
    width = max((len(label(field.question)) for field in form.fields), default=0)
    for number, (field, item) in enumerate(zip(form.fields, form.review(), strict=True), 1):
        star = "*" if field.question.required else " "
        digit = f"{number}." if number < 10 else "  "
        name = f" {digit} {label(field.question):<{width}} {star} "
        lines.append((_mark_style(field), f"{_mark(field)}{name}"))
        style = "" if item.source is Source.SUBMITTED else "class:dim"
        lines += [(style, review_text(field.question, item, me)), ("", "\n")]
    if form.error:
        lines.append(("class:bad", f"{form.error}\n"))
    lines.append(("", "\n"))
    for ending, (text, key) in ENDINGS.items():
        style = "class:here" if ending is form.ending else ""
        lines += [(style, f" {text} ({key}) "), ("", "  ")]
    return lines


def keys(form: Form) -> Fragments:
    field = form.field
    if field is None:
        text = "←/→ choose · Enter do it"
        text += " · digits go to a question · Esc leave" if form.fields else " · Esc leave"
        if openable_address(form.request) is not None:
            text = f"o open the address · {text}"
        return [("class:dim", text)]
    parts = ["Enter accept" if form.is_short else "Enter next"]
    if field.is_choice:
        parts.append("↑/↓ move")
        parts.append("Space toggle" if field.is_many else "Space or digit choose")
    if not form.is_short:
        parts.append("Tab/Shift-Tab other questions")
    if not field.question.required:
        parts.append("^S skip")
    parts.append("Esc decline or cancel" if form.is_short else "Esc review")
    return [("class:dim", " · ".join(parts))]
