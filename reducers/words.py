"""Authors and values in words, as people read them in notes, refusals and terminals."""

from unicodedata import category

from ..schemas.principals import AGENT_PREFIX, HOST, LOCAL_ID, OWNER_ID, SHARE_PREFIX, Author
from ..schemas.questions import (
    BooleanValue,
    MultiSelectQuestion,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Value,
)
from .plain_values import content_value

_NAMELESS = {LOCAL_ID: "someone", OWNER_ID: "the owner", HOST.id: "the host"}


_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs"})
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks without a shape."""

_JOINERS = "\u200c\u200d"
_JOINED = frozenset({"Lo", "Mc", "Mn", "Sk", "So"})
"""What joiners stand behind where they are seen: Arabic and Indic letters, and emoji."""


def visible_name(text: str) -> str:
    """A name or title as it is shown to others: without what is not seen or changes what is.

    Control and format characters (those that turn the direction of writing among them) are dropped,
    and all white space becomes single spaces; so two names that look the same are more often the
    same. What has nothing to see in it is empty.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept: list[str] = []
    for letter in " ".join(text.split()):
        if letter in _JOINERS:
            if kept and category(kept[-1]) in _JOINED:
                kept.append(letter)
        elif letter not in _BLANKS and category(letter) not in _UNSEEN:
            kept.append(letter)
    return " ".join("".join(kept).split()).rstrip(_JOINERS)


def name_of(author: Author | None) -> str:
    """Somebody's name, or what is known of them: the ids that the host gives itself say nothing."""
    if author is None:
        return "someone"
    return author.name or _description(author) or author.id.removeprefix(AGENT_PREFIX)


def subject_name(author: Author | None) -> str:
    """The same where a sentence begins: words of ours with a capital, a name or an id as it is."""
    name = name_of(author)
    is_name = author is not None and (author.name or _description(author) is None)
    return name if is_name else name.capitalize()


def _description(author: Author) -> str | None:
    return "a guest" if author.id.startswith(SHARE_PREFIX) else _NAMELESS.get(author.id)


def value_words(question: Question, value: Value) -> str:
    """With the labels of options, which are what was chosen from."""
    match value:
        case BooleanValue(value=truth):
            return "Yes" if truth else "No"
        case SelectedValue(value=chosen, freeform_values=own):
            return _chosen(question, (chosen,) if chosen else (), own)
        case SelectedManyValue(value=chosen, freeform_values=own):
            return _chosen(question, chosen, own)
        case _:
            return str(content_value(question, value))


def _chosen(question: Question, ids: tuple[str, ...], own: tuple[str, ...] | None) -> str:
    labels: dict[str, str] = {}
    if isinstance(question, SingleSelectQuestion | MultiSelectQuestion):
        labels = {option.id: option.label for option in question.options}
    return ", ".join((*(labels.get(name, name) for name in ids), *(own or ())))
