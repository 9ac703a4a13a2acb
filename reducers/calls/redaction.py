"""Redaction of a call's private arguments: in what is shown, in forms and in answers."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
import re2

from session_server.schemas.ahp.questions import (
    Answer,
    InputRequest,
    MultiSelectQuestion,
    Option,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Submitted,
    TextQuestion,
)
from session_server.schemas.limits import REDACTIONS_PER_VALUE
from session_server.schemas.record import Call

HIDDEN = "•••"

SHORTEST_SECRET = 4
"""Shorter texts occur by chance, so hiding them everywhere would make texts unreadable."""

END_CHARS = 32
"""A longer secret is recognized by so many characters at its beginning and at its end."""

CHARS_PER_PATTERN = 128
PATTERN_MEMORY = 1 << 26
"""Of secrets that are looked for together. RE2 is slow with a pattern that needs more memory."""

_JSON_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_JSON_MARKS = frozenset('"\\/')

Span = tuple[int, int]
T = TypeVar("T")


def shown_arguments(call: Call) -> str:
    """The arguments as text for people, with the private ones hidden."""
    arguments: dict[str, Any] = call.params.get("arguments") or {}
    shown = {
        name: HIDDEN if name in call.private_arguments else value
        for name, value in arguments.items()
    }
    return msgspec.json.encode(masked(call, shown)).decode()


def masked(call: Call, value: T) -> T:
    """A text of the server without the private arguments that it repeats."""
    arguments: dict[str, Any] = call.params.get("arguments") or {}
    secrets = {text for name in call.private_arguments for text in _texts(arguments.get(name))}
    return hidden(value, secrets)


def hidden(value: T, secrets: Iterable[str]) -> T:
    """The value with every secret in it replaced, in keys, texts and numbers.

    Where a server repeats secrets very often, each text with another one is hidden as a whole.
    """
    wanted = frozenset(secrets)
    if not wanted:
        return value
    everything = b"\n".join(_bytes(text) for text in _all_texts(value))
    return _Redaction(wanted).value(value) if _holds_any(wanted, everything) else value


def _texts(value: Any) -> list[str]:
    if _is_plain(value):
        text = value if isinstance(value, str) else _number_text(value)
        return [text] if len(text) >= SHORTEST_SECRET else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _texts(item)]


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _all_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _all_texts(inner)
    elif _is_plain(value):
        yield _number_text(value)


class _Redaction:
    """One pass over one value."""

    def __init__(self, secrets: frozenset[str]) -> None:
        self._secrets = secrets
        self._left = REDACTIONS_PER_VALUE

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(key): self.value(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner) for inner in value]
        return HIDDEN if _is_plain(value) and _number_text(value) in self._secrets else value

    def _text(self, text: str) -> str:
        written = _bytes(text)
        if not _holds_any(self._secrets, written):
            return text
        if not self._left:
            return HIDDEN
        spans = [span for secret in self._secrets for span in self._spans(secret, written)]
        if not self._left:
            return HIDDEN
        pieces: list[bytes] = []
        shown_to = 0
        for start, end in sorted(spans):
            if start >= shown_to:
                pieces += (written[shown_to:start], HIDDEN.encode())
            shown_to = max(shown_to, end)
        return b"".join((*pieces, written[shown_to:])).decode("utf-8", "surrogatepass")

    def _spans(self, secret: str, text: bytes) -> Iterator[Span]:
        begin, end = _ends_of(secret)
        ends = [] if end is None else list(self._found(end, text))
        for start, stop in self._found(begin, text):
            closing = bisect_left(ends, (start + len(secret) - END_CHARS, 0))
            yield start, max(stop, ends[closing][1] if closing < len(ends) else 0)

    def _found(self, pattern: Any, text: bytes) -> Iterator[Span]:
        """Also where one begins within another, since both have to be hidden."""
        found = pattern.search(text)
        while found is not None and self._left:
            self._left -= 1
            yield found.span()
            found = pattern.search(text, found.start() + 1)


# All spellings of a text


def _holds_any(secrets: frozenset[str], text: bytes) -> bool:
    return any(pattern.search(text) is not None for pattern in _patterns(secrets))


@lru_cache(maxsize=64)
def _patterns(secrets: frozenset[str]) -> tuple[Any, ...]:
    """Any of them finds a text that begins as one of the secrets does."""
    patterns: list[list[str]] = [[]]
    size = 0
    for begin in {secret[:END_CHARS] for secret in secrets}:
        size += len(begin)
        if size > CHARS_PER_PATTERN:
            patterns.append([])
            size = len(begin)
        patterns[-1].append(_spelled(begin))
    return tuple(_compiled(_one_of(each)) for each in patterns)


@lru_cache(maxsize=256)
def _ends_of(secret: str) -> tuple[Any, Any]:
    """What finds its beginning, and its end if that is something else."""
    end = _compiled(_spelled(secret[-END_CHARS:])) if len(secret) > END_CHARS else None
    return _compiled(_spelled(secret[:END_CHARS])), end


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # of bytes, one by one
    options.longest_match = True
    options.max_mem = PATTERN_MEMORY
    options.log_errors = False
    return re2.compile(pattern.encode(), options)


def _spelled(text: str) -> str:
    return "".join(_spelled_twice(character) for character in text)


@lru_cache(maxsize=1_024)
def _spelled_twice(character: str) -> str:
    return _one_of(_written(each, _spelled_once) for each in _spellings(character))


@lru_cache(maxsize=1_024)
def _spelled_once(character: str) -> str:
    return _one_of(_written(each, _literal) for each in _spellings(character))


def _spellings(character: str) -> Iterator[list[str]]:
    """Each is a list of characters; where one has two letters, either may be there."""
    yield [character]
    units = character.encode("utf-16-be", "surrogatepass")
    digits = [_hex_digits(units[at : at + 2]) for at in range(0, len(units), 2)]
    yield [each for unit in digits for each in ("\\", "u", *unit)]
    yield [each for byte in _bytes(character) for each in ("%", *_hex_digits(bytes((byte,))))]
    if character in _JSON_LETTERS:
        yield ["\\", _JSON_LETTERS[character]]
    if character in _JSON_MARKS:
        yield ["\\", character]
    if character == " ":
        yield ["+"]  # in a form


def _hex_digits(data: bytes) -> list[str]:
    return [digit + digit.upper() if digit.isalpha() else digit for digit in data.hex()]


def _written(spelling: list[str], inner: Callable[[str], str]) -> str:
    return "".join(_one_of(inner(letter) for letter in letters) for letters in spelling)


def _literal(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in _bytes(character))


def _one_of(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _number_text(value: Any) -> str:
    """The same for 5 and 5.0: JSON has one kind of number."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


Selecting = SingleSelectQuestion | MultiSelectQuestion

replace = msgspec.structs.replace


def redacted_request(call: Call, request: InputRequest) -> InputRequest:
    """The request without the private arguments of its call."""
    questions = request.questions or ()
    if not questions or not call.private_arguments:
        return request
    names = masked_names(call, [question.id for question in questions])
    shown = tuple(
        _redacted_question(call, q, name) for q, name in zip(questions, names, strict=True)
    )
    return replace(request, questions=shown)


def masked_names(call: Call, names: Sequence[str]) -> list[str]:
    """The names with secrets replaced, in the same order and still distinct."""
    taken = {name for name in names if masked(call, name) == name}
    shown: list[str] = []
    for name in names:
        hidden = masked(call, name)
        if hidden != name:
            hidden = _free(hidden, taken)
            taken.add(hidden)
        shown.append(hidden)
    return shown


def unmasked_answers(
    questions: Sequence[Question], shown: Sequence[Question], answers: Mapping[str, Answer]
) -> dict[str, Answer]:
    """Answers in terms of the original form, for answers to the redacted one."""
    return {
        question.id: _unmasked(question, seen, answers[seen.id])
        for question, seen in zip(questions, shown, strict=False)
        if seen.id in answers
    }


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def _redacted_question(call: Call, question: Question, name: str) -> Question:
    """Masks texts; removes constraints that hold a secret, since masking would change them."""
    shown: dict[str, Any] = {
        field.name: _if_open(call, value)
        for field in msgspec.structs.fields(question)
        if isinstance(value := getattr(question, field.name), str | int | float)
    }
    shown |= {
        "id": name,
        "message": masked(call, question.message),
        "title": masked(call, question.title),
    }
    if isinstance(question, TextQuestion) and question.meta is not None:
        shown["meta"] = question.meta if _if_open(call, question.meta.pattern) is not None else None
    if isinstance(question, Selecting):
        shown["options"] = _options(call, question)
    return replace(question, **shown)


def _if_open(call: Call, value: T) -> T | None:
    """`None` if the value would have to be masked."""
    return value if masked(call, value) == value else None


def _options(call: Call, question: Selecting) -> tuple[Option, ...]:
    names = masked_names(call, [option.id for option in question.options])
    return tuple(
        replace(
            option,
            id=name,
            label=name if option.label == option.id else masked(call, option.label),
            description=masked(call, option.description),
        )
        for option, name in zip(question.options, names, strict=True)
    )


def _unmasked(question: Question, seen: Question, answer: Answer) -> Answer:
    if not isinstance(question, Selecting) or not isinstance(seen, Selecting):
        return answer
    pairs = zip(question.options, seen.options, strict=False)
    real = {shown.id: option.id for option, shown in pairs}
    match answer:
        case Submitted(value=SelectedValue() as value):
            chosen = real.get(value.value, value.value)
            return replace(answer, value=replace(value, value=chosen))
        case Submitted(value=SelectedManyValue() as value):
            many = tuple(real.get(one, one) for one in value.value)
            return replace(answer, value=replace(value, value=many))
        case _:
            return answer
