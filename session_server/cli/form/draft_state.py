"""The draft of one question as a state machine: which event leads from which phase to which.

synced     the field shows what the host has
unsent     edited here; the host still has the answer that the edit is based on
sending    sent, and not confirmed yet
contested  edited here, and someone else changed it too: nothing is sent until a person chooses
emptied    an answer was emptied by typing: nothing is sent, and the answer still counts
refused    the host refused what is shown

`web_demo/client/drafts/draft-state.js` has the same table for the page, and both run the cases of
`tests/corpus/draft_field.json`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from session_server.client.echoes import bare
from session_server.schemas.ahp.questions import Answer, Draft, Skipped, Submitted, Value


class Phase(StrEnum):
    SYNCED = "synced"
    UNSENT = "unsent"
    SENDING = "sending"
    CONTESTED = "contested"
    EMPTIED = "emptied"
    REFUSED = "refused"


class EventType(StrEnum):
    """`DECIDED` is submitted, skipped or cleared on purpose; `RECEIVED` is by someone else."""

    EDITED = "edited"
    DECIDED = "decided"
    SENT = "sent"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    FAILED = "failed"
    RECEIVED = "received"
    KEPT_MINE = "keptMine"
    USED_THEIRS = "usedTheirs"
    LEFT = "left"


class DraftEvent(NamedTuple):
    """`is_last`: nothing else is on its way to the host. `is_typing`: a person is typing here."""

    type: EventType
    answer: Answer | None = None
    is_last: bool = True
    is_typing: bool = False


class DraftState(NamedTuple):
    """`base` is the last answer that both had; `at_host` is what the host has, with its meta.

    `is_own`: what is shown was made here.
    """

    phase: Phase = Phase.SYNCED
    shown: Answer | None = None
    base: Answer | None = None
    at_host: Answer | None = None
    is_own: bool = False


Condition = Callable[[DraftState, DraftEvent], bool]
Change = Callable[[DraftState, DraftEvent], DraftState]


class Row(NamedTuple):
    phases: tuple[Phase, ...]
    event: EventType
    condition: Condition
    next: Phase
    change: Change


# Answers


def content_of(answer: Answer | None) -> Value | None:
    return None if answer is None or isinstance(answer, Skipped) else answer.value


def is_decided(answer: Answer | None) -> bool:
    return isinstance(answer, Submitted | Skipped)


def agree(one: Answer | None, other: Answer | None) -> bool:
    """Whether two answers have the same content, draft or not."""
    is_same_kind = isinstance(one, Skipped) == isinstance(other, Skipped)
    return is_same_kind and content_of(one) == content_of(other)


# Conditions


def _always(_: DraftState, __: DraftEvent) -> bool:
    return True


def _is_base(state: DraftState, event: DraftEvent) -> bool:
    return bare(event.answer) == state.base


def _is_shown(state: DraftState, event: DraftEvent) -> bool:
    return bare(event.answer) == state.shown


def _is_at_host(state: DraftState, event: DraftEvent) -> bool:
    return agree(event.answer, state.at_host)


def _agrees(state: DraftState, event: DraftEvent) -> bool:
    return agree(event.answer, state.shown)


def _is_typing(_: DraftState, event: DraftEvent) -> bool:
    return event.is_typing


def _is_more(_: DraftState, event: DraftEvent) -> bool:
    return not event.is_last


def _is_edited(state: DraftState, _: DraftEvent) -> bool:
    return state.shown != state.base


def _empties(state: DraftState, event: DraftEvent) -> bool:
    return event.answer is None and is_decided(state.at_host)


def _discards(state: DraftState, event: DraftEvent) -> bool:
    return _empties(state, event) and isinstance(state.shown, Draft)


def _uncovers(state: DraftState, event: DraftEvent) -> bool:
    """A cleared draft uncovers the answer below it."""
    return state.shown is None and is_decided(event.answer)


def _uncovers_typing(state: DraftState, event: DraftEvent) -> bool:
    return _uncovers(state, event) and event.is_typing


def _is_back(state: DraftState, event: DraftEvent) -> bool:
    return _is_base(state, event) and _uncovers(state, event)


def _is_at_stake(state: DraftState, event: DraftEvent) -> bool:
    """An emptied field has nothing to lose."""
    is_blank = state.shown is None and is_decided(state.at_host)
    return event.is_typing or (state.shown != state.base and not is_blank)


def _is_decision(state: DraftState, event: DraftEvent) -> bool:
    """Our answer counts more than the same text as a draft."""
    is_ours = isinstance(state.shown, Submitted) and isinstance(event.answer, Draft)
    return is_ours and _agrees(state, event)


def _has_news(state: DraftState, _: DraftEvent) -> bool:
    return bare(state.at_host) != state.base and not agree(state.at_host, state.shown)


# Changes


def _nothing(state: DraftState, _: DraftEvent) -> DraftState:
    return state


def _show(state: DraftState, event: DraftEvent) -> DraftState:
    return state._replace(shown=event.answer, is_own=True)


def _note(state: DraftState, event: DraftEvent) -> DraftState:
    return state._replace(at_host=event.answer)


def _rebase(state: DraftState, event: DraftEvent) -> DraftState:
    return state._replace(at_host=event.answer, base=bare(event.answer))


def _follow(state: DraftState, event: DraftEvent) -> DraftState:
    answer = bare(event.answer)
    return state._replace(at_host=event.answer, base=answer, shown=answer, is_own=False)


def _adopt(state: DraftState, event: DraftEvent) -> DraftState:
    is_own = state.is_own and type(state.shown) is type(event.answer)
    return _follow(state, event)._replace(is_own=is_own)


def _follow_host(state: DraftState, event: DraftEvent) -> DraftState:
    return _follow(state, event._replace(answer=state.at_host))


def _use_theirs(state: DraftState, event: DraftEvent) -> DraftState:
    return _follow_host(state, event)._replace(is_own=True)


def _keep_shown(state: DraftState, _: DraftEvent) -> DraftState:
    return state._replace(base=bare(state.at_host))


def _show_over(state: DraftState, event: DraftEvent) -> DraftState:
    return _keep_shown(_show(state, event), event)


_SYNCED, _UNSENT, _SENDING = Phase.SYNCED, Phase.UNSENT, Phase.SENDING
_CONTESTED, _EMPTIED, _REFUSED = Phase.CONTESTED, Phase.EMPTIED, Phase.REFUSED
_AT_REST = (_SYNCED, _UNSENT, _REFUSED, _EMPTIED)
_ANY = tuple(Phase)

TABLE = (
    Row(_AT_REST, EventType.EDITED, _empties, _EMPTIED, _show),
    Row(_AT_REST, EventType.EDITED, _is_base, _SYNCED, _show),
    Row(_AT_REST, EventType.EDITED, _always, _UNSENT, _show),
    Row((_SENDING,), EventType.EDITED, _always, _SENDING, _show),
    Row((_CONTESTED,), EventType.EDITED, _is_at_host, _UNSENT, _show),
    Row((_CONTESTED,), EventType.EDITED, _always, _CONTESTED, _show),
    Row((_UNSENT, _REFUSED, _CONTESTED), EventType.DECIDED, _discards, _SYNCED, _follow_host),
    Row(_AT_REST, EventType.DECIDED, _is_base, _SYNCED, _show),
    Row(_AT_REST, EventType.DECIDED, _always, _UNSENT, _show),
    Row((_SENDING,), EventType.DECIDED, _always, _SENDING, _show),
    Row((_CONTESTED,), EventType.DECIDED, _always, _UNSENT, _show_over),
    Row((_SYNCED, _UNSENT, _SENDING), EventType.SENT, _always, _SENDING, _nothing),
    Row((_SENDING,), EventType.CONFIRMED, _is_more, _SENDING, _rebase),
    Row(_ANY, EventType.CONFIRMED, _is_shown, _SYNCED, _rebase),
    Row((_SENDING,), EventType.CONFIRMED, _uncovers_typing, _EMPTIED, _rebase),
    Row((_SENDING,), EventType.CONFIRMED, _uncovers, _SYNCED, _follow),
    Row(_ANY, EventType.CONFIRMED, _always, _UNSENT, _rebase),
    Row((_SENDING,), EventType.FAILED, _is_more, _SENDING, _nothing),
    Row((_SENDING,), EventType.FAILED, _has_news, _CONTESTED, _nothing),
    Row((_SENDING,), EventType.FAILED, _is_edited, _UNSENT, _nothing),
    Row((_SENDING,), EventType.FAILED, _always, _SYNCED, _nothing),
    Row((_SENDING,), EventType.REFUSED, _has_news, _CONTESTED, _nothing),
    Row((_SENDING,), EventType.REFUSED, _always, _REFUSED, _nothing),
    Row((_UNSENT, _CONTESTED), EventType.RECEIVED, _is_decision, _UNSENT, _rebase),
    Row((_REFUSED,), EventType.RECEIVED, _is_decision, _REFUSED, _rebase),
    Row((_SENDING,), EventType.RECEIVED, _is_decision, _SENDING, _rebase),
    Row((_SENDING,), EventType.RECEIVED, _agrees, _SENDING, _adopt),
    Row((_SENDING,), EventType.RECEIVED, _always, _SENDING, _note),
    Row(_ANY, EventType.RECEIVED, _agrees, _SYNCED, _adopt),
    Row((_UNSENT,), EventType.RECEIVED, _is_base, _UNSENT, _note),
    Row((_REFUSED,), EventType.RECEIVED, _is_base, _REFUSED, _note),
    Row((_EMPTIED,), EventType.RECEIVED, _is_base, _EMPTIED, _note),
    Row((_CONTESTED,), EventType.RECEIVED, _is_back, _EMPTIED, _note),
    Row((_CONTESTED,), EventType.RECEIVED, _is_base, _UNSENT, _note),
    Row((_UNSENT, _REFUSED), EventType.RECEIVED, _always, _CONTESTED, _note),
    Row((_SYNCED, _EMPTIED), EventType.RECEIVED, _is_typing, _CONTESTED, _note),
    Row((_CONTESTED,), EventType.RECEIVED, _is_at_stake, _CONTESTED, _note),
    Row((_SYNCED, _EMPTIED, _CONTESTED), EventType.RECEIVED, _always, _SYNCED, _follow),
    Row((_CONTESTED,), EventType.KEPT_MINE, _always, _UNSENT, _keep_shown),
    Row((_CONTESTED,), EventType.USED_THEIRS, _always, _SYNCED, _use_theirs),
    Row((_EMPTIED,), EventType.LEFT, _always, _SYNCED, _follow_host),
)
"""In these phases, on this event, if this holds: the next phase, and what changes.

The first row that fits counts; an event without a row changes nothing.
"""


def row_for(state: DraftState, event: DraftEvent) -> Row | None:
    for row in TABLE:
        is_meant = event.type is row.event and state.phase in row.phases
        if is_meant and row.condition(state, event):
            return row
    return None


def transition(state: DraftState, event: DraftEvent) -> DraftState:
    row = row_for(state, event)
    return state if row is None else row.change(state, event)._replace(phase=row.next)
